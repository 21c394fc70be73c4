/* Framing: what begins like a line of ours, whatever its disguise, and what does not. */
#include "unit.h"

#include <utf8proc.h>

#include "text/frame.h"
#include "text/utf8.h"

static void every_beginning_is_recognised(void **state)
{
    (void)state;
    static const char *const leads[] = {"",
                                        " ",
                                        "\t  ",
                                        "\\",
                                        "\\\\ \\",
                                        "\xc2\xa0",
                                        "\xe2\x80\x8b",
                                        "\xef\xbb\xbf",
                                        "\xe3\x80\x80",
                                        "\xe2\x80\xae",
                                        "\xf3\xa0\x80\x81"};
    size_t count = 0;
    for (; frame_entry(count); count++)
        for (size_t k = 0; k < ARRAY_SIZE(leads); k++) {
            char line[128];
            size_t n =
                (size_t)snprintf(line, sizeof line, "%s%srest", leads[k], frame_entry(count));
            assert_true(frame_is_ours(line, n));
            assert_int_equal(frame_size(line, n), n + 1);
        }
    assert_true(count >= 20);
}

/* One of each kind that a reader does not see, or sees as a blank. */
static const uint32_t unseen[] = {
    0x09,    0x0b,    0x20,    0x85,    0xa0,    0xad,    0x34f,   0x61c,   0x115f,  0x1160,
    0x1680,  0x17b4,  0x180b,  0x180e,  0x180f,  0x2000,  0x2001,  0x2003,  0x2007,  0x200a,
    0x200b,  0x200c,  0x200d,  0x200e,  0x200f,  0x202a,  0x202b,  0x202c,  0x202d,  0x202e,
    0x202f,  0x205f,  0x2060,  0x2061,  0x2064,  0x2065,  0x2066,  0x2067,  0x2068,  0x2069,
    0x206f,  0x2800,  0x3000,  0x3164,  0xfe00,  0xfe0f,  0xfeff,  0xffa0,  0xfff0,  0xfff9,
    0xfffb,  0x2d7f,  0xfffc,  0xfffe,  0xffff,  0xfdd0,  0x1107f, 0x16fe4, 0x1d159, 0x10ffff,
    0xe0001, 0xe0041, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff, 0x1bca0, 0x1d173, 0x1d17a,
};

static size_t put_utf8(char *to, uint32_t point)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)point, (utf8proc_uint8_t *)to);
}

/* Whether a line is shown such that taking a backslash away gives it back, nothing reordered. */
static void assert_framed(const char *line, size_t size)
{
    struct buf out cleanup_buf = BUF_UP_TO(512);
    if (!frame_is_ours(line, size))
        fail_msg("%.*s passes", (int)size, line);
    assert_int_equal(frame_write(&out, line, size), 0);
    assert_int_equal(out.len, size + 1);
    assert_int_equal(out.data[0], '\\');
    for (size_t at = 1, n; at < out.len; at += n) {
        uint32_t shown, was;
        n = utf8_next(out.data + at, out.len - at, &shown);
        assert_int_equal(utf8_next(line + at - 1, size - at + 1, &was), n);
        assert_int_equal(shown, utf8_reorders(was) ? 0xfffd : was);
    }
}

/* Every such character, at every place of every beginning: put in, doubled, and in place of each
 * blank. */
static void no_disguise_helps(void **state)
{
    (void)state;
    for (size_t i = 0; frame_entry(i); i++)
        for (size_t k = 0; k < ARRAY_SIZE(unseen); k++)
            for (size_t at = 0; at <= strlen(frame_entry(i)); at++) {
                const char *entry = frame_entry(i);
                char line[160], blanks[160];
                size_t n = 0, m = 0;
                for (size_t c = 0; c <= strlen(entry); c++) {
                    for (int twice = 0; c == at && twice < 2; twice++)
                        n += put_utf8(line + n, unseen[k]);
                    if (entry[c] == ' ')
                        m += put_utf8(blanks + m, unseen[k]);
                    else if (entry[c])
                        blanks[m++] = entry[c];
                    if (entry[c])
                        line[n++] = entry[c];
                }
                assert_framed(line, n);
                assert_framed(blanks, m);
            }
}

/* Letters in another dress are letters; with an accent they are others. */
static void no_dress_helps(void **state)
{
    (void)state;
    static const char *const dressed[] = {
        "\xef\xbc\xa5\xef\xbd\x98it code: 0", /* full width */
        "Exit code\xef\xbc\x9a 0",            /* a full-width colon */
        "\xf0\x9d\x90\x84xit code: 0",        /* bold, of mathematics */
        "\xef\xbc\xbc\xef\xbc\xbbshell x",    /* a full-width backslash and bracket */
        "\xe2\x93\x94xit code: 0",            /* in a circle */
        "--- \xc5\xbftdout (",                /* a long s */
    };
    for (size_t i = 0; i < ARRAY_SIZE(dressed); i++)
        assert_framed(dressed[i], strlen(dressed[i]));
}

static void nothing_is_reordered(void **state)
{
    (void)state;
    struct buf out cleanup_buf = BUF_UP_TO(256);
    static const char line[] = "a\xe2\x80\xae"
                               "b\xe2\x81\xa9\xe2\x80\x8f\xe2\x82\xac\xe2";
    assert_int_equal(frame_write(&out, line, sizeof line - 1), 0);
    assert_string_equal(out.data, "a\xef\xbf\xbd"
                                  "b\xef\xbf\xbd\xe2\x80\x8f\xe2\x82\xac\xe2");
}

static void case_does_not_matter(void **state)
{
    (void)state;
    assert_true(frame_is_ours("EXIT CODE: 0", 12));
    assert_true(frame_is_ours("exit code: 0", 12));
    assert_true(frame_is_ours("[SHELL x", 8));
}

static void a_beginning_alone_is_enough(void **state)
{
    (void)state;
    assert_true(frame_is_ours("Exit code:", 10));
    assert_true(frame_is_ours("Exit code:\t0", 12));
    assert_true(frame_is_ours("[shell", 6));
    assert_true(frame_is_ours("(no new output)", 15));
}

static void other_lines_are_left_alone(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        " ",
        "\\",
        "Exit cod",
        "the Exit code: 0",
        "> Exit code: 0",
        "Killed",
        "Running tests",
        "--- a/stderr.c",
        "--- stdout",
        "shell",
        "Signals",
        "\xc3\xa9xit code: 0",
        "E\xcc\x81xit code: 0",
        "\xff xit code: 0",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        size_t n = strlen(lines[i]);
        struct buf out cleanup_buf = BUF_UP_TO(256);
        assert_false(frame_is_ours(lines[i], n));
        assert_int_equal(frame_size(lines[i], n), n);
        assert_int_equal(buf_str(&out, ""), 0);
        assert_int_equal(frame_write(&out, lines[i], n), 0);
        assert_string_equal(out.data, lines[i]);
    }
}

static void expect(const char *line, const char *framed)
{
    struct buf out cleanup_buf = BUF_UP_TO(256);
    assert_int_equal(frame_write(&out, line, strlen(line)), 0);
    assert_string_equal(out.data, framed);
    assert_int_equal(frame_size(line, strlen(line)), out.len);
}

/* Taking away one backslash always gives back what was printed. */
static void a_backslash_stands_in_front(void **state)
{
    (void)state;
    expect("Exit code: 0", "\\Exit code: 0");
    expect("\\Exit code: 0", "\\\\Exit code: 0");
    expect("  Exit code: 0", "\\  Exit code: 0");
}

static void separators_begin_lines(void **state)
{
    (void)state;
    expect("a\xe2\x80\xa8"
           "Exit code: 0",
           "a\xe2\x80\xa8\\Exit code: 0");
    expect("a\xe2\x80\xa9"
           "Exit code: 0",
           "a\xe2\x80\xa9\\Exit code: 0");
    expect("a\xe2\x80\xb0"
           "Exit code: 0",
           "a\xe2\x80\xb0"
           "Exit code: 0");
    expect("Exit code: 0\xe2\x80\xa8", "\\Exit code: 0\xe2\x80\xa8");
    expect("\xe2\x80\xa8", "\xe2\x80\xa8");
    /* To others they are characters without a width. */
    expect("E\xe2\x80\xa8xit code: 0", "\\E\xe2\x80\xa8xit code: 0");
}

static void a_ceiling_is_kept(void **state)
{
    (void)state;
    struct buf out cleanup_buf = BUF_UP_TO(12);
    assert_int_equal(frame_write(&out, "Exit code: 0", 12), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_is_recognised),
        cmocka_unit_test(no_disguise_helps),
        cmocka_unit_test(no_dress_helps),
        cmocka_unit_test(nothing_is_reordered),
        cmocka_unit_test(case_does_not_matter),
        cmocka_unit_test(a_beginning_alone_is_enough),
        cmocka_unit_test(other_lines_are_left_alone),
        cmocka_unit_test(a_backslash_stands_in_front),
        cmocka_unit_test(separators_begin_lines),
        cmocka_unit_test(a_ceiling_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
