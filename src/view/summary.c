#include "view/summary.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "text/brief.h"
#include "text/frame.h"
#include "view/choose.h"
#include "view/ending_words.h"
#include "view/fence_words.h"
#include "view/limit_words.h"
#include "view/rank.h"
#include "view/read.h"
#include "view/recall_hint.h"

#define CHUNK ((size_t)256 * 1024)

/* The parts that are never left out, and the headings, fit the smallest budget. */
#define HEADER_MAX 192
#define NOTICE_MAX 608
_Static_assert(HEADER_MAX + NOTICE_MAX + 2 * CHOOSE_HEADING <= NACRE_VIEW_BUDGET_MIN,
               "the smallest budget is large enough");

/* -- Reading ---------------------------------------------------------------------------------- */

struct source {
    const nacre_record *record;
    const nacre_view_options *options;
    struct shown_stream *streams;
    uint64_t end;    /* of the log, as the record knew it */
    uint64_t seen;   /* where the last byte that was read ends */
    uint64_t gap[2]; /* bytes that were missing */
};

static void streams_done(struct shown_stream streams[2])
{
    for (int s = 0; s < 2; s++) {
        collect_free(streams[s].before);
        collect_free(streams[s].after);
    }
}

static int begin_part(const struct source *from, const struct shown_stream *stream, bool torn,
                      struct collect **ret)
{
    size_t budget = summary_budget(from->options);
    struct collect_options options = {
        .keep = budget,
        .least = stream->safe,
        .line_max = budget,
        .torn = torn,
        .filter = salience_filter(),
    };
    return collect_new(&options, ret);
}

/* After a gap nothing may be shown as if it stood right behind what was before. A stream that lost
 * nothing in it goes on; of one that is still being written to that cannot be known. */
static int begin_after_gap(struct source *from, nacre_stream s)
{
    const nacre_record *record = from->record;
    struct shown_stream *stream = &from->streams[s];
    if (record->dropped_bytes[s] == 0 && record->tree == NACRE_TREE_EMPTY)
        return 0;
    collect_free(stream->after);
    stream->after = NULL;
    return begin_part(from, stream, true, &stream->after);
}

static int collect_piece(struct source *from, nacre_stream s, const nacre_piece *piece,
                         const char *data, size_t size)
{
    int r = piece->gap_bytes > 0 ? begin_after_gap(from, s) : 0;
    from->gap[s] += piece->gap_bytes;
    return r == 0 ? collect_feed(choose_tail(&from->streams[s]), data, size) : r;
}

/* Takes in a stream up to the end the record knew. */
static int collect_stream(struct source *from, nacre_stream s, char *chunk, summary_read_fn *read,
                          void *self)
{
    nacre_piece piece = {0};
    uint64_t cursor = 0;
    while (cursor < from->end) {
        int64_t n = read(self, &cursor, 1u << s, chunk, CHUNK, &piece);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= from->end)
            break;
        uint64_t size = MIN((uint64_t)n, from->end - piece.offset);
        int r = collect_piece(from, s, &piece, chunk, size);
        if (r < 0)
            return r;
        from->seen = MAX(from->seen, MIN(cursor, from->end));
    }
    return 0;
}

static int collect_log(struct source *from, summary_read_fn *read, void *self)
{
    cleanup_free char *chunk = malloc(CHUNK);
    int r = chunk ? 0 : -ENOMEM;
    for (int s = 0; r == 0 && s < 2; s++)
        if (from->record->bytes[s] > 0)
            r = collect_stream(from, s, chunk, read, self);
    return r;
}

/* Whether the last bytes of a stream were read: what was lost and what was read add up to it. */
static bool end_is_there(const struct source *from, nacre_stream s)
{
    const struct shown_stream *stream = &from->streams[s];
    uint64_t after = stream->after ? stream->after->bytes : 0;
    return from->seen >= from->end && stream->before->bytes + from->gap[s] + after >= stream->bytes;
}

/* What follows a gap is numbered from the end of the stream, which is known. If the end is not
 * there, what was read behind the gap has no numbers, and is not used. */
static int finish_stream(struct shown_stream *stream, bool has_end)
{
    int r = collect_finish(stream->before);
    if (r == 0 && stream->after)
        r = collect_finish(stream->after);
    if (r < 0 || !stream->after)
        return r;
    struct collect *after = stream->after;
    uint64_t lines = after->newlines + after->unfinished;
    if (!has_end || after->bytes == 0 || lines > stream->lines ||
        stream->before->bytes + after->bytes > stream->bytes) {
        collect_free(after);
        stream->after = NULL;
        return 0;
    }
    stream->line_base = stream->lines - lines;
    stream->byte_base = stream->bytes - after->bytes;
    return 0;
}

static int collect_streams(struct source *from, summary_read_fn *read, void *self)
{
    static const uint64_t usual[] = {
        [NACRE_STDOUT] = SUMMARY_STDOUT_LINES,
        [NACRE_STDERR] = SUMMARY_STDERR_LINES,
    };
    const nacre_record *record = from->record;
    int r = 0;
    for (int s = 0; r == 0 && s < 2; s++) {
        struct shown_stream *stream = &from->streams[s];
        int64_t safe = from->options->lines[s];
        *stream = (struct shown_stream){
            .lines = record->lines[s],
            .bytes = record->bytes[s],
            .safe = safe < 0 ? usual[s] : (uint64_t)safe,
        };
        r = begin_part(from, stream, false, &stream->before);
    }
    if (r == 0)
        r = collect_log(from, read, self);
    for (int s = 0; r == 0 && s < 2; s++)
        r = finish_stream(&from->streams[s], end_is_there(from, s));
    for (int s = 0; r == 0 && s < 2; s++)
        if (strange_is_binary(&from->streams[s].before->sample))
            from->streams[s] = (struct shown_stream){
                .before = from->streams[s].before, .after = from->streams[s].after, .binary = true};
    return r;
}

/* -- What was left out ------------------------------------------------------------------------ */

struct omission {
    uint64_t lines, bytes;
    uint64_t from, to; /* between the first lines and the last ones */
};

static struct omission omission_of(const struct shown_stream *s)
{
    struct omission o = {
        .lines = choose_first_lines(s) + choose_last_lines(s),
        .bytes = choose_first_bytes(s) + choose_last_bytes(s),
        .from = choose_first_lines(s) + 1,
        .to = choose_last_number(s) - 1,
    };
    for (size_t i = 0; i < s->lifted_count; i++) {
        const struct raw_lines *raw = &s->lifted[i].raw;
        o.lines += raw->end - raw->number;
        o.bytes += raw->end_offset - raw->offset;
    }
    o.lines = s->lines - MIN(o.lines, s->lines);
    o.bytes = s->bytes - MIN(o.bytes, s->bytes);
    return o;
}

/* -- Writing ---------------------------------------------------------------------------------- */

/* The status as the first line says it. */
static int write_outcome(struct buf *out, const nacre_record *record)
{
    char name[16];
    switch (record->outcome) {
    case NACRE_RUNNING:
        return buf_str(out, "Running");
    case NACRE_EXITED:
        return buf_printf(out, "Exit code: %d", record->exit_code);
    case NACRE_SIGNALED:
        return buf_printf(out, "Signal: %s%s", nacre_signal_name(record->signal, name, sizeof name),
                          record->core_dumped ? " (core dumped)" : "");
    case NACRE_KILLED:
        return record->reason == NACRE_REASON_LIMIT
                   ? buf_printf(out, "Killed (limit %s)", nacre_limit_name(record->limits.ended))
                   : buf_str(out, "Killed");
    case NACRE_TIMED_OUT:
        return buf_printf(out, "Timed out after %.15gs (killed)",
                          (double)record->timeout_ms / 1000);
    case NACRE_CANCELLED:
        return buf_str(out, "Cancelled");
    case NACRE_LOST:
        return buf_str(out, "Lost");
    }
    return buf_str(out, "Unknown");
}

/* "1 line", "2 lines". */
static const char *lines_word(uint64_t lines)
{
    return lines == 1 ? "line" : "lines";
}

/* With the amounts, unless headings or the text itself say them. */
static int write_header(struct buf *out, const nacre_record *record, bool amounts)
{
    int r = write_outcome(out, record);
    if (r == 0)
        r = pipeline_words(out, record);
    if (r == 0 && amounts)
        r = buf_printf(out, " | stdout: %llu %s | stderr: %llu %s",
                       (unsigned long long)record->lines[NACRE_STDOUT],
                       lines_word(record->lines[NACRE_STDOUT]),
                       (unsigned long long)record->lines[NACRE_STDERR],
                       lines_word(record->lines[NACRE_STDERR]));
    if (r == 0 && record->sandbox && record->sandbox[0])
        r = buf_printf(out, " | sandbox: %s", record->sandbox);
    return r == 0 ? buf_str(out, "\n") : r;
}

/* How one ended that was not left to end by itself is never said without the amounts. */
static bool needs_amounts(const nacre_record *record)
{
    return record->outcome != NACRE_EXITED;
}

/* One process that outlived the command. */
static int write_leftover(struct buf *out, const nacre_process *process)
{
    int r = buf_printf(out, "Left running: pid %d (", (int)process->pid);
    if (r == 0)
        r = brief_inline(out, process->command, strnlen(process->command, sizeof process->command));
    if (r == 0)
        r = buf_str(out, ")");
    for (int i = 0; r == 0 && i < NACRE_PORTS_MAX && process->ports[i] != 0; i++)
        r = buf_printf(out, "%s%u", i == 0 ? ", listening on " : ", ", (unsigned)process->ports[i]);
    return r == 0 ? buf_str(out, "\n") : r;
}

#define MORE_LEFT "Left running: %d more, not named here\n"

/* As many as fit the room, and how many more there are. */
static int write_leftovers(struct buf *out, const nacre_record *record, size_t room)
{
    if (record->outcome == NACRE_RUNNING || record->tree == NACRE_TREE_EMPTY)
        return 0;
    if (record->leftover_count == 0)
        return buf_str(out, "Left running: something that could not be named\n");
    room -= MIN(room, sizeof MORE_LEFT + 10);
    int i = 0;
    for (; i < record->leftover_count; i++) {
        size_t before = out->len;
        int r = write_leftover(out, &record->leftover[i]);
        if (r < 0)
            return r;
        if (out->len > room) {
            out->len = before;
            break;
        }
    }
    if (i < record->leftover_count)
        return buf_printf(out, MORE_LEFT, record->leftover_count - i);
    if (record->leftover_count == NACRE_LEFTOVER_MAX)
        return buf_str(out, "Left running: perhaps more, not named here\n");
    return 0;
}

static int write_spare(struct buf *out, const nacre_record *record)
{
    return record->spare ? buf_str(out, "Kept in memory, and not for long: the home has no room\n")
                         : 0;
}

/* In the smallest budget there is room for few of them. */
static int write_refusals(struct buf *out, const nacre_record *record, size_t room)
{
    room -= MIN(room, 2 * (size_t)CHOOSE_HEADING);
    int r = room > 2 * (size_t)HELD_WORDS_MAX ? held_words(out, record) : 0;
    if (r == 0)
        r = limit_words(out, record, MIN(room / 4, (size_t)LIMIT_WORDS_MAX));
    return r < 0 ? r : fence_words(out, record, MIN(room / 4, (size_t)FENCE_WORDS_MAX));
}

static int write_dropped(struct buf *out, const nacre_record *record)
{
    if (record->dropped_bytes[0] == 0 && record->dropped_bytes[1] == 0)
        return 0;
    int r = recall_amounts(out, ". No longer in the log: ", record->dropped_lines,
                           record->dropped_bytes);
    if (r == 0)
        r = buf_printf(out, ": %s",
                       record->dropped_errno ? err_text(record->dropped_errno) : "over the quota");
    return r;
}

/* What the line after the first one says. */
struct notice {
    uint64_t lines[2], bytes[2];
    uint64_t cut; /* lines of which only the middle is missing */
    struct recall_range ranges[2];
};

/* What is no longer in the log is not offered. */
static struct notice notice_of(const nacre_record *record, const struct shown_stream streams[2])
{
    struct notice n = {0};
    for (int s = 0; s < 2; s++) {
        struct omission o = omission_of(&streams[s]);
        n.lines[s] = o.lines;
        n.bytes[s] = o.bytes;
        n.cut += choose_cut_lines(&streams[s], &n.ranges[s].from, &n.ranges[s].to);
        if (o.bytes > record->dropped_bytes[s])
            n.ranges[s] =
                o.from <= o.to ? (struct recall_range){o.from, o.to} : (struct recall_range){0, 0};
    }
    return n;
}

/* How much was left out, and how to get it back. */
static int write_left_out(struct buf *out, const nacre_record *record, const struct notice *n,
                          nacre_audience audience)
{
    bool left_out = n->bytes[0] > 0 || n->bytes[1] > 0;
    if (!left_out && n->cut == 0)
        return 0;
    int r = buf_str(out, "Left out: ");
    if (r == 0)
        r = recall_amounts(out, "", n->lines, n->bytes);
    if (r == 0 && n->cut > 0)
        r = buf_printf(out, "%sthe middle of %llu long %s", left_out ? ", " : "",
                       (unsigned long long)n->cut, n->cut == 1 ? "line" : "lines");
    if (r == 0)
        r = write_dropped(out, record);
    if (r == 0)
        r = recall_hint(out, &record->id, n->ranges, audience);
    return r == 0 ? buf_str(out, "\n") : r;
}

/* No notice about this run is longer than this one. */
static size_t longest_notice(const nacre_record *record, nacre_audience audience)
{
    struct notice n = {.cut = record->lines[0] + record->lines[1]};
    for (int s = 0; s < 2; s++) {
        n.lines[s] = record->lines[s];
        n.bytes[s] = record->bytes[s];
        if (record->bytes[s] > 0)
            n.ranges[s] = (struct recall_range){record->lines[s], record->lines[s]};
    }
    struct buf text cleanup_buf = BUF_UP_TO(NOTICE_MAX);
    return write_left_out(&text, record, &n, audience) == 0 ? text.len : NOTICE_MAX;
}

#define WHOLE_HEADING "--- %s (%llu %s) ---\n"

static int write_heading(struct buf *out, const struct shown_stream *s, nacre_stream stream,
                         uint64_t end_lost)
{
    const char *name = recall_stream(stream);
    struct omission o = omission_of(s);
    unsigned long long all = s->lines, shown = choose_last_lines(s), hidden = o.lines;
    if (o.bytes == 0 && s->first == 0 && s->lifted_count == 0)
        return buf_printf(out, WHOLE_HEADING, name, all, lines_word(all));
    if (end_lost)
        return buf_printf(out, "--- %s (%llu of %llu, the last were not kept) ---\n", name, shown,
                          all);
    if (stream == NACRE_STDERR)
        return buf_printf(out, "--- %s (last %llu of %llu, %llu skipped) ---\n", name, shown, all,
                          hidden);
    return buf_printf(out, "--- %s (last %llu of %llu) ---\n", name, shown, all);
}

static int write_first(struct buf *out, const struct shown_stream *s, nacre_stream stream)
{
    if (s->first == 0)
        return 0;
    int r = buf_printf(out, "--- %s (first %llu of %llu) ---\n", recall_stream(stream),
                       (unsigned long long)choose_first_lines(s), (unsigned long long)s->lines);
    for (size_t i = 0; r == 0 && i < s->first; i++)
        r = choose_write_line(out, &s->before->first, i, s->limit);
    return r;
}

static int write_causes(struct buf *out, const struct shown_stream *s, nacre_stream stream)
{
    size_t causes = choose_causes(s);
    if (causes == 0)
        return 0;
    int r = buf_printf(out, "--- %s (likely causes: %zu of %llu) ---\n", recall_stream(stream),
                       causes, (unsigned long long)choose_cause_total(s));
    for (size_t i = 0; r == 0 && i < s->lifted_count; i++) {
        const struct lifted *line = &s->lifted[i];
        unsigned long long number = line->raw.number;
        r = line->salience != SALIENCE_NONE ? buf_printf(out, LIFTED_CAUSE, number)
                                            : buf_printf(out, LIFTED_NEAR, number);
        if (r == 0)
            r = frame_write(out, line->text, line->size);
        if (r == 0)
            r = buf_str(out, "\n");
    }
    return r;
}

/* Whether the last bytes of the stream are not in the log. */
static bool end_is_lost(const struct shown_stream *s)
{
    return !s->after && s->before->bytes < s->bytes;
}

static bool is_printed(const struct shown_stream *s)
{
    return s->bytes > 0;
}

static int write_stream(struct buf *out, const struct shown_stream *s, nacre_stream stream,
                        bool heading)
{
    if (!is_printed(s))
        return 0;
    int r = write_first(out, s, stream);
    if (r == 0)
        r = write_causes(out, s, stream);
    if (r == 0 && heading)
        r = write_heading(out, s, stream, end_is_lost(s));
    const struct lines *last = &choose_tail(s)->last;
    for (size_t i = s->last; r == 0 && i < last->count; i++)
        r = choose_write_line(out, last, i, s->limit);
    return r;
}

/* -- All of it -------------------------------------------------------------------------------- */

/* Whether a stream is shown whole in the compact form. */
static bool is_short(const struct shown_stream *s)
{
    return s->before->last.count <= s->safe;
}

/* Whether a command did not end as it should. */
static bool is_failure(const nacre_record *record)
{
    return record->outcome != NACRE_RUNNING &&
           !(record->outcome == NACRE_EXITED && record->exit_code == 0);
}

/* One stream that is shown whole needs no heading. */
static bool needs_headings(const struct shown_stream streams[2])
{
    return (is_printed(&streams[0]) || streams[0].binary) &&
           (is_printed(&streams[1]) || streams[1].binary);
}

/* Whether there is room for all of it. */
static bool fits_whole(const struct shown_stream streams[2], const nacre_view_options *options,
                       size_t room)
{
    size_t whole = 0;
    for (int s = 0; s < 2; s++) {
        whole += streams[s].binary ? RECALL_BINARY_MAX : 0;
        if (!is_printed(&streams[s]))
            continue;
        if (!choose_is_complete(&streams[s]) || (options->compact > 0 && !is_short(&streams[s])))
            return false;
        whole += choose_whole_cost(&streams[s]);
        if (needs_headings(streams))
            whole += (size_t)snprintf(NULL, 0, WHOLE_HEADING, recall_stream(s),
                                      (unsigned long long)streams[s].lines,
                                      lines_word(streams[s].lines));
    }
    return whole <= room;
}

/* Decides what is shown of more than there is room for. */
static void fit_streams(struct shown_stream streams[2], const nacre_view_options *options,
                        bool failed, size_t room)
{
    for (int s = 0; s < 2; s++)
        room -=
            is_printed(&streams[s]) || streams[s].binary ? MIN(room, (size_t)CHOOSE_HEADING) : 0;
    if (options->compact > 0)
        choose_compact(streams, room);
    else
        choose(streams, room, failed);
}

/* What is worth asking for in what was left out, after how it ended. */
static const char *pattern_for(const nacre_record *record)
{
    bool exited = record->outcome == NACRE_EXITED;
    if (record->outcome == NACRE_TIMED_OUT)
        return "(?i)wait|connect|retry|listen|lock";
    if (exited && (record->exit_code == 126 || record->exit_code == 127))
        return "(?i)found|permi|exec|interpreter";
    if (!exited || record->exit_code > 128)
        return "(?i)kill|signal|memory|core|abort";
    return "(?i)\\bnot\\b|\\bno\\b|nan\\b|expect|differ|skip|stop";
}

/* Of a failure of which no line speaks, says so. */
static int write_no_cause(struct buf *out, const nacre_record *record,
                          const struct shown_stream streams[2], nacre_audience audience)
{
    for (int s = 0; s < 2; s++)
        for (enum salience degree = SALIENCE_MENTION; degree <= SALIENCE_CAUSE; degree++)
            if (is_printed(&streams[s]) && choose_degree(&streams[s], degree) > 0)
                return 0;
    if (!is_failure(record))
        return 0;
    int r = buf_str(out, "No line looks like the cause. Worth asking: ");
    if (r == 0)
        r = recall_search_hint(out, &record->id, pattern_for(record), audience);
    return r == 0 ? buf_str(out, "\n") : r;
}

static bool is_left_out(const struct notice *n)
{
    return n->bytes[0] > 0 || n->bytes[1] > 0;
}

/* What stands around the lines: made before it is known which of them there is room for. */
struct surroundings {
    struct buf header;    /* with the amounts */
    struct buf remarks;   /* on how it ended, and what it was refused */
    struct buf leftovers; /* that it left running */
    struct buf advice;    /* if no line looks like the cause */
    size_t notice;        /* bytes, at most */
};

static void surroundings_done(struct surroundings *s)
{
    buf_done(&s->header);
    buf_done(&s->remarks);
    buf_done(&s->leftovers);
    buf_done(&s->advice);
}

static int surroundings_make(struct surroundings *s, const nacre_record *record,
                             const nacre_view_options *options,
                             const struct shown_stream streams[2])
{
    size_t budget = summary_budget(options);
    *s = (struct surroundings){
        .header = BUF_UP_TO(NACRE_VIEW_BUDGET_MIN),
        .remarks = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX),
        .leftovers = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX),
        .advice = BUF_UP_TO(NOTICE_MAX),
        .notice = is_printed(&streams[0]) || is_printed(&streams[1])
                      ? longest_notice(record, options->audience)
                      : 0,
    };
    int r = write_header(&s->header, record, true);
    if (r == 0)
        r = write_spare(&s->remarks, record);
    if (r == 0)
        r = write_refusals(&s->remarks, record, budget - s->header.len - s->notice);
    size_t spare = budget - s->header.len - s->remarks.len - s->notice - 2 * (size_t)CHOOSE_HEADING;
    if (r == 0)
        r = write_leftovers(&s->leftovers, record, spare / 2);
    if (r == 0)
        r = write_no_cause(&s->advice, record, streams, options->audience);
    s->advice.len = s->advice.len <= spare / 4 ? s->advice.len : 0;
    return r;
}

static int write_buf(struct buf *out, const struct buf *text)
{
    return text->len > 0 ? buf_append(out, text->data, text->len) : 0;
}

static int write_streams(struct buf *out, const nacre_record *record,
                         const struct shown_stream streams[2], bool headings)
{
    int r = 0;
    for (int s = NACRE_STDERR; r == 0 && s >= 0; s--)
        r = streams[s].binary ? recall_binary(out, s, record->bytes[s])
                              : write_stream(out, &streams[s], s, headings);
    return r;
}

/* All of it, with no more around it than is needed to understand it. */
static int write_whole(struct buf *out, const struct surroundings *around,
                       const nacre_record *record, const nacre_view_options *options,
                       struct shown_stream streams[2], summary_read_fn *read, void *self)
{
    size_t before = out->len;
    bool merged = false;
    int r = write_header(out, record, needs_amounts(record));
    if (r == 0)
        r = write_buf(out, &around->remarks);
    if (r == 0)
        r = write_buf(out, &around->leftovers);
    if (r == 0 && options->merged > 0 && is_printed(&streams[0]) && is_printed(&streams[1]))
        r = view_merged(out, record, summary_budget(options) - (out->len - before), read, self,
                        &merged);
    if (r < 0 || merged)
        return r;
    choose_whole(&streams[0]);
    choose_whole(&streams[1]);
    return write_streams(out, record, streams, needs_headings(streams));
}

static int write_part(struct buf *out, const struct surroundings *around,
                      const nacre_record *record, const nacre_view_options *options,
                      struct shown_stream streams[2])
{
    size_t used = around->header.len + around->remarks.len + around->leftovers.len +
                  around->notice + around->advice.len;
    fit_streams(streams, options, is_failure(record), summary_budget(options) - used);
    struct notice notice = notice_of(record, streams);
    int r = write_buf(out, &around->header);
    if (r == 0)
        r = write_buf(out, &around->remarks);
    if (r == 0)
        r = write_left_out(out, record, &notice, options->audience);
    if (r == 0 && is_left_out(&notice))
        r = write_buf(out, &around->advice);
    if (r == 0)
        r = write_buf(out, &around->leftovers);
    return r < 0 ? r : write_streams(out, record, streams, true);
}

static int compose_summary(struct buf *out, const nacre_record *record,
                           const nacre_view_options *options, struct shown_stream streams[2],
                           summary_read_fn *read, void *self)
{
    __attribute__((cleanup(surroundings_done))) struct surroundings around;
    struct buf header cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET_MIN);
    int r = surroundings_make(&around, record, options, streams);
    if (r == 0)
        r = write_header(&header, record, needs_amounts(record));
    if (r < 0)
        return r;
    size_t used = header.len + around.remarks.len + around.leftovers.len;
    return fits_whole(streams, options, summary_budget(options) - used)
               ? write_whole(out, &around, record, options, streams, read, self)
               : write_part(out, &around, record, options, streams);
}

int summary_write(struct buf *out, const nacre_record *record, const nacre_view_options *options,
                  summary_read_fn *read, void *self)
{
    struct shown_stream streams[2] = {0};
    struct source from = {
        .record = record,
        .options = options,
        .streams = streams,
        .end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR],
    };
    int r = from.end > 0 ? collect_streams(&from, read, self) : 0;
    if (r == 0)
        r = compose_summary(out, record, options, streams, read, self);
    streams_done(streams);
    return r;
}
