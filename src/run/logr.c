/* Reading the log: with pread alone, without the keeper's help, also long after it is gone. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/defs.h"
#include "run/logr.h"
#include "run/rundir.h"
#include "sys/fd.h"

#define SPAN_SIZE sizeof(struct span)

int logr_init(struct logr *r, int dir, int state_fd)
{
    *r = (struct logr){
        .state_fd = state_fd, .log_fd = -EBADF, .spans_fd = -EBADF, .tail_fd = -EBADF};
    r->part = "log";
    r->log_fd = run_open_file(dir, "log", O_RDONLY);
    r->spans_fd = r->log_fd < 0 ? r->log_fd : run_open_file(dir, "spans", O_RDONLY);
    if (r->spans_fd >= 0)
        return 0;
    if (r->log_fd >= 0)
        r->part = "spans";
    int cause = r->spans_fd;
    logr_done(r);
    return cause;
}

void logr_done(struct logr *r)
{
    close_fd(&r->log_fd);
    close_fd(&r->spans_fd);
    close_fd(&r->tail_fd);
}

static bool is_removed(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

bool logr_is_gone(const struct logr *r)
{
    return is_removed(r->log_fd) || is_removed(r->spans_fd) || is_removed(r->tail_fd);
}

int logr_open_tail(struct logr *r, int dir)
{
    if (r->tail_fd >= 0)
        return 0;
    r->tail_fd = run_open_file(dir, "tail", O_RDONLY);
    if (r->tail_fd < 0)
        r->part = "tail";
    return MIN(r->tail_fd, 0);
}

struct log_part logr_part(const struct log_index *x, uint64_t offset)
{
    if (offset < x->head)
        return (struct log_part){.first = 0, .last = x->head_spans, .end = x->head};
    return (struct log_part){
        .tail = true, .first = x->span_first, .last = x->span_next, .end = x->end};
}

static int load_spans(struct logr *r, const struct log_index *x, const struct log_part *part,
                      uint64_t number)
{
    size_t count = (size_t)MIN(part->last - number, (uint64_t)ARRAY_SIZE(r->cache));
    ssize_t n;
    if (part->tail) {
        r->lowest = MIN(r->lowest, number);
        uint64_t slot = number % x->span_cap;
        count = (size_t)MIN(count, x->span_cap - slot);
        n = fd_pread_all(r->tail_fd, r->cache, count * SPAN_SIZE,
                         (off_t)(x->ring_size + slot * SPAN_SIZE));
    } else {
        n = fd_pread_all(r->spans_fd, r->cache, count * SPAN_SIZE, (off_t)(number * SPAN_SIZE));
    }
    if (n < 0)
        return (int)n;
    r->cache_count = (size_t)n / SPAN_SIZE;
    r->cache_first = number;
    r->cache_tail = part->tail;
    return r->cache_count > 0 ? 0 : -EBADMSG;
}

int logr_span(struct logr *r, const struct log_index *x, const struct log_part *part,
              uint64_t number, struct span *ret_span)
{
    bool cached = r->cache_tail == part->tail && number >= r->cache_first &&
                  number - r->cache_first < r->cache_count;
    if (!cached) {
        int e = load_spans(r, x, part, number);
        if (e < 0)
            return e;
    }
    must(number >= r->cache_first && number - r->cache_first < r->cache_count);
    *ret_span = r->cache[number - r->cache_first];
    return 0;
}

int logr_find(struct logr *r, const struct log_index *x, const struct log_part *part,
              uint64_t offset, uint64_t *ret_number)
{
    struct span span;
    if (r->cache_count > 0 && r->cache_tail == part->tail && r->cache_first >= part->first &&
        r->cache[0].offset <= offset && offset < r->cache[r->cache_count - 1].offset) {
        size_t i = 0;
        while (r->cache[i + 1].offset <= offset)
            i++;
        *ret_number = r->cache_first + i;
        return 0;
    }
    uint64_t low = part->first, high = part->last;
    if (low >= high)
        return -EBADMSG;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        int e = logr_span(r, x, part, mid, &span);
        if (e < 0)
            return e;
        if (span.offset <= offset)
            low = mid;
        else
            high = mid;
    }
    *ret_number = low;
    return 0;
}

ssize_t logr_bytes(struct logr *r, const struct log_index *x, bool tail, uint64_t offset, void *buf,
                   size_t size)
{
    if (!tail)
        return fd_pread_all(r->log_fd, buf, size, (off_t)offset);
    uint64_t at = (offset - x->ring_base) % x->ring_size;
    return fd_pread_all(r->tail_fd, buf, (size_t)MIN((uint64_t)size, x->ring_size - at), (off_t)at);
}

/* A look at one span; 0 = not a stream that is wanted, *cursor was moved on. */
static ssize_t read_span(struct logr *r, const struct log_index *x, uint64_t *cursor,
                         unsigned streams, void *buf, size_t size, struct log_piece *piece)
{
    struct log_part part = logr_part(x, *cursor);
    uint64_t number = 0;
    struct span span, next = {.offset = part.end};
    int e = logr_find(r, x, &part, *cursor, &number);
    if (e == 0)
        e = logr_span(r, x, &part, number, &span);
    if (e == 0 && number + 1 < part.last)
        e = logr_span(r, x, &part, number + 1, &next);
    if (e < 0)
        return e;
    uint64_t end = MIN(next.offset, part.end);
    if (span.offset > *cursor || end <= *cursor)
        return -EBADMSG;
    nacre_stream stream = span_stream(&span);
    if (!(streams & 1u << stream)) {
        *cursor = end;
        return 0;
    }
    ssize_t n = logr_bytes(r, x, part.tail, *cursor, buf, (size_t)MIN(end - *cursor, size));
    if (n == 0)
        return -EBADMSG;
    if (n > 0) {
        piece->stream = stream;
        piece->offset = *cursor;
        piece->size = (size_t)n;
        piece->when_us = (int64_t)(span.when >> 1);
    }
    return n;
}

bool logr_is_overtaken(const struct logr *r, const struct log_index *before, uint64_t offset)
{
    struct run_state now;
    if (offset < before->head)
        return false;
    return state_read(r->state_fd, &now) < 0 || now.log.tail_start > offset ||
           now.log.span_first > r->lowest || now.log.ring_size != before->ring_size ||
           now.log.ring_base != before->ring_base;
}

bool logr_is_sane(const struct log_index *x)
{
    if (x->head > x->end || x->span_first > x->span_next)
        return false;
    if (x->ring_size == 0)
        return true;
    return x->span_cap > 0 && x->tail_start <= x->end && x->tail_start >= x->ring_base &&
           x->end - x->tail_start <= x->ring_size;
}

ssize_t logr_read_at(struct logr *r, int dir, struct run_state *state, uint64_t *cursor,
                     unsigned streams, void *buf, size_t size, struct log_piece *ret_piece)
{
    uint64_t gap = 0;
    int e = 0;
    while (e == 0) {
        const struct log_index *x = &state->log;
        if (!logr_is_sane(x))
            return -EBADMSG;
        *ret_piece = (struct log_piece){.offset = *cursor, .gap = gap};
        if (*cursor >= x->end)
            return 0;
        uint64_t tail = x->ring_size > 0 ? x->tail_start : x->end;
        if (*cursor >= x->head && *cursor < tail) {
            gap += tail - *cursor;
            *cursor = tail;
            continue;
        }
        if (*cursor >= x->head && (e = logr_open_tail(r, dir)) < 0)
            return e;
        uint64_t at = *cursor;
        r->lowest = UINT64_MAX;
        ssize_t n = read_span(r, x, cursor, streams, buf, size, ret_piece);
        if (logr_is_overtaken(r, x, at)) {
            r->cache_count = 0;
            *cursor = at;
            e = state_read(r->state_fd, state);
            continue;
        }
        if (n == -EBADMSG) {
            uint64_t end = logr_part(x, at).end;
            gap += end - at;
            *cursor = end;
        } else if (n != 0) {
            *cursor += n > 0 ? (uint64_t)n : 0;
            return n;
        }
    }
    return e;
}

ssize_t logr_read(struct logr *r, int dir, uint64_t *cursor, unsigned streams, void *buf,
                  size_t size, struct log_piece *ret_piece)
{
    struct run_state state;
    int e = state_read(r->state_fd, &state);
    return e < 0 ? e : logr_read_at(r, dir, &state, cursor, streams, buf, size, ret_piece);
}

/* Counts what the keeper had written to the head but not yet published when it vanished. */
static int recover_span(int log_fd, const struct span *span, uint64_t end, struct log_index *x)
{
    char buf[16384];
    nacre_stream stream = span_stream(span);
    while (x->end < end) {
        size_t want = (size_t)MIN(end - x->end, (uint64_t)sizeof buf);
        ssize_t n = fd_pread_all(log_fd, buf, want, (off_t)x->end);
        if (n <= 0)
            return n < 0 ? (int)n : -EBADMSG;
        x->end += (uint64_t)n;
        x->bytes[stream] += (uint64_t)n;
        x->newlines[stream] += log_count_newlines(buf, (size_t)n);
        x->unfinished[stream] = buf[n - 1] != '\n';
    }
    x->head = x->end;
    return 0;
}

int log_recover(int dir, struct log_index *index)
{
    struct log_index x = *index;
    /* Once the head is closed it does not grow, and what the ring has beyond cannot be told. */
    if (x.ring_size > 0 || x.end != x.head)
        return 0;
    cleanup_close int log_fd = run_open_file(dir, "log", O_RDONLY);
    cleanup_close int spans_fd = run_open_file(dir, "spans", O_RDONLY);
    off_t size = log_fd < 0 ? -1 : lseek(log_fd, 0, SEEK_END);
    off_t spans = spans_fd < 0 ? -1 : lseek(spans_fd, 0, SEEK_END) / (off_t)SPAN_SIZE;
    if (size < 0 || spans < 0)
        return -EBADMSG;
    uint64_t number = x.head_spans > 0 ? x.head_spans - 1 : 0;
    for (; number < (uint64_t)spans && x.end < (uint64_t)size; number++) {
        struct span span, next = {.offset = (uint64_t)size};
        fd_pread_all(spans_fd, &span, SPAN_SIZE, (off_t)(number * SPAN_SIZE));
        if (number + 1 < (uint64_t)spans)
            fd_pread_all(spans_fd, &next, SPAN_SIZE, (off_t)((number + 1) * SPAN_SIZE));
        if (span.offset > x.end || next.offset > (uint64_t)size)
            return -EBADMSG;
        int r = recover_span(log_fd, &span, next.offset, &x);
        if (r < 0)
            return r;
        x.head_spans = number + 1;
    }
    *index = x;
    return 0;
}
