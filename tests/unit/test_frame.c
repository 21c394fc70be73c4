/* Framing: what begins like a line of ours, whatever its disguise, and what does not. */
#include "unit.h"

#include "view/frame.h"

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
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        size_t n = strlen(lines[i]);
        struct buf out cleanup_buf;
        buf_init(&out, 256);
        assert_false(frame_is_ours(lines[i], n));
        assert_int_equal(frame_size(lines[i], n), n);
        assert_int_equal(buf_str(&out, ""), 0);
        assert_int_equal(frame_write(&out, lines[i], n), 0);
        assert_string_equal(out.data, lines[i]);
    }
}

static void expect(const char *line, const char *framed)
{
    struct buf out cleanup_buf;
    buf_init(&out, 256);
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
    expect("a\xe2\x80\xaa"
           "Exit code: 0",
           "a\xe2\x80\xaa"
           "Exit code: 0");
    expect("Exit code: 0\xe2\x80\xa8", "\\Exit code: 0\xe2\x80\xa8");
    expect("\xe2\x80\xa8", "\xe2\x80\xa8");
}

static void a_ceiling_is_kept(void **state)
{
    (void)state;
    struct buf out cleanup_buf;
    buf_init(&out, 12);
    assert_int_equal(frame_write(&out, "Exit code: 0", 12), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_is_recognised),
        cmocka_unit_test(case_does_not_matter),
        cmocka_unit_test(a_beginning_alone_is_enough),
        cmocka_unit_test(other_lines_are_left_alone),
        cmocka_unit_test(a_backslash_stands_in_front),
        cmocka_unit_test(separators_begin_lines),
        cmocka_unit_test(a_ceiling_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
