/* What the tests of summaries share: making one, and reading what it says about a stream. */
#ifndef TESTS_SUMMARIES_H
#define TESTS_SUMMARIES_H

#include "fake_log.h"

#include "view/summary.h"

UNIT char *summarize_as(struct fake_log *log, const nacre_view_options *options)
{
    struct buf b cleanup_buf = BUF_UP_TO(summary_budget(options));
    assert_int_equal(summary_write(&b, &log->record, options, log_read, log), 0);
    assert_int_equal(strlen(b.data), b.len);
    assert_true(is_utf8(b.data));
    return buf_take(&b);
}

/* The summary as a string; the caller frees it. */
UNIT char *summarize(struct fake_log *log, size_t budget)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    options.bytes = budget;
    return summarize_as(log, &options);
}

UNIT void expect(struct fake_log *log, size_t budget, const char *expected)
{
    char *text = summarize(log, budget);
    assert_string_equal(text, expected);
    free(text);
}

/* -- Counting what is shown -------------------------------------------------------------------- */

/* What a summary says about one stream, and what it really shows of it. */
struct told {
    unsigned long long first, last, all, left_lines, left_bytes, from, to, causes, cause_total,
        near;
    unsigned long long lowest, highest; /* numbers of lines lifted out */
    size_t shown_lines, shown_bytes;    /* of lines that are unique, each with its newline */
};

UNIT const char *after(const char *text, const char *prefix)
{
    const char *at = strstr(text, prefix);
    return at ? at + strlen(prefix) : NULL;
}

UNIT void read_heading(struct told *t, const char *line, const char *name)
{
    char stream[8] = "";
    unsigned long long a, b;
    if (sscanf(line, "--- %6[a-z] (", stream) != 1 || strcmp(stream, name) != 0)
        return;
    const char *body = line + strlen("--- stdout (");
    if (sscanf(body, "first %llu of %llu", &a, &b) == 2) {
        t->first = a;
    } else if (sscanf(body, "last %llu of %llu", &a, &b) == 2) {
        t->last = a;
        t->all = b;
    } else if (sscanf(body, "likely causes: %llu of %llu", &a, &b) == 2) {
        t->causes = a;
        t->cause_total = b;
    }
}

/* Lines of the stream begin with its name; those lifted out, with a number before it. */
UNIT struct told told_of(const char *text, const char *name)
{
    struct told t = {0};
    char word[16];
    const char *notice = after(text, "Left out: ");
    const char *amounts = notice ? strstr(notice, name) : NULL;
    if (amounts)
        sscanf(amounts + strlen(name), " %llu lines (%llu bytes)", &t.left_lines, &t.left_bytes);
    snprintf(word, sizeof word, "%s ", name);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        read_heading(&t, line, name);
        size_t digits = strspn(line, "0123456789");
        bool lifted = digits > 0 && (line[digits] == ':' || line[digits] == '-');
        const char *body = lifted ? line + digits + 2 : line;
        if (strncmp(body, word, strlen(word)) != 0)
            continue;
        t.shown_lines++;
        t.near += lifted && line[digits] == '-';
        if (body != line) {
            t.highest = strtoull(line, NULL, 10);
            t.lowest = t.lowest ? t.lowest : t.highest;
        }
        t.shown_bytes += (size_t)(strchr(body, '\n') + 1 - body);
    }
    for (const char *hint = text; (hint = after(hint, "lines: \""));) {
        unsigned long long from, to;
        char stream[8] = "";
        if (sscanf(hint, "%llu-%llu\", stream: \"%6[a-z]\")", &from, &to, stream) == 3 &&
            strcmp(stream, name) == 0) {
            t.from = from;
            t.to = to;
        }
    }
    return t;
}

/* Everything that is said is exact. */
UNIT void check_told(const struct told *t, uint64_t lines, uint64_t bytes)
{
    assert_int_equal(t->all, lines);
    assert_int_equal(t->shown_lines, t->first + t->last + t->causes + t->near);
    assert_int_equal(t->left_lines, lines - t->shown_lines);
    assert_int_equal(t->left_bytes, bytes - t->shown_bytes);
    assert_int_equal(t->from, t->first + 1);
    assert_int_equal(t->to, lines - t->last);
    if (t->causes > 0)
        assert_true(t->lowest >= t->from && t->highest <= t->to);
}

#endif
