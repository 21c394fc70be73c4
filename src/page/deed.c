/* What is done to shells: kill, signal, input, keep; each an operation of the session, answered
 * when it is done. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/err.h"
#include "page/page.h"
#include "rpc/message.h"
#include "session/session.h"
#include "tool/terminal_keys.h"

#define PATIENCE_MS 2000 /* with a command that does not read its input */
#define INPUT_MOST  ((size_t)1 << 20)

struct page_deed {
    struct page_visit visit; /* first */
    void (*answer)(struct page_deed *d);
    struct buf input;    /* what is typed, */
    int64_t patience_ns; /* and until when */
};

static void step_page_deed(struct page_visit *visit, int64_t now_ns)
{
    struct page_deed *d = (struct page_deed *)visit;
    nacre_error err = NACRE_ERROR_INIT;
    int r = visit->op->step(visit->op, &err);
    if (r == 0 && now_ns < d->patience_ns)
        return;
    if (r < 0)
        answer_failure(visit->http, r, &err);
    else
        d->answer(d);
    visit_over(visit);
}

static int64_t deed_deadline(const struct page_visit *visit)
{
    const struct page_deed *d = (const struct page_deed *)visit;
    return MIN(d->patience_ns, visit->op->wake_ns);
}

static void end_page_deed(struct page_visit *visit)
{
    struct page_deed *d = (struct page_deed *)visit;
    op_end(&visit->op);
    buf_done(&d->input);
    free(d);
}

static const struct visit_ops deed_ops = {step_page_deed, deed_deadline, end_page_deed};

static void answer_done(struct page_deed *d)
{
    http_answer(d->visit.http, 204, NULL, NULL, 0);
}

/* -- Kill ------------------------------------------------------------------------------------- */

static void answer_kill(struct page_deed *d)
{
    const nacre_kill_result *k = d->visit.op->result;
    struct buf text cleanup_buf = BUF_UP_TO(512);
    if (buf_printf(&text,
                   "{\"was_alive\":%d,\"signalled\":%d,\"force_killed\":%d,\"survivors\":%d,"
                   "\"keeper_killed\":%d}",
                   k->was_alive, k->signalled, k->force_killed, k->survivors, k->keeper_killed) < 0)
        answer_error(d->visit.http, 503, "out of memory");
    else
        answer_json(d->visit.http, 200, &text);
}

/* The signal that is asked for; 0 = none, -1 = there is no such signal. */
static int signal_of(const json_t *object)
{
    const json_t *name = json_object_get(object, "signal");
    return !name ? 0 : json_is_string(name) ? nacre_signal_number(json_string_value(name)) : -1;
}

static int ask_kill(struct page_deed *d, const nacre_id *id, const json_t *object, nacre_error *err)
{
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    options.signal = signal_of(object);
    if (options.signal < 0)
        return err_set(err, NACRE_EINVAL, "there is no such signal");
    d->answer = answer_kill;
    return session_kill(d->visit.page->session, id, &options, &d->visit.op, err);
}

static int ask_signal(struct page_deed *d, const nacre_id *id, const json_t *object,
                      nacre_error *err)
{
    int signal = signal_of(object);
    if (signal <= 0)
        return err_set(err, NACRE_EINVAL, "signal is to be the name of one, such as SIGINT");
    return session_signal(d->visit.page->session, id, signal, &d->visit.op, err);
}

/* -- Keep ------------------------------------------------------------------------------------- */

static int ask_keep(struct page_deed *d, const nacre_id *id, const json_t *object UNUSED,
                    nacre_error *err)
{
    int r = session_keep(d->visit.page->session, id, &d->visit.op, err);
    if (r > 0)
        d->visit.op = op_done();
    return r > 0 && !d->visit.op ? NACRE_ENOMEM : MIN(r, 0);
}

/* -- Input ------------------------------------------------------------------------------------ */

static int add_key_bytes(struct buf *input, const json_t *keys, bool cursor_keys, nacre_error *err)
{
    for (size_t i = 0; i < json_array_size(keys); i++) {
        char bytes[KEY_BYTES];
        const char *name = json_string_value(json_array_get(keys, i));
        size_t size = name ? terminal_key(name, strlen(name), cursor_keys, bytes) : 0;
        if (size == 0)
            return err_set(err, NACRE_EINVAL, "there is no key \"%.40s\"", name ? name : "");
        if (buf_append(input, bytes, size) < 0)
            return err_set(err, NACRE_ELIMIT, "at most %zu bytes at once", INPUT_MOST);
    }
    return 0;
}

static int take_input(struct page_deed *d, const json_t *object, nacre_error *err)
{
    const json_t *text = json_object_get(object, "text");
    d->input = BUF_UP_TO(INPUT_MOST);
    if (text && !json_is_string(text))
        return err_set(err, NACRE_EINVAL, "text is to be a string");
    if (buf_append(&d->input, json_string_value(text), json_string_length(text)) < 0)
        return err_set(err, NACRE_EINVAL, "at most %zu bytes at once", INPUT_MOST);
    return add_key_bytes(&d->input, json_object_get(object, "keys"),
                         json_is_true(json_object_get(object, "cursor_keys")), err);
}

static void answer_input(struct page_deed *d)
{
    struct buf text cleanup_buf = BUF_UP_TO(128);
    const size_t *taken = d->visit.op->result;
    if (buf_printf(&text, "{\"taken\":%zu,\"of\":%zu}", *taken, d->input.len) < 0)
        answer_error(d->visit.http, 503, "out of memory");
    else
        answer_json(d->visit.http, 200, &text);
}

static int ask_input(struct page_deed *d, const nacre_id *id, const json_t *object,
                     nacre_error *err)
{
    int r = take_input(d, object, err);
    bool eof = json_is_true(json_object_get(object, "eof"));
    if (r == 0 && d->input.len == 0 && !eof)
        r = err_set(err, NACRE_EINVAL, "there is nothing to type: text, keys or eof");
    if (r < 0)
        return r;
    d->patience_ns = clock_deadline(PATIENCE_MS);
    d->answer = answer_input;
    return session_input(d->visit.page->session, id, d->input.data, d->input.len, eof, &d->visit.op,
                         err);
}

/* -- Which ------------------------------------------------------------------------------------ */

typedef int begin_fn(struct page_deed *d, const nacre_id *id, const json_t *object,
                     nacre_error *err);

static begin_fn *find_deed(struct stretch what)
{
    static const struct {
        const char *name;
        begin_fn *begin;
    } deeds[] = {
        {"kill", ask_kill},
        {"signal", ask_signal},
        {"input", ask_input},
        {"keep", ask_keep},
    };
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
        if (what.size == strlen(deeds[i].name) && memcmp(what.at, deeds[i].name, what.size) == 0)
            return deeds[i].begin;
    return NULL;
}

void deed_ask(struct live_page *p, struct http_conn *c, const nacre_id *id, struct stretch what)
{
    nacre_error err = NACRE_ERROR_INIT;
    begin_fn *begin = find_deed(what);
    json_t *object = begin ? request_object(c) : NULL;
    if (!begin)
        http_answer(c, 404, NULL, NULL, 0);
    struct page_deed *d = object ? visit_new(p, c, &deed_ops, sizeof *d) : NULL;
    if (d) {
        d->answer = answer_done;
        d->patience_ns = INT64_MAX;
        int r = begin(d, id, object, &err);
        if (r < 0) {
            answer_failure(c, r, &err);
            visit_over(&d->visit);
        } else {
            step_page_deed(&d->visit, clock_mono_ns());
        }
    }
    json_decref(object);
}
