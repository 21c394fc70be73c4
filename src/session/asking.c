#include "session/asking.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ask/pending.h"
#include "backend/op.h"
#include "base/err.h"
#include "base/text.h"
#include "session/always.h"
#include "session/deferred.h"
#include "session/exec_gate.h"
#include "session/session.h"
#include "text/legible.h"

#define ASKED_MAX ((size_t)4 * 1024 * 1024) /* of one text of a question */
#define PIECE     ((size_t)128)             /* of a text that is made legible at once */

/* -- What is the same command ----------------------------------------------------------------- */

static int add_command_key(struct buf *key, const char *text)
{
    return text ? buf_append(key, text, strlen(text) + 1) : buf_append(key, "\1", 2);
}

static int add_keys(struct buf *key, const char *const *list)
{
    int r = 0;
    for (; r == 0 && list && *list; list++)
        r = add_command_key(key, *list);
    return r == 0 ? add_command_key(key, NULL) : r;
}

/* Everything that decides what it does: two are the same if all of it is. */
static int write_key(struct buf *key, const nacre_command *command, const char *cwd)
{
    int r = add_command_key(key, command->text);
    if (r == 0)
        r = add_keys(key, command->text ? NULL : command->argv);
    if (r == 0)
        r = add_command_key(key, command->shell);
    if (r == 0)
        r = add_command_key(key, cwd);
    if (r == 0)
        r = add_keys(key, command->env);
    if (r == 0)
        r = add_keys(key, command->permissions.write);
    if (r == 0)
        r = add_keys(key, command->permissions.hosts);
    if (r == 0)
        r = add_keys(key, command->permissions.sockets);
    return r == 0 ? add_command_key(key, command->permissions.full ? "full" : NULL) : r;
}

bool asking_is_settled(nacre_session *s, const struct buf *key, struct desk_answer *ret_answer)
{
    return desk_is_granted(s->desk, key, ret_answer);
}

/* -- What a person is shown ------------------------------------------------------------------- */

static int write_legible(struct buf *out, const char *text)
{
    int r = buf_str(out, "");
    for (size_t left = strlen(text); r == 0 && left > 0;) {
        size_t size = left > PIECE ? text_whole(text, PIECE) : left;
        size = size > 0 ? size : MIN(left, PIECE);
        r = legible_write(out, text, size);
        text += size;
        left -= size;
    }
    return r;
}

static int write_found(struct buf *out, const struct script *script)
{
    int r = buf_str(out, "");
    for (size_t i = 0; r == 0 && i < script->count; i++) {
        struct buf words cleanup_buf = BUF_UP_TO(ASKED_MAX);
        r = policy_write_command(&words, &script->commands[i]);
        if (r == 0 && i > 0)
            r = buf_str(out, "\n");
        if (r == 0)
            r = write_legible(out, words.data ? words.data : "");
    }
    return r;
}

static int write_asked(struct buf *out, const nacre_command *command)
{
    if (command->text)
        return write_legible(out, command->text);
    int r = 0;
    for (const char *const *word = command->argv; r == 0 && word && *word; word++) {
        r = word == command->argv ? 0 : buf_str(out, " ");
        r = r == 0 ? write_legible(out, *word) : r;
    }
    return r;
}

void asked_done(struct asked *asked)
{
    question_done(&asked->question);
    buf_done(&asked->key);
}

static int take_asked(struct asked *asked, enum question_text which, struct buf *text, int r)
{
    char *taken = r == 0 ? buf_take(text) : NULL;
    if (r == 0 && !taken)
        r = -ENOMEM;
    free(asked->question.texts[which]);
    asked->question.texts[which] = taken;
    return r;
}

int asked_text(struct asked *asked, enum question_text which, const char *text)
{
    struct buf legible cleanup_buf = BUF_UP_TO(ASKED_MAX);
    int r = write_legible(&legible, text ? text : "");
    return take_asked(asked, which, &legible, r);
}

/* The rule, and all that is wanted beyond the sandbox. */
static int write_reason(struct asked *asked, const struct permissions *wanted,
                        const struct deliberation *d)
{
    struct buf wants cleanup_buf = BUF_UP_TO(ASKED_MAX), both cleanup_buf = BUF_UP_TO(ASKED_MAX);
    char rule[240];
    policy_reason(d, rule, sizeof rule);
    if (permissions_are_none(wanted))
        return asked_text(asked, QUESTION_REASON, rule);
    int r = permissions_describe(wanted, &wants);
    if (r == 0)
        r = asked_text(asked, QUESTION_WANTS, wants.data);
    if (r == 0)
        r = buf_printf(&both, "it wants more than its sandbox gives: %s%s%s", wants.data,
                       d->ruling.verdict == NACRE_ALLOW ? "" : "; and ",
                       d->ruling.verdict == NACRE_ALLOW ? "" : rule);
    return r == 0 ? asked_text(asked, QUESTION_REASON, both.data) : r;
}

/* What it is for, and why it needs what it wants: the words of whoever wants it. */
static int write_said(struct asked *asked, const nacre_command *command)
{
    struct buf said cleanup_buf = BUF_UP_TO(ASKED_MAX);
    const char *why = command->justification ? command->justification : "";
    const char *what = command->description ? command->description : "";
    int r = buf_printf(&said, "%s%s%s", what, *what && *why ? "; " : "", why);
    return r == 0 ? asked_text(asked, QUESTION_DESCRIPTION, said.data) : r;
}

/* As far as it can be allowed for always: what is shown is what would be written. */
static int write_always(nacre_session *s, const nacre_command *command,
                        const struct permissions *wanted, const struct deliberation *d,
                        struct asked *asked)
{
    struct buf lines cleanup_buf = BUF_UP_TO(ASKED_MAX);
    asked->has_always = always_for_command(s, command, wanted, d, &lines);
    return asked->has_always ? take_asked(asked, QUESTION_ALWAYS, &lines, 0) : 0;
}

int asked_about_command(nacre_session *s, const nacre_command *command,
                        const struct permissions *wanted, const struct deliberation *d,
                        struct asked *ret)
{
    struct buf whole cleanup_buf = BUF_UP_TO(ASKED_MAX), found cleanup_buf = BUF_UP_TO(ASKED_MAX);
    char cwd[PATH_MAX];
    if (home_command_cwd(s->home, command, cwd, NULL) < 0)
        snprintf(cwd, sizeof cwd, "%s", command->cwd ? command->cwd : "");
    int r = write_key(&ret->key, command, cwd);
    if (r == 0)
        r = take_asked(ret, QUESTION_COMMAND, &whole, write_asked(&whole, command));
    if (r == 0)
        r = take_asked(ret, QUESTION_COMMANDS, &found, write_found(&found, &d->script));
    if (r == 0)
        r = asked_text(ret, QUESTION_CWD, cwd);
    if (r == 0)
        r = write_reason(ret, wanted, d);
    if (r == 0)
        r = write_said(ret, command);
    return r == 0 ? write_always(s, command, wanted, d, ret) : r;
}

/* -- Questions -------------------------------------------------------------------------------- */

static int call_host(nacre_session *s, const struct open_question *o)
{
    nacre_id_text id, session;
    nacre_question question;
    if (!s->ask)
        return NACRE_ASK_CANNOT;
    question_view(open_question_of(o), &id, &session, &question);
    return s->ask(s, &question, s->ask_userdata);
}

static void name_asker(nacre_session *s, struct asked *asked)
{
    pthread_mutex_lock(&s->catalog_lock);
    cleanup_free char *client = s->client ? strdup(s->client) : NULL;
    pthread_mutex_unlock(&s->catalog_lock);
    (void)asked_text(asked, QUESTION_ASKER, *s->name ? s->name : client);
}

/* Others look for questions in the home; who asks makes it if it is not there. */
static void open_to_others(nacre_session *s)
{
    const char *home;
    if (home_make_runs(s->home, NULL) >= 0 && nacre_session_home(s, &home, NULL, NULL) == 0)
        desk_set_home(s->desk, home);
}

int asking_open(nacre_session *s, struct asked *asked, struct open_question **ret,
                nacre_id_text *ret_id, nacre_error *err)
{
    *ret_id = (nacre_id_text){""};
    *ret = NULL;
    if (!s->ask && !desk_is_attended(s->desk)) {
        asked_done(asked);
        return 0;
    }
    name_asker(s, asked);
    open_to_others(s);
    int r = desk_open(s->desk, &asked->question, &asked->key, asked->has_always, ret, err);
    asked_done(asked);
    if (r < 0)
        return r;
    audit_question(s->audit, open_question_of(*ret));
    int told = call_host(s, *ret);
    if (told == NACRE_ASK_WAITS)
        return 1;
    if (desk_is_attended(s->desk)) {
        *ret_id = nacre_id_short(&open_question_of(*ret)->id);
        desk_leave_ahead(s->desk, *ret);
    } else {
        desk_close(s->desk, *ret);
    }
    *ret = NULL;
    return told == NACRE_ASK_AGAIN ? err_set(err, NACRE_EPERM,
                                             "nothing was started yet: the user is asked, and the "
                                             "call comes again with the answer")
                                   : 0;
}

int asking_fd(const struct open_question *asking)
{
    return open_question_fd(asking);
}

bool asking_has_answer(nacre_session *s, const struct open_question *asking,
                       struct desk_answer *ret_answer)
{
    if (desk_has_answer(s->desk, asking, ret_answer))
        return true;
    desk_step(s->desk);
    return desk_has_answer(s->desk, asking, ret_answer);
}

void asking_close(nacre_session *s, struct open_question *asking)
{
    desk_close(s->desk, asking);
}

/* -- Answers ---------------------------------------------------------------------------------- */

int asking_answer(nacre_session *s, uint64_t number, nacre_answer_kind kind, const char *way,
                  nacre_error *err)
{
    return desk_answer_number(s->desk, number, kind, way, err);
}

static int make_permanent(const struct question *q, void *userdata, nacre_error *err)
{
    return always_make(userdata, q->texts[QUESTION_ALWAYS], err);
}

static void note_answer(const struct question *q, const struct desk_answer *answer, void *userdata)
{
    nacre_session *s = userdata;
    audit_answer(s->audit, q, answer);
    exec_gate_answer(s, q->number, answer->kind);
}

void asking_by(nacre_session *s, nacre_ask_fn *ask, void *userdata)
{
    s->ask = ask;
    s->ask_userdata = userdata;
}

struct desk *asking_new_desk(nacre_session *s)
{
    struct desk_hooks hooks = {make_permanent, note_answer, s};
    return desk_new(&s->id, &hooks);
}

/* -- For everybody ---------------------------------------------------------------------------- */

int nacre_answer(nacre_session *session, uint64_t question, nacre_answer_kind kind,
                 nacre_error *reterr)
{
    int r = session_check(session, reterr);
    return r < 0 ? r : asking_answer(session, question, kind, "program", reterr);
}

int nacre_is_asked(nacre_session *session, uint64_t question)
{
    return session_check(session, NULL) == 0 && desk_is_open(session->desk, question);
}

int nacre_asking_fd(nacre_session *session, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    return r < 0 ? r : desk_fd(session->desk, reterr);
}

int nacre_asking_step(nacre_session *session, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    desk_step(session->desk);
    deferred_step(session);
    return 0;
}

static int home_of_session(nacre_session *s, const char **ret_home, nacre_error *err)
{
    int r = session_check(s, err);
    return r < 0 ? r : nacre_session_home(s, ret_home, NULL, err);
}

int session_pending(nacre_session *s, nacre_op **ret_op, nacre_error *err)
{
    const char *home;
    int r = home_of_session(s, &home, err);
    return r < 0 ? r : pending_show(home, ret_op, err);
}

int session_answer_pending(nacre_session *s, const char *id, nacre_answer_kind kind,
                           const char *way, nacre_op **ret_op, nacre_error *err)
{
    const char *home;
    struct pending_wish wish = {id, kind, way};
    int r = home_of_session(s, &home, err);
    return r < 0 ? r : pending_answer(home, &wish, ret_op, err);
}

static int tell_question(const struct question *q, nacre_pending_fn *fn, void *userdata)
{
    nacre_id_text id, session;
    nacre_question question;
    question_view(q, &id, &session, &question);
    return fn ? fn(&question, userdata) : 0;
}

int nacre_pending(nacre_session *session, nacre_pending_fn *fn, void *userdata, int *ret_silent,
                  nacre_error *reterr)
{
    cleanup_op nacre_op *op = NULL;
    int r = session_pending(session, &op, reterr);
    if (r == 0)
        r = op_wait(op, -1, reterr);
    if (r < 0)
        return r;
    const struct pending_list *list = op->result;
    if (ret_silent)
        *ret_silent = list->silent;
    r = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = tell_question(&list->items[i], fn, userdata);
    return r;
}

int nacre_answer_pending(nacre_session *session, const char *id, nacre_answer_kind kind,
                         nacre_pending_fn *fn, void *userdata, nacre_error *reterr)
{
    cleanup_op nacre_op *op = NULL;
    int r = session_answer_pending(session, id, kind, "nacre allow", &op, reterr);
    if (r == 0)
        r = op_wait(op, -1, reterr);
    return r < 0 ? r : tell_question(op->result, fn, userdata);
}
