/*
 * A buffer moves over the stream: whole lines are searched in it, and what is left of the last
 * one is carried to its front before more is read. Two kinds of lines are special: one that does
 * not fit is searched window by window, and one at a gap is cut.
 */
#include "recall/sift.h"

#include <string.h>

#include "base/err.h"
#include "run/log.h"

#define ROOM      (SIFT_LINE + (size_t)256 * 1024)
#define STRETCHES 512

/* Where a line begins. */
struct origin {
    uint64_t offset;
    int64_t time_ms;
};

/* A line that does not fit the buffer. */
struct giant {
    uint64_t gone; /* bytes of it that were in the buffer; 0 = there is no such line */
    bool matches;
    char *excerpt;
    size_t excerpt_size;
    uint64_t excerpt_at; /* in the line */
    struct hit hit;      /* in the excerpt */
};

struct sift {
    nacre_reader *reader;
    struct pattern *pattern;
    struct sift_options options;
    nacre_stretch stretches[STRETCHES];
    size_t stretch_count;
    size_t block_at; /* where in the buffer the last block begins; before it is what was carried */
    struct origin carried;
    uint64_t next_line; /* the number of the line that a byte behind the last block is in */
    uint64_t bytes;
    bool ended; /* the reader has no more */
    bool over;  /* nothing more is wanted */
    bool gap;   /* there is one at block_at, and what is before it has to be searched first */
    uint64_t gap_line; /* the line the first byte behind it is in */
    bool cut_start;    /* the line at the front of the buffer has lost its beginning */

    struct text text; /* what is searched now: whole lines at the front of the buffer */
    size_t start;     /* text.data is this far into the buffer */
    size_t pos;       /* in text: a line begins there that was not looked at */
    size_t counted;   /* in text: up to there newlines are counted, ... */
    uint64_t line;    /* ... and this line begins there */
    struct giant giant;
    size_t size;
    char buf[ROOM];
};

int sift_new(nacre_session *session, const struct sift_options *options, struct pattern *pattern,
             struct sift **ret, nacre_error *err)
{
    struct sift *s = malloc(sizeof *s);
    if (!s)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    memset(s, 0, offsetof(struct sift, buf));
    nacre_reader_options reader = NACRE_READER_OPTIONS_INIT;
    reader.stream = options->stream;
    reader.line = options->from;
    reader.since_ms = options->since_ms;
    reader.end = options->end;
    s->pattern = pattern;
    s->options = *options;
    s->next_line = 1;
    int r = nacre_reader_open(session, options->id, &reader, &s->reader, err);
    if (r < 0) {
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void sift_free(struct sift *s)
{
    if (!s)
        return;
    nacre_reader_close(s->reader);
    free(s->giant.excerpt);
    free(s);
}

uint64_t sift_bytes(const struct sift *s)
{
    return s->bytes;
}

/* -- Where lines begin ------------------------------------------------------------------------- */

/* Of the byte at an index of the buffer; in what was carried only the first begins a line. */
static struct origin origin_of(const struct sift *s, size_t at)
{
    if (at < s->block_at)
        return s->carried;
    size_t low = 0, high = s->stretch_count;
    at -= s->block_at;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (s->stretches[mid].at <= at)
            low = mid;
        else
            high = mid;
    }
    const nacre_stretch *stretch = &s->stretches[low];
    return (struct origin){stretch->offset + (at - stretch->at), stretch->time_ms};
}

static bool is_wanted(const struct sift *s, uint64_t line, int64_t time_ms)
{
    return line >= s->options.from && line <= s->options.to && time_ms >= s->options.since_ms;
}

/* -- Lines that do not fit --------------------------------------------------------------------- */

/* Keeps what is to be shown: some bytes on both sides of a match, or the beginning. */
static int keep_excerpt(struct sift *s, size_t size, const struct hit *hit, nacre_error *err)
{
    struct giant *g = &s->giant;
    if (!g->excerpt && !(g->excerpt = malloc(SIFT_EXCERPT)))
        return err_set(err, NACRE_ENOMEM, "out of memory");
    size_t start = hit->start - MIN(hit->start, SIFT_EXCERPT / 4);
    start = MIN(start, size - MIN(size, SIFT_EXCERPT));
    g->excerpt_size = MIN(size - start, SIFT_EXCERPT);
    g->excerpt_at = g->gone + start;
    memcpy(g->excerpt, s->buf + start, g->excerpt_size);
    g->hit.start = hit->start - start;
    g->hit.end = MIN(hit->end - start, g->excerpt_size);
    g->matches = true;
    return 0;
}

/* Searches the first size bytes of the buffer as a part of one line. */
static int search_window(struct sift *s, size_t size, bool last, nacre_error *err)
{
    struct text window = {.data = s->buf,
                          .size = size,
                          .cut_start = s->giant.gone > 0 || s->cut_start,
                          .cut_end = !last};
    struct hit hit = {0};
    if (s->giant.matches)
        return 0;
    if (s->pattern) {
        pattern_begin(s->pattern, &window);
        int r = pattern_find(s->pattern, &window, 0, &hit, err);
        if (r <= 0)
            return r;
    }
    return keep_excerpt(s, size, &hit, err);
}

/* The buffer is full of one line: searches it and makes room. */
static int pass_window(struct sift *s, nacre_error *err)
{
    if (s->giant.gone == 0)
        s->carried = origin_of(s, 0);
    int r = search_window(s, s->size, false, err);
    if (r < 0)
        return r;
    s->giant.gone += s->size - SIFT_OVERLAP;
    memmove(s->buf, s->buf + s->size - SIFT_OVERLAP, SIFT_OVERLAP);
    s->size = SIFT_OVERLAP;
    return 0;
}

/* The line that did not fit ends after size bytes of the buffer. 1 if it is to be shown. */
static int end_giant(struct sift *s, size_t size, bool cut_end, bool unfinished,
                     nacre_recall_line *ret, nacre_error *err)
{
    struct giant *g = &s->giant;
    int r = search_window(s, size, !cut_end, err);
    if (r < 0)
        return r;
    bool shown = g->matches && is_wanted(s, s->line, s->carried.time_ms);
    *ret = (nacre_recall_line){
        .stream = s->options.stream,
        .line = s->line,
        .offset = s->carried.offset,
        .time_ms = s->carried.time_ms,
        .text = g->excerpt,
        .size = g->excerpt_size,
        .left_before = g->excerpt_at,
        .left_after = g->gone + size - g->excerpt_at - g->excerpt_size,
        .is_match = 1,
        .match_start = g->hit.start,
        .match_end = g->hit.end,
        .cut_start = s->cut_start,
        .cut_end = cut_end,
        .unfinished = unfinished,
    };
    g->gone = 0;
    g->matches = false;
    s->cut_start = false;
    return shown;
}

/* -- Moving the buffer ------------------------------------------------------------------------- */

/* Makes a part of the buffer the text that is searched, beginning with a line's number. */
static void set_text(struct sift *s, size_t start, size_t end, uint64_t line, bool cut_end)
{
    s->text = (struct text){.data = s->buf + start,
                            .size = end - start,
                            .cut_start = s->cut_start && start == 0,
                            .cut_end = cut_end};
    s->start = start;
    s->pos = s->counted = 0;
    s->line = line;
    if (s->pattern)
        pattern_begin(s->pattern, &s->text);
}

/* Carries what was not searched to the front. */
static void carry(struct sift *s)
{
    size_t done = s->start + s->text.size;
    if (done > 0 && done < s->size)
        s->carried = origin_of(s, done);
    if (done > 0)
        s->cut_start = false;
    memmove(s->buf, s->buf + done, s->size - done);
    s->size -= done;
    s->start = 0;
    s->text.size = 0;
}

static int read_block(struct sift *s, nacre_block *ret, nacre_error *err)
{
    *ret = (nacre_block)NACRE_BLOCK_INIT;
    ret->data = s->buf + s->size;
    ret->room = ROOM - s->size;
    ret->stretches = s->stretches;
    ret->stretch_room = STRETCHES;
    int r = nacre_reader_read(s->reader, ret, err);
    if (r < 0)
        return r;
    s->block_at = s->size;
    s->stretch_count = ret->stretch_count;
    s->bytes += ret->bytes;
    s->ended = ret->bytes == 0;
    return 0;
}

/* What stands before the gap, or at the very end, is a line as it is. */
static int close_line(struct sift *s, size_t size, bool cut_end, bool unfinished,
                      nacre_recall_line *ret, nacre_error *err)
{
    if (s->giant.gone > 0) {
        int r = end_giant(s, size, cut_end, unfinished, ret, err);
        set_text(s, size, size, s->line, false);
        return r;
    }
    set_text(s, 0, size, s->line, cut_end);
    return 0;
}

/* The text is what the buffer has of whole lines. 1 = *ret is one that did not fit. */
static int take_whole_lines(struct sift *s, uint64_t line, nacre_recall_line *ret, nacre_error *err)
{
    size_t from = s->block_at;
    const char *last = memrchr(s->buf + from, '\n', s->size - from);
    if (!last) {
        s->line = line;
        return s->size > SIFT_LINE ? pass_window(s, err) : 0;
    }
    size_t end = (size_t)(last + 1 - s->buf);
    if (s->giant.gone == 0) {
        set_text(s, 0, end, line, false);
        return 0;
    }
    const char *first = memchr(s->buf + from, '\n', s->size - from);
    size_t rest = (size_t)(first - s->buf);
    s->line = line;
    int r = end_giant(s, rest, false, false, ret, err);
    set_text(s, rest + 1, end, line + 1, false);
    return r;
}

/* Goes on behind the gap; there the line in the buffer may have begun in it. */
static int cross_gap(struct sift *s, nacre_recall_line *ret, nacre_error *err)
{
    s->gap = false;
    memmove(s->buf, s->buf + s->block_at, s->size - s->block_at);
    s->size -= s->block_at;
    s->block_at = 0;
    s->start = s->text.size = 0;
    s->cut_start = true;
    s->carried = origin_of(s, 0);
    return take_whole_lines(s, s->gap_line, ret, err);
}

/* Gets more lines into the text. 1 = *ret is a line that did not fit. */
static int advance(struct sift *s, nacre_recall_line *ret, nacre_error *err)
{
    nacre_block block;
    if (s->gap)
        return cross_gap(s, ret, err);
    carry(s);
    uint64_t line = s->next_line;
    int r = read_block(s, &block, err);
    if (r < 0)
        return r;
    if (s->ended) {
        s->line = line;
        return s->size > 0 ? close_line(s, s->size, false, true, ret, err) : 0;
    }
    s->size += block.bytes;
    s->over = block.line > s->options.to;
    s->next_line = block.end_line;
    if (block.gap_bytes > 0 && s->block_at > 0) {
        s->gap = true;
        s->gap_line = block.line;
        s->line = line;
        return close_line(s, s->block_at, true, false, ret, err);
    }
    if (s->block_at == 0) {
        s->carried = origin_of(s, 0);
        s->cut_start = block.gap_bytes > 0;
    }
    return take_whole_lines(s, block.line, ret, err);
}

/* -- Lines that do ----------------------------------------------------------------------------- */

/* Describes the line around a hit, and moves behind it. */
static void describe_hit(struct sift *s, const struct hit *hit, nacre_recall_line *ret)
{
    const struct text *t = &s->text;
    const char *before = memrchr(t->data + s->pos, '\n', hit->start - s->pos);
    const char *after = memchr(t->data + hit->start, '\n', t->size - hit->start);
    size_t start = before ? (size_t)(before + 1 - t->data) : s->pos;
    size_t end = after ? (size_t)(after - t->data) : t->size;
    s->line += log_count_newlines(t->data + s->counted, start - s->counted);
    s->counted = start;
    struct origin origin = origin_of(s, s->start + start);
    *ret = (nacre_recall_line){
        .stream = s->options.stream,
        .line = s->line,
        .offset = origin.offset,
        .time_ms = origin.time_ms,
        .text = t->data + start,
        .size = end - start,
        .is_match = 1,
        .match_start = hit->start - start,
        .match_end = MIN(hit->end, end) - start,
        .cut_start = start == 0 && t->cut_start,
        .cut_end = !after && t->cut_end,
        .unfinished = !after && !t->cut_end,
    };
    s->pos = after ? end + 1 : t->size;
}

/* The next line of the text. */
static int next_in_text(struct sift *s, nacre_recall_line *ret, nacre_error *err)
{
    while (s->pos < s->text.size) {
        struct hit hit = {s->pos, s->pos};
        int r = s->pattern ? pattern_find(s->pattern, &s->text, s->pos, &hit, err) : 1;
        if (r <= 0)
            return r;
        describe_hit(s, &hit, ret);
        if (is_wanted(s, ret->line, ret->time_ms))
            return 1;
        if (ret->line > s->options.to)
            s->over = true;
        if (s->over)
            return 0;
    }
    return 0;
}

int sift_next(struct sift *s, nacre_recall_line *ret, nacre_error *err)
{
    for (;;) {
        int r = next_in_text(s, ret, err);
        if (r != 0)
            return r;
        if (s->over || (s->ended && !s->gap))
            return 0;
        r = advance(s, ret, err);
        if (r != 0)
            return r;
    }
}
