/* A log in memory, made of the input: spans of both streams, of which one may be gone. */
#ifndef TESTS_FUZZ_MEMORY_LOG_H
#define TESTS_FUZZ_MEMORY_LOG_H

#include "fuzz.h"

#include <nacre/record.h>
#include <nacre/watch.h>

#include "base/defs.h"
#include "text/utf8.h"

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

FUZZ int64_t read_span(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                       nacre_piece *ret_piece)
{
    const struct memory_log *log = self;
    uint64_t offset = 0, gap = 0;
    for (size_t i = 0; i < log->count; offset += log->spans[i++].size) {
        const struct span *span = &log->spans[i];
        if (*cursor >= offset + span->size || (span->data && !(streams & 1u << span->stream)))
            continue;
        *cursor = MAX(*cursor, offset);
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

/* Fills in what the record says about the first spans. */
FUZZ void count_spans(struct memory_log *log, size_t spans)
{
    for (int s = 0; s < 2; s++)
        log->record.bytes[s] = log->record.lines[s] = log->record.dropped_bytes[s] = 0;
    bool unfinished[2] = {false, false};
    for (size_t i = 0; i < spans; i++) {
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
FUZZ void make_log(struct memory_log *log, struct input *in)
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
    count_spans(log, log->count);
}

/* Valid UTF-8 without controls, but for tabs and the ends of lines, that nothing reorders. */
FUZZ void check_text(const char *text, size_t size)
{
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(text, size, &point);
        MUST(n > 0 && point != UTF8_INVALID);
        MUST(point >= ' ' || point == '\n' || point == '\t');
        MUST(!utf8_reorders(point));
        text += n;
        size -= n;
    }
}

#endif
