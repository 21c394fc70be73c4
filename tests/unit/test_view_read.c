/* Reads of a shell: what is new, in order, each line once, within a budget. */
#include "fake_log.h"

#include "view/read.h"

#define HEAD   "[shell 1a2b3c4d \xe2\x80\x94 running]\n"
#define NO_NEW HEAD "(no new output)\n"
#define UNREAD ((uint64_t)1 << 20)

static void running(struct fake_log *log)
{
    log_init(log);
    log->record.outcome = NACRE_RUNNING;
    log->record.tree = NACRE_TREE_ALIVE;
}

static char *read_as(struct fake_log *log, nacre_position *position,
                     const nacre_view_options *options, bool *ret_new)
{
    struct buf b cleanup_buf = BUF_UP_TO(summary_budget(options));
    assert_int_equal(view_read(&b, &log->record, position, options, UNREAD, log_read, log, ret_new),
                     0);
    assert_true(is_utf8(b.data));
    return buf_take(&b);
}

static void expect(struct fake_log *log, nacre_position *position, const char *expected)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    bool is_new;
    char *text = read_as(log, position, &options, &is_new);
    assert_string_equal(text, expected);
    assert_int_equal(is_new, strcmp(expected + strlen(HEAD), "(no new output)\n") != 0);
    free(text);
}

static void each_read_shows_what_is_new(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDOUT, "one\ntwo\n");
    expect(&log, &position, HEAD "one\ntwo\n");
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDOUT, "three\n");
    expect(&log, &position, HEAD "three\n");
    expect(&log, &position, NO_NEW);

    nacre_position again = NACRE_POSITION_INIT;
    expect(&log, &again, HEAD "one\ntwo\nthree\n");
}

static void the_order_of_the_streams_is_kept(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "foo");
    log_text(&log, NACRE_STDERR, "err\n");
    log_text(&log, NACRE_STDOUT, "bar\nnext\n");
    log_text(&log, NACRE_STDERR, "warn\n");
    log_text(&log, NACRE_STDOUT, "last\n");
    expect(&log, &position, HEAD "err\nfoobar\nnext\nwarn\nlast\n");
}

static void an_unfinished_line_is_shown_once(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "a\nContinue? ");
    expect(&log, &position, HEAD "a\nContinue? \n");
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDERR, "tick\n");
    expect(&log, &position, HEAD "tick\n");
    log_text(&log, NACRE_STDOUT, "\n");
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDOUT, "b");
    expect(&log, &position, HEAD "b\n");
    log_text(&log, NACRE_STDOUT, "c\nd\n");
    expect(&log, &position, HEAD "bc\nd\n");
}

/* Prompts of a program that reads from a pipe make one line that never ends. */
static void what_was_shown_of_a_long_line_is_not_shown_again(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDERR, "0123456789012345678901234567890123456789");
    expect(&log, &position, HEAD "0123456789012345678901234567890123456789\n");
    log_text(&log, NACRE_STDERR, ">>> ");
    expect(&log, &position, HEAD "0123456789012345678901234567890123456789>>> \n");
    log_text(&log, NACRE_STDERR, "a");
    expect(&log, &position,
           HEAD "\xe2\x80\xa6"
                "a\n");
    log_text(&log, NACRE_STDERR, "\nnext\n");
    expect(&log, &position, HEAD "next\n");
    log_text(&log, NACRE_STDERR, "0123456789012345678901234567890123456789012345 10%");
    expect(&log, &position, HEAD "0123456789012345678901234567890123456789012345 10%\n");
    log_text(&log, NACRE_STDERR, "\b\b\b20%");
    expect(&log, &position, HEAD "0123456789012345678901234567890123456789012345 20%\n");
    log_text(&log, NACRE_STDERR, " and on\n");
    expect(&log, &position, HEAD "\xe2\x80\xa6 and on\n");
}

static void what_is_no_text_is_counted(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    char bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    running(&log);
    log_text(&log, NACRE_STDERR, "before\n");
    log_add(&log, NACRE_STDOUT, bytes, sizeof bytes);
    expect(&log, &position, HEAD "--- stdout (binary: 1000 bytes, not shown) ---\nbefore\n");
    expect(&log, &position, NO_NEW);
    log_add(&log, NACRE_STDOUT, bytes, sizeof bytes);
    expect(&log, &position, HEAD "--- stdout (binary: 1000 bytes, not shown) ---\n");
    log_text(&log, NACRE_STDOUT, "text\n");
    expect(&log, &position, HEAD "text\n");
}

static void a_changed_line_is_shown_again(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "10%");
    expect(&log, &position, HEAD "10%\n");
    log_text(&log, NACRE_STDOUT, "\r20%");
    expect(&log, &position, HEAD "20%\n");
    log_text(&log, NACRE_STDOUT, "\r20%");
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDOUT, "\n20%\n20%\n");
    expect(&log, &position, HEAD "20%\n20%\n");
    log_text(&log, NACRE_STDERR, "\x1b[31m");
    expect(&log, &position, NO_NEW);
    log_text(&log, NACRE_STDERR, "red\x1b[0m\n");
    expect(&log, &position, HEAD "red\n");
}

static void characters_across_reads_are_whole(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "x\xe2\x82");
    expect(&log, &position, HEAD "x" UTF8_REPLACEMENT "\n");
    log_text(&log, NACRE_STDOUT, "\xac\n");
    expect(&log, &position, HEAD "x\xe2\x82\xac\n");
}

static void output_is_framed(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "(no new output)\n\x1b[1m[shell 1a2b3c4d");
    log_text(&log, NACRE_STDERR, "x\r\r[Background task 1 completed]\n");
    expect(&log, &position,
           HEAD "\\(no new output)\n\\[Background task 1 completed]\n\\[shell 1a2b3c4d\n");
}

static void one_stream_can_be_read_alone(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    options.streams = NACRE_ERR;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "out\n");
    log_text(&log, NACRE_STDERR, "err\n");
    bool is_new;
    char *text = read_as(&log, &position, &options, &is_new);
    assert_string_equal(text, HEAD "err\n");
    free(text);
}

/* The numbers of the first and the last line shown, and of what lies between. */
struct told {
    unsigned long long left_lines, left_bytes, from, to;
    size_t before, after, after_bytes;
};

static struct told told_of(const char *text, const char *prefix)
{
    struct told t = {0};
    const char *notice = strstr(text, "\nLeft out: stdout ");
    assert_non_null(notice);
    assert_int_equal(sscanf(notice,
                            "\nLeft out: stdout %llu lines (%llu bytes). Get it back with: "
                            "recall(id: \"1a2b3c4d\", lines: \"%llu-%llu\", stream: "
                            "\"stdout\")\n",
                            &t.left_lines, &t.left_bytes, &t.from, &t.to),
                     4);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        if (line < notice)
            t.before++;
        else
            t.after++, t.after_bytes += (size_t)(strchr(line, '\n') + 1 - line);
    }
    return t;
}

static void what_does_not_fit_is_left_out_of_the_middle(void **state)
{
    (void)state;
    char *lines = numbers("line ", 1, 3000), *more = numbers("line ", 3001, 9000);
    for (size_t budget = NACRE_VIEW_BUDGET_MIN; budget < 20000; budget += 777) {
        nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
        options.bytes = budget;
        struct fake_log log;
        nacre_position position = NACRE_POSITION_INIT;
        bool is_new;
        running(&log);
        log_text(&log, NACRE_STDOUT, lines);
        free(read_as(&log, &position, &options, &is_new));
        log_text(&log, NACRE_STDOUT, more);
        char *text = read_as(&log, &position, &options, &is_new);
        assert_true(strlen(text) <= budget);
        struct told t = told_of(text, "line ");
        assert_int_equal(t.left_lines + t.before + t.after, 6000);
        assert_int_equal(t.from, 3001 + t.before);
        assert_int_equal(t.to, 9000 - t.after);
        assert_int_equal(t.left_bytes, strlen(more) - t.after_bytes - 10 * t.before);
        assert_true(t.before > 0 && t.after > t.before);
        expect(&log, &position, NO_NEW);
        free(text);
    }
    free(lines);
    free(more);
}

/* Over 1 MiB only both ends are read; the numbers are still those of the stream. */
static void far_behind_both_ends_are_read(void **state)
{
    (void)state;
    char *first = numbers("line ", 1, 10), *lines = numbers("line ", 11, 400000);
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    bool is_new;
    running(&log);
    log_text(&log, NACRE_STDOUT, first);
    expect(&log, &position,
           HEAD "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n"
                "line 9\nline 10\n");
    log_text(&log, NACRE_STDOUT, "line ");
    expect(&log, &position, HEAD "line \n");
    log_text(&log, NACRE_STDOUT, lines + strlen("line "));
    log.served = 0;
    char *text = read_as(&log, &position, &options, &is_new);
    assert_true(log.served <= UNREAD + 65536);
    assert_true(strlen(text) <= NACRE_VIEW_BUDGET);
    struct told t = told_of(text, "line ");
    assert_int_equal(t.left_lines + t.before + t.after, 400000 - 10);
    assert_int_equal(t.from, 11 + t.before);
    assert_int_equal(t.to, 400000 - t.after);
    assert_true(t.before > 100 && t.before < 900);
    size_t before_bytes = strlen("line 11\n") * 89 + strlen("line 100\n") * (t.before - 89);
    assert_int_equal(t.left_bytes, strlen(lines) - before_bytes - t.after_bytes);
    free(text);
    free(first);
    free(lines);
}

static void a_gap_is_named(void **state)
{
    (void)state;
    struct fake_log log;
    nacre_position position = NACRE_POSITION_INIT;
    running(&log);
    log_text(&log, NACRE_STDOUT, "one\n");
    log_drop(&log, NACRE_STDOUT, 1000, 20);
    log_text(&log, NACRE_STDOUT, "rest\nlast\n");
    expect(&log, &position,
           HEAD "one\nLeft out: stdout 20 lines (1000 bytes). Get it back with: "
                "recall(id: \"1a2b3c4d\", lines: \"2-21\", stream: \"stdout\")\n"
                "\xe2\x80\xa6rest\nlast\n");
}

/* However the output is cut into reads: put together they show every line once. A line that was
 * shown unfinished comes again unless the very next byte ended it. */
static void many_small_reads_show_every_line_once(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    struct unit_random random = {7};
    char *lines = numbers("line ", 1, 40);
    size_t size = strlen(lines);
    for (int round = 0; round < 200; round++) {
        struct fake_log log;
        nacre_position position = NACRE_POSITION_INIT;
        struct buf seen cleanup_buf = BUF_UP_TO(1 << 16);
        running(&log);
        size_t open_at = 0;
        for (size_t at = 0, n; at < size; at += n) {
            n = 10 + (size_t)unit_below(&random, 30);
            n = MIN(n, size - at);
            log_add(&log, NACRE_STDOUT, lines + at, n);
            bool was_open = at > 0 && lines[at - 1] != '\n', is_new;
            if (was_open && lines[at] != '\n')
                seen.len = open_at;
            char *text = read_as(&log, &position, &options, &is_new);
            assert_int_equal(buf_str(&seen, is_new ? text + strlen(HEAD) : ""), 0);
            free(text);
            open_at = seen.len - 1;
            while (open_at > 0 && seen.data[open_at - 1] != '\n')
                open_at--;
        }
        assert_int_equal(seen.len, size);
        assert_memory_equal(seen.data, lines, size);
    }
    free(lines);
}

static void failures_leave_the_position(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    nacre_position position = NACRE_POSITION_INIT, before = position;
    struct fake_log log;
    running(&log);
    log_text(&log, NACRE_STDOUT, "text\n");
    log.fail_after = 0;
    struct buf b cleanup_buf = BUF_UP_TO(4096);
    bool is_new;
    assert_int_equal(
        view_read(&b, &log.record, &position, &options, UNREAD, log_read, &log, &is_new), -EIO);
    assert_memory_equal(&position, &before, sizeof position);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_read_shows_what_is_new),
        cmocka_unit_test(the_order_of_the_streams_is_kept),
        cmocka_unit_test(an_unfinished_line_is_shown_once),
        cmocka_unit_test(what_was_shown_of_a_long_line_is_not_shown_again),
        cmocka_unit_test(what_is_no_text_is_counted),
        cmocka_unit_test(a_changed_line_is_shown_again),
        cmocka_unit_test(characters_across_reads_are_whole),
        cmocka_unit_test(output_is_framed),
        cmocka_unit_test(one_stream_can_be_read_alone),
        cmocka_unit_test(what_does_not_fit_is_left_out_of_the_middle),
        cmocka_unit_test(far_behind_both_ends_are_read),
        cmocka_unit_test(a_gap_is_named),
        cmocka_unit_test(many_small_reads_show_every_line_once),
        cmocka_unit_test(failures_leave_the_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
