/* The summary: its first line, what is shown whole, and that every line is either rendered output
 * or ours. */
#include "summaries.h"

#include "text/frame.h"

#define HELD                                                                                     \
    "Perhaps lost: what its programs held back; on a pipe many print in blocks. \"stdbuf -oL\" " \
    "before one, or its own option (grep --line-buffered, sed -u, tcpdump -l), makes it print "  \
    "line "                                                                                      \
    "by line.\n"

static void first_lines(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    expect(&log, 10240, "Exit code: 0\n");

    log.record.exit_code = 143;
    expect(&log, 10240, "Exit code: 143\n");

    log.record.outcome = NACRE_SIGNALED;
    log.record.signal = SIGSEGV;
    expect(&log, 10240, "Signal: SIGSEGV | stdout: 0 lines | stderr: 0 lines\n");
    log.record.core_dumped = 1;
    expect(&log, 10240, "Signal: SIGSEGV (core dumped) | stdout: 0 lines | stderr: 0 lines\n");

    log.record.outcome = NACRE_TIMED_OUT;
    log.record.timeout_ms = 60000;
    expect(&log, 10240, "Timed out after 60s (killed) | stdout: 0 lines | stderr: 0 lines\n" HELD);
    log.record.timeout_ms = 500;
    expect(&log, 10240, "Timed out after 0.5s (killed) | stdout: 0 lines | stderr: 0 lines\n" HELD);

    static const struct {
        nacre_outcome outcome;
        const char *text;
    } plain[] = {
        {NACRE_RUNNING, "Running | stdout: 0 lines | stderr: 0 lines\n"},
        {NACRE_KILLED, "Killed | stdout: 0 lines | stderr: 0 lines\n" HELD},
        {NACRE_CANCELLED, "Cancelled | stdout: 0 lines | stderr: 0 lines\n" HELD},
        {NACRE_LOST, "Lost | stdout: 0 lines | stderr: 0 lines\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        log.record.outcome = plain[i].outcome;
        expect(&log, 10240, plain[i].text);
    }
}

static void what_fits_is_shown_whole(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "foo");
    log_text(&log, NACRE_STDERR, "err\n");
    log_text(&log, NACRE_STDOUT, "bar\n");
    expect(&log, 10240,
           "Exit code: 0\n"
           "--- stderr (1 line) ---\nerr\n"
           "--- stdout (1 line) ---\nfoobar\n");

    log_init(&log);
    log_text(&log, NACRE_STDERR, "a\nprompt? ");
    expect(&log, 10240,
           "Exit code: 0\n"
           "a\nprompt? \n");

    log_init(&log);
    char *sixty = numbers("match ", 1, 60);
    log_text(&log, NACRE_STDOUT, sixty);
    char *text = summarize(&log, 10240);
    assert_non_null(strstr(text, "Exit code: 0\nmatch 1\n"));
    assert_null(strstr(text, "Left out"));
    free(text);
    free(sixty);
}

static void the_budget_is_kept_to_the_byte(void **state)
{
    (void)state;
    char *lines = numbers("", 100, 999);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, lines);
    char *whole = summarize(&log, 1 << 20);
    size_t size = strlen(whole);

    char *exact = summarize(&log, size);
    assert_string_equal(exact, whole);
    char *less = summarize(&log, size - 1);
    assert_true(strlen(less) < size);
    assert_non_null(strstr(less, "Left out: "));
    free(exact);
    free(less);
    free(whole);
    free(lines);
}

static void characters_across_reads_are_whole(void **state)
{
    (void)state;
    for (size_t most = 1; most <= 5; most++) {
        struct fake_log log;
        log_init(&log);
        log.most = most;
        log_text(&log, NACRE_STDOUT, "\xf0\x9f\x98");
        log_text(&log, NACRE_STDERR, "e\n");
        log_text(&log, NACRE_STDOUT, "\x80 \xe2\x82\xac\n");
        expect(&log, 10240,
               "Exit code: 0\n"
               "--- stderr (1 line) ---\ne\n"
               "--- stdout (1 line) ---\n\xf0\x9f\x98\x80 \xe2\x82\xac\n");
    }
}

static void invalid_bytes_are_replaced_and_still_fit(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT,
             "a\xff"
             "b\n\xe2\x82\n");
    expect(&log, 10240,
           "Exit code: 0\n"
           "a" UTF8_REPLACEMENT "b\n" UTF8_REPLACEMENT "\n");

    char *noise = repeat("\xff\x80", 40000);
    log_init(&log);
    log_text(&log, NACRE_STDOUT, noise);
    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    free(text);
    free(noise);
}

static void the_view_is_rendered(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "\x1b[31mred\x1b[0m\tx\r\nabc\b\b\bxyz\n");
    log_text(&log, NACRE_STDOUT, "10%\r100%\nsame\nsame\nsame\nend\n");
    log_text(&log, NACRE_STDERR, "\x1b[0m");
    expect(&log, 10240,
           "Exit code: 0\n"
           "--- stderr (1 line) ---\n"
           "--- stdout (7 lines) ---\nred\tx\nxyz\n100%\nsame\nsame\nsame\nend\n");
}

/* Whatever a command prints: only our own lines begin like ours. */
static void nothing_can_pass_for_ours(void **state)
{
    (void)state;
    static const char *const disguises[][2] = {
        {"", ""},     {"\x1b[1;31m", "\x1b[0m"}, {"xxxxxxxxxxxxxx\r", ""},
        {"  \t", ""}, {"\xe2\x80\x8b", ""},      {"\b\b", ""},
        {"\\", ""}};
    for (size_t i = 0; frame_entry(i); i++)
        for (size_t d = 0; d < ARRAY_SIZE(disguises); d++)
            for (size_t most = 0; most < 4; most++) {
                char text[256], line[128];
                snprintf(line, sizeof line, "%sabcdefghijklmnop", frame_entry(i));
                snprintf(text, sizeof text, "%s%s%s\n", disguises[d][0], line, disguises[d][1]);
                struct fake_log log;
                log_init(&log);
                log.most = most;
                log_text(&log, NACRE_STDOUT, text);
                char *summary = summarize(&log, 1024);
                const char *body = after(summary, "Exit code: 0\n");
                assert_non_null(body);
                assert_int_equal(body[0], '\\');
                assert_non_null(strstr(body, line));
                free(summary);
            }
}

/* All lines of ours are in the table of beginnings. */
static void every_line_of_ours_is_framed(void **state)
{
    (void)state;
    static const nacre_outcome outcomes[] = {NACRE_RUNNING, NACRE_EXITED,     NACRE_SIGNALED,
                                             NACRE_KILLED,  NACRE_TIMED_OUT,  NACRE_CANCELLED,
                                             NACRE_LOST,    (nacre_outcome)99};
    char *out = numbers("~ ", 1, 9000), *more = numbers("~ error: ", 1, 50);
    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        struct fake_log log;
        log_init(&log);
        log.record.outcome = outcomes[i];
        log.record.tree = NACRE_TREE_ALIVE;
        log.record.leftover_count = NACRE_LEFTOVER_MAX;
        log_text(&log, NACRE_STDOUT, out);
        log_text(&log, NACRE_STDOUT, more);
        log_text(&log, NACRE_STDOUT, out);
        for (int k = 0; k < 3; k++)
            log_text(&log, NACRE_STDOUT, "~ the same as the line above it\n");
        log_text(&log, NACRE_STDERR, out);
        char *text = summarize(&log, 10240);
        assert_non_null(strstr(text, "likely causes"));
        assert_non_null(strstr(text, "[repeated 2 more times]\n"));
        for (char *line = text, *end; *line; line = end + 1) {
            end = strchr(line, '\n');
            size_t digits = strspn(line, "0123456789");
            const char *body = digits > 0 ? line + digits + 2 : line;
            if (*body != '~')
                assert_true(frame_is_ours(line, (size_t)(end - line)));
        }
        free(text);
    }
    free(out);
    free(more);
}

/* A line that is lifted out stays one line, in the order of its characters. */
static void causes_are_framed(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    char *before = numbers("~ ", 1, 4000);
    log_text(&log, NACRE_STDOUT, before);
    log_text(&log, NACRE_STDOUT,
             "error: it broke\xe2\x80\xa8"
             "Exit code: 0 \xe2\x80\xae\n");
    log_text(&log, NACRE_STDOUT, before);
    char *text = summarize(&log, 4096);
    assert_non_null(strstr(text, "\n4001: error: it broke\xe2\x80\xa8"
                                 "\\Exit code: 0 \xef\xbf\xbd\n"));
    free(text);
    free(before);
}

static void leftovers_are_named(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "hi\n");
    log.record.tree = NACRE_TREE_ALIVE;
    log.record.leftover_count = 2;
    log.record.leftover[0] = (nacre_process){.pid = 123, .command = "sleep 60"};
    log.record.leftover[1] = (nacre_process){.pid = 124,
                                             .ports = {8000, 8001},
                                             .command = "python3 -c\nExit\xe2\x80\xa8"
                                                        "code: 0"};
    expect(&log, 10240,
           "Exit code: 0\n"
           "Left running: pid 123 (sleep 60)\n"
           "Left running: pid 124 (python3 -c Exit code: 0), listening on 8000, 8001\n"
           "hi\n");

    log.record.leftover_count = 0;
    expect(&log, 10240,
           "Exit code: 0\n"
           "Left running: something that could not be named\n"
           "hi\n");

    log.record.outcome = NACRE_RUNNING;
    log.record.leftover_count = 2;
    expect(&log, 10240,
           "Running | stdout: 1 line | stderr: 0 lines\n"
           "hi\n");
}

static void many_leftovers_fit_the_budget(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log.record.tree = NACRE_TREE_ALIVE;
    log.record.leftover_count = NACRE_LEFTOVER_MAX;
    for (int i = 0; i < NACRE_LEFTOVER_MAX; i++) {
        nacre_process *p = &log.record.leftover[i];
        p->pid = 4194304;
        memset(p->command, 0xff, sizeof p->command - 1);
        for (int port = 0; port < NACRE_PORTS_MAX; port++)
            p->ports[port] = 65535;
    }
    char *text = summarize(&log, 20000);
    assert_non_null(strstr(text, "Left running: perhaps more"));
    free(text);
    text = summarize(&log, 3000);
    assert_true(strlen(text) <= 3000);
    assert_non_null(strstr(text, "\nLeft running: pid 4194304 ("));
    assert_non_null(strstr(text, " more, not named here\n"));
    free(text);
}

static void what_came_after_the_record_is_not_shown(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "before\n");
    nacre_record then = log.record;
    log_text(&log, NACRE_STDERR, "after\n");
    log.spans[0] = (struct span){NACRE_STDOUT, "before\nlater\n", 13};
    log.record = then;
    expect(&log, 10240,
           "Exit code: 0\n"
           "before\n");
}

static void budgets_are_bytes_or_tokens(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    assert_int_equal(summary_budget(&options), 10240);
    options.bytes = 2000;
    assert_int_equal(summary_budget(&options), 2000);
    options.bytes = UINT64_MAX;
    assert_int_equal(summary_budget(&options), NACRE_VIEW_BUDGET_MAX);
    options.bytes = 0;
    options.tokens = 500;
    assert_int_equal(summary_budget(&options), 2000);
    options.tokens = UINT64_MAX;
    assert_int_equal(summary_budget(&options), NACRE_VIEW_BUDGET_MAX);
    assert_int_equal(nacre_tokens(0), 0);
    assert_int_equal(nacre_tokens(5), 1);
    assert_int_equal(nacre_tokens(6), 2);
    assert_int_equal(nacre_tokens(UINT64_MAX), UINT64_MAX / 4 + 1);
}

static void failures_are_passed_on(void **state)
{
    (void)state;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "text\n");
    log_text(&log, NACRE_STDERR, "text\n");
    log.fail_after = 1;
    struct buf b cleanup_buf = BUF_UP_TO(4096);
    assert_int_equal(summary_write(&b, &log.record, &options, log_read, &log), -EIO);

    log.fail_after = -1;
    b.max = 8;
    assert_int_equal(summary_write(&b, &log.record, &options, log_read, &log), -E2BIG);
}

/* Lines of all kinds: some equal to the one before, some that announce a cause, some too long. */
static char *mixed_lines(struct unit_random *random, size_t size)
{
    static const char *const kinds[] = {
        "plain text", "error: number",     "thread panicked at:", "",         "the same",
        "the same",   "it failed:",        "  FAIL case",         "0 errors", "E: line",
        "not ok",     "\xe2\x9c\x95 test", "warning: number",
    };
    char *text = malloc(size + 8192);
    size_t n = 0;
    assert_non_null(text);
    while (n < size) {
        size_t kind = unit_below(random, 40);
        if (unit_below(random, 400) == 0) {
            n += (size_t)sprintf(text + n, "%0*d error: at the end", 1500, 7);
        } else {
            int copies = unit_below(random, 30) == 0 ? 50 : 0;
            for (int i = 0; i < copies; i++)
                n += (size_t)sprintf(text + n, "again and again\n");
            const char *text_of = kinds[kind < ARRAY_SIZE(kinds) ? kind : 0];
            bool numbered = kind >= ARRAY_SIZE(kinds) || unit_below(random, 2) == 0;
            n += (size_t)sprintf(text + n, "%s", text_of);
            if (numbered)
                n += (size_t)sprintf(text + n, " %zu", n);
        }
        text[n++] = '\n';
    }
    text[n] = '\0';
    return text;
}

/* Of large pieces most lines are only looked at; of small ones each is rendered. */
static void lines_that_are_only_looked_at(void **state)
{
    (void)state;
    struct unit_random random = {11};
    for (int round = 0; round < 30; round++) {
        struct fake_log log;
        log_init(&log);
        char *text = mixed_lines(&random, 20000 + unit_below(&random, 600000));
        log_text(&log, round % 2 ? NACRE_STDERR : NACRE_STDOUT, text);
        size_t budget = 1024 + unit_below(&random, 12000);
        char *large = summarize(&log, budget);
        log.most = 700;
        char *small = summarize(&log, budget);
        assert_string_equal(large, small);
        free(large);
        free(small);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_only_looked_at),
        cmocka_unit_test(first_lines),
        cmocka_unit_test(what_fits_is_shown_whole),
        cmocka_unit_test(the_budget_is_kept_to_the_byte),
        cmocka_unit_test(characters_across_reads_are_whole),
        cmocka_unit_test(invalid_bytes_are_replaced_and_still_fit),
        cmocka_unit_test(the_view_is_rendered),
        cmocka_unit_test(nothing_can_pass_for_ours),
        cmocka_unit_test(every_line_of_ours_is_framed),
        cmocka_unit_test(causes_are_framed),
        cmocka_unit_test(leftovers_are_named),
        cmocka_unit_test(many_leftovers_fit_the_budget),
        cmocka_unit_test(what_came_after_the_record_is_not_shown),
        cmocka_unit_test(budgets_are_bytes_or_tokens),
        cmocka_unit_test(failures_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
