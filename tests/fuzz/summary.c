/*
 * Arbitrary logs under arbitrary budgets: the summary is never larger than its budget, is valid
 * UTF-8 in which nothing but our own lines begins like one, and what it says it left out is what is
 * missing.
 */
#include "fuzz.h"

#include <nacre/view.h>

#include "view/frame.h"
#include "view/summary.h"
#include "view/utf8.h"

#define SPANS_MAX 32

struct span {
    nacre_stream stream;
    const uint8_t *data; /* NULL: no longer in the log */
    size_t size;
};

struct memory_log {
    nacre_record record;
    struct span spans[SPANS_MAX];
    size_t count;
    size_t most; /* bytes of one read */
};

static int64_t read_span(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                         nacre_piece *ret_piece)
{
    const struct memory_log *log = self;
    uint64_t offset = 0, gap = 0;
    MUST(streams == NACRE_BOTH);
    for (size_t i = 0; i < log->count; offset += log->spans[i++].size) {
        const struct span *span = &log->spans[i];
        if (*cursor >= offset + span->size)
            continue;
        if (!span->data) {
            gap += offset + span->size - *cursor;
            *cursor = offset + span->size;
            continue;
        }
        size_t n = MIN(MIN(size, log->most), span->size - (*cursor - offset));
        memcpy(buf, span->data + (*cursor - offset), n);
        *ret_piece =
            (nacre_piece){.stream = span->stream, .offset = *cursor, .size = n, .gap_bytes = gap};
        *cursor += n;
        return (int64_t)n;
    }
    return 0;
}

static void count(struct memory_log *log)
{
    bool unfinished[2] = {false, false};
    for (size_t i = 0; i < log->count; i++) {
        const struct span *span = &log->spans[i];
        log->record.bytes[span->stream] += span->size;
        if (!span->data) {
            log->record.dropped_bytes[span->stream] += span->size;
            unfinished[span->stream] = true;
            continue;
        }
        for (size_t k = 0; k < span->size; k++)
            log->record.lines[span->stream] += span->data[k] == '\n';
        unfinished[span->stream] = span->data[span->size - 1] != '\n';
    }
    for (int s = 0; s < 2; s++)
        log->record.lines[s] += unfinished[s];
}

/* At most one gap, as in a real log; what is in it has no newlines. */
static void make_log(struct memory_log *log, struct input *in)
{
    bool gap = false;
    log->most = 1 + take8(in) % 64;
    if (log->most == 64)
        log->most = SIZE_MAX;
    while (in->left > 3 && log->count < SPANS_MAX) {
        uint8_t kind = take8(in);
        size_t size = (size_t)take16(in) % 2048 + 1;
        size = MAX(MIN(size, in->left), (size_t)1);
        struct span *span = &log->spans[log->count++];
        bool dropped = kind % 16 == 15 && !gap;
        gap |= dropped;
        *span =
            (struct span){kind & 16 ? NACRE_STDERR : NACRE_STDOUT, dropped ? NULL : in->at, size};
        if (!dropped) {
            in->at += size;
            in->left -= size;
        }
    }
    count(log);
}

static void check_utf8(const char *text, size_t size)
{
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(text, size, &point);
        MUST(n > 0 && point != UTF8_INVALID);
        MUST(point >= ' ' || point == '\n' || point == '\t');
        text += n;
        size -= n;
    }
}

struct told {
    unsigned long long first, last, whole, left_lines, left_bytes;
    bool has_causes, has_whole, has_last;
};

static void read_line(struct told t[2], const char *line)
{
    char name[8] = "";
    if (sscanf(line, "--- %6[a-z] (", name) != 1)
        return;
    struct told *s = &t[strcmp(name, "stderr") == 0];
    const char *body = line + strlen("--- stdout (");
    unsigned long long a, b;
    if (sscanf(body, "first %llu of %llu", &a, &b) == 2)
        s->first = a;
    else if (sscanf(body, "last %llu of %llu", &a, &b) == 2)
        s->last = a, s->has_last = true;
    else if (sscanf(body, "likely causes: %llu", &a) == 1)
        s->has_causes = true;
    else if (sscanf(body, "%llu line%7[s)]", &a, name) == 2)
        s->whole = a, s->has_whole = true;
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
    if (t->has_whole) {
        MUST(t->whole == record->lines[s]);
        MUST(t->left_bytes == 0 && t->left_lines == 0 && !t->has_causes && t->first == 0);
    } else if (t->has_last) {
        MUST(t->left_bytes > 0 || t->first > 0 || t->has_causes);
        MUST(t->left_bytes <= record->bytes[s]);
        MUST(t->first + t->last + t->left_lines <= record->lines[s]);
        if (!t->has_causes)
            MUST(t->first + t->last + t->left_lines == record->lines[s]);
    } else {
        MUST(lost_end);
    }
}

static void check(const struct memory_log *log, const nacre_view_options *options, const char *text,
                  size_t size)
{
    struct told told[2] = {0};
    MUST(size <= summary_budget(options));
    check_utf8(text, size);
    size_t number = 0;
    bool lost_end = strstr(text, ", the last were not kept) ---\n");
    for (const char *line = text, *end; line < text + size; line = end + 1, number++) {
        end = strchr(line, '\n');
        MUST(end);
        if (number == 1 && strncmp(line, "Left out: ", 10) == 0)
            read_notice(told, line);
        else
            MUST(strncmp(line, "Left out: ", 10) != 0);
        read_line(told, line);
    }
    unsigned long long out, err;
    MUST(sscanf(text, "Exit code: 0 | stdout: %llu lines | stderr: %llu lines", &out, &err) == 2);
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
    struct buf text cleanup_buf;
    buf_init(&text, NACRE_VIEW_BUDGET_MAX);
    MUST(summary_write(&text, &log.record, &options, read_span, &log) == 0);
    check(&log, &options, text.data, text.len);
    return 0;
}
