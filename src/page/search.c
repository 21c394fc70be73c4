/* Searches over everything that was printed, one shell in each turn: hits are told as they are
 * found, and whoever hangs up has ended it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "page/page.h"
#include "recall/show.h"
#include "session/session.h"
#include "view/record_words.h"

#define PATTERN_MAX 4097
#define LIMIT_MOST  1000
#define LIMIT_USUAL 200
#define LINE_SHOWN  600 /* bytes of a line */
#define SHELL_MS    300 /* of one shell: nobody else is served meanwhile */
#define ALL_MS      30000

struct finding {
    struct page_visit visit; /* first */
    char pattern[PATTERN_MAX];
    nacre_recall_query query;
    nacre_id *ids; /* oldest first */
    size_t count, room, left;
    uint64_t limit, shown, matches, dropped, unreadable, unfinished;
    int64_t until_ns;
};

static void tell_found(struct finding *f, const char *event, json_t *value)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    cleanup_free char *data = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    if (!data || buf_printf(&text, "event: %s\ndata: %s\n\n", event, data) < 0)
        http_hang_up(f->visit.http);
    else
        http_stream_write(f->visit.http, text.data, text.len, NULL);
}

static int tell_line(const nacre_recall_line *line, void *userdata)
{
    struct finding *f = userdata;
    struct buf text cleanup_buf = BUF_UP_TO(SHOW_LINE_MAX * 8);
    struct shown_match match = {0};
    if (buf_str(&text, "") < 0 || show_text(&text, line, LINE_SHOWN, &match) < 0)
        return NACRE_ENOMEM;
    f->shown++;
    tell_found(f, "hit",
               json_pack("{s:s, s:i, s:I, s:I, s:I, s:o}", "id",
                         nacre_id_format(&line->record->id).s, "stream", (int)line->stream, "line",
                         (json_int_t)line->line, "offset", (json_int_t)line->offset, "ms",
                         (json_int_t)line->time_ms, "text",
                         json_pack("[o, o, o]", json_text(text.data, match.start),
                                   json_text(text.data + match.start, match.end - match.start),
                                   json_text(text.data + match.end, text.len - match.end))));
    return 0;
}

static void finish_finding(struct finding *f, const char *why)
{
    tell_found(f, "done",
               json_pack("{s:I, s:I, s:i, s:I, s:I, s:I, s:s}", "matches", (json_int_t)f->matches,
                         "shown", (json_int_t)f->shown, "left", (int)f->left, "dropped",
                         (json_int_t)f->dropped, "unreadable", (json_int_t)f->unreadable,
                         "unfinished", (json_int_t)f->unfinished, "why", why));
    http_stream_end(f->visit.http);
    visit_over(&f->visit);
}

/* Where the limit is reached the others are counted only. */
static void step_finding(struct page_visit *visit, int64_t now_ns)
{
    struct finding *f = (struct finding *)visit;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    nacre_error err = NACRE_ERROR_INIT;
    if (http_queued(visit->http) > VIEWER_QUEUE_MAX)
        return;
    if (f->left == 0 || now_ns >= f->until_ns || f->shown >= f->limit) {
        finish_finding(f, f->left == 0           ? ""
                          : f->shown >= f->limit ? "there may be more; look for something narrower"
                                                 : "the time was over");
        return;
    }
    f->query.id = &f->ids[--f->left];
    f->query.limit = f->limit - f->shown;
    int r = nacre_recall(visit->page->session, &f->query, tell_line, f, &totals, &err);
    f->matches += totals.matches;
    f->dropped += totals.dropped_bytes;
    f->unreadable += totals.unreadable + (r == NACRE_EIO);
    f->unfinished += r == NACRE_ETIMEOUT || r == NACRE_ELIMIT;
    if (r == NACRE_EINVAL)
        finish_finding(f, err.msg);
    else
        visit->page->options->touched(visit->http);
}

/* At once, as long as there is room for what is found. */
static int64_t finding_deadline(const struct page_visit *visit)
{
    return http_queued(visit->http) > VIEWER_QUEUE_MAX ? INT64_MAX : 0;
}

static void end_finding(struct page_visit *visit)
{
    free(((struct finding *)visit)->ids);
    free(visit);
}

static const struct visit_ops finding_ops = {step_finding, finding_deadline, end_finding};

static int search_in(const nacre_listed *listed, void *userdata)
{
    struct finding *f = userdata;
    if (GROW(f->ids, f->count, f->room) < 0)
        return NACRE_ENOMEM;
    f->ids[f->count++] = listed->record->id;
    return 0;
}

static int choose_shells(struct finding *f, const struct http_request *q, nacre_error *err)
{
    static const struct catalog_filter all = {.oldest_first = true};
    char text[NACRE_ID_DIGITS + 2];
    nacre_id id;
    if (request_text(q, "id", text, sizeof text)) {
        if (nacre_id_parse(text, &id) < 0)
            return err_set(err, NACRE_EINVAL, "id is to be that of a shell");
        nacre_record record = {.id = id};
        return search_in(&(nacre_listed){.record = &record}, f);
    }
    return session_survey(f->visit.page->session, &all, search_in, f, err);
}

void find_ask(struct live_page *p, struct http_conn *c)
{
    const struct http_request *q = &c->request;
    nacre_error err = NACRE_ERROR_INIT;
    struct finding *f = visit_new(p, c, &finding_ops, sizeof *f);
    if (!f)
        return;
    f->query = (nacre_recall_query)NACRE_RECALL_QUERY_INIT;
    f->query.pattern = f->pattern;
    f->query.literal = request_number(q, "regex", 0) == 0;
    f->query.ignore_case = request_number(q, "case", 0) == 0;
    f->query.timeout_ms = SHELL_MS;
    f->query.since_ms = (int64_t)request_number(q, "since", 0);
    f->limit = MIN(request_number(q, "limit", LIMIT_USUAL), (uint64_t)LIMIT_MOST);
    f->until_ns = clock_deadline(ALL_MS);
    int r = request_text(q, "q", f->pattern, sizeof f->pattern) && *f->pattern
                ? choose_shells(f, q, &err)
                : err_set(&err, NACRE_EINVAL, "q is to be what is looked for");
    if (r < 0) {
        answer_failure(c, r, &err);
        visit_over(&f->visit);
        return;
    }
    f->left = f->count;
    http_stream_begin(c, 200, STREAM_FIELDS);
}
