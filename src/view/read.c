#include "view/read.h"

#include <string.h>

#include "base/defs.h"
#include "base/grow.h"
#include "run/log.h"
#include "screen/render.h"
#include "text/strange.h"
#include "view/choose.h"
#include "view/ending_words.h"
#include "view/lines.h"
#include "view/recall_hint.h"

#define CHUNK      65536
#define NOTICE_MAX 400
#define AGAIN_MAX  40 /* bytes of a line that are shown again because it has grown */

/* Newlines of one stream that follow each other in the log. */
struct turn {
    nacre_stream stream;
    uint64_t newlines;
};

/* One stream in a part. */
struct part_side {
    struct render *render;
    struct lines lines;
    uint64_t bytes, newlines;
    struct strange_sample sample;
    bool torn; /* its first line is not whole */
    bool unfinished;
    uint64_t open_offset; /* in the log: where the line began that is unfinished, */
    uint64_t open_bytes;  /* and what there is of it */
};

/* What was read without a gap in between. */
struct part {
    struct part_side sides[2];
    struct turn *turns;
    size_t turn_count, turn_room;
};

struct read_item {
    struct part *part;
    nacre_stream stream;
    size_t line;
};

struct log_reading {
    const nacre_record *record;
    const nacre_position *from;
    unsigned streams;
    uint64_t unread;      /* bytes that are read at once */
    uint64_t end;         /* of the log, as the record knew it */
    struct part parts[2]; /* before and after what was not read */
    int last;             /* the part that reaches the end */
    size_t line_max;
    struct read_item *items; /* all new lines, in order */
    size_t count;
    bool whole;        /* all of them are shown, or */
    size_t head, tail; /* those before head, and those from tail on */
};

/* -- Parts ------------------------------------------------------------------------------------ */

static void part_done(struct part *p)
{
    for (int s = 0; s < 2; s++) {
        render_free(p->sides[s].render);
        lines_done(&p->sides[s].lines);
    }
    free(p->turns);
    *p = (struct part){0};
}

static int keep_line(void *self, const struct render_line *line)
{
    struct part_side *side = self;
    return lines_add(&side->lines, line, side->torn && side->lines.count == 0);
}

static int part_begin(struct part *p, size_t line_max, bool torn)
{
    struct render_options options = {.first_line = 1, .line_max = line_max, .fold = true};
    part_done(p);
    int r = 0;
    for (int s = 0; r == 0 && s < 2; s++) {
        p->sides[s].torn = torn;
        r = render_new(&options, keep_line, &p->sides[s], &p->sides[s].render);
    }
    return r;
}

static int add_turn(struct part *p, nacre_stream stream, uint64_t newlines)
{
    if (p->turn_count > 0 && p->turns[p->turn_count - 1].stream == stream) {
        p->turns[p->turn_count - 1].newlines += newlines;
        return 0;
    }
    if (GROW(p->turns, p->turn_count, p->turn_room) < 0)
        return -ENOMEM;
    p->turns[p->turn_count++] = (struct turn){stream, newlines};
    return 0;
}

static int part_feed(struct part *p, const nacre_piece *piece, const char *data, size_t size)
{
    struct part_side *side = &p->sides[piece->stream];
    const char *newline = memrchr(data, '\n', size);
    uint64_t newlines = log_count_newlines(data, size);
    size_t closed = newline ? (size_t)(newline + 1 - data) : 0;
    if (newline || !side->unfinished) {
        side->open_offset = piece->offset + closed;
        side->open_bytes = 0;
    }
    side->open_bytes += size - closed;
    side->bytes += size;
    side->newlines += newlines;
    strange_take(&side->sample, data, size);
    side->unfinished = data[size - 1] != '\n';
    int r = add_turn(p, piece->stream, newlines);
    return r == 0 ? render_feed(side->render, data, size) : r;
}

/* -- Reading ---------------------------------------------------------------------------------- */

static bool is_open(const nacre_position *position, int s)
{
    return position->open_hash[s] != 0;
}

/* Where to begin with a stream. */
static uint64_t begin_of(const struct log_reading *r, int s)
{
    return is_open(r->from, s) ? r->from->open_offset[s] : r->from->offset;
}

static int next_part(struct log_reading *r)
{
    r->last = 1;
    return part_begin(&r->parts[1], r->line_max, true);
}

static int feed_piece(struct log_reading *r, nacre_piece *piece, const char *data, size_t size)
{
    uint64_t begin = begin_of(r, piece->stream);
    uint64_t skip = begin > piece->offset ? MIN(begin - piece->offset, (uint64_t)size) : 0;
    int e = piece->gap_bytes > 0 ? next_part(r) : 0;
    piece->offset += skip;
    if (e == 0 && skip < size)
        e = part_feed(&r->parts[r->last], piece, data + skip, size - skip);
    return e;
}

/* Reads on up to an offset of the log. */
static int read_until(struct log_reading *r, uint64_t *cursor, uint64_t end, summary_read_fn *read,
                      void *self)
{
    cleanup_free char *chunk = malloc(CHUNK);
    if (!chunk)
        return -ENOMEM;
    while (*cursor < end) {
        nacre_piece piece = {0};
        int64_t n = read(self, cursor, r->streams, chunk, CHUNK, &piece);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= end)
            break;
        int e = feed_piece(r, &piece, chunk, MIN((uint64_t)n, end - piece.offset));
        if (e < 0)
            return e;
    }
    return 0;
}

static int read_parts(struct log_reading *r, summary_read_fn *read, void *self)
{
    uint64_t cursor = MIN(begin_of(r, 0), begin_of(r, 1));
    uint64_t half = r->unread / 2, from = r->from->offset;
    int e = part_begin(&r->parts[0], r->line_max, false);
    if (e == 0 && r->end - from > r->unread) {
        e = read_until(r, &cursor, from + half, read, self);
        cursor = r->end - half;
        if (e == 0)
            e = next_part(r);
    }
    if (e == 0)
        e = read_until(r, &cursor, r->end, read, self);
    for (int p = 0; e == 0 && p <= r->last; p++)
        for (int s = 0; e == 0 && s < 2; s++)
            e = render_finish(r->parts[p].sides[s].render);
    return e;
}

/* -- Numbers ---------------------------------------------------------------------------------- */

/* What to add to the numbers and offsets of a part to have those of the stream. What reaches the
 * end is counted from there, the rest from where the last read ended. */
static uint64_t line_base(const struct log_reading *r, const struct part *p, int s)
{
    const struct part_side *side = &p->sides[s];
    if (p == &r->parts[r->last])
        return r->record->lines[s] - MIN(side->newlines + side->unfinished, r->record->lines[s]);
    return r->from->lines[s];
}

static uint64_t byte_base(const struct log_reading *r, const struct part *p, int s)
{
    if (p == &r->parts[r->last])
        return r->record->bytes[s] - MIN(p->sides[s].bytes, r->record->bytes[s]);
    return r->from->bytes[s];
}

/* Whether what is new of a stream is none of a text: it is counted, and not shown. */
static bool news_are_binary(const struct log_reading *r, int s)
{
    return strange_is_binary(&r->parts[0].sides[s].sample) ||
           strange_is_binary(&r->parts[1].sides[s].sample);
}

static bool is_news(const struct log_reading *r)
{
    return r->count > 0 || r->last > 0 || news_are_binary(r, NACRE_STDOUT) ||
           news_are_binary(r, NACRE_STDERR);
}

/* -- Order ------------------------------------------------------------------------------------ */

static uint64_t hash(const char *text, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

/* Whether a line is the unfinished one that was shown before, and begins as it did then. */
static bool was_begun(const struct log_reading *r, const struct part *p, int s, size_t i)
{
    const struct lines *lines = &p->sides[s].lines;
    const struct line *line = &lines->all[i];
    return p == &r->parts[0] && i == 0 && is_open(r->from, s) && line->number == 1 &&
           line->size >= r->from->open_size[s] &&
           hash(lines_text(lines, i), r->from->open_size[s]) == r->from->open_hash[s];
}

/* What was shown of a line is not shown again: nothing of one that is still the same, and of one
 * that has grown its beginning only if that is short, or the prompts of a program that reads from
 * a pipe would become one line that each answer repeats. Returns whether anything of it is new. */
static bool leave_new(struct line *line, uint64_t shown)
{
    if (line->size == shown)
        /* Of several equal ones folded into it, the first is not new. */
        return line->count-- > 1;
    if (shown <= AGAIN_MAX || line->count > 1 || line->lost > 0)
        return true;
    line->at += shown;
    line->size -= shown;
    line->torn = true;
    return true;
}

/* Adds the lines of one stream that begin before a number. */
static void add_items(struct log_reading *r, struct part *p, int s, size_t *next, uint64_t number)
{
    struct lines *lines = &p->sides[s].lines;
    if (news_are_binary(r, s))
        return;
    for (; *next < lines->count && lines->all[*next].number < number; ++*next)
        if (!was_begun(r, p, s, *next) || leave_new(&lines->all[*next], r->from->open_size[s]))
            r->items[r->count++] = (struct read_item){p, s, *next};
}

/* Both streams in the order in which their lines ended. */
static void order_part(struct log_reading *r, struct part *p)
{
    size_t next[2] = {0, 0};
    uint64_t newlines[2] = {0, 0};
    for (size_t i = 0; i < p->turn_count; i++) {
        int s = p->turns[i].stream;
        newlines[s] += p->turns[i].newlines;
        add_items(r, p, s, &next[s], newlines[s] + 1);
    }
    for (int s = 0; s < 2; s++)
        add_items(r, p, s, &next[s], UINT64_MAX);
}

static int order_items(struct log_reading *r)
{
    size_t count = 1;
    for (int p = 0; p <= r->last; p++)
        count += r->parts[p].sides[0].lines.count + r->parts[p].sides[1].lines.count;
    r->items = calloc(count, sizeof *r->items);
    if (!r->items)
        return -ENOMEM;
    for (int p = 0; p <= r->last; p++)
        order_part(r, &r->parts[p]);
    return 0;
}

/* -- Choosing --------------------------------------------------------------------------------- */

static size_t item_cost(const struct read_item *item, size_t limit)
{
    return choose_line_cost(&item->part->sides[item->stream].lines, item->line, limit);
}

/* All of it, or a quarter of the room for the beginning and the rest for the end. */
static void fit_items(struct log_reading *r, size_t room, size_t limit)
{
    size_t cost = 0, head_room = room / 4, used = 0;
    for (size_t i = 0; i < r->count && cost <= room; i++)
        cost += item_cost(&r->items[i], limit);
    r->whole = r->last == 0 && cost <= room;
    r->head = 0;
    r->tail = r->whole ? 0 : r->count;
    for (; r->head < r->tail; r->head++) {
        size_t more = item_cost(&r->items[r->head], limit);
        if (used + more > head_room || r->items[r->head].part != &r->parts[0])
            break;
        used += more;
    }
    for (; r->tail > r->head; r->tail--) {
        const struct read_item *item = &r->items[r->tail - 1];
        size_t more = item_cost(item, limit);
        if (used + more > room || item->part != &r->parts[r->last])
            break;
        used += more;
    }
}

/* A line and a byte of a stream. */
struct stream_spot {
    uint64_t line, byte;
};

/* Where the line after an item of the head begins. */
static struct stream_spot after_item(const struct log_reading *r, const struct read_item *item)
{
    const struct part_side *side = &item->part->sides[item->stream];
    bool next = item->line + 1 < side->lines.count;
    return (struct stream_spot){
        line_base(r, item->part, item->stream) +
            (next ? side->lines.all[item->line + 1].number : side->newlines + side->unfinished + 1),
        byte_base(r, item->part, item->stream) +
            (next ? side->lines.all[item->line + 1].offset : side->bytes),
    };
}

static struct stream_spot at_item(const struct log_reading *r, const struct read_item *item)
{
    const struct line *line = &item->part->sides[item->stream].lines.all[item->line];
    return (struct stream_spot){line_base(r, item->part, item->stream) + line->number,
                                byte_base(r, item->part, item->stream) + line->offset};
}

/* What of a stream lies between the two ends that are shown. */
static void omitted(const struct log_reading *r, int s, struct stream_spot *ret_from,
                    struct stream_spot *ret_to)
{
    *ret_from =
        (struct stream_spot){line_base(r, &r->parts[0], s) + 1, byte_base(r, &r->parts[0], s)};
    *ret_to = (struct stream_spot){r->record->lines[s] + 1, r->record->bytes[s]};
    for (size_t i = r->head; i > 0; i--)
        if ((int)r->items[i - 1].stream == s) {
            *ret_from = after_item(r, &r->items[i - 1]);
            break;
        }
    for (size_t i = r->tail; i < r->count; i++)
        if ((int)r->items[i].stream == s) {
            *ret_to = at_item(r, &r->items[i]);
            break;
        }
}

/* -- Writing ---------------------------------------------------------------------------------- */

static int write_omitted(struct buf *out, const struct log_reading *r, nacre_audience audience)
{
    uint64_t lines[2] = {0}, bytes[2] = {0};
    struct recall_range ranges[2] = {0};
    for (int s = 0; s < 2; s++) {
        struct stream_spot from, to;
        omitted(r, s, &from, &to);
        if (!(r->streams & 1u << s) || to.byte <= from.byte || news_are_binary(r, s))
            continue;
        lines[s] = to.line - MIN(from.line, to.line);
        bytes[s] = to.byte - from.byte;
        ranges[s] = (struct recall_range){from.line, MAX(to.line - 1, from.line)};
    }
    if (bytes[0] == 0 && bytes[1] == 0)
        return 0;
    int e = recall_amounts(out, "Left out: ", lines, bytes);
    if (e == 0)
        e = recall_hint(out, &r->record->id, ranges, audience);
    return e == 0 ? buf_str(out, "\n") : e;
}

static int write_binary(struct buf *out, const struct log_reading *r)
{
    int e = 0;
    for (int s = NACRE_STDERR; e == 0 && s >= 0; s--)
        if (news_are_binary(r, s))
            e = recall_binary(out, s,
                              r->record->bytes[s] - MIN(r->from->bytes[s], r->record->bytes[s]));
    return e;
}

static int write_items(struct buf *out, const struct log_reading *r, size_t from, size_t to,
                       size_t limit)
{
    int e = 0;
    for (size_t i = from; e == 0 && i < to; i++) {
        const struct read_item *item = &r->items[i];
        e = choose_write_line(out, &item->part->sides[item->stream].lines, item->line, limit);
    }
    return e;
}

static int write_view(struct buf *out, struct log_reading *r, const nacre_view_options *options)
{
    char status[64];
    size_t budget = summary_budget(options), before = out->len;
    int e = buf_printf(out, "[shell %s \xe2\x80\x94 %s", nacre_id_short(&r->record->id).s,
                       nacre_status(r->record, status, sizeof status));
    if (e == 0)
        e = pipeline_words(out, r->record);
    if (e == 0)
        e = buf_str(out, "]\n");
    if (e < 0 || !is_news(r))
        return e < 0 ? e : buf_str(out, "(no new output)\n");
    e = write_binary(out, r);
    if (e < 0)
        return e;
    size_t room = budget - (out->len - before), limit = room;
    fit_items(r, room, limit);
    if (!r->whole) {
        limit = (room - NOTICE_MAX) / 4;
        fit_items(r, room - NOTICE_MAX, limit);
    }
    e = write_items(out, r, 0, r->head, limit);
    if (e == 0 && !r->whole)
        e = write_omitted(out, r, options->audience);
    return e == 0 ? write_items(out, r, r->tail, r->count, limit) : e;
}

/* -- The next position ------------------------------------------------------------------------ */

static void note_open_line(const struct part_side *side, nacre_position *next, int s)
{
    const struct lines *lines = &side->lines;
    size_t i = lines->count;
    bool shown = i > 0 && lines->all[i - 1].number == side->newlines + 1;
    size_t size = shown ? lines->all[i - 1].size : 0;
    next->open_offset[s] = side->open_offset;
    next->open_size[s] = size;
    next->open_hash[s] = hash(shown ? lines_text(lines, i - 1) : "", size);
}

static nacre_position next_position(const struct log_reading *r)
{
    nacre_position next = NACRE_POSITION_INIT;
    next.offset = r->end;
    for (int s = 0; s < 2; s++) {
        const struct part_side *side = &r->parts[r->last].sides[s];
        next.lines[s] = r->record->lines[s] - MIN((uint64_t)side->unfinished, r->record->lines[s]);
        next.bytes[s] = r->record->bytes[s];
        if (!side->unfinished || news_are_binary(r, s) || r->end - side->open_offset > READ_OPEN)
            continue;
        next.bytes[s] -= MIN(side->open_bytes, next.bytes[s]);
        note_open_line(side, &next, s);
    }
    return next;
}

static void log_reading_done(struct log_reading *r)
{
    part_done(&r->parts[0]);
    part_done(&r->parts[1]);
    free(r->items);
    free(r);
}

int view_merged(struct buf *out, const nacre_record *record, size_t room, summary_read_fn *read,
                void *self, bool *ret_fits)
{
    const nacre_position beginning = NACRE_POSITION_INIT;
    struct log_reading *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->record = record;
    r->from = &beginning;
    r->streams = NACRE_BOTH;
    r->unread = READ_UNREAD_MAX;
    r->end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    r->line_max = room;
    int e = read_parts(r, read, self);
    if (e == 0)
        e = order_items(r);
    if (e == 0)
        fit_items(r, room, room);
    *ret_fits = e == 0 && r->whole && !news_are_binary(r, NACRE_STDOUT) &&
                !news_are_binary(r, NACRE_STDERR);
    if (*ret_fits)
        e = write_items(out, r, 0, r->count, room);
    log_reading_done(r);
    return e;
}

int view_read(struct buf *out, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, uint64_t unread, summary_read_fn *read, void *self,
              bool *ret_new)
{
    struct log_reading *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->record = record;
    r->from = position;
    r->streams = options->streams & NACRE_BOTH;
    r->unread = MIN(unread, READ_UNREAD_MAX);
    r->end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    r->line_max = summary_budget(options);
    int e = read_parts(r, read, self);
    const nacre_position next = next_position(r);
    if (e == 0)
        e = order_items(r);
    if (e == 0)
        e = write_view(out, r, options);
    if (e == 0) {
        *ret_new = is_news(r);
        *position = next;
    }
    log_reading_done(r);
    return e;
}
