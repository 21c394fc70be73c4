/* What a person would see last: every rule, and the same lines in whatever pieces bytes come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "view/render.h"
#include "view/utf8.h"

#define FFFD UTF8_REPLACEMENT
#define ESC  "\x1b"
#define CSI  "\x1b["

static const struct render_options plain_options = {.first_line = 1, .line_max = 4096};

/* Each line as "number[xcount]|text" and an end that says whether it is complete. */
static int note_line(void *self, const struct render_line *line)
{
    struct buf *out = self;
    int r = buf_printf(out, "%llu", (unsigned long long)line->line);
    if (r == 0 && line->count > 1)
        r = buf_printf(out, "x%llu", (unsigned long long)line->count);
    if (r == 0)
        r = buf_str(out, "|");
    if (r == 0)
        r = buf_append(out, line->text, line->size);
    return r == 0 ? buf_str(out, line->complete ? "\n" : "~") : r;
}

static void feed_split(struct render *r, const char *text, size_t size, size_t split)
{
    assert_int_equal(render_feed(r, text, split), 0);
    assert_int_equal(render_feed(r, text + split, size - split), 0);
    assert_int_equal(render_finish(r), 0);
}

static void check_noted(struct buf *noted, const char *expected)
{
    assert_int_equal(buf_append(noted, "", 1), 0);
    assert_string_equal(noted->data, expected);
    buf_done(noted);
}

/* Whole, byte by byte, and split in two at every place. */
static void check_lines(const struct render_options *options, const char *text, size_t size,
                        const char *expected)
{
    struct buf noted cleanup_buf;
    struct render *r cleanup_render = NULL;
    buf_init(&noted, 1 << 20);
    assert_int_equal(render_new(options, note_line, &noted, &r), 0);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(render_feed(r, text + i, 1), 0);
    assert_int_equal(render_finish(r), 0);
    check_noted(&noted, expected);
    for (size_t split = 0; split <= size; split++) {
        feed_split(r, text, size, split);
        check_noted(&noted, expected);
    }
}

/* A text without newlines shows as one line. */
static void check_one(const char *text, size_t size, const char *expected)
{
    char line[512];
    if (*expected)
        snprintf(line, sizeof line, "1|%s~", expected);
    else
        line[0] = '\0';
    check_lines(&plain_options, text, size, line);
}

#define SHOWS(text, expected) check_one(text, sizeof(text) - 1, expected)
#define LINES(text, expected) check_lines(&plain_options, text, sizeof(text) - 1, expected)

static void lines_are_numbered(void **state)
{
    (void)state;
    LINES("", "");
    LINES("a", "1|a~");
    LINES("a\n", "1|a\n");
    LINES("a\n\nb \nc", "1|a\n2|\n3|b \n4|c~");
    LINES("a\r\nb  \r\n\r\n", "1|a\n2|b  \n3|\n");
    LINES("a\n" CSI "m", "1|a\n");
    const struct render_options later = {.first_line = 41, .line_max = 4096};
    check_lines(&later, "x\ny", 3, "41|x\n42|y~");
}

static void carriage_returns_overwrite(void **state)
{
    (void)state;
    SHOWS("abc\rxyz", "xyz");
    SHOWS("abcdef\rxyz", "xyzdef");
    SHOWS("ab\rwxyz", "wxyz");
    SHOWS("abc\r", "abc");
    SHOWS("\rProgress 1\rProgress 2\rProgress 10", "Progress 10");
    LINES("long text\rdone     \nnext\n", "1|done\n2|next\n");
    LINES("abc\r\r\nx\r\n", "1|abc\n2|x\n");
}

static void backspaces_go_left(void **state)
{
    (void)state;
    LINES("abc\b\b\bxyz\n", "1|xyz\n");
    SHOWS("abc\bX", "abX");
    SHOWS("\b\babc", "abc");
    SHOWS("|\b/\b-\b\\\bdone", "done");
    SHOWS("\xc3\xa9\xc3\xa9\b\xc3\xaa", "\xc3\xa9\xc3\xaa");
    SHOWS("\xe4\xbd\xa0\b\b \b\bok", "ok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_numbered),
        cmocka_unit_test(carriage_returns_overwrite),
        cmocka_unit_test(backspaces_go_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
