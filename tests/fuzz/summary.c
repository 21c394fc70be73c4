/*
 * Arbitrary logs under arbitrary budgets: the summary is never larger than its budget, is valid
 * UTF-8 in which nothing but our own lines begins like one, and what it says it left out is what is
 * missing.
 */
#include "memory_log.h"

#include <nacre/view.h>

#include "text/frame.h"
#include "view/summary.h"

struct told {
    unsigned long long first, last, whole, left_lines, left_bytes;
    unsigned long long lifted, lowest, highest; /* lines between the first and the last ones */
    unsigned long long binary;
    bool has_causes, has_whole, has_last, has_binary;
};

static void read_lifted(struct told *s, const char *line)
{
    unsigned long long number = 0;
    MUST(sscanf(line, "%llu", &number) == 1 && number > s->highest);
    s->lowest = s->lifted++ == 0 ? number : s->lowest;
    s->highest = number;
}

/* causes: the stream whose causes stand here, or NULL. */
static void read_line(struct told t[2], const char *line, struct told **causes)
{
    char name[8] = "";
    if (sscanf(line, "--- %6[a-z] (", name) != 1) {
        if (*causes)
            read_lifted(*causes, line);
        return;
    }
    struct told *s = &t[strcmp(name, "stderr") == 0];
    *causes = NULL;
    const char *body = line + strlen("--- stdout (");
    unsigned long long a, b;
    if (sscanf(body, "first %llu of %llu", &a, &b) == 2)
        s->first = a;
    else if (sscanf(body, "last %llu of %llu", &a, &b) == 2)
        s->last = a, s->has_last = true;
    else if (sscanf(body, "likely causes: %llu", &a) == 1)
        s->has_causes = true, *causes = s;
    else if (sscanf(body, "%llu line%7[s)]", &a, name) == 2)
        s->whole = a, s->has_whole = true;
    else if (sscanf(body, "binary: %llu bytes", &a) == 1)
        s->binary = a, s->has_binary = true;
}

static void read_notice(struct told t[2], const char *line)
{
    static const char *const names[] = {"stdout ", "stderr "};
    for (int s = 0; s < 2; s++) {
        const char *end = strstr(line, ". "), *at = strstr(line, names[s]);
        if (at && (!end || at < end))
            sscanf(at + 7, "%llu lines (%llu bytes)", &t[s].left_lines, &t[s].left_bytes);
    }
}

static void check_told(const struct told *t, const nacre_record *record, int s, bool lost_end)
{
    if (record->bytes[s] == 0)
        return;
    if (t->has_binary) {
        MUST(t->binary == record->bytes[s] && t->left_bytes == 0);
    } else if (t->has_whole) {
        MUST(t->whole == record->lines[s]);
        MUST(t->left_bytes == 0 && t->left_lines == 0 && !t->has_causes && t->first == 0);
    } else if (t->has_last) {
        MUST(t->left_bytes > 0 || t->first > 0 || t->has_causes);
        MUST(t->left_bytes <= record->bytes[s]);
        MUST(t->first + t->last + t->lifted + t->left_lines <= record->lines[s]);
        if (t->has_causes)
            MUST(t->lowest > t->first && t->highest + t->last <= record->lines[s]);
        else
            MUST(t->first + t->last + t->left_lines == record->lines[s]);
    } else {
        MUST(lost_end);
    }
}

/* What looks like a line of ours is one to the byte, or is marked. */
static void check_frame(const char *line, size_t size)
{
    bool genuine = line[0] == '\\';
    for (size_t i = 0; !genuine && frame_entry(i); i++)
        genuine = size >= strlen(frame_entry(i)) &&
                  memcmp(line, frame_entry(i), strlen(frame_entry(i))) == 0;
    MUST(genuine || !frame_is_ours(line, size));
}

static void check(const struct memory_log *log, const nacre_view_options *options, const char *text,
                  size_t size)
{
    struct told told[2] = {0}, *causes = NULL;
    MUST(size <= summary_budget(options));
    check_text(text, size);
    size_t number = 0;
    bool lost_end = strstr(text, ", the last were not kept) ---\n");
    for (const char *line = text, *end; line < text + size; line = end + 1, number++) {
        end = strchr(line, '\n');
        MUST(end);
        check_frame(line, (size_t)(end - line));
        if (number == 1 && strncmp(line, "Left out: ", 10) == 0)
            read_notice(told, line);
        else
            MUST(strncmp(line, "Left out: ", 10) != 0);
        read_line(told, line, &causes);
    }
    unsigned long long out, err;
    int n = sscanf(text, "Exit code: 0 | stdout: %llu line%*[s] | stderr: %llu line", &out, &err);
    if (n == 1)
        n += sscanf(text, "Exit code: 0 | stdout: 1 line | stderr: %llu line", &err);
    if (n <= 0) {
        /* All of it is shown, with headings only if both streams have something. */
        MUST(strncmp(text, "Exit code: 0\n", 13) == 0);
        MUST(told[0].left_bytes == 0 && told[1].left_bytes == 0);
        MUST(!told[0].has_last && !told[1].has_last);
        return;
    }
    MUST(n == 2);
    MUST(out == log->record.lines[NACRE_STDOUT] && err == log->record.lines[NACRE_STDERR]);
    for (int s = 0; s < 2; s++)
        check_told(&told[s], &log->record, s, lost_end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct memory_log log = {.record = NACRE_RECORD_INIT};
    log.record.outcome = NACRE_EXITED;
    log.record.tree = NACRE_TREE_EMPTY;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    options.bytes = NACRE_VIEW_BUDGET_MIN + take16(&in) % 4096;
    options.compact = take8(&in) % 4 == 0;
    options.lines[NACRE_STDERR] = take8(&in) % 8 == 0 ? 0 : -1;
    make_log(&log, &in);
    struct buf text cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX);
    MUST(summary_write(&text, &log.record, &options, read_span, &log) == 0);
    check(&log, &options, text.data, text.len);
    return 0;
}
