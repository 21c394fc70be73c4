#include "tool/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "session/deferred.h"
#include "session/session.h"
#include "text/legible.h"
#include "view/limit_words.h"
#include "view/record_words.h"

#define NOTES_MAX       4096
#define FULL_MAX        3 /* more completions at once are only counted */
#define EACH_MAX        ((size_t)1536)
#define ID_MAX          56 /* bytes of one that is only counted */
#define COMPLETIONS_MAX ((size_t)64 * 1024)
#define TEXT_SLACK      ((size_t)4096) /* headers, in front of views that keep their budgets */

void answer_init(struct answer *a, nacre_session *session, size_t budget)
{
    *a = (struct answer){
        .session = session,
        .budget = budget,
        .text = BUF_UP_TO(2 * budget + TEXT_SLACK),
        .notes = BUF_UP_TO(NOTES_MAX),
        .completions = BUF_UP_TO(COMPLETIONS_MAX),
    };
}

void answer_done(struct answer *a)
{
    deferred_told(a->session, a, false);
    nacre_offer_retract(a->offer, NULL);
    json_decref(a->runs);
    free(a->shown);
    buf_done(&a->text);
    buf_done(&a->notes);
    buf_done(&a->completions);
}

/* -- Text ------------------------------------------------------------------------------------- */

int answer_text(struct answer *a, const char *text, nacre_error *err)
{
    return buf_str(&a->text, text) < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

int answer_line(struct answer *a, nacre_error *err, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (legible_write(&a->text, line, strlen(line)) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    return answer_text(a, "\n", err);
}

void answer_note(struct answer *a, const char *fmt, ...)
{
    char line[480];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    buf_str(&a->notes, "[nacre: ");
    legible_write(&a->notes, line, strlen(line));
    buf_str(&a->notes, "]\n");
}

size_t answer_room(const struct answer *a)
{
    size_t used = a->text.len + a->notes.len;
    return a->budget > used ? a->budget - used : 0;
}

void answer_fail(struct answer *a, const nacre_error *error)
{
    a->is_error = true;
    a->text.len = 0;
    a->notes.len = 0;
    a->shown_count = 0;
    json_decref(a->runs);
    a->runs = NULL;
    const char *text = error->msg[0] ? error->msg : nacre_code_name(error->code);
    legible_write(&a->text, text, strlen(text));
}

/* -- Shells ----------------------------------------------------------------------------------- */

void answer_run(struct answer *a, const nacre_record *record)
{
    json_t *value = json_record(record);
    /* Whoever asked knows it, and it may be long. */
    json_object_del(value, "command");
    if (!a->runs)
        a->runs = json_array();
    json_array_append_new(a->runs, value);
}

void answer_limits(struct answer *a, const nacre_record *record)
{
    struct buf text cleanup_buf = BUF_UP_TO(LIMIT_WORDS_MAX);
    char *rest = NULL;
    if (limit_words(&text, record, LIMIT_WORDS_MAX) < 0 || text.len == 0)
        return;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        answer_note(a, "%s", line);
}

int answer_shows(struct answer *a, const nacre_id *id, const nacre_position *position, bool end,
                 nacre_error *err)
{
    struct shown_shell *list = realloc(a->shown, (a->shown_count + 1) * sizeof *list);
    if (!list)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    a->shown = list;
    list[a->shown_count] = (struct shown_shell){.id = *id, .end = end};
    if (position)
        list[a->shown_count].position = *position;
    a->shown_count++;
    return 0;
}

static bool shows_end(const struct answer *a, const nacre_id *id)
{
    for (size_t i = 0; i < a->shown_count; i++)
        if (a->shown[i].end && nacre_id_equal(&a->shown[i].id, id))
            return true;
    return false;
}

int answer_read(struct answer *a, const nacre_record *record, nacre_position *position,
                unsigned streams, size_t room, nacre_error *err)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    cleanup_free char *text = NULL;
    options.bytes = MAX(room, (size_t)NACRE_VIEW_BUDGET_MIN);
    options.streams = streams;
    int r = view_news(a->session, record, position, &options, &text, NULL, err);
    if (r == 0)
        r = answer_text(a, text, err);
    /* A last line without an end would run into what follows. */
    if (r == 0 && a->text.len > 0 && a->text.data[a->text.len - 1] != '\n')
        r = answer_text(a, "\n", err);
    return r;
}

int answer_news(struct answer *a, const nacre_record *record, size_t room, nacre_error *err)
{
    nacre_position position = view_position(a->session, &record->id);
    int r = answer_read(a, record, &position, NACRE_BOTH, room, err);
    if (r < 0)
        return r;
    answer_run(a, record);
    answer_limits(a, record);
    return answer_shows(a, &record->id, &position, record->outcome != NACRE_RUNNING, err);
}

/* -- Completions ------------------------------------------------------------------------------ */

void answer_take_completions(struct answer *a)
{
    deferred_step(a->session);
    (void)deferred_tell(a->session, a, &a->completions);
    int64_t count = nacre_offer_take(a->session, 0, &a->offer, NULL);
    if (count <= 0)
        return;
    a->reserve = MIN(a->budget / 3, (size_t)MIN(count, (int64_t)FULL_MAX + 1) * EACH_MAX);
    a->budget -= a->reserve;
}

/* What was ended because its session was is no news to a later one. */
static bool ended_with_session(const struct answer *a, const nacre_id *id)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    return session_record(a->session, id, HOME_LIGHT, &record, NULL, NULL) == 0 &&
           record.reason == NACRE_REASON_OWNER;
}

/* Whether a completion needs no words: it is acknowledged with the rest all the same. */
static bool needs_no_words(const struct answer *a, const nacre_id *id)
{
    return shows_end(a, id) || ended_with_session(a, id);
}

static int write_full(struct answer *a, size_t each)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < nacre_offer_count(a->offer); i++) {
        nacre_id id = nacre_offer_id(a->offer, i);
        cleanup_free char *text = NULL;
        if (needs_no_words(a, &id))
            continue;
        if (nacre_offer_text(a->offer, i, each - 2, &text, NULL) < 0)
            r = buf_printf(&a->completions, "[Background task %s completed]\nstatus: removed\n",
                           nacre_id_short(&id).s);
        else
            r = buf_printf(&a->completions, "%s%s%s", a->completions.len > 0 ? "\n" : "", text,
                           text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
    }
    return r;
}

static int write_count(struct answer *a, size_t count)
{
    struct buf *out = &a->completions;
    size_t listed = 0, most = a->reserve / ID_MAX - 3;
    int r =
        buf_printf(out, "[Background tasks completed: %zu] read each with bash_output:\n", count);
    for (size_t i = 0; r == 0 && i < nacre_offer_count(a->offer) && listed < most; i++) {
        nacre_id id = nacre_offer_id(a->offer, i);
        nacre_record record = NACRE_RECORD_INIT;
        char status[64] = "removed";
        if (needs_no_words(a, &id))
            continue;
        if (session_record(a->session, &id, HOME_FULL, &record, NULL, NULL) == 0)
            nacre_status(&record, status, sizeof status);
        nacre_record_done(&record);
        r = buf_printf(out, "%s%s %s", listed++ ? ", " : "", nacre_id_short(&id).s, status);
        if (r == 0 && nacre_offer_repeated(a->offer, i))
            r = buf_str(out, " (repeated)");
    }
    if (r == 0 && count > listed)
        r = buf_printf(out, ", and %zu more; list_shells shows them", count - listed);
    return r == 0 ? buf_str(out, "\n") : r;
}

/* Those whose end the text shows are acknowledged with the rest, but not told twice. */
static int write_completions(struct answer *a)
{
    size_t total = nacre_offer_count(a->offer), count = 0;
    for (size_t i = 0; i < total; i++) {
        nacre_id id = nacre_offer_id(a->offer, i);
        count += !needs_no_words(a, &id);
    }
    if (count == 0)
        return 0;
    size_t each = a->reserve / count;
    return count <= FULL_MAX && each > NACRE_VIEW_BUDGET_MIN + 2 ? write_full(a, each)
                                                                 : write_count(a, count);
}

/* -- The result ------------------------------------------------------------------------------- */

static void add_item(json_t *content, const struct buf *text)
{
    json_t *value = json_text(text->data ? text->data : "", text->len);
    json_array_append_new(content, json_pack("{s:s, s:o}", "type", "text", "text", value));
}

/* One record as itself, several as a list. */
static json_t *meta_of(const struct answer *a)
{
    if (json_array_size(a->runs) == 1)
        return json_pack("{s:O}", "nacre/run", json_array_get(a->runs, 0));
    return json_pack("{s:O}", "nacre/runs", a->runs);
}

static json_t *structure_of(const struct answer *a)
{
    json_t *object = json_object();
    if (a->completions.len > 0)
        json_object_set_new(object, "completions",
                            json_text(a->completions.data, a->completions.len));
    json_object_set_new(object, "text", json_text(a->text.data ? a->text.data : "", a->text.len));
    if (json_array_size(a->runs) == 1)
        json_object_set(object, "run", json_array_get(a->runs, 0));
    else if (a->runs)
        json_object_set(object, "runs", a->runs);
    return object;
}

json_t *answer_result(struct answer *a, bool structured)
{
    if (write_completions(a) < 0 ||
        (a->notes.len > 0 && buf_append(&a->text, a->notes.data, a->notes.len) < 0))
        return NULL;
    json_t *content = json_array();
    if (a->completions.len > 0)
        add_item(content, &a->completions);
    add_item(content, &a->text);
    json_t *result = json_pack("{s:o, s:b}", "content", content, "isError", (int)a->is_error);
    if (a->runs)
        json_object_set_new(result, "_meta", meta_of(a));
    if (structured)
        json_object_set_new(result, "structuredContent", structure_of(a));
    return result;
}

/* The offer first: an end that was also shown is told with it. */
void answer_delivered(struct answer *a)
{
    deferred_told(a->session, a, true);
    nacre_offer_acknowledge(a->offer, NULL);
    a->offer = NULL;
    for (size_t i = 0; i < a->shown_count; i++) {
        const struct shown_shell *shown = &a->shown[i];
        nacre_position none = NACRE_POSITION_INIT;
        view_mark_read(a->session, &shown->id, shown->position.size ? &shown->position : &none,
                       shown->end, NULL);
    }
    a->shown_count = 0;
}
