/*
 * What is shown: the shells that run, those that ended last, and the sessions they belong to. Each
 * has its text as JSON, made when something of it changed, and the turn in which that was: who has
 * seen all up to a turn is told what has a later one, in whatever state it is by then.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "page/page.h"
#include "rpc/message.h"
#include "screen/render.h"
#include "session/session.h"
#include "view/record_words.h"

#define LAST_BYTES    ((size_t)4096) /* of its log, in which the last line is looked for */
#define LAST_LINE_MAX 400
#define SESSIONS_MS   500  /* likewise of sessions */
#define ALL_MS        1000 /* between looks at what runs, whatever was heard */

/* -- The list --------------------------------------------------------------------------------- */

struct shown *shown_find(struct live_page *p, const nacre_id *id)
{
    for (size_t i = p->shell_count; i > 0; i--)
        if (nacre_id_equal(&p->shells[i - 1]->id, id))
            return p->shells[i - 1];
    return NULL;
}

static void free_shown(struct live_page *p, struct shown *s)
{
    hear_no_more(p, s);
    free(s->samples);
    free(s->last);
    free(s->text);
    free(s);
}

void shown_forget(struct live_page *p)
{
    for (size_t i = 0; i < p->shell_count; i++)
        free_shown(p, p->shells[i]);
    free(p->shells);
    p->shells = NULL;
    p->shell_count = p->shell_room = 0;
}

static void take_out(struct live_page *p, size_t at)
{
    free_shown(p, p->shells[at]);
    p->shell_count--;
    memmove(p->shells + at, p->shells + at + 1, (p->shell_count - at) * sizeof(struct shown *));
}

/* Whoever shows it is to take it away. */
static void note_gone(struct live_page *p, const nacre_id *id)
{
    p->gone[p->gone_count++ % GONE_KEPT] = (struct gone){*id, ++p->turn};
}

static void remove_shown(struct live_page *p, const nacre_id *id)
{
    for (size_t i = 0; i < p->shell_count; i++)
        if (nacre_id_equal(&p->shells[i]->id, id)) {
            note_gone(p, id);
            take_out(p, i);
            return;
        }
}

/* The oldest that ended is not remembered any more; who shows it may go on to. */
static void forget_oldest(struct live_page *p)
{
    size_t ended = 0, oldest = p->shell_count;
    for (size_t i = p->shell_count; i > 0; i--)
        if (!p->shells[i - 1]->alive) {
            ended++;
            oldest = i - 1;
        }
    if (ended <= ENDED_KEPT)
        return;
    p->ended_before++;
    take_out(p, oldest);
}

static struct shown *add_shown(struct live_page *p, const nacre_record *record)
{
    struct shown *s = calloc(1, sizeof *s);
    if (!s || GROW(p->shells, p->shell_count, p->shell_room) < 0) {
        free(s);
        return NULL;
    }
    s->id = record->id;
    s->started_ms = record->started_ms;
    s->watch = -1;
    size_t at = p->shell_count++;
    for (; at > 0 && p->shells[at - 1]->started_ms > s->started_ms; at--)
        p->shells[at] = p->shells[at - 1];
    p->shells[at] = s;
    return s;
}

/* -- What is known of one --------------------------------------------------------------------- */

/* The end of what was printed, as one line, and when that was. */
static void look_at_end(struct live_page *p, struct shown *s)
{
    static const struct render_options options = {.first_line = 1, .line_max = LAST_LINE_MAX};
    struct buf text cleanup_buf = BUF_UP_TO(LAST_BYTES * 8);
    char bytes[LAST_BYTES];
    uint64_t cursor = s->end - MIN(s->end, (uint64_t)LAST_BYTES);
    size_t size = 0;
    for (int64_t n = 1; n > 0 && size < sizeof bytes; size += (size_t)MAX(n, INT64_C(0))) {
        nacre_piece piece;
        n = output_read(p->session, &s->id, &cursor, NACRE_BOTH, bytes + size, sizeof bytes - size,
                        &piece, NULL);
        if (n > 0)
            s->last_ms = piece.time_ms;
    }
    s->last_at = s->end;
    free(s->last);
    s->last = NULL;
    if (size == 0 || render_text(&text, bytes, size, &options) < 0 || !text.data)
        return;
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        text.data[--text.len] = '\0';
    const char *line = strrchr(text.data, '\n');
    s->last = strdup(line ? line + 1 : text.data);
}

static json_t *ports_json(const struct shown *s)
{
    json_t *ports = json_array();
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && s->ports[i] != 0; i++)
        json_array_append_new(ports, json_integer(s->ports[i]));
    return ports;
}

static const char *input_name(const nacre_record *record)
{
    return record->columns > 0 ? "terminal" : record->input == NACRE_STDIN_PIPE ? "pipe" : "none";
}

/* What the documentation calls a record, and what only somebody who looks on wants to know. */
static char *write_shell(const struct shown *s, const nacre_listed *listed)
{
    const nacre_record *record = listed->record;
    char *text = NULL;
    json_t *all = json_record(record),
           *more = json_pack(
               "{s:s, s:s, s:b, s:s, s:i, s:i, s:I, s:b, s:o, s:o, s:I, s:o, s:i, s:i, s:i}",
               "session", nacre_id_format(&s->session).s, "input", input_name(record), "kept",
               record->lifetime == NACRE_LIFE_KEEP, "outcome",
               record->outcome == NACRE_RUNNING ? "running" : "ended", "columns", record->columns,
               "rows", record->rows, "unread", (json_int_t)listed->unread, "background",
               listed->background, "description",
               json_text(record->description, strlen(record->description)), "last",
               s->last ? json_text(s->last, strlen(s->last)) : json_null(), "last_ms",
               (json_int_t)s->last_ms, "ports", ports_json(s), "signalled", record->signalled,
               "force_killed", record->force_killed, "survivors", record->survivors);
    json_object_del(all, "elapsed_ms");
    if (all && more && json_object_update(all, more) == 0)
        text = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(all);
    json_decref(more);
    return text;
}

static bool is_alive(const nacre_record *record)
{
    return record->outcome == NACRE_RUNNING || record->tree == NACRE_TREE_ALIVE;
}

static int take_shell(const nacre_listed *listed, void *userdata)
{
    struct live_page *p = userdata;
    const nacre_record *record = listed->record;
    struct shown *s = shown_find(p, &record->id);
    if (!s)
        s = add_shown(p, record);
    if (!s)
        return NACRE_ENOMEM;
    s->alive = is_alive(record);
    s->tty = record->columns > 0;
    s->session = record->session;
    s->end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    s->stale = false;
    if (s->end != s->last_at && !s->tty)
        look_at_end(p, s);
    char *text = write_shell(s, listed);
    if (!text)
        return NACRE_ENOMEM;
    if (s->text && strcmp(s->text, text) == 0) {
        free(text);
    } else {
        free(s->text);
        s->text = text;
        s->turn = ++p->turn;
    }
    if (s->alive)
        hear_shell(p, s);
    else
        hear_no_more(p, s);
    return 0;
}

void shown_look(struct live_page *p, const nacre_id *id)
{
    int r = session_survey_one(p->session, id, take_shell, p, NULL);
    if (r == NACRE_ENOTFOUND)
        remove_shown(p, id);
    forget_oldest(p);
}

/* -- Sessions --------------------------------------------------------------------------------- */

void news_set(struct live_page *p, struct page_news *n, char *text)
{
    if (!text || (n->text && strcmp(n->text, text) == 0)) {
        free(text);
        return;
    }
    free(n->text);
    n->text = text;
    n->turn = ++p->turn;
}

static bool has_shells(const struct live_page *p, const nacre_id *session)
{
    for (size_t i = 0; i < p->shell_count; i++)
        if (nacre_id_equal(&p->shells[i]->session, session))
            return true;
    return false;
}

struct session_texts {
    struct live_page *page;
    json_t *array;
};

static int take_session(const nacre_session_info *info, void *userdata)
{
    struct session_texts *t = userdata;
    if (info->person || !(info->alive || has_shells(t->page, &info->id)))
        return 0;
    json_t *one =
        json_pack("{s:s, s:o, s:o, s:o, s:b, s:I, s:I}", "id", nacre_id_format(&info->id).s, "name",
                  json_text(info->name, strlen(info->name)), "client",
                  json_text(info->client, strlen(info->client)), "cwd",
                  json_text(info->cwd, strlen(info->cwd)), "alive", info->alive, "opened_ms",
                  (json_int_t)info->opened_ms, "ends_ms", (json_int_t)info->ends_ms);
    return json_array_append_new(t->array, one) < 0 ? NACRE_ENOMEM : 0;
}

void shown_refresh_sessions(struct live_page *p)
{
    struct session_texts texts = {p, json_array()};
    p->sessions_stale = false;
    p->sessions_ns = clock_deadline(SESSIONS_MS);
    if (session_survey_sessions(p->session, take_session, &texts, NULL) == 0)
        news_set(p, &p->sessions, json_dumps(texts.array, JSON_COMPACT | JSON_ENSURE_ASCII));
    json_decref(texts.array);
}

/* -- All of it -------------------------------------------------------------------------------- */

static int count_run(const nacre_listed *listed UNUSED, void *userdata)
{
    ++*(uint64_t *)userdata;
    return 0;
}

int shown_load(struct live_page *p, nacre_error *err)
{
    const struct catalog_filter open = {.state = CATALOG_OPEN};
    const struct catalog_filter ended = {.state = CATALOG_FINAL, .limit = ENDED_FIRST};
    const struct catalog_filter all = {.state = CATALOG_FINAL};
    uint64_t count = 0;
    int r = session_survey(p->session, &open, take_shell, p, err);
    if (r >= 0)
        r = session_survey(p->session, &ended, take_shell, p, err);
    if (r >= 0)
        r = session_survey(p->session, &all, count_run, &count, err);
    size_t known = 0;
    for (size_t i = 0; i < p->shell_count; i++)
        known += !p->shells[i]->alive;
    p->ended_before = count - MIN(count, (uint64_t)known);
    if (r == NACRE_ENOTFOUND) /* there is no home yet */
        r = 0;
    if (r >= 0)
        shown_refresh_sessions(p);
    return r;
}

struct older {
    struct live_page *page;
    struct buf *out;
};

static int write_older(const nacre_listed *listed, void *userdata)
{
    const struct older *o = userdata;
    struct shown s = {.id = listed->record->id, .session = listed->record->session};
    s.end = listed->record->bytes[NACRE_STDOUT] + listed->record->bytes[NACRE_STDERR];
    look_at_end(o->page, &s);
    cleanup_free char *text = write_shell(&s, listed);
    free(s.last);
    if (!text)
        return NACRE_ENOMEM;
    int r = o->out->data[o->out->len - 1] == '[' ? 0 : buf_str(o->out, ",");
    return r < 0 || buf_str(o->out, text) < 0 ? NACRE_ENOMEM : 0;
}

int shown_write_older(struct live_page *p, int64_t before_ms, struct buf *out, nacre_error *err)
{
    const struct catalog_filter filter = {
        .state = CATALOG_FINAL, .before_ms = before_ms, .limit = ENDED_FIRST};
    struct older older = {p, out};
    if (buf_str(out, "{\"shells\":[") < 0)
        return NACRE_ENOMEM;
    int r = session_survey(p->session, &filter, write_older, &older, err);
    return r < 0 ? r : buf_str(out, "]}") < 0 ? NACRE_ENOMEM : 0;
}

static int write_shells(struct live_page *p, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->shell_count; i++)
        r = buf_printf(out, "%s%s", i > 0 ? "," : "", p->shells[i]->text);
    return r;
}

static int write_samples(struct live_page *p, struct buf *out)
{
    int r = 0;
    for (size_t i = 0, n = 0; r == 0 && i < p->shell_count; i++) {
        const struct shown *s = p->shells[i];
        if (s->sample_count == 0 || !s->alive)
            continue;
        r = buf_printf(out, "%s\"%s\":", n++ > 0 ? "," : "", nacre_id_format(&s->id).s);
        if (r == 0)
            r = sample_write(s, 60, out);
    }
    return r;
}

int shown_write_all(struct live_page *p, bool acts, struct buf *out)
{
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    int r = buf_printf(out, "{\"boot\":\"%s\",\"turn\":%llu,\"now_ms\":%lld,\"acts\":%s,", p->boot,
                       (unsigned long long)p->turn, (long long)(clock_real_ns() / NS_PER_MS),
                       acts ? "true" : "false");
    if (r == 0)
        r = buf_printf(out, "\"version\":\"%s\",\"older\":%llu,\"host\":", nacre_version(),
                       (unsigned long long)p->ended_before);
    if (r == 0)
        r = rpc_append_string(out, host, strlen(host));
    if (r == 0)
        r = buf_printf(out, ",\"sessions\":%s,\"notes\":%s,\"asks\":%s,\"shells\":[",
                       p->sessions.text ? p->sessions.text : "[]",
                       p->notes.text ? p->notes.text : "{}", p->asks.text ? p->asks.text : "[]");
    if (r == 0)
        r = write_shells(p, out);
    if (r == 0)
        r = buf_str(out, "],\"samples\":{");
    if (r == 0)
        r = write_samples(p, out);
    return r < 0 ? r : buf_str(out, "}}");
}

/* -- Turns ------------------------------------------------------------------------------------ */

/* One whose keeper is gone says nothing any more, and where inotify hears nothing nobody does. */
static void doubt_what_runs(struct live_page *p, int64_t now_ns)
{
    if (now_ns - p->looked_at_all_ns < ALL_MS * NS_PER_MS)
        return;
    p->looked_at_all_ns = now_ns;
    for (size_t i = 0; i < p->shell_count; i++)
        p->shells[i]->stale |= p->shells[i]->alive;
    p->sessions_stale = true;
    p->look_ns = MIN(p->look_ns, now_ns);
}

void shown_step(struct live_page *p, int64_t now_ns)
{
    doubt_what_runs(p, now_ns);
    if (now_ns >= p->look_ns) {
        p->look_ns = INT64_MAX;
        hear_look_at_waiting(p);
        /* From behind: one that is looked at may leave. */
        for (size_t i = p->shell_count; i > 0; i--)
            if (i <= p->shell_count && p->shells[i - 1]->stale) {
                nacre_id id = p->shells[i - 1]->id;
                p->shells[i - 1]->stale = false;
                shown_look(p, &id);
            }
    }
    if (p->sessions_stale && now_ns >= p->sessions_ns)
        shown_refresh_sessions(p);
}

int64_t shown_deadline(const struct live_page *p)
{
    int64_t deadline = p->look_ns;
    if (p->sessions_stale)
        deadline = MIN(deadline, p->sessions_ns);
    return MIN(deadline, p->looked_at_all_ns + ALL_MS * NS_PER_MS);
}
