/* Summaries of what does not fit: what is shown of it, in which order it shrinks, and how exactly
 * the rest is counted. */
#include "summaries.h"

/* A sanitizer makes every step dear, and needs fewer of them. */
#define STEP(n) (SANITIZED ? 7 * (n) : (n))

static void what_does_not_fit_is_counted_exactly(void **state)
{
    (void)state;
    char *out = numbers("stdout ", 1, 20000), *err = numbers("stderr ", 1, 3000);
    for (size_t budget = NACRE_VIEW_BUDGET_MIN; budget < 40000; budget += budget / 7) {
        struct fake_log log;
        log_init(&log);
        log_text(&log, NACRE_STDOUT, out);
        log_text(&log, NACRE_STDERR, err);
        char *text = summarize(&log, budget);
        assert_true(strlen(text) <= budget);
        struct told o = told_of(text, "stdout"), e = told_of(text, "stderr");
        check_told(&o, 20000, strlen(out));
        check_told(&e, 3000, strlen(err));
        if (budget >= 4096) {
            assert_true(e.last >= 50);
            assert_true(o.last >= 20);
        }
        assert_string_equal(text + strlen(text) - strlen("stdout 20000\n"), "stdout 20000\n");
        free(text);
    }
    free(out);
    free(err);
}

static void the_order_is_header_notice_stderr_stdout(void **state)
{
    (void)state;
    char *out = numbers("stdout ", 1, 5000), *err = numbers("stderr ", 1, 5000);
    struct fake_log log;
    log_init(&log);
    log.record.exit_code = 2;
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDERR, err);
    char *text = summarize(&log, 10240);
    assert_memory_equal(text,
                        "Exit code: 2 | stdout: 5000 lines | stderr: 5000 lines\nLeft out: ", 65);
    const char *e = strstr(text, "--- stderr (first "), *e2 = strstr(text, "--- stderr (last "),
               *o = strstr(text, "--- stdout (first "), *o2 = strstr(text, "--- stdout (last ");
    assert_true(e && e2 && o && o2 && e < e2 && e2 < o && o < o2);
    unsigned long k, m, skipped;
    assert_int_equal(
        sscanf(e2, "--- stderr (last %lu of %lu, %lu skipped) ---\n", &k, &m, &skipped), 3);
    assert_int_equal(skipped, told_of(text, "stderr").left_lines);
    free(text);
    free(out);
    free(err);
}

static void a_small_stream_stays_whole_beside_a_large_one(void **state)
{
    (void)state;
    char *out = numbers("", 1, 20000), *more = numbers("", 1, 20000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDERR, "ERROR: real cause\n");
    log_text(&log, NACRE_STDOUT, more);
    char *text = summarize(&log, 10240);
    assert_non_null(strstr(text, "\n--- stderr (1 line) ---\nERROR: real cause\n"));
    assert_non_null(strstr(text, " of 40000) ---\n"));
    free(text);
    free(out);
    free(more);
}

static void causes_are_lifted_out_of_the_middle(void **state)
{
    (void)state;
    char *out = numbers("stdout ", 1, 20000), *more = numbers("stdout ", 20002, 40000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDOUT, "stdout ERROR: real cause\n");
    log_text(&log, NACRE_STDOUT, more);
    char *text = summarize(&log, 10240);
    assert_non_null(strstr(text, "\n--- stdout (likely causes: 1 of 1) ---\n"
                                 "19999- stdout 19999\n20000- stdout 20000\n"
                                 "20001: stdout ERROR: real cause\n"
                                 "20002- stdout 20002\n20003- stdout 20003\n20004- stdout 20004\n"
                                 "--- stdout (last "));
    struct told t = told_of(text, "stdout");
    check_told(&t, 40000, strlen(out) + strlen(more) + strlen("stdout ERROR: real cause\n"));
    free(text);
    free(out);
    free(more);
}

/* A cause that the last lines reach in the end takes those near it along. */
static void a_cause_among_the_last_lines_leaves_nothing_behind(void **state)
{
    (void)state;
    char *before = numbers("stdout ", 1, 199), *behind = numbers("stdout ", 201, 300);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, before);
    log_text(&log, NACRE_STDOUT, "stdout 200 error: no disk\n");
    log_text(&log, NACRE_STDOUT, behind);
    size_t size = strlen(before) + strlen("stdout 200 error: no disk\n") + strlen(behind);
    bool lifted = false, reached = false;
    for (size_t budget = NACRE_VIEW_BUDGET_MIN; budget < 3000; budget++) {
        char *text = summarize(&log, budget);
        struct told t = told_of(text, "stdout");
        check_told(&t, 300, size);
        assert_true(t.causes == 1 ? t.near > 0 : t.near == 0 && t.last > 100);
        lifted |= t.causes == 1;
        reached |= t.last == 101;
        free(text);
    }
    assert_true(lifted && reached);
    free(before);
    free(behind);
}

/* Of many of one kind a few are shown, and all are counted; of what is shown anyway none. */
static void of_many_of_a_kind_a_few_are_shown(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(1 << 24);
    unsigned long long salient = 0;
    for (int i = 1; i <= 30000; i++) {
        bool is_error = i % 10 == 0 && i > 6000;
        assert_int_equal(buf_printf(&b, "stdout %d%s\n", i, is_error ? " error: x" : ""), 0);
        salient += is_error;
    }
    for (size_t budget = 2000; budget < 14000; budget += STEP(53)) {
        struct fake_log log;
        log_init(&log);
        log_add(&log, NACRE_STDOUT, b.data, b.len);
        char *text = summarize(&log, budget);
        struct told t = told_of(text, "stdout");
        check_told(&t, 30000, b.len);
        unsigned long long in_last = 30000 / 10 - (30000 - t.last) / 10;
        assert_int_equal(t.cause_total, salient - in_last);
        assert_true(t.causes >= 1 && t.causes <= 3);
        assert_non_null(strstr(text, "\n6010: "));
        free(text);
    }
}

/* One line of its own among thousands of other kinds is shown first, whatever the others say. */
static void a_rare_line_is_not_drowned(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(1 << 24);
    for (int i = 1; i <= 20000; i++)
        assert_int_equal(
            i == 9000 ? buf_str(&b, "stdout 9000: cannot open the ledger: error: locked\n")
            : i < 6000
                ? buf_printf(&b, "stdout %d\n", i)
                : buf_printf(&b, "stdout ERROR: job %d was not done by %c\n", i, 'g' + i % 17),
            0);
    struct fake_log log;
    log_init(&log);
    log.record.exit_code = 1;
    log_add(&log, NACRE_STDOUT, b.data, b.len);
    char *text = summarize(&log, 4096);
    assert_non_null(strstr(text, "\n9000: stdout 9000: cannot open the ledger"));
    struct told t = told_of(text, "stdout");
    check_told(&t, 20000, b.len);
    free(text);
}

static void a_lifted_line_is_not_cut_through_its_match(void **state)
{
    (void)state;
    char *before = numbers("stdout ", 1, 5000), line[1500], want[64] = "fatal: the disk is full";
    for (size_t at = 0; at + sizeof want < 1000; at += STEP(37)) {
        struct fake_log log;
        log_init(&log);
        memset(line, '.', sizeof line);
        memcpy(line + at, " fatal: the disk is full ", 25);
        line[sizeof line - 1] = '\n';
        log_text(&log, NACRE_STDOUT, before);
        log_add(&log, NACRE_STDOUT, line, sizeof line);
        log_text(&log, NACRE_STDOUT, before);
        char *text = summarize(&log, 4096);
        assert_non_null(strstr(text, want));
        free(text);
    }
    free(before);
}

static void of_a_failure_without_a_cause_that_is_said(void **state)
{
    (void)state;
    char *out = numbers("stdout ", 1, 9000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    char *text = summarize(&log, 4096);
    assert_null(strstr(text, "No line looks like the cause"));
    free(text);
    log.record.exit_code = 3;
    text = summarize(&log, 4096);
    assert_non_null(strstr(text,
                           "\nNo line looks like the cause. Worth asking: recall(id: \"1a2b3c4d\", "
                           "pattern: \""));
    struct told t = told_of(text, "stdout");
    check_told(&t, 9000, strlen(out));
    free(text);
    log_text(&log, NACRE_STDOUT, "stdout it failed\n");
    text = summarize(&log, 4096);
    assert_null(strstr(text, "No line looks like the cause"));
    free(text);
    free(out);
}

/* However the safe lines fill the room: there is some for a cause. */
static void a_cause_is_shown_under_every_budget(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(1 << 24);
    for (int i = 1; i <= 400; i++)
        assert_int_equal(i == 200 ? buf_str(&b, "200 fatal: the cause\n")
                                  : buf_printf(&b, "%03d %0123d\n", i, 0),
                         0);
    for (size_t budget = NACRE_VIEW_BUDGET_MIN; budget < 16000; budget += STEP(61)) {
        struct fake_log log;
        log_init(&log);
        log_add(&log, NACRE_STDERR, b.data, b.len);
        log_add(&log, NACRE_STDOUT, b.data, b.len);
        char *text = summarize(&log, budget);
        assert_true(strlen(text) <= budget);
        if (budget >= 2000)
            assert_non_null(strstr(text, "\n200: 200 fatal: the cause\n"));
        free(text);
    }
}

static void errors_go_before_warnings(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(1 << 24);
    for (int i = 1; i <= 9000; i++)
        assert_int_equal(buf_printf(&b, i == 4000 ? "fatal: no cause\n" : "warning: %d\n", i), 0);
    struct fake_log log;
    log_init(&log);
    log_add(&log, NACRE_STDERR, b.data, b.len);
    char *text = summarize(&log, 2048);
    assert_non_null(strstr(text, "\n4000: fatal: no cause\n"));
    free(text);
}

static void long_lines_are_cut_before_lines_are_dropped(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(1 << 24);
    for (int i = 1; i <= 100; i++)
        assert_int_equal(buf_printf(&b, "%03d%0900d!\n", i, 0), 0);
    struct fake_log log;
    log_init(&log);
    log_add(&log, NACRE_STDERR, b.data, b.len);
    log_add(&log, NACRE_STDOUT, b.data, b.len);
    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    unsigned long k, m, skipped;
    assert_int_equal(sscanf(strstr(text, "--- stderr (last "),
                            "--- stderr (last %lu of %lu, %lu skipped)", &k, &m, &skipped),
                     3);
    assert_true(k >= 50);
    assert_int_equal(
        sscanf(strstr(text, "--- stdout (last "), "--- stdout (last %lu of %lu)", &k, &m), 2);
    assert_true(k >= 20);
    assert_non_null(strstr(text, "\n10000"));
    assert_non_null(strstr(text, " bytes left out ...]"));
    assert_non_null(strstr(text, "0!\n"));
    assert_non_null(strstr(text, ", the middle of "));
    free(text);
}

static void one_endless_line_shows_both_ends(void **state)
{
    (void)state;
    char *line = repeat("0123456789", 100000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, line);
    char *text = summarize(&log, 4096);
    assert_true(strlen(text) <= 4096);
    assert_non_null(strstr(text, "\nLeft out: the middle of 1 long line. Get it back with: "
                                 "recall(id: \"1a2b3c4d\", lines: \"1-1\", stream: \"stdout\")\n"));
    const char *body = after(text, "--- stdout (1 line) ---\n");
    assert_non_null(body);
    unsigned long missing;
    const char *notice = strstr(body, "[... ");
    assert_non_null(notice);
    assert_int_equal(sscanf(notice, "[... %lu bytes left out ...]", &missing), 1);
    size_t head = (size_t)(notice - body);
    const char *rest = strchr(notice, ']') + 1;
    size_t tail = strlen(rest) - 1;
    assert_int_equal(head + missing + tail, 1000000);
    assert_memory_equal(body, line, head);
    assert_memory_equal(rest, line + 1000000 - tail, tail);
    free(text);
    free(line);
}

/* Whatever the cut, the chunk and the kind of character: no character is ever split. */
static void no_cut_splits_a_character(void **state)
{
    (void)state;
    static const char *const kinds[] = {"\xf0\x9f\x98\x80", "\xe2\x82\xac", "a\xc3\xa9",
                                        "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9z"};
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        char *line = repeat(kinds[k], 3000);
        for (size_t budget = 1024; budget < 1044; budget++) {
            struct fake_log log;
            log_init(&log);
            log.most = 1 + budget % 7;
            log_text(&log, NACRE_STDOUT, line);
            log_text(&log, NACRE_STDERR, line);
            char *text = summarize(&log, budget);
            assert_null(strstr(text, UTF8_REPLACEMENT));
            assert_true(strlen(text) <= budget);
            assert_non_null(strstr(text, kinds[k]));
            free(text);
        }
        free(line);
    }
}

/* Folded lines stand for all of theirs in every count. */
static void folded_lines_are_counted(void **state)
{
    (void)state;
    char *out = numbers("", 1, 10000), *same = repeat("same\n", 5000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDOUT, same);
    char *text = summarize(&log, 2048);
    unsigned long long k, m, left;
    assert_int_equal(
        sscanf(strstr(text, "--- stdout (last "), "--- stdout (last %llu of %llu)", &k, &m), 2);
    assert_int_equal(m, 15000);
    assert_true(k > 5000);
    assert_non_null(strstr(text, "\n10000\nsame\n[repeated 4999 more times]\n"));
    unsigned long long first = 0;
    if (strstr(text, "--- stdout (first "))
        sscanf(strstr(text, "--- stdout (first "), "--- stdout (first %llu", &first);
    assert_int_equal(sscanf(strstr(text, "Left out: "), "Left out: stdout %llu lines", &left), 1);
    assert_int_equal(left, 15000 - k - first);
    free(text);
    free(out);
    free(same);
}

static void a_gap_is_never_bridged(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "head\nhal");
    log_text(&log, NACRE_STDERR, "kept\n");
    log_drop(&log, NACRE_STDOUT, 1000, 9);
    log_text(&log, NACRE_STDOUT, "f\ntail\n");
    log.record.lines[NACRE_STDOUT] = 12;
    expect(&log, 10240,
           "Exit code: 0 | stdout: 12 lines | stderr: 1 line\n"
           "Left out: stdout 9 lines (1003 bytes). "
           "No longer in the log: stdout 9 lines (1000 bytes): over the quota. Get it back with: "
           "recall(id: \"1a2b3c4d\", lines: \"2-10\", stream: \"stdout\")\n"
           "--- stderr (1 line) ---\nkept\n"
           "--- stdout (first 1 of 12) ---\nhead\n"
           "--- stdout (last 2 of 12) ---\n\xe2\x80\xa6"
           "f\ntail\n");
}

/* Causes have their numbers in the whole stream, also behind a gap; and so has all else. */
static void numbers_are_right_on_both_sides_of_a_gap(void **state)
{
    (void)state;
    char *a = numbers("stdout ", 1, 999), *b = numbers("stdout ", 1001, 3000),
         *c = numbers("stdout ", 8001, 9000), *d = numbers("stdout ", 9002, 12000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, a);
    log_text(&log, NACRE_STDOUT, "stdout error: early\n");
    log_text(&log, NACRE_STDOUT, b);
    log_drop(&log, NACRE_STDOUT, 60000, 5000);
    log_text(&log, NACRE_STDOUT, c);
    log_text(&log, NACRE_STDOUT, "stdout error: late\n");
    log_text(&log, NACRE_STDOUT, d);
    char *text = summarize(&log, 10240);
    assert_non_null(strstr(text, "\n1000: stdout error: early\n1001- stdout 1001\n"));
    assert_non_null(strstr(text, "\n9000- stdout 9000\n9001: stdout error: late\n"));
    struct told t = told_of(text, "stdout");
    check_told(&t, 12000, log.record.bytes[NACRE_STDOUT]);
    char first_of_last[48];
    snprintf(first_of_last, sizeof first_of_last, ") ---\nstdout %llu\n", 12000 - t.last + 1);
    assert_non_null(strstr(text, first_of_last));
    free(text);
    free(a);
    free(b);
    free(c);
    free(d);
}

static void an_end_that_was_not_kept_is_said(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "one\ntwo\n");
    log_drop(&log, NACRE_STDOUT, 500, 50);
    log.record.dropped_errno = ENOSPC;
    expect(&log, 10240,
           "Exit code: 0 | stdout: 52 lines | stderr: 0 lines\n"
           "Left out: stdout 50 lines (500 bytes). "
           "No longer in the log: stdout 50 lines (500 bytes): No space left on device\n"
           "--- stdout (2 of 52, the last were not kept) ---\none\ntwo\n");
}

static void every_budget_is_kept(void **state)
{
    (void)state;
    char *lines = numbers("error: \xe2\x82\xac ", 1, 1000);
    char *wide = repeat("0123456789abcdef", 700);
    for (size_t budget = NACRE_VIEW_BUDGET_MIN; budget < 6000; budget += STEP(13)) {
        struct fake_log log;
        log_init(&log);
        log.record.dropped_errno = ENOSPC;
        log_text(&log, NACRE_STDOUT, lines);
        log_text(&log, NACRE_STDERR, lines);
        log_text(&log, NACRE_STDERR, wide);
        log_drop(&log, NACRE_STDERR, 1000, 9);
        log_drop(&log, NACRE_STDOUT, 1000, 9);
        log_text(&log, NACRE_STDERR, lines);
        log_text(&log, NACRE_STDOUT, lines);
        char *text = summarize(&log, budget);
        assert_true(strlen(text) <= budget);
        assert_memory_equal(
            text, "Exit code: 0 | stdout: 2009 lines | stderr: 2009 lines\nLeft out:", 64);
        assert_non_null(strstr(text, "lines: \""));
        free(text);
    }
    free(lines);
    free(wide);
}

static void compact_is_the_last_fifty_and_twenty(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    options.compact = 1;
    char *out = numbers("stdout ", 1, 60), *err = numbers("stderr error: ", 1, 60);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDERR, err);
    char *text = summarize_as(&log, &options);
    struct told o = told_of(text, "stdout"), e = told_of(text, "stderr");
    check_told(&o, 60, strlen(out));
    check_told(&e, 60, strlen(err));
    assert_int_equal(o.last, 20);
    assert_int_equal(e.last, 50);
    assert_int_equal(o.first + e.first + o.causes + e.causes, 0);
    assert_non_null(strstr(text, "--- stderr (last 50 of 60, 10 skipped) ---\nstderr error: 11\n"));
    assert_non_null(strstr(text, "--- stdout (last 20 of 60) ---\nstdout 41\n"));
    free(text);
    free(out);
    free(err);

    log_init(&log);
    log_text(&log, NACRE_STDOUT, "a\nb\n");
    text = summarize_as(&log, &options);
    assert_string_equal(text, "Exit code: 0\na\nb\n");
    free(text);
}

static void people_are_told_the_command(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    options.compact = 1;
    options.audience = NACRE_FOR_PEOPLE;
    char *out = numbers("", 1, 60);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDERR, out);
    char *text = summarize_as(&log, &options);
    assert_non_null(
        strstr(text, "\nLeft out: stderr 10 lines (21 bytes), stdout 40 lines (111 bytes). "
                     "Get it back with: nacre recall --id 1a2b3c4d --lines 1-10 --stream err; "
                     "nacre recall --id 1a2b3c4d --lines 1-40 --stream out\n"));
    free(text);
    free(out);
}

static void a_large_log_is_streamed_through(void **state)
{
    (void)state;
    char *lines = numbers("line ", 1, 100000);
    struct fake_log log;
    log_init(&log);
    for (int i = 0; i < 32; i++)
        log_text(&log, i % 2 ? NACRE_STDERR : NACRE_STDOUT, lines);
    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    assert_int_equal(log.served, 32 * strlen(lines));
    assert_non_null(strstr(text, " of 1600000, "));
    assert_non_null(strstr(text, " of 1600000) ---\n"));
    free(text);
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_counted_exactly),
        cmocka_unit_test(the_order_is_header_notice_stderr_stdout),
        cmocka_unit_test(a_small_stream_stays_whole_beside_a_large_one),
        cmocka_unit_test(causes_are_lifted_out_of_the_middle),
        cmocka_unit_test(a_cause_among_the_last_lines_leaves_nothing_behind),
        cmocka_unit_test(of_many_of_a_kind_a_few_are_shown),
        cmocka_unit_test(a_rare_line_is_not_drowned),
        cmocka_unit_test(a_lifted_line_is_not_cut_through_its_match),
        cmocka_unit_test(of_a_failure_without_a_cause_that_is_said),
        cmocka_unit_test(a_cause_is_shown_under_every_budget),
        cmocka_unit_test(errors_go_before_warnings),
        cmocka_unit_test(long_lines_are_cut_before_lines_are_dropped),
        cmocka_unit_test(one_endless_line_shows_both_ends),
        cmocka_unit_test(no_cut_splits_a_character),
        cmocka_unit_test(folded_lines_are_counted),
        cmocka_unit_test(a_gap_is_never_bridged),
        cmocka_unit_test(numbers_are_right_on_both_sides_of_a_gap),
        cmocka_unit_test(an_end_that_was_not_kept_is_said),
        cmocka_unit_test(every_budget_is_kept),
        cmocka_unit_test(compact_is_the_last_fifty_and_twenty),
        cmocka_unit_test(people_are_told_the_command),
        cmocka_unit_test(a_large_log_is_streamed_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
