/* recall: a search over everything any shell printed, one shell in each step. */
#include <nacre/recall.h>

#include <string.h>

#include <nacre/registry.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "recall/parse_query.h"
#include "recall/show.h"
#include "text/frame.h"
#include "tool/tool.h"

#define LIMIT_MOST   10000
#define CONTEXT_MOST 100
#define LINE_BYTES   1000
#define RESERVE      512 /* for what is said at the end */

struct recall_args {
    const char *pattern;
    bool literal;
    bool ignore_case;
    const char *id;
    const char *lines;
    int64_t context;
    int stream;
    const char *since;
    int64_t limit;
};

struct recall {
    nacre_recall_query query;
    nacre_id *ids; /* oldest first */
    size_t count, room;
    uint64_t limit;
    int64_t deadline_ns;
    struct buf text;
    bool full;      /* the answer can hold no more */
    uint64_t shown; /* matches in it */
    uint64_t matches;
    uint64_t folded; /* matches like those in it */
    uint64_t dropped_bytes;
    uint64_t unreadable;
    nacre_error why; /* the first of them could not be */
    bool timed_out;
    nacre_id last_id; /* of the last line in it */
    nacre_stream last_stream;
    uint64_t last_line;
    bool range; /* of one shell: its lines by their numbers, under a heading */
    struct next_lines {
        uint64_t from, to; /* the lines that did not fit, from the first one of a stream on */
        nacre_stream stream;
    } next;
    uint64_t long_offset; /* of the first line that was cut, and whether there is one */
    bool long_line;
};

static const char *const recall_streams[] = {"stdout", "stderr", "both", NULL};

/* clang-format off */
static const struct arg recall_arg_table[] = {
    {"pattern", ARG_TEXT, offsetof(struct recall_args, pattern), .least = 1,
     .aliases = "query regex", .example = "\"error|failed\"",
     .help = "A regular expression, matched within lines. Not needed with id and lines."},
    {"literal", ARG_FLAG, offsetof(struct recall_args, literal), .example = "true",
     .help = "The pattern is the text itself."},
    {"ignore_case", ARG_FLAG, offsetof(struct recall_args, ignore_case), .example = "true",
     .help = "Upper and lower case are the same."},
    {"id", ARG_TEXT, offsetof(struct recall_args, id), .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "Only this shell; its id or name."},
    {"lines", ARG_TEXT, offsetof(struct recall_args, lines), .least = 1, .example = "\"120-160\"",
     .help = "Only these lines of each stream: 120-160, 120-, 120, or -50 for the last fifty."},
    {"context", ARG_COUNT, offsetof(struct recall_args, context), .least = 0,
     .most = CONTEXT_MOST, .example = "3", .help = "Also so many lines before and after each match."},
    {"stream", ARG_CHOICE, offsetof(struct recall_args, stream), .choices = recall_streams,
     .example = "\"stderr\"", .help = "Only this stream. Default: both."},
    {"since", ARG_TEXT, offsetof(struct recall_args, since), .least = 1, .example = "\"10m\"",
     .help = "Only lines since then: 90s, 10m, 2h, 1d, or a time such as 2026-11-15T14:30."},
    {"limit", ARG_COUNT, offsetof(struct recall_args, limit), .least = 1, .most = LIMIT_MOST,
     .example = "20", .help = "The most matches to show; the rest are counted. Default: 100, and of those that "
             "differ in numbers alone three; with a limit each counts."},
    {0},
};
/* clang-format on */

/* -- Which shells ----------------------------------------------------------------------------- */

static int add_to_search(struct recall *r, const nacre_id *id)
{
    if (GROW(r->ids, r->count, r->room) < 0)
        return NACRE_ENOMEM;
    r->ids[r->count++] = *id;
    return 0;
}

static int note_shell(const nacre_listed *listed, void *userdata)
{
    return add_to_search(userdata, &listed->record->id);
}

static int find_shells(nacre_call *c, nacre_error *err)
{
    const struct recall_args *a = c->args;
    struct recall *rc = c->state;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    nacre_id id;
    options.which = NACRE_LIST_HOME;
    int r = a->id ? call_find(c, a->id, &id, err)
                  : nacre_list(c->session, &options, note_shell, rc, err);
    if (r == 0 && a->id)
        r = add_to_search(rc, &id);
    return r == NACRE_ENOMEM ? err_set(err, r, "out of memory") : r;
}

static int make_query(nacre_call *c, nacre_error *err)
{
    const struct recall_args *a = c->args;
    struct recall *rc = c->state;
    nacre_recall_query *q = &rc->query;
    *q = (nacre_recall_query)NACRE_RECALL_QUERY_INIT;
    if (!a->pattern && !(a->id && a->lines))
        return err_set(err, NACRE_EINVAL,
                       "pattern is missing, such as \"error|failed\"; without one, give id and "
                       "lines");
    if (a->lines && !parse_lines(a->lines, &q->from, &q->to))
        return err_set(err, NACRE_EINVAL, "lines must be " LINES_HINT "; it is \"%.40s\"",
                       a->lines);
    if (a->since && !parse_moment(a->since, clock_real_ns() / NS_PER_MS, &q->since_ms))
        return err_set(err, NACRE_EINVAL, "since must be " MOMENT_HINT "; it is \"%.40s\"",
                       a->since);
    q->pattern = a->pattern;
    q->literal = a->literal;
    q->ignore_case = a->ignore_case;
    q->context = (uint64_t)MAX(a->context, INT64_C(0));
    q->streams = a->stream == 0 ? NACRE_OUT : a->stream == 1 ? NACRE_ERR : NACRE_BOTH;
    rc->range = !a->pattern;
    /* Who says how many wants each of them. */
    q->fold = a->limit <= 0;
    rc->limit = a->limit > 0 ? (uint64_t)a->limit : a->pattern ? NACRE_RECALL_LIMIT : LIMIT_MOST;
    return 0;
}

/* -- One shell after another ------------------------------------------------------------------ */

/* Groups of lines that do not follow one another get a line between them. */
static bool is_apart(const struct recall *rc, const nacre_recall_line *line)
{
    bool next = nacre_id_equal(&rc->last_id, &line->record->id) &&
                rc->last_stream == line->stream && rc->last_line + 1 == line->line;
    return rc->query.context > 0 && rc->text.len > 0 && !next;
}

/* Above the first line of a range, of each stream. */
static int write_range_heading(struct recall *rc, const nacre_recall_line *line)
{
    if (rc->text.len > 0 && rc->last_stream == line->stream)
        return 0;
    return buf_printf(&rc->text, "[shell %s, %s]\n", nacre_id_short(&line->record->id).s,
                      recall_streams[line->stream]);
}

static int write_number(struct buf *text, const nacre_recall_line *line)
{
    return buf_printf(text, "%llu: ", (unsigned long long)line->line);
}

/* Of a range whatever fits is shown, also of a line that is long. */
static size_t longest_line(const struct recall *rc)
{
    return rc->range && rc->query.from == rc->query.to ? rc->text.max / 2 : LINE_BYTES;
}

static void note_long(struct recall *rc, const nacre_recall_line *line)
{
    if (rc->long_line || line->size <= longest_line(rc))
        return;
    rc->long_line = true;
    rc->long_offset = line->offset;
}

static void note_next(struct recall *rc, const nacre_recall_line *line)
{
    if (rc->next.from == 0)
        rc->next = (struct next_lines){line->line, line->line, line->stream};
    else if (rc->next.stream == line->stream)
        rc->next.to = MAX(rc->next.to, line->line);
}

static int add_line(const nacre_recall_line *line, void *userdata)
{
    struct recall *rc = userdata;
    struct buf text cleanup_buf = BUF_UP_TO(8 * rc->text.max);
    struct shown_match match;
    size_t before = rc->text.len;
    if (rc->full || rc->shown >= rc->limit) {
        note_next(rc, line);
        return 0;
    }
    int r = rc->range            ? write_range_heading(rc, line)
            : is_apart(rc, line) ? buf_str(&rc->text, "--\n")
                                 : 0;
    if (r == 0)
        r = rc->range ? write_number(&text, line) : show_origin(&text, line);
    if (r == 0)
        r = show_text(&text, line, longest_line(rc), &match);
    if (r == 0)
        r = frame_write(&rc->text, text.data, text.len);
    if (r == 0)
        r = buf_str(&rc->text, "\n");
    if (r == -E2BIG) {
        rc->full = true;
        rc->text.len = before;
        note_next(rc, line);
        return 0;
    }
    note_long(rc, line);
    rc->shown += r == 0 && line->is_match;
    rc->last_id = line->record->id;
    rc->last_stream = line->stream;
    rc->last_line = line->line;
    return r < 0 ? NACRE_ENOMEM : 0;
}

static int search_one(nacre_call *c, const nacre_id *id, nacre_error *err)
{
    struct recall *rc = c->state;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    int64_t left = clock_left_ms(rc->deadline_ns);
    rc->query.id = id;
    /* What is beyond is still counted. */
    rc->query.limit = MAX(rc->limit - MIN(rc->shown, rc->limit), (uint64_t)1);
    rc->query.timeout_ms = MAX(left, INT64_C(1));
    int r = nacre_recall(c->session, &rc->query, add_line, rc, &totals, err);
    rc->matches += totals.matches;
    rc->folded += totals.folded;
    rc->dropped_bytes += totals.dropped_bytes;
    rc->timed_out = r == NACRE_ETIMEOUT;
    return rc->timed_out ? 0 : r;
}

/* One that was removed meanwhile, is another session's or is damaged is no reason to end a search
 * of all; of what is damaged the answer tells. */
static int pass_over(struct recall *rc, int r, const nacre_error *err)
{
    if (r == NACRE_ENOTFOUND || r == NACRE_EFORBIDDEN)
        return 0;
    if (r != NACRE_EIO && r != NACRE_EUNSUPPORTED)
        return r;
    if (rc->unreadable++ == 0)
        rc->why = *err;
    return 0;
}

static int step_recall(nacre_call *c, nacre_error *err)
{
    struct recall *rc = c->state;
    c->wake_ns = 0;
    if (rc->count == 0 || rc->timed_out)
        return TOOL_DONE;
    nacre_error inner = NACRE_ERROR_INIT;
    int r = search_one(c, &rc->ids[rc->count - 1], &inner);
    if (r < 0 && !((const struct recall_args *)c->args)->id)
        r = pass_over(rc, r, &inner);
    if (r < 0) {
        *err = inner;
        return r;
    }
    rc->count -= !rc->timed_out;
    return rc->count == 0 || rc->timed_out ? TOOL_DONE : TOOL_WAIT;
}

static int begin_recall(nacre_call *c, nacre_error *err)
{
    struct recall *rc = c->state;
    rc->text = BUF_UP_TO(c->budget * 2 / 3 - RESERVE);
    rc->deadline_ns = clock_deadline(NACRE_RECALL_TIMEOUT_MS);
    int r = make_query(c, err);
    if (r == 0)
        r = find_shells(c, err);
    return r < 0 ? r : step_recall(c, err);
}

/* -- The answer ------------------------------------------------------------------------------- */

/* As many lines as were shown will fit again. */
static void note_window(const struct recall *rc, struct answer *a)
{
    const struct next_lines *next = &rc->next;
    uint64_t to = MIN(next->to, next->from + MAX(rc->shown, UINT64_C(1)) - 1);
    answer_note(a, "lines %llu to %llu of %s do not fit; the next that do are lines: \"%llu-%llu\"",
                (unsigned long long)next->from, (unsigned long long)next->to,
                recall_streams[next->stream], (unsigned long long)next->from,
                (unsigned long long)to);
}

static void note_rest(const struct recall *rc, struct answer *a)
{
    uint64_t more = rc->matches - MIN(rc->shown + rc->folded, rc->matches);
    const char *stream = rc->last_stream == NACRE_STDOUT ? "stdout" : "stderr";
    if (rc->next.from > 0 && rc->range)
        note_window(rc, a);
    else if (more > 0 && rc->full)
        answer_note(a, "%s%llu more lines do not fit; the last one shown is line %llu of %s of %s",
                    rc->timed_out ? "at least " : "", (unsigned long long)more,
                    (unsigned long long)rc->last_line, stream, nacre_id_short(&rc->last_id).s);
    else if (more > 0)
        answer_note(a, "%s%llu more lines match; limit shows more",
                    rc->timed_out ? "at least " : "", (unsigned long long)more);
    if (rc->folded > 0)
        answer_note(a,
                    "%llu more lines are like those shown but for their numbers; limit shows each",
                    (unsigned long long)rc->folded);
    if (rc->timed_out)
        answer_note(a,
                    "the time was over with %zu shells left to search; narrow it with id or since",
                    rc->count);
    if (rc->dropped_bytes > 0)
        answer_note(a, "%llu bytes are no longer in the logs and could not be searched",
                    (unsigned long long)rc->dropped_bytes);
    if (rc->long_line && rc->range)
        answer_note(a, "long lines are cut; bash_output(offset: %llu) shows the first of them",
                    (unsigned long long)rc->long_offset);
    if (rc->unreadable > 0)
        answer_note(a, "%llu shell%s could not be searched: %s%s",
                    (unsigned long long)rc->unreadable, rc->unreadable == 1 ? "" : "s", rc->why.msg,
                    rc->unreadable == 1 ? "" : ", ...");
}

static int answer_recall(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct recall *rc = c->state;
    note_rest(rc, a);
    return answer_text(a, rc->text.len > 0 ? rc->text.data : "no lines match\n", err);
}

static void free_recall(nacre_call *c)
{
    struct recall *rc = c->state;
    free(rc->ids);
    buf_done(&rc->text);
}

const struct tool tool_recall = {
    .name = "recall",
    .title = "Search old output",
    .description =
        "Searches everything that shells have printed, also ended ones and those of earlier "
        "sessions, newest shell first; or shows lines of one shell by their numbers. What is "
        "found is shown as \"ab12cd34 stderr:123: text\"; numbers are per stream.",
    .args = recall_arg_table,
    .args_size = sizeof(struct recall_args),
    .state_size = sizeof(struct recall),
    .read_only = true,
    .idempotent = true,
    .begin = begin_recall,
    .step = step_recall,
    .answer = answer_recall,
    .done = free_recall,
};
