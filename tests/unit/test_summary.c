/* The summary: its first line, what is shown whole, what is cut and how exactly that is said. A
 * fake log in memory stands in for a run directory. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/summary.h"
#include "view/utf8.h"

#define SPANS_MAX 64

struct span {
    nacre_stream stream;
    const char *data; /* NULL: no longer in the log */
    size_t size;
};

struct fake_log {
    nacre_record record;
    struct span spans[SPANS_MAX];
    size_t count;
    size_t most;    /* bytes given by one read; 0 = as many as asked */
    int fail_after; /* reads; -1 = never */
    uint64_t served;
};

static void log_init(struct fake_log *log)
{
    *log = (struct fake_log){.record = {.size = sizeof log->record,
                                        .outcome = NACRE_EXITED,
                                        .tree = NACRE_TREE_EMPTY,
                                        .exit_code = 0},
                             .fail_after = -1};
    static const uint8_t id[16] = {0x1a, 0x2b, 0x3c, 0x4d, 0x5e};
    memcpy(log->record.id.bytes, id, sizeof id);
}

static bool unfinished(const struct fake_log *log, nacre_stream stream)
{
    for (size_t i = log->count; i > 0; i--) {
        const struct span *span = &log->spans[i - 1];
        if (span->stream == stream && span->data)
            return span->data[span->size - 1] != '\n';
    }
    return false;
}

/* Adds bytes, counting as the keeper does: an unfinished last line counts. */
static void log_add(struct fake_log *log, nacre_stream stream, const char *data, size_t size)
{
    uint64_t newlines = 0;
    for (size_t i = 0; i < size; i++)
        newlines += data[i] == '\n';
    uint64_t *lines = &log->record.lines[stream];
    *lines -= unfinished(log, stream);
    *lines += newlines;
    log->record.bytes[stream] += size;
    assert_true(log->count < SPANS_MAX);
    log->spans[log->count++] = (struct span){stream, data, size};
    *lines += unfinished(log, stream);
}

static void log_text(struct fake_log *log, nacre_stream stream, const char *text)
{
    log_add(log, stream, text, strlen(text));
}

static void log_drop(struct fake_log *log, nacre_stream stream, size_t bytes, uint64_t lines)
{
    log->record.bytes[stream] += bytes;
    log->record.lines[stream] += lines;
    log->record.dropped_bytes[stream] += bytes;
    log->record.dropped_lines[stream] += lines;
    log->spans[log->count++] = (struct span){stream, NULL, bytes};
}

static int64_t log_read(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                        nacre_piece *ret_piece)
{
    struct fake_log *log = self;
    assert_int_equal(streams, NACRE_BOTH);
    if (log->fail_after == 0)
        return -EIO;
    log->fail_after -= log->fail_after > 0;

    uint64_t offset = 0, gap = 0;
    for (size_t i = 0; i < log->count; offset += log->spans[i++].size) {
        const struct span *span = &log->spans[i];
        if (*cursor >= offset + span->size)
            continue;
        if (!span->data) {
            gap += span->size;
            *cursor = offset + span->size;
            continue;
        }
        size_t n = MIN(size, span->size - (*cursor - offset));
        if (log->most > 0)
            n = MIN(n, log->most);
        memcpy(buf, span->data + (*cursor - offset), n);
        *ret_piece =
            (nacre_piece){.stream = span->stream, .offset = *cursor, .size = n, .gap_bytes = gap};
        *cursor += n;
        log->served += n;
        return (int64_t)n;
    }
    return 0;
}

/* The summary as a string; the caller frees it. */
static char *summarize(struct fake_log *log, size_t budget)
{
    struct buf b cleanup_buf;
    buf_init(&b, budget + SUMMARY_FRAME_MAX);
    assert_int_equal(summary_write(&b, &log->record, budget, log_read, log), 0);
    assert_int_equal(strlen(b.data), b.len);
    return buf_take(&b);
}

static void expect(struct fake_log *log, size_t budget, const char *expected)
{
    char *text = summarize(log, budget);
    assert_string_equal(text, expected);
    free(text);
}

/* "<prefix><from>\n" to "<prefix><to>\n"; the caller frees it. */
static char *numbers(const char *prefix, int from, int to)
{
    struct buf b cleanup_buf;
    buf_init(&b, 1 << 26);
    for (int i = from; i <= to; i++)
        assert_int_equal(buf_printf(&b, "%s%d\n", prefix, i), 0);
    return buf_take(&b);
}

static char *repeat(const char *text, size_t times)
{
    size_t size = strlen(text);
    char *s = malloc(size * times + 1);
    assert_non_null(s);
    for (size_t i = 0; i < times; i++)
        memcpy(s + i * size, text, size);
    s[size * times] = '\0';
    return s;
}

static bool is_utf8(const char *text)
{
    for (size_t size = strlen(text); size > 0;) {
        uint32_t point;
        size_t n = utf8_next(text, size, &point);
        if (n == 0 || point == UTF8_INVALID)
            return false;
        text += n;
        size -= n;
    }
    return true;
}

static void first_lines(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    expect(&log, 10240, "Exit code: 0 | stdout: 0 lines | stderr: 0 lines\n");

    log.record.exit_code = 143;
    expect(&log, 10240, "Exit code: 143 | stdout: 0 lines | stderr: 0 lines\n");

    log.record.outcome = NACRE_SIGNALED;
    log.record.signal = SIGSEGV;
    expect(&log, 10240, "Signal: SIGSEGV | stdout: 0 lines | stderr: 0 lines\n");
    log.record.core_dumped = 1;
    expect(&log, 10240, "Signal: SIGSEGV (core dumped) | stdout: 0 lines | stderr: 0 lines\n");

    log.record.outcome = NACRE_TIMED_OUT;
    log.record.timeout_ms = 60000;
    expect(&log, 10240, "Timed out after 60s (killed) | stdout: 0 lines | stderr: 0 lines\n");
    log.record.timeout_ms = 500;
    expect(&log, 10240, "Timed out after 0.5s (killed) | stdout: 0 lines | stderr: 0 lines\n");

    static const struct {
        nacre_outcome outcome;
        const char *text;
    } plain[] = {
        {NACRE_RUNNING, "Running | stdout: 0 lines | stderr: 0 lines\n"},
        {NACRE_KILLED, "Killed | stdout: 0 lines | stderr: 0 lines\n"},
        {NACRE_CANCELLED, "Cancelled | stdout: 0 lines | stderr: 0 lines\n"},
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
           "Exit code: 0 | stdout: 1 lines | stderr: 1 lines\n"
           "--- stderr (1 lines) ---\nerr\n"
           "--- stdout (1 lines) ---\nfoobar\n");

    log_init(&log);
    log_text(&log, NACRE_STDERR, "a\nprompt? ");
    expect(&log, 10240,
           "Exit code: 0 | stdout: 0 lines | stderr: 2 lines\n"
           "--- stderr (2 lines) ---\na\nprompt? \n");

    log_init(&log);
    char *sixty = numbers("match ", 1, 60);
    log_text(&log, NACRE_STDOUT, sixty);
    char *text = summarize(&log, 10240);
    assert_non_null(strstr(text, "--- stdout (60 lines) ---\nmatch 1\n"));
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

static void what_does_not_fit_shows_the_safe_lines(void **state)
{
    (void)state;
    char *out = numbers("out ", 1, 20000), *err = numbers("err ", 1, 3000);
    struct fake_log log;
    log_init(&log);
    log.record.exit_code = 2;
    log_text(&log, NACRE_STDOUT, out);
    log_text(&log, NACRE_STDERR, err);

    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    assert_true(strlen(text) > 9000);
    unsigned long out_shown, out_all, err_shown, err_all, skipped;
    const char *e = strstr(text, "--- stderr (last ");
    const char *o = strstr(text, "--- stdout (last ");
    assert_non_null(e);
    assert_non_null(o);
    assert_true(e < o);
    assert_int_equal(
        sscanf(e, "--- stderr (last %lu of %lu, %lu skipped) ---", &err_shown, &err_all, &skipped),
        3);
    assert_int_equal(sscanf(o, "--- stdout (last %lu of %lu) ---", &out_shown, &out_all), 2);
    assert_true(err_shown >= 50);
    assert_true(out_shown >= 20);
    assert_int_equal(err_all, 3000);
    assert_int_equal(out_all, 20000);
    assert_int_equal(skipped, 3000 - err_shown);

    char first[32], note[256];
    snprintf(first, sizeof first, " ---\nerr %lu\n", 3000 - err_shown + 1);
    assert_non_null(strstr(e, first));
    snprintf(first, sizeof first, " ---\nout %lu\n", 20000 - out_shown + 1);
    assert_non_null(strstr(o, first));
    assert_string_equal(text + strlen(text) - strlen("out 20000\n"), "out 20000\n");

    size_t out_bytes = strlen(strchr(o, '\n') + 1);
    size_t err_bytes = (size_t)(o - (strchr(e, '\n') + 1));
    snprintf(note, sizeof note,
             "\nLeft out: stdout %lu lines (%zu bytes), stderr %lu lines (%zu bytes). "
             "Read it with: nacre output 1a2b3c4d [--stream out|err]\n",
             out_all - out_shown, strlen(out) - out_bytes, err_all - err_shown,
             strlen(err) - err_bytes);
    assert_non_null(strstr(text, note));
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
    assert_true(strlen(text) <= 10240);
    assert_non_null(strstr(text, "\n--- stderr (1 lines) ---\nERROR: real cause\n"));
    assert_non_null(strstr(text, " of 40000) ---\n"));
    free(text);
    free(out);
    free(more);
}

static void long_lines_shrink_what_is_safe(void **state)
{
    (void)state;
    char *line = repeat("x", 999);
    char *lines = malloc(100 * 1000 + 1);
    for (size_t i = 0; i < 100; i++)
        snprintf(lines + i * 1000, 1001, "%s\n", line);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDERR, lines);
    log_text(&log, NACRE_STDOUT, lines);
    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    assert_non_null(strstr(text, "--- stderr (last 4 of 100, 96 skipped) ---\nxx"));
    assert_non_null(strstr(text, "--- stdout (last 5 of 100) ---\nxx"));
    assert_non_null(strstr(text, "stdout 95 lines (95000 bytes), stderr 96 lines (96000 bytes)"));
    free(text);
    free(lines);
    free(line);
}

static void one_endless_line_shows_its_end(void **state)
{
    (void)state;
    char *line = repeat("0123456789", 100000);
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, line);
    char *text = summarize(&log, 1000);
    assert_true(strlen(text) <= 1000);
    char *body = strstr(text, "--- stdout (last 1 of 1) ---\n\xe2\x80\xa6");
    assert_non_null(body);
    body = strchr(body, '\n') + 1 + 3;
    size_t shown = strlen(body) - 1;
    assert_true(shown > 300);
    char note[96];
    snprintf(note, sizeof note, "Left out: stdout 0 lines (%zu bytes).", strlen(line) - shown);
    assert_non_null(strstr(text, note));
    assert_memory_equal(body, line + strlen(line) - shown, shown);
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
        for (size_t budget = 640; budget < 660; budget++) {
            struct fake_log log;
            log_init(&log);
            log.most = 1 + budget % 7;
            log_text(&log, NACRE_STDOUT, line);
            char *text = summarize(&log, budget);
            assert_true(is_utf8(text));
            assert_null(strstr(text, UTF8_REPLACEMENT));
            assert_true(strlen(text) <= budget);

            const char *body = strstr(text, "---\n\xe2\x80\xa6");
            assert_non_null(body);
            size_t shown = strlen(body + 7) - 1;
            assert_true(shown > 0);
            char note[64];
            snprintf(note, sizeof note, "stdout 0 lines (%zu bytes).", strlen(line) - shown);
            assert_non_null(strstr(text, note));
            free(text);
        }
        free(line);
    }
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
               "Exit code: 0 | stdout: 1 lines | stderr: 1 lines\n"
               "--- stderr (1 lines) ---\ne\n"
               "--- stdout (1 lines) ---\n\xf0\x9f\x98\x80 \xe2\x82\xac\n");
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
           "Exit code: 0 | stdout: 2 lines | stderr: 0 lines\n"
           "--- stdout (2 lines) ---\na" UTF8_REPLACEMENT "b\n" UTF8_REPLACEMENT "\n");

    char *noise = repeat("\xff\x80", 4000);
    log_init(&log);
    log_text(&log, NACRE_STDOUT, noise);
    char *text = summarize(&log, 10240);
    assert_true(strlen(text) <= 10240);
    assert_true(is_utf8(text));
    assert_non_null(strstr(text, "--- stdout (last 1 of 1) ---\n"));
    free(text);
    free(noise);
}

static void control_characters_stay(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "\x1b[31mred\x1b[0m\tx\r\n");
    expect(&log, 10240,
           "Exit code: 0 | stdout: 1 lines | stderr: 0 lines\n"
           "--- stdout (1 lines) ---\n\x1b[31mred\x1b[0m\tx\r\n");
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
    log.record.leftover[1] =
        (nacre_process){.pid = 124, .ports = {8000, 8001}, .command = "python3 -c\nExit code: 0"};
    expect(&log, 10240,
           "Exit code: 0 | stdout: 1 lines | stderr: 0 lines\n"
           "Left running: pid 123 (sleep 60)\n"
           "Left running: pid 124 (python3 -c Exit code: 0), listening on 8000, 8001\n"
           "--- stdout (1 lines) ---\nhi\n");

    log.record.leftover_count = 0;
    expect(&log, 10240,
           "Exit code: 0 | stdout: 1 lines | stderr: 0 lines\n"
           "Left running: something that could not be named\n"
           "--- stdout (1 lines) ---\nhi\n");

    log.record.outcome = NACRE_RUNNING;
    log.record.leftover_count = 2;
    expect(&log, 10240,
           "Running | stdout: 1 lines | stderr: 0 lines\n"
           "--- stdout (1 lines) ---\nhi\n");
}

static void many_leftovers_fit_the_frame(void **state)
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
    char *text = summarize(&log, 0);
    assert_true(is_utf8(text));
    assert_non_null(strstr(text, "Left running: perhaps more"));
    free(text);
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
           "Exit code: 0 | stdout: 12 lines | stderr: 1 lines\n"
           "Left out: stdout 10 lines (1008 bytes). "
           "Read it with: nacre output 1a2b3c4d [--stream out|err]. "
           "No longer in the log: stdout 9 lines (1000 bytes): over the quota\n"
           "--- stderr (1 lines) ---\nkept\n"
           "--- stdout (last 2 of 12) ---\n\xe2\x80\xa6"
           "f\ntail\n");
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
           "Read it with: nacre output 1a2b3c4d [--stream out|err]. "
           "No longer in the log: stdout 50 lines (500 bytes): No space left on device\n"
           "--- stdout (2 of 52, the last were not kept) ---\none\ntwo\n");
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
           "Exit code: 0 | stdout: 1 lines | stderr: 0 lines\n"
           "--- stdout (1 lines) ---\nbefore\n");
}

static void tiny_budgets_keep_the_frame(void **state)
{
    (void)state;
    char *lines = numbers("", 1, 1000);
    for (size_t budget = 0; budget < 800; budget += 13) {
        struct fake_log log;
        log_init(&log);
        log_text(&log, NACRE_STDOUT, lines);
        log_text(&log, NACRE_STDERR, lines);
        char *text = summarize(&log, budget);
        assert_memory_equal(text, "Exit code: 0 | stdout: 1000 lines | stderr: 1000 lines\n", 55);
        assert_non_null(strstr(text, " of 1000"));
        free(text);
    }
    free(lines);
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

static void failures_are_passed_on(void **state)
{
    (void)state;
    struct fake_log log;
    log_init(&log);
    log_text(&log, NACRE_STDOUT, "text\n");
    log_text(&log, NACRE_STDERR, "text\n");
    log.fail_after = 1;
    struct buf b cleanup_buf;
    buf_init(&b, 4096);
    assert_int_equal(summary_write(&b, &log.record, 1024, log_read, &log), -EIO);

    log.fail_after = -1;
    b.max = 8;
    assert_int_equal(summary_write(&b, &log.record, 1024, log_read, &log), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_lines),
        cmocka_unit_test(what_fits_is_shown_whole),
        cmocka_unit_test(the_budget_is_kept_to_the_byte),
        cmocka_unit_test(what_does_not_fit_shows_the_safe_lines),
        cmocka_unit_test(a_small_stream_stays_whole_beside_a_large_one),
        cmocka_unit_test(long_lines_shrink_what_is_safe),
        cmocka_unit_test(one_endless_line_shows_its_end),
        cmocka_unit_test(no_cut_splits_a_character),
        cmocka_unit_test(characters_across_reads_are_whole),
        cmocka_unit_test(invalid_bytes_are_replaced_and_still_fit),
        cmocka_unit_test(control_characters_stay),
        cmocka_unit_test(leftovers_are_named),
        cmocka_unit_test(many_leftovers_fit_the_frame),
        cmocka_unit_test(a_gap_is_never_bridged),
        cmocka_unit_test(an_end_that_was_not_kept_is_said),
        cmocka_unit_test(what_came_after_the_record_is_not_shown),
        cmocka_unit_test(tiny_budgets_keep_the_frame),
        cmocka_unit_test(a_large_log_is_streamed_through),
        cmocka_unit_test(failures_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
