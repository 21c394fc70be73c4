/* Reading one stream: spans say what to read, and a block is one read for many of them. */
#include "run/stream.h"

#include <string.h>

#include "base/assert.h"
#include "base/defs.h"
#include "run/logr.h"

/* Bytes of the other stream that are cheaper to read and throw away than to read around. */
#define HOLE          ((uint64_t)16 * 1024)
#define SEEK_ATTEMPTS 16

int log_stream_init(struct log_stream *s, int dir, int state_fd, nacre_stream stream, uint64_t end)
{
    *s = (struct log_stream){.dir = dir, .stream = stream, .end = end};
    return logr_init(&s->reader, dir, state_fd);
}

void log_stream_done(struct log_stream *s)
{
    logr_done(&s->reader);
}

static uint64_t newlines_before(const struct span *span, nacre_stream stream)
{
    return stream == NACRE_STDOUT ? span->out_newlines : span->err_newlines;
}

static uint64_t bytes_before(const struct span *span, nacre_stream stream)
{
    return stream == NACRE_STDOUT ? span->out_bytes : span->offset - span->out_bytes;
}

/* -- Seeking ----------------------------------------------------------------------------------- */

/* What is compared; each of them never falls from one span to the next. */
enum span_key { BY_NEWLINES, BY_TIME, BY_BYTES };

struct span_found {
    struct log_part part;
    uint64_t number;
    struct span span;
};

static uint64_t key_of(const struct log_stream *s, enum span_key key, const struct span *span)
{
    switch (key) {
    case BY_NEWLINES:
        return newlines_before(span, s->stream);
    case BY_TIME:
        return span->when >> 1;
    default:
        return bytes_before(span, s->stream);
    }
}

/* The last span of a part whose key is below the limit; false if there is none. */
static int bisect(struct log_stream *s, const struct log_index *x, const struct log_part *part,
                  enum span_key key, uint64_t limit, struct span_found *ret, bool *ret_found)
{
    uint64_t low = part->first, high = part->last;
    struct span span;
    *ret_found = false;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        int e = logr_span(&s->reader, x, part, mid, &span);
        if (e < 0)
            return e;
        if (key_of(s, key, &span) >= limit) {
            high = mid;
            continue;
        }
        *ret = (struct span_found){*part, mid, span};
        *ret_found = true;
        low = mid + 1;
    }
    return 0;
}

static int seek_key(struct log_stream *s, const struct log_index *x, enum span_key key,
                    uint64_t limit, struct span_found *ret, bool *ret_found)
{
    struct log_part head = logr_part(x, 0), tail = logr_part(x, UINT64_MAX);
    int e = 0;
    *ret_found = false;
    if (x->ring_size > 0 && (e = logr_open_tail(&s->reader, s->dir)) == 0)
        e = bisect(s, x, &tail, key, limit, ret, ret_found);
    if (e == 0 && !*ret_found && x->head > 0)
        e = bisect(s, x, &head, key, limit, ret, ret_found);
    return e;
}

/* Where to begin for the sake of one key; the cursor only moves forward. */
static int seek_one(struct log_stream *s, const struct log_index *x, enum span_key key,
                    uint64_t limit)
{
    struct span_found at;
    bool found;
    int e = seek_key(s, x, key, limit, &at, &found);
    /* Bytes before a moment are wanted too, for whether a line had begun. */
    if (e == 0 && found && key == BY_TIME && span_stream(&at.span) != s->stream)
        e = seek_key(s, x, BY_BYTES, bytes_before(&at.span, s->stream), &at, &found);
    if (e < 0 || !found || at.span.offset <= s->cursor)
        return e;
    struct span first = at.span;
    if (at.part.tail)
        e = logr_span(&s->reader, x, &at.part, at.part.first, &first);
    if (e < 0)
        return e;
    s->cursor = at.span.offset;
    s->position = bytes_before(&at.span, s->stream);
    /* Nothing of the stream stands between the gap and the cursor. */
    if (at.part.tail && s->position == bytes_before(&first, s->stream))
        s->position -= MIN(x->dropped_bytes[s->stream], s->position);
    return 0;
}

int log_stream_seek(struct log_stream *s, uint64_t line, int64_t since_us)
{
    struct run_state state;
    /* A writer that is always faster is let go: the cursor is right where it is, only far. */
    for (int attempt = 0; attempt < SEEK_ATTEMPTS; attempt++) {
        int e = state_read(s->reader.state_fd, &state);
        if (e < 0)
            return e;
        if (!logr_is_sane(&state.log))
            return -EBADMSG;
        uint64_t cursor = s->cursor, position = s->position;
        s->reader.lowest = UINT64_MAX;
        if (line > 1)
            e = seek_one(s, &state.log, BY_NEWLINES, line - 1);
        if (e == 0 && since_us > 0)
            e = seek_one(s, &state.log, BY_TIME, (uint64_t)since_us);
        if (state.log.ring_size == 0 ||
            !logr_is_overtaken(&s->reader, &state.log, MAX(s->cursor, state.log.tail_start)))
            return e;
        s->reader.cache_count = 0;
        s->cursor = cursor;
        s->position = position;
    }
    return 0;
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* A block as it is being filled. */
struct fill {
    struct log_stream *s;
    const struct log_index *x;
    struct log_part part;
    struct log_block *block;
    uint64_t end;    /* of what may be read */
    uint64_t cursor; /* in the log */
    uint64_t from;   /* what has to be read together next: a range of the log, ... */
    uint64_t to;
    size_t base;        /* ... where in the block it goes, ... */
    size_t first_mark;  /* ... and which marks are in it */
    bool end_is_known;  /* end_newlines is right */
    struct span last;   /* the span that was taken last */
    size_t last_at;     /* where its bytes begin in the block */
    uint64_t last_skip; /* how many of them stand before that */
};

static int read_range(const struct fill *f, uint64_t offset, char *to, size_t size)
{
    while (size > 0) {
        ssize_t n = logr_bytes(&f->s->reader, f->x, f->part.tail, offset, to, size);
        if (n <= 0)
            return n < 0 ? (int)n : -EBADMSG;
        offset += (uint64_t)n;
        to += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Reads what was put together, and closes the holes in it. */
static int read_pending(struct fill *f)
{
    struct log_block *block = f->block;
    if (f->to == f->from)
        return 0;
    int e = read_range(f, f->from, block->data + f->base, (size_t)(f->to - f->from));
    if (e < 0)
        return e;
    for (size_t i = f->first_mark; i < block->mark_count; i++) {
        const struct log_mark *mark = &block->marks[i];
        size_t until = i + 1 < block->mark_count ? block->marks[i + 1].at : block->size;
        const char *at = block->data + f->base + (mark->offset - f->from);
        if (at != block->data + mark->at)
            memmove(block->data + mark->at, at, until - mark->at);
    }
    f->base = block->size;
    f->first_mark = block->mark_count;
    f->from = f->to = 0;
    return 0;
}

/* Newlines of a span in front of the cursor, which stands inside it. */
static int count_front(struct fill *f, const struct span *span, uint64_t *ret_count)
{
    *ret_count = 0;
    for (uint64_t at = span->offset; at < f->cursor;) {
        size_t n = (size_t)MIN(f->cursor - at, (uint64_t)f->block->room);
        int e = read_range(f, at, f->block->data, n);
        if (e < 0)
            return e;
        *ret_count += log_count_newlines(f->block->data, n);
        at += n;
    }
    return 0;
}

static int begin_block(struct fill *f, const struct span *span)
{
    struct log_stream *s = f->s;
    uint64_t front;
    int e = count_front(f, span, &front);
    if (e < 0)
        return e;
    uint64_t position = bytes_before(span, s->stream) + (f->cursor - span->offset);
    f->block->newlines = newlines_before(span, s->stream) + front;
    f->block->gap = position > s->position ? position - s->position : 0;
    s->position = position;
    f->last_skip = front;
    return 0;
}

/* Adds bytes of a span up to an offset. 1 = done, 0 = there is no room for them. */
static int add_to_block(struct fill *f, const struct span *span, uint64_t until)
{
    struct log_block *block = f->block;
    must(span->offset <= f->cursor && f->cursor < until && block->size <= block->room);
    if (block->mark_count == block->mark_room)
        return 0;
    f->last_skip = 0;
    int e = block->size == 0 ? begin_block(f, span) : 0;
    if (e < 0)
        return e;
    bool joins =
        f->to > f->from && f->cursor - f->to <= HOLE && f->base + (until - f->from) <= block->room;
    if (!joins) {
        if ((e = read_pending(f)) < 0)
            return e;
        if (block->size > 0 && until - f->cursor > block->room - block->size)
            return 0;
        f->from = f->cursor;
    }
    f->to = MIN(until, f->from + (block->room - f->base));
    block->marks[block->mark_count++] = (struct log_mark){
        .at = block->size, .offset = f->cursor, .when_us = (int64_t)(span->when >> 1)};
    f->last = *span;
    f->last_at = block->size;
    block->size += (size_t)(f->to - f->cursor);
    f->cursor = f->to;
    return 1;
}

/* One span, from the cursor on. 1 = go on with the next, 0 = the block is full. */
static int take_span(struct fill *f, uint64_t number)
{
    struct span span, next = {.offset = f->part.end};
    int e = logr_span(&f->s->reader, f->x, &f->part, number, &span);
    bool has_next = number + 1 < f->part.last;
    if (e == 0 && has_next)
        e = logr_span(&f->s->reader, f->x, &f->part, number + 1, &next);
    if (e < 0)
        return e;
    uint64_t until = MIN(next.offset, f->end);
    if (span.offset > f->cursor || until <= f->cursor)
        return -EBADMSG;
    if (span_stream(&span) != f->s->stream) {
        f->cursor = until;
        return 1;
    }
    e = add_to_block(f, &span, until);
    if (e <= 0)
        return e;
    f->end_is_known = has_next && f->cursor == next.offset;
    if (f->end_is_known)
        f->block->end_newlines = newlines_before(&next, f->s->stream);
    return f->cursor == until;
}

static void finish_block(struct fill *f)
{
    struct log_block *block = f->block;
    f->s->position += block->size;
    if (f->end_is_known)
        return;
    if (f->cursor == f->x->end)
        block->end_newlines = f->x->newlines[f->s->stream];
    else
        block->end_newlines =
            newlines_before(&f->last, f->s->stream) + f->last_skip +
            log_count_newlines(block->data + f->last_at, block->size - f->last_at);
}

/* Fills from the part the cursor is in. The block stays empty if the part has nothing more. */
static int fill_part(struct fill *f)
{
    uint64_t number = 0;
    int e = f->part.tail ? logr_open_tail(&f->s->reader, f->s->dir) : 0;
    if (e == 0)
        e = logr_find(&f->s->reader, f->x, &f->part, f->cursor, &number);
    if (e < 0)
        return e;
    int more = 1;
    for (; more > 0 && number < f->part.last && f->cursor < f->end; number++)
        more = take_span(f, number);
    if (more < 0)
        return more;
    if ((e = read_pending(f)) < 0)
        return e;
    if (f->block->size > 0)
        finish_block(f);
    return 0;
}

/* One attempt with one state of the index; -EAGAIN if the writer was faster. */
static int fill_block(struct log_stream *s, const struct log_index *x, struct log_block *block)
{
    uint64_t tail = x->ring_size > 0 ? x->tail_start : x->end;
    struct fill f = {.s = s, .x = x, .block = block, .cursor = s->cursor};
    uint64_t position = s->position;
    block->size = block->mark_count = 0;
    block->gap = 0;
    while (block->size == 0) {
        if (f.cursor >= x->head && f.cursor < tail)
            f.cursor = tail;
        if (f.cursor >= MIN(x->end, s->end))
            break;
        f.part = logr_part(x, f.cursor);
        f.end = MIN(f.part.end, s->end);
        uint64_t at = f.cursor;
        s->reader.lowest = UINT64_MAX;
        int e = fill_part(&f);
        if (logr_is_overtaken(&s->reader, x, at)) {
            s->position = position;
            return -EAGAIN;
        }
        if (e < 0)
            return e;
    }
    s->cursor = f.cursor;
    return 0;
}

int log_stream_read(struct log_stream *s, struct log_block *block)
{
    struct run_state state;
    for (;;) {
        int e = state_read(s->reader.state_fd, &state);
        if (e < 0)
            return e;
        if (!logr_is_sane(&state.log))
            return -EBADMSG;
        e = fill_block(s, &state.log, block);
        if (e != -EAGAIN)
            return e;
        s->reader.cache_count = 0;
    }
}
