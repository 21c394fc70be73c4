/* The search: which shells, both streams of each in order, context around matches, and totals. */
#include <nacre/recall.h>
#include <nacre/registry.h>

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "recall/pattern.h"
#include "recall/sift.h"
#include "text/template.h"

struct candidates {
    nacre_id *ids; /* oldest first */
    size_t count;
    size_t cap;
    const nacre_recall_query *query;
};

/* One stream of the shell in hand. */
struct recall_side {
    struct sift *sift; /* NULL = not wanted */
    uint64_t from, to;
    uint64_t shown;         /* the last line of it that was shown */
    nacre_recall_line next; /* the next match, if there is one */
    bool has_next;
};

#define TEMPLATES 256

/* How often a template was shown, of one stream; what does not fit is shown. */
struct seen_templates {
    uint64_t all[TEMPLATES];
    uint32_t count[TEMPLATES];
};

struct recall_search {
    nacre_session *session;
    const nacre_recall_query *query;
    unsigned streams;
    uint64_t limit;
    nacre_recall_fn *fn;
    void *userdata;
    struct watchdog dog;
    struct pattern *pattern; /* NULL = every line */
    nacre_recall_totals totals;
    nacre_record record; /* of the shell in hand */
    struct recall_side sides[2];
    struct seen_templates
        *seen;       /* of either stream of the shell in hand; NULL = nothing is folded */
    struct buf held; /* the text of a match while its context is read */
    int verdict;     /* what the callback said, if not 0 */
};

/* -- Which shells ------------------------------------------------------------------------------ */

static bool is_candidate(const nacre_recall_query *query, const nacre_record *record)
{
    nacre_id_text session = nacre_id_format(&record->session);
    return !query->session || strncmp(session.s, query->session, strlen(query->session)) == 0;
}

static int note_candidate(const nacre_record *record, void *userdata)
{
    struct candidates *c = userdata;
    if (!is_candidate(c->query, record))
        return 0;
    if (GROW(c->ids, c->count, c->cap) < 0)
        return NACRE_ENOMEM;
    c->ids[c->count++] = record->id;
    return 0;
}

static int note_listed_candidate(const nacre_listed *listed, void *userdata)
{
    return note_candidate(listed->record, userdata);
}

/* The one place that says which shells a query is about. */
static int find_candidates(nacre_session *session, struct candidates *c, nacre_error *err)
{
    if (!c->query->id) {
        nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
        options.which = NACRE_LIST_HOME;
        int r = nacre_list(session, &options, note_listed_candidate, c, err);
        return r == NACRE_ENOMEM ? err_set(err, NACRE_ENOMEM, "out of memory") : r;
    }
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = nacre_get(session, c->query->id, &record, err);
    if (r == 0 && note_candidate(&record, c) < 0)
        r = err_set(err, NACRE_ENOMEM, "out of memory");
    return r;
}

/* -- Showing ----------------------------------------------------------------------------------- */

static int give(struct recall_search *s, nacre_recall_line *line)
{
    line->record = &s->record;
    s->verdict = s->fn(line, s->userdata);
    return s->verdict;
}

static struct sift_options sift_options_for(const struct recall_search *s, nacre_stream stream)
{
    return (struct sift_options){
        .id = &s->record.id,
        .stream = stream,
        .from = s->sides[stream].from,
        .to = s->sides[stream].to,
        .since_ms = s->query->since_ms,
        .end = s->record.bytes[NACRE_STDOUT] + s->record.bytes[NACRE_STDERR],
    };
}

/* Shows lines of a stream around a match, which is not among them. */
static int give_context(struct recall_search *s, nacre_stream stream, uint64_t from, uint64_t to,
                        nacre_error *err)
{
    struct sift_options options = sift_options_for(s, stream);
    struct sift *sift;
    nacre_recall_line line;
    if (from > to)
        return 0;
    options.from = from;
    options.to = to;
    options.since_ms = 0;
    int r = sift_new(s->session, &options, NULL, &sift, err);
    if (r < 0)
        return r;
    while ((r = sift_next(sift, &line, err)) > 0) {
        line.is_match = 0;
        if ((r = give(s, &line)) != 0)
            break;
        s->sides[stream].shown = line.line;
    }
    sift_free(sift);
    return r;
}

/* Holds a match, whose text is gone when the next one is looked for. */
static int hold_match(struct recall_search *s, nacre_recall_line *line, nacre_error *err)
{
    s->held.len = 0;
    if (buf_append(&s->held, line->text, line->size) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    line->text = s->held.data;
    return 0;
}

/* -- One shell --------------------------------------------------------------------------------- */

/* Looks for the next match of a side, unless there is one already. */
static int look_ahead(struct recall_side *side, nacre_error *err)
{
    if (side->has_next || !side->sift)
        return 0;
    int r = sift_next(side->sift, &side->next, err);
    side->has_next = r > 0;
    return MIN(r, 0);
}

/* A match with the lines around it. Those behind end before the next match of the stream. */
static int show_group(struct recall_search *s, struct recall_side *side, nacre_error *err)
{
    nacre_recall_line match = side->next;
    uint64_t context = s->query->context, line = match.line;
    uint64_t first = line > context ? line - context : 1;
    int r = hold_match(s, &match, err);
    if (r == 0)
        r = give_context(s, match.stream, MAX(first, side->shown + 1), line - 1, err);
    if (r != 0 || (r = give(s, &match)) != 0)
        return r;
    side->shown = line;
    side->has_next = false;
    r = look_ahead(side, err);
    if (r < 0)
        return r;
    uint64_t last = context > UINT64_MAX - line ? UINT64_MAX : line + context;
    return give_context(s, match.stream, line + 1,
                        side->has_next ? MIN(last, side->next.line - 1) : last, err);
}

/* Whether enough matches of this template were shown. */
static bool is_like_shown(struct recall_search *s, const nacre_recall_line *line)
{
    if (!s->seen)
        return false;
    struct seen_templates *seen = &s->seen[line->stream];
    uint64_t template = template_hash(line->text, line->size) | 1;
    for (size_t i = 0; i < TEMPLATES; i++) {
        size_t at = (template + i) % TEMPLATES;
        if (seen->all[at] == 0)
            seen->all[at] = template;
        if (seen->all[at] == template)
            return seen->count[at]++ >= NACRE_RECALL_FEW;
    }
    return false;
}

static int take_match(struct recall_search *s, struct recall_side *side, nacre_error *err)
{
    s->totals.matches++;
    if (is_like_shown(s, &side->next)) {
        s->totals.folded++;
        side->has_next = false;
        return 0;
    }
    if (s->totals.shown == s->limit) {
        side->has_next = false;
        return 0;
    }
    s->totals.shown++;
    if (s->query->context > 0)
        return show_group(s, side, err);
    side->has_next = false;
    return give(s, &side->next);
}

/* Of the two next matches, the one that began first. */
static struct recall_side *first_side(struct recall_search *s)
{
    struct recall_side *out = &s->sides[NACRE_STDOUT], *err = &s->sides[NACRE_STDERR];
    if (out->has_next && err->has_next)
        return out->next.offset < err->next.offset ? out : err;
    return out->has_next ? out : err->has_next ? err : NULL;
}

/* What is already known to match is shown, also if the search has to end. */
static int search_sides(struct recall_search *s, nacre_error *err)
{
    int ended = 0;
    for (;;) {
        for (int i = 0; i < 2 && ended == 0; i++)
            ended = look_ahead(&s->sides[i], err);
        struct recall_side *side = first_side(s);
        if (!side)
            return ended;
        int r = take_match(s, side, err);
        if (r != 0)
            return r;
    }
}

/* The number of a line that may be counted from the end; at least 1. */
static uint64_t absolute_line(int64_t line, uint64_t lines, uint64_t open)
{
    if (line == 0)
        return open;
    if (line > 0)
        return (uint64_t)line;
    uint64_t back = (uint64_t)(-(line + 1)); /* 0 = the last */
    return lines > back ? lines - back : 0;
}

static int open_side(struct recall_search *s, nacre_stream stream, nacre_error *err)
{
    struct recall_side *side = &s->sides[stream];
    uint64_t lines = s->record.lines[stream];
    *side = (struct recall_side){.from = MAX(absolute_line(s->query->from, lines, 1), UINT64_C(1)),
                                 .to = absolute_line(s->query->to, lines, UINT64_MAX)};
    if (!(s->streams & 1u << stream) || lines == 0 || side->from > side->to)
        return 0;
    struct sift_options options = sift_options_for(s, stream);
    s->totals.dropped_bytes += s->record.dropped_bytes[stream];
    return sift_new(s->session, &options, s->pattern, &side->sift, err);
}

static int search_record(struct recall_search *s, nacre_error *err)
{
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++)
        r = open_side(s, (nacre_stream)i, err);
    if (r == 0)
        r = search_sides(s, err);
    for (int i = 0; i < 2; i++) {
        if (s->sides[i].sift)
            s->totals.bytes += sift_bytes(s->sides[i].sift);
        sift_free(s->sides[i].sift);
        s->sides[i].sift = NULL;
    }
    return r;
}

/* Whether a search of all shells goes on without this one. */
static bool may_pass_over(const struct recall_search *s, int r)
{
    return !s->query->id && s->verdict == 0 && (r == NACRE_EIO || r == NACRE_EUNSUPPORTED);
}

static int search_shell(struct recall_search *s, const nacre_id *id, nacre_error *err)
{
    memset(s->sides, 0, sizeof s->sides);
    if (s->seen)
        memset(s->seen, 0, 2 * sizeof *s->seen);
    int r = watchdog_look(&s->dog) ? NACRE_EBUSY : nacre_get(s->session, id, &s->record, err);
    /* Removed since it was listed, or another's. */
    if ((r == NACRE_ENOTFOUND || r == NACRE_EFORBIDDEN) && !s->query->id)
        return 0;
    if (r == 0)
        r = search_record(s, err);
    if (may_pass_over(s, r)) {
        s->totals.unreadable++;
        return 0;
    }
    s->totals.shells += r == 0;
    return r;
}

/* -- The whole --------------------------------------------------------------------------------- */

static int search_all(struct recall_search *s, const struct candidates *c, nacre_error *err)
{
    int r = 0;
    size_t left = c->count;
    while (left > 0 && r == 0)
        r = search_shell(s, &c->ids[--left], err);
    if (r != 0)
        s->totals.shells_left = left + 1;
    if (s->verdict != 0 || r != NACRE_EBUSY || s->dog.verdict == 0)
        return r;
    if (!s->dog.timed_out)
        return s->dog.verdict;
    return err_set(err, NACRE_ETIMEOUT,
                   "the search was not done in time: %llu of %zu shells were not searched to the "
                   "end; search one shell, a time or a literal, or give it more time",
                   (unsigned long long)s->totals.shells_left, c->count);
}

static int check_query(const nacre_recall_query *q, const nacre_recall_totals *totals,
                       nacre_error *err)
{
    if (!q || q->size != sizeof *q)
        return err_set(err, NACRE_EINVAL, "the query must start from NACRE_RECALL_QUERY_INIT");
    if (totals && totals->size != sizeof *totals)
        return err_set(err, NACRE_EINVAL, "the totals must start from NACRE_RECALL_TOTALS_INIT");
    if (q->streams & ~NACRE_BOTH)
        return err_set(err, NACRE_EINVAL, "streams: there are only NACRE_OUT and NACRE_ERR");
    if (q->session && strspn(q->session, "0123456789abcdef") != strlen(q->session))
        return err_set(err, NACRE_EINVAL, "session: ids are lowercase hex digits");
    if (q->from > 0 && q->to > 0 && q->from > q->to)
        return err_set(err, NACRE_EINVAL, "from, to: the first line is behind the last");
    return 0;
}

int nacre_recall(nacre_session *session, const nacre_recall_query *query, nacre_recall_fn *fn,
                 void *userdata, nacre_recall_totals *ret_totals, nacre_error *reterr)
{
    nacre_error spare;
    nacre_error *err = reterr ? reterr : &spare;
    int r = check_query(query, ret_totals, err);
    if (r < 0)
        return r;
    int64_t ms = query->timeout_ms == 0 ? NACRE_RECALL_TIMEOUT_MS : query->timeout_ms;
    struct recall_search s = {
        .session = session,
        .query = query,
        .streams = query->streams ? query->streams : NACRE_BOTH,
        .limit = query->limit ? query->limit : NACRE_RECALL_LIMIT,
        .fn = fn,
        .userdata = userdata,
        .dog = {.deadline_ns = clock_deadline(ms),
                .cancelled = query->cancelled,
                .userdata = userdata},
        .totals = NACRE_RECALL_TOTALS_INIT,
        .record = NACRE_RECORD_INIT,
        .held = BUF_UP_TO(SIFT_LINE * 2 + 1),
    };
    struct candidates c = {.query = query};
    if (query->fold && query->pattern && !(s.seen = calloc(2, sizeof *s.seen)))
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (query->pattern)
        r = pattern_new(query->pattern, query->literal, query->ignore_case, &s.dog, &s.pattern,
                        err);
    if (r == 0)
        r = find_candidates(session, &c, err);
    if (r == 0)
        r = search_all(&s, &c, err);
    if (ret_totals)
        *ret_totals = s.totals;
    pattern_free(s.pattern);
    free(s.seen);
    nacre_record_done(&s.record);
    buf_done(&s.held);
    free(c.ids);
    return r;
}
