/* What a person would see last: every rule, and the same lines in whatever pieces bytes come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "screen/render.h"
#include "text/utf8.h"

#define FFFD  UTF8_REPLACEMENT
#define ESC   "\x1b"
#define CSI   "\x1b["

#define COUNT 200 /* lines: more than are held back */

static const struct render_options plain_options = {.first_line = 1, .line_max = 4096};
static const struct render_options fold_options = {.first_line = 1, .line_max = 4096, .fold = true};
static const struct render_options short_options = {.first_line = 1, .line_max = 128};

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
    struct buf noted cleanup_buf = BUF_UP_TO(1 << 20);
    struct render *r cleanup_render = NULL;
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
#define FOLDS(text, expected) check_lines(&fold_options, text, sizeof(text) - 1, expected)
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

static void sequences_are_removed(void **state)
{
    (void)state;
    SHOWS(CSI "1;32mok" CSI "0m", "ok");
    SHOWS("a" ESC "]0;title\ab" ESC "]8;;x" ESC "\\c", "abc");
    SHOWS("a" ESC "Pq\r\t" ESC "\\b" ESC "_g" ESC "\\c" ESC "(Bd" ESC "=e", "abcde");
    SHOWS("a" CSI "?25lb" CSI "?2Kc" CSI "2Jd" CSI "5;5He", "abcde");
    SHOWS("a\xc2\x85"
          "b\xc2\x9b"
          "1mc\xc2\x9d"
          "d",
          "ab1mcd");
    SHOWS("abc" CSI "31", "abc");
    LINES("a" ESC "]unfinished\nb" CSI "12\nc" ESC "\nd", "1|a\n2|b\n3|c\n4|d~");
}

static void unfinished_strings_hide_little(void **state)
{
    (void)state;
    static char text[70000];
    struct buf out cleanup_buf = BUF_UP_TO(sizeof text);
    memset(text, 'x', sizeof text);
    memcpy(text, ESC "]", 2);
    memcpy(text + sizeof text - 3, "end", 3);
    assert_int_equal(render_text(&out, text, sizeof text, &plain_options), 0);
    assert_in_range(out.len, 4090, 4096);
    assert_memory_equal(out.data + out.len - 3, "end", 3);
}

static void controls_are_made_visible(void **state)
{
    (void)state;
    SHOWS("\x01\x1f\x7f\a\v\f", "^A^_^?^G^K^L");
    SHOWS("a\0b", "a^@b");
    SHOWS("\0\rx", "x@");
    SHOWS("a" CSI "1\x02"
          "mb",
          "a^Bb");
}

static void invalid_bytes_are_replaced(void **state)
{
    (void)state;
    SHOWS("a\xff"
          "b",
          "a" FFFD "b");
    SHOWS("\xe2\x82"
          "x",
          FFFD "x");
    SHOWS("\xf0\x9f\x98", FFFD);
    SHOWS("\xe2\x82\xe2\x82\xac", FFFD "\u20ac");
    SHOWS("\xf0\x9f\x98\xf0\x9f\x98\x80", FFFD "\U0001f600");
    SHOWS("\xed\xa0\x80", FFFD FFFD FFFD);
    SHOWS("end \xf0\x9f\x98", "end " FFFD);
    SHOWS("\xe2\r\x82", FFFD);
    SHOWS("\xe2" CSI "m\x82\xac", FFFD FFFD FFFD);
    SHOWS("\x9b"
          "31m",
          FFFD "31m");
}

static void lines_are_erased(void **state)
{
    (void)state;
    SHOWS("hello" CSI "K", "hello");
    SHOWS("hello\r" CSI "Kx", "x");
    SHOWS("hello" CSI "2Dy" CSI "K", "hely");
    SHOWS("hello" CSI "3D" CSI "1K", "   lo");
    SHOWS("hello" CSI "1Kx", "     x");
    SHOWS("hello" CSI "2Kx", "     x");
    SHOWS("hello" CSI "2K\rx", "x");
    SHOWS("hello" CSI "1K", "");
    SHOWS("hello" CSI "3K!", "hello!");
    LINES("hello\r" CSI "K\nx", "1|\n2|x~");
    SHOWS("h\u00e9llo" CSI "3D" CSI "K", "h\u00e9");
    SHOWS("h\u00e9llo" CSI "3D" CSI "1K", "   lo");
}

static void the_cursor_moves_in_a_line(void **state)
{
    (void)state;
    SHOWS("abc" CSI "2DX", "aXc");
    SHOWS("abc" CSI "99DX", "Xbc");
    SHOWS("abc\r" CSI "CX", "aXc");
    SHOWS("abc" CSI "3CX", "abc   X");
    SHOWS("abc" CSI "GX", "Xbc");
    SHOWS("abc" CSI "0GX", "Xbc");
    SHOWS("abc" CSI "2GX", "aXc");
    SHOWS("abc" CSI "5GX", "abc X");
    SHOWS("\u00e9\u00e9\u00e9" CSI "2GX", "\u00e9X\u00e9");
}

static void it_does_not_move_far_beyond_the_text(void **state)
{
    (void)state;
    char expected[RENDER_COLUMNS + 1];
    memset(expected, ' ', sizeof expected);
    memcpy(expected + RENDER_COLUMNS - 1, "X", 2);
    SHOWS(CSI "99999CX", expected);
    SHOWS(CSI "99999GX", expected);
    SHOWS(CSI "99999C" CSI "99999CX", expected);
}

static void rows_are_redrawn(void **state)
{
    (void)state;
    LINES("one\ntwo\nthree\n" CSI "3A1\n2\n3\n", "1|1ne\n2|2wo\n3|3hree\n");
    LINES("one\ntwo\n" CSI "2F" CSI "KX\n" CSI "KY\nend", "1|X\n2|Y\n5|end~");
    LINES("one\ntwo" CSI "AX", "1|oneX\n2|two~");
    LINES("one\ntwo\n" CSI "A" CSI "AX" CSI "2B\rend", "1|Xne\n2|two\n3|end~");
    LINES("one\ntwo\n" CSI "2AX" CSI "EY", "1|Xne\n2|Ywo\n");
    LINES("one" CSI "5BX" CSI "EY", "1|YneX~");
    LINES("one\n" CSI "99AX", "1|Xne\n");
}

static void what_is_below_is_erased(void **state)
{
    (void)state;
    LINES("one\ntwo\nthree\n" CSI "3A" CSI "Jdone\n", "1|done\n");
    LINES("one\ntwo\n" CSI "2A" CSI "CX" CSI "J", "1|oX~");
    LINES("one\ntwo\nthree\n" CSI "3A" CSI "J" CSI "2BX\n", "1|\n4|\n4|X\n");
    LINES("one\ntwo\n" CSI "2A" CSI "J1\n2\n3\n4\n", "1|1\n4|2\n5|3\n6|4\n");
    LINES("one\ntwo\n" CSI "2A" CSI "1JX" CSI "2J" CSI "3JY\n", "1|XYe\n2|two\n");
}

static void further_up_is_out_of_reach(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    struct buf expected cleanup_buf = BUF_UP_TO(1 << 16);
    for (int i = 1; i <= COUNT; i++) {
        buf_printf(&text, "line\n");
        buf_printf(&expected, "%d|%s\n", i, i == COUNT - RENDER_ROWS + 2 ? "lXne" : "line");
    }
    buf_printf(&text, CSI "C" CSI "%dAX", 1000000);
    check_lines(&plain_options, text.data, text.len, expected.data);
}

static void wide_characters_have_two_columns(void **state)
{
    (void)state;
    SHOWS("\u4f60\u597d\rab", "ab\u597d");
    SHOWS("\u4f60\u597d\ra", "a \u597d");
    SHOWS("\u4f60\u597d" CSI "2GX", " X\u597d");
    SHOWS("a\u4f60b" CSI "3GX", "a Xb");
    SHOWS("abcd" CSI "2G\u4f60", "a\u4f60d");
    SHOWS("ab\b\u4f60", "a\u4f60");
    SHOWS("\u4f60\u597d" CSI "2G\u4f60", " \u4f60");
    SHOWS("\u4f60\u597d" CSI "4G" CSI "K", "\u4f60");
    SHOWS("\u4f60\u597d" CSI "3G" CSI "1K!", "  !");
    SHOWS("x\U0001f600\by", "x y");
    SHOWS("\u4f60\u597d" CSI "G" CSI "1K", "  \u597d");
}

static void marks_stay_with_their_character(void **state)
{
    (void)state;
    SHOWS("e\u0301x\by", "e\u0301y");
    SHOWS("e\u0301x\rE", "Ex");
    SHOWS("\u0301x", "\u0301x");
    SHOWS("\u0301x\by", "y");
    SHOWS("ab\b\u0301", "a\u0301b");
    SHOWS("\u4f60\u0301b\b\b", "\u4f60\u0301b");
    SHOWS("a\u0301\u0302\u0303\u0304"
          "b\bc",
          "a\u0301\u0302\u0303c");
}

static void tabs_stay_tabs(void **state)
{
    (void)state;
    SHOWS("a\tb", "a\tb");
    SHOWS("a\tb\rX", "X\tb");
    SHOWS("a\tb" CSI "4GX", "a  X    b");
    SHOWS("0123456789\r\tX", "01234567X9");
    SHOWS("abc\r\tX", "abc     X");
    SHOWS("a\t\u00e9" CSI "9GX\tY", "a\tX\tY");
    SHOWS("a\t", "a\t");
    SHOWS("x\ra\t\tb", "a\t\tb");
}

static void equal_lines_are_folded(void **state)
{
    (void)state;
    FOLDS("a\na\na\nb\na\n", "1x3|a\n4|b\n5|a\n");
    FOLDS("\n\n\n", "1x3|\n");
    FOLDS("a\n" CSI "31ma" CSI "m\nb\ra\n", "1x3|a\n");
    FOLDS("a\na", "1|a\n2|a~");
    LINES("a\na\n", "1|a\n2|a\n");
}

static void many_lines_are_folded(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    char expected[64];
    for (int i = 0; i < COUNT; i++)
        buf_str(&text, "the same\n");
    buf_str(&text, "other\n");
    snprintf(expected, sizeof expected, "1x%d|the same\n%d|other\n", COUNT, COUNT + 1);
    check_lines(&fold_options, text.data, text.len, expected);
}

static void many_lines_pass(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    struct buf expected cleanup_buf = BUF_UP_TO(1 << 16);
    for (int i = 1; i <= COUNT; i++) {
        const char *end = i % 50 == 0 ? "\u4f60\r\n" : i % 70 == 0 ? CSI "1m\n" : "\n";
        buf_printf(&text, "line %d\u00e9%s", i, end);
        buf_printf(&expected, "%d|line %d\u00e9%s\n", i, i, i % 50 == 0 ? "\u4f60" : "");
    }
    check_lines(&fold_options, text.data, text.len, expected.data);
}

static int count_line(void *self, const struct render_line *line)
{
    assert_true(line->size <= 4096);
    ++*(uint64_t *)self;
    return 0;
}

/* -- Lines that are too long ------------------------------------------------------------------- */

#define MAX_LINE 128

/* One line of so many of the same character, with something before and after them. */
static void make_long(struct buf *text, const char *before, const char *each, int count,
                      const char *after)
{
    buf_str(text, before);
    for (int i = 0; i < count; i++)
        buf_str(text, each);
    buf_str(text, after);
}

/* What is shown has both ends of the line, and says the rest exactly. */
static void check_cut(const char *text, size_t size, const char *line, size_t length)
{
    unsigned long long missing = 0;
    const char *open = memmem(line, length, "[... ", 5);
    const char *close = memmem(line, length, " bytes left out ...]", 20);
    assert_non_null(open);
    assert_non_null(close);
    assert_int_equal(sscanf(open, "[... %llu bytes", &missing), 1);
    close += 20;
    size_t head = (size_t)(open - line), tail = length - (size_t)(close - line);
    assert_int_equal(head + tail + missing, size);
    assert_memory_equal(line, text, head);
    assert_memory_equal(close, text + size - tail, tail);
    assert_true(length <= MAX_LINE && length > MAX_LINE - 12);
    assert_true(head + 8 > tail && tail + 8 > head);
}

static void long_lines_are_cut_in_the_middle(void **state)
{
    (void)state;
    static const char *const each[] = {"a", "\u00e9", "\u4f60", "\U0001f600", "\t", "\u0301"};
    for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) {
        for (int count = 110; count < 1200; count += count < 300 ? 1 : 97) {
            struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
            struct buf out cleanup_buf = BUF_UP_TO(1 << 16);
            struct buf split cleanup_buf = BUF_UP_TO(1 << 16);
            make_long(&text, "beginning", each[k], count, "end");
            assert_int_equal(render_text(&out, text.data, text.len, &short_options), 0);
            if (text.len > MAX_LINE)
                check_cut(text.data, text.len, out.data, out.len);
            else
                assert_string_equal(out.data, text.data);

            struct render *r cleanup_render = NULL;
            assert_int_equal(render_new(&short_options, note_line, &split, &r), 0);
            for (size_t i = 0; i < text.len; i++)
                assert_int_equal(render_feed(r, text.data + i, 1), 0);
            assert_int_equal(render_finish(r), 0);
            assert_int_equal(split.len, out.len + 3);
            assert_memory_equal(split.data + 2, out.data, out.len);
        }
    }
}

static void the_ends_of_long_lines_can_be_redrawn(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    struct buf out cleanup_buf = BUF_UP_TO(1 << 16);
    make_long(&text, "", "0123456789", 1000, "end\b\b\bEND\rBEGIN\n");
    buf_str(&text, "next\n" CSI "2A" CSI "7G\u4f60" CSI "9995G\u597d\n");
    assert_int_equal(render_text(&out, text.data, text.len, &short_options), 0);
    const char *second = strchr(out.data, '\n') + 1;
    assert_string_equal(second, "next\n");
    assert_memory_equal(out.data, "BEGIN5\u4f6089", 11);
    assert_memory_equal(second - 14, "123\u597d6789END\n", 14);
    assert_non_null(strstr(out.data, " bytes left out ...]"));

    out.len = 0;
    buf_str(&text, CSI "2A" CSI "12G" CSI "K");
    assert_int_equal(render_text(&out, text.data, text.len, &short_options), 0);
    assert_string_equal(out.data, "BEGIN5\u4f60890\nnext\n");
}

/* Cells, bytes and columns of a line that is forgotten in parts differ, and all are counted. */
static void long_lines_are_counted_in_columns(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    struct buf out cleanup_buf = BUF_UP_TO(1 << 16);
    char head[43], last[4];
    unsigned long long missing;
    memset(head, 'x', sizeof head - 1);
    head[sizeof head - 1] = '\0';
    make_long(&text, "", "\u4f60", 200, "\r");
    buf_printf(&text, "%s" CSI "99999C", head);
    make_long(&text, "", "y", 600, CSI "1000GZ");
    assert_int_equal(render_text(&out, text.data, text.len, &short_options), 0);
    assert_memory_equal(out.data, head, sizeof head - 1);
    const char *notice = out.data + sizeof head - 1;
    assert_int_equal(sscanf(notice, "[... %llu bytes left out ...]yy", &missing), 1);
    size_t tail = strlen(strchr(notice, ']') + 1);
    assert_int_equal(missing, 600 - 63 + 42 + 600 - 42 - tail);
    memcpy(last, out.data + out.len - 3, sizeof last);
    assert_string_equal(last, "yyZ");
}

/* Renders a text of one long line; what is shown begins and ends so, and so much is missing. */
static void check_long(const struct render_options *options, struct buf *text, const char *begin,
                       const char *end, unsigned long long all)
{
    struct buf out cleanup_buf = BUF_UP_TO(1 << 16);
    unsigned long long missing;
    assert_int_equal(render_text(&out, text->data, text->len, options), 0);
    assert_true(out.len > strlen(begin) + strlen(end));
    assert_memory_equal(out.data, begin, strlen(begin));
    assert_memory_equal(out.data + out.len - strlen(end), end, strlen(end));
    const char *notice = strstr(out.data, "[... ");
    assert_non_null(notice);
    assert_int_equal(sscanf(notice, "[... %llu bytes left out ...]", &missing), 1);
    size_t head = (size_t)(notice - out.data), tail = strlen(strchr(notice, ']') + 1);
    assert_int_equal(missing + head + tail, all);
    text->len = 0;
}

static void what_is_forgotten_can_be_erased(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);

    /* Drawn in the middle: not kept, no harm. */
    make_long(&text, "", "0123456789", 1000, CSI "5001Gmiddle");
    check_long(&short_options, &text, "0123456789", "0123456789", 10000);
    make_long(&text, "", "0123456789", 1000, CSI "5001G\u4f60\u597d\u0301\t" CSI "2G\u4f60");
    check_long(&short_options, &text, "0\u4f603456789", "0123456789", 10001);

    /* Erased from the middle on, and up to it. */
    make_long(&text, "", "0123456789", 1000, CSI "5001G" CSI "Kend");
    check_long(&short_options, &text, "0123456789", "]end", 5003);
    make_long(&text, "", "0123456789", 1000, CSI "5001G" CSI "1K\rX");
    check_long(&short_options, &text, "X         ", "0123456789", 10000);
    make_long(&text, "", "0123456789", 1000, CSI "9999G" CSI "1K");
    check_long(&short_options, &text, "          ", "      9", 10000);
}

static void long_lines_change_their_form(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);

    /* Longer than a row may be in which somebody moves. */
    make_long(&text, "", "0123456789", 800, "\rX" CSI "99999Cend");
    check_long(&plain_options, &text, "X123456789", "789end", 8003);
    make_long(&text, "", "0123456789", 800, "\r\u4f60" CSI "99999C\u597d");
    check_long(&plain_options, &text, "\u4f6023456789", "789\u597d", 8004);

    make_long(&text, "", "0123456789", 800, CSI "3001G" CSI "Kend");
    check_long(&plain_options, &text, "0123456789", "]end", 3003);

    /* Tabs: few bytes, many columns. */
    make_long(&text, "", "\t", 600, "\rX" CSI "99999Cend");
    check_long(&short_options, &text, "X       \t\t", "\t\tend", 599 + 8 + 3);
}

static void long_lines_are_not_confused(void **state)
{
    (void)state;
    const struct render_options options = {.first_line = 1, .line_max = MAX_LINE, .fold = true};
    struct buf text cleanup_buf = BUF_UP_TO(1 << 20);
    struct render *r cleanup_render = NULL;
    uint64_t counted = 0;
    for (int i = 0; i < COUNT; i++)
        buf_printf(&text, "%0300d\n", i);
    assert_int_equal(render_new(&options, count_line, &counted, &r), 0);
    assert_int_equal(render_feed(r, text.data, text.len), 0);
    assert_int_equal(render_finish(r), 0);
    assert_int_equal(counted, COUNT);
}

/* Whole lines are not taken as they are when the first of them is in a row that was erased. */
static void lines_after_an_erased_row(void **state)
{
    (void)state;
    struct buf text cleanup_buf = BUF_UP_TO(1 << 16);
    struct buf expected cleanup_buf = BUF_UP_TO(1 << 16);
    buf_str(&text, "x\r" CSI "K");
    for (int i = 1; i <= COUNT; i++) {
        buf_str(&text, "a  \n");
        buf_printf(&expected, "%d|%s\n", i, i == 1 ? "a" : "a  ");
    }
    check_lines(&plain_options, text.data, text.len, expected.data);
}

/* -- Limits ----------------------------------------------------------------------------------- */

static long resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#define PIECES 64

/* Many times the same bytes: memory stays within bounds, and it ends soon. */
static void flood(const char *bytes, size_t size, uint64_t lines)
{
    static char piece[1 << 16];
    struct render *r cleanup_render = NULL;
    uint64_t counted = 0;
    size_t each = sizeof piece / size * size;
    for (size_t i = 0; i < each; i += size)
        memcpy(piece + i, bytes, size);
    assert_int_equal(render_new(&plain_options, count_line, &counted, &r), 0);
    long before = resident_kb();
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(render_feed(r, piece, each), 0);
    if (!SANITIZED)
        assert_in_range(resident_kb() - before, 0, 8 * 1024);
    assert_int_equal(render_finish(r), 0);
    assert_int_equal(counted, lines);
}

#define FLOOD(bytes, lines) flood(bytes, sizeof(bytes) - 1, lines)

static void memory_is_bounded(void **state)
{
    (void)state;
    FLOOD("x", 1);
    FLOOD("\u0301", 1);
    FLOOD("a\u0301\b", 1);
    FLOOD("\t", 1);
    FLOOD(CSI "A", 0);
    FLOOD("\u4f60" CSI "A" CSI "99999C\t", 1);
    FLOOD("\xe2", 1);
    FLOOD(CSI "99999C" CSI "2Kx", 1);
    FLOOD("\xc3\xa9\r\n", PIECES * (65536 / 4));
}

static int stop_at_third(void *self, const struct render_line *line)
{
    (void)self;
    return line->line == 3 ? 42 : 0;
}

static void the_receiver_can_stop_it(void **state)
{
    (void)state;
    struct render *r cleanup_render = NULL;
    assert_int_equal(render_new(&plain_options, stop_at_third, NULL, &r), 0);
    assert_int_equal(render_feed(r, "1\n2\n3\n4\n", 8), 0);
    assert_int_equal(render_finish(r), 42);

    struct render *many cleanup_render = NULL;
    char lines[2 * COUNT];
    for (size_t i = 0; i < sizeof lines; i++)
        lines[i] = i % 2 ? '\n' : 'x';
    assert_int_equal(render_new(&plain_options, stop_at_third, NULL, &many), 0);
    assert_int_equal(render_feed(many, lines, sizeof lines), 42);
}

/* A count takes the place of equal lines from three on, and where it is shorter. */
static void equal_lines_are_counted_where_that_is_shorter(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"a line of text\na line of text\n", "a line of text\na line of text\n"},
        {"a line of text\na line of text\na line of text\n",
         "a line of text\n[repeated 2 more times]\n"},
        {"12345678901\n12345678901\n12345678901\n", "12345678901\n12345678901\n12345678901\n"},
        {"123456789012\n123456789012\n123456789012\n", "123456789012\n[repeated 2 more times]\n"},
        {"a\n\n\n\nb\n", "a\n\n\n\nb\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct buf out cleanup_buf = BUF_UP_TO(256);
        assert_int_equal(render_text(&out, texts[i][0], strlen(texts[i][0]), &fold_options), 0);
        assert_string_equal(out.data, texts[i][1]);
    }
}

static void a_text_is_rendered_at_once(void **state)
{
    (void)state;
    struct buf out cleanup_buf = BUF_UP_TO(64);
    assert_int_equal(render_text(&out, "a\na\na\nb\rc", 9, &fold_options), 0);
    assert_string_equal(out.data, "a\na\na\nc");
    out.len = 0;
    out.max = 4;
    assert_int_equal(render_text(&out, "abcdef", 6, &fold_options), -E2BIG);
}

static void it_is_as_new_after_the_end(void **state)
{
    (void)state;
    struct buf noted cleanup_buf = BUF_UP_TO(1024);
    struct render *r cleanup_render = NULL;
    assert_int_equal(render_new(&fold_options, note_line, &noted, &r), 0);
    for (int i = 0; i < 2; i++) {
        feed_split(r, "a\na\nb" CSI "AX" ESC "]x", 12, 3);
        check_noted(&noted, "1|a\n2|aX\n3|b~");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_numbered),
        cmocka_unit_test(carriage_returns_overwrite),
        cmocka_unit_test(backspaces_go_left),
        cmocka_unit_test(sequences_are_removed),
        cmocka_unit_test(unfinished_strings_hide_little),
        cmocka_unit_test(controls_are_made_visible),
        cmocka_unit_test(invalid_bytes_are_replaced),
        cmocka_unit_test(lines_are_erased),
        cmocka_unit_test(the_cursor_moves_in_a_line),
        cmocka_unit_test(it_does_not_move_far_beyond_the_text),
        cmocka_unit_test(rows_are_redrawn),
        cmocka_unit_test(what_is_below_is_erased),
        cmocka_unit_test(further_up_is_out_of_reach),
        cmocka_unit_test(wide_characters_have_two_columns),
        cmocka_unit_test(marks_stay_with_their_character),
        cmocka_unit_test(tabs_stay_tabs),
        cmocka_unit_test(equal_lines_are_folded),
        cmocka_unit_test(many_lines_are_folded),
        cmocka_unit_test(many_lines_pass),
        cmocka_unit_test(long_lines_are_cut_in_the_middle),
        cmocka_unit_test(the_ends_of_long_lines_can_be_redrawn),
        cmocka_unit_test(long_lines_are_counted_in_columns),
        cmocka_unit_test(what_is_forgotten_can_be_erased),
        cmocka_unit_test(long_lines_change_their_form),
        cmocka_unit_test(long_lines_are_not_confused),
        cmocka_unit_test(lines_after_an_erased_row),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(the_receiver_can_stop_it),
        cmocka_unit_test(equal_lines_are_counted_where_that_is_shorter),
        cmocka_unit_test(a_text_is_rendered_at_once),
        cmocka_unit_test(it_is_as_new_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
