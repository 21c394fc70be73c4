/*
 * The questions that wait for a person, of all sessions of the home, as everybody who is not the
 * session sees them: each is asked for its own. An answer goes the same way.
 */
#include <string.h>

#include "ask/pending.h"
#include "backend/op.h"
#include "base/clock.h"
#include "page/page.h"
#include "session/session.h"

#define EVERY_MS 1000 /* while there are any; the first of a session is heard of */

/* -- Which there are -------------------------------------------------------------------------- */

static json_t *list_asked(const struct pending_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++)
        if (json_array_append_new(array, question_json(&list->items[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static void note_asked(struct live_page *p, const struct pending_list *list)
{
    json_t *array = list_asked(list);
    p->asked_count = list->count;
    if (array)
        news_set(p, &p->asks, json_dumps(array, JSON_COMPACT | JSON_ENSURE_ASCII));
    json_decref(array);
}

static void begin_asking(struct live_page *p)
{
    const char *home;
    p->asks_stale = false;
    if (nacre_session_home(p->session, &home, NULL, NULL) < 0 ||
        pending_show(home, &p->asking, NULL) < 0)
        p->asking = NULL;
}

void asked_step(struct live_page *p, int64_t now_ns)
{
    if (!p->asking && (p->asks_stale || (p->asked_count > 0 && now_ns >= p->asks_ns)))
        begin_asking(p);
    int r = p->asking ? p->asking->step(p->asking, NULL) : 0;
    if (r == 0)
        return;
    if (r > 0)
        note_asked(p, p->asking->result);
    op_end(&p->asking);
    p->asks_ns = clock_deadline(EVERY_MS);
}

int64_t asked_deadline(const struct live_page *p)
{
    if (p->asking)
        return p->asking->wake_ns;
    return p->asks_stale ? 0 : p->asked_count > 0 ? p->asks_ns : INT64_MAX;
}

void asked_end(struct live_page *p)
{
    op_end(&p->asking);
    p->asked_count = 0;
    p->asks_stale = true;
}

/* -- Answers ---------------------------------------------------------------------------------- */

struct answering {
    struct page_visit visit; /* first */
    nacre_id_text id;
};

static void step_answer(struct page_visit *visit, int64_t now_ns UNUSED)
{
    nacre_error err = NACRE_ERROR_INIT;
    int r = visit->op->step(visit->op, &err);
    if (r == 0)
        return;
    if (r < 0)
        answer_failure(visit->http, r, &err);
    else
        http_answer(visit->http, 204, NULL, NULL, 0);
    visit->page->asks_stale = true;
    visit_over(visit);
}

static int64_t answer_deadline(const struct page_visit *visit)
{
    return visit->op->wake_ns;
}

static void end_answer(struct page_visit *visit)
{
    op_end(&visit->op);
    free(visit);
}

static const struct visit_ops answer_ops = {step_answer, answer_deadline, end_answer};

static bool answer_named(const char *name, nacre_answer_kind *ret)
{
    static const struct {
        const char *name;
        nacre_answer_kind kind;
    } answers[] = {
        {"no", NACRE_ANSWER_NO},
        {"once", NACRE_ANSWER_ONCE},
        {"session", NACRE_ANSWER_SESSION},
        {"always", NACRE_ANSWER_ALWAYS},
    };
    for (size_t i = 0; name && i < ARRAY_SIZE(answers); i++)
        if (strcmp(name, answers[i].name) == 0) {
            *ret = answers[i].kind;
            return true;
        }
    return false;
}

static void pass_on_answer(struct live_page *p, struct http_conn *c, const nacre_id *id,
                           nacre_answer_kind kind)
{
    const char *home;
    nacre_error err = NACRE_ERROR_INIT;
    struct answering *a = visit_new(p, c, &answer_ops, sizeof *a);
    if (!a)
        return;
    a->id = nacre_id_format(id);
    struct pending_wish wish = {.prefix = a->id.s, .kind = kind, .way = "page"};
    int r = nacre_session_home(p->session, &home, NULL, &err);
    if (r == 0)
        r = pending_answer(home, &wish, &a->visit.op, &err);
    if (r < 0) {
        answer_failure(c, r, &err);
        visit_over(&a->visit);
        return;
    }
    step_answer(&a->visit, clock_mono_ns());
}

void asked_answer(struct live_page *p, struct http_conn *c, const nacre_id *id)
{
    nacre_answer_kind kind;
    json_t *object = request_object(c);
    if (!object)
        return;
    if (answer_named(json_string_value(json_object_get(object, "answer")), &kind))
        pass_on_answer(p, c, id, kind);
    else
        answer_error(c, 400, "answer is to be no, once, session or always");
    json_decref(object);
}
