/*
 * A log in memory that stands in for a run directory: spans of two streams in the order they were
 * printed, some of them gone, with the record that the keeper would have kept.
 */
#ifndef TESTS_FAKE_LOG_H
#define TESTS_FAKE_LOG_H

#include "unit.h"

#include <nacre/record.h>
#include <nacre/watch.h>

#include "base/buf.h"
#include "text/utf8.h"

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

UNIT void log_init(struct fake_log *log)
{
    *log = (struct fake_log){.record = {.size = sizeof log->record,
                                        .outcome = NACRE_EXITED,
                                        .tree = NACRE_TREE_EMPTY,
                                        .exit_code = 0},
                             .fail_after = -1};
    static const uint8_t id[16] = {0x1a, 0x2b, 0x3c, 0x4d, 0x5e};
    memcpy(log->record.id.bytes, id, sizeof id);
}

UNIT bool unfinished(const struct fake_log *log, nacre_stream stream)
{
    for (size_t i = log->count; i > 0; i--) {
        const struct span *span = &log->spans[i - 1];
        if (span->stream == stream && span->data)
            return span->data[span->size - 1] != '\n';
    }
    return false;
}

/* Adds bytes, counting as the keeper does: an unfinished last line counts. */
UNIT void log_add(struct fake_log *log, nacre_stream stream, const char *data, size_t size)
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

UNIT void log_text(struct fake_log *log, nacre_stream stream, const char *text)
{
    log_add(log, stream, text, strlen(text));
}

UNIT void log_drop(struct fake_log *log, nacre_stream stream, size_t bytes, uint64_t lines)
{
    log->record.bytes[stream] += bytes;
    log->record.lines[stream] += lines;
    log->record.dropped_bytes[stream] += bytes;
    log->record.dropped_lines[stream] += lines;
    log->spans[log->count++] = (struct span){stream, NULL, bytes};
}

UNIT int64_t log_read(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                      nacre_piece *ret_piece)
{
    struct fake_log *log = self;
    if (log->fail_after == 0)
        return -EIO;
    log->fail_after -= log->fail_after > 0;

    uint64_t offset = 0, gap = 0;
    for (size_t i = 0; i < log->count; offset += log->spans[i++].size) {
        const struct span *span = &log->spans[i];
        bool wanted = !span->data || (streams & 1u << span->stream);
        if (*cursor >= offset + span->size || !wanted)
            continue;
        *cursor = *cursor > offset ? *cursor : offset;
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

/* "<prefix><from>\n" to "<prefix><to>\n"; the caller frees it. */
UNIT char *numbers(const char *prefix, int from, int to)
{
    struct buf b cleanup_buf = BUF_UP_TO(1 << 26);
    for (int i = from; i <= to; i++)
        assert_int_equal(buf_printf(&b, "%s%d\n", prefix, i), 0);
    return buf_take(&b);
}

UNIT char *repeat(const char *text, size_t times)
{
    size_t size = strlen(text);
    char *s = malloc(size * times + 1);
    assert_non_null(s);
    for (size_t i = 0; i < times; i++)
        memcpy(s + i * size, text, size);
    s[size * times] = '\0';
    return s;
}

UNIT bool is_utf8(const char *text)
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

#endif
