#include "session/exec_gate.h"

#include <poll.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hold.h"
#include "local/local.h"
#include "policy/pack.h"
#include "run/wire.h"
#include "session/always.h"
#include "session/asking.h"
#include "session/policy.h"
#include "sys/filter.h"

/* A process of a shell waits for the answer to a question that is open at the desk. */
struct exec_question {
    struct exec_question *next;
    uint64_t number;
    struct open_question *asking;
    struct local_question *from;
};

bool exec_gate_is_wanted(const nacre_settings *settings, const struct rules *rules)
{
    return rules_forbid(rules) && nacre_settings_number(settings, NACRE_SETTING_POLICY_GATE) &&
           filter_try() >= 0;
}

int exec_gate_open(nacre_session *s, nacre_error *err)
{
    struct buf packed cleanup_buf = BUF_UP_TO(0);
    struct rules *rules = &atomic_load(&s->rules)->rules;
    if (s->self != s->keepers.self || !exec_gate_is_wanted(s->settings, rules))
        return 0;
    int r = rules_pack(rules, s->ask != NULL, &packed);
    if (r == -E2BIG)
        return err_set(err, NACRE_EINVAL,
                       "policy: one of its rules, or all together, are too long");
    if (r == 0)
        r = local_set_policy(s->keepers.self, packed.data, packed.len);
    if (r < 0)
        return err_sys(err, NACRE_ESTART, -r, "policy", "the rules cannot be given to keepers");
    s->gated = rules->gated = true;
    return 0;
}

/* -- Questions of keepers --------------------------------------------------------------------- */

static unsigned answer_for_keeper(nacre_answer_kind kind)
{
    static const unsigned answers[] = {
        [NACRE_ANSWER_NO] = WIRE_ANSWER_NO,
        [NACRE_ANSWER_ONCE] = WIRE_ANSWER_YES,
        [NACRE_ANSWER_SESSION] = WIRE_ANSWER_YES,
        [NACRE_ANSWER_CANCELLED] = WIRE_ANSWER_CANCELLED,
        [NACRE_ANSWER_CANNOT] = WIRE_ANSWER_CANNOT,
        [NACRE_ANSWER_ALWAYS] = WIRE_ANSWER_YES,
    };
    return answers[kind];
}

static void reply_consume(struct local_question *from, nacre_answer_kind kind)
{
    local_reply(from->reply, answer_for_keeper(kind));
    local_question_free(from);
}

/* Out of the list, so that it is answered once. */
static struct exec_question *take_exec_question(nacre_session *s, uint64_t number)
{
    HOLD(&s->lock);
    for (struct exec_question *e = s->exec_questions; e; e = e->next)
        if (e->number == number) {
            UNLINK(s->exec_questions, e);
            return e;
        }
    return NULL;
}

void exec_gate_answer(nacre_session *s, uint64_t number, nacre_answer_kind kind)
{
    struct exec_question *e = take_exec_question(s, number);
    if (!e)
        return;
    reply_consume(e->from, kind);
    asking_close(s, e->asking);
    free(e);
}

/* It may have been answered before it was in the list. */
static void await_exec_answer(nacre_session *s, struct exec_question *e)
{
    struct desk_answer answer;
    uint64_t number = e->number;
    pthread_mutex_lock(&s->lock);
    e->next = s->exec_questions;
    s->exec_questions = e;
    pthread_mutex_unlock(&s->lock);
    if (asking_has_answer(s, e->asking, &answer))
        exec_gate_answer(s, number, answer.kind);
}

/* These are no words of whoever asked for the shell. */
static int say_who_wants_it(const struct local_question *from, struct asked *asked)
{
    char reason[320];
    snprintf(reason, sizeof reason, "%.240s; a program in shell %s wants to execute it",
             asked->question.texts[QUESTION_REASON], nacre_id_short(&from->id).s);
    return asked_text(asked, QUESTION_REASON, reason);
}

/* The keeper has found that a rule asks; by now that may be another one. */
static int compose(nacre_session *s, const struct local_question *from, struct asked *ret)
{
    static const struct permissions no_permissions;
    static const char doubt[] = "a rule asks about what it turned out to be";
    struct deliberation d cleanup_deliberation = {0};
    nacre_command command = NACRE_COMMAND_INIT;
    command.argv = from->argv;
    command.cwd = from->cwd;
    int r = policy_deliberate(&atomic_load(&s->rules)->rules, &command, NULL, &d, NULL);
    if (r < 0)
        return r;
    if (d.ruling.verdict != NACRE_ASK)
        d.ruling = (struct ruling){.verdict = NACRE_ASK, .doubt = doubt};
    r = asked_about_command(s, &command, &no_permissions, &d, ret);
    ret->has_always = false;
    return r == 0 ? say_who_wants_it(from, ret) : r;
}

static void hear_one(nacre_session *s, struct local_question *from)
{
    struct asked asked cleanup_asked = ASKED_NONE;
    struct desk_answer answer = {.kind = NACRE_ANSWER_CANNOT};
    struct exec_question *e = calloc(1, sizeof *e);
    nacre_id_text id;
    int r = e ? compose(s, from, &asked) : NACRE_ENOMEM;
    bool settled = r == 0 && asking_is_settled(s, &asked.key, &answer);
    if (r == 0 && !settled) {
        local_reply(from->reply, WIRE_ANSWER_HEARD);
        r = asking_open(s, &asked, &e->asking, &id, NULL);
    }
    if (r > 0) {
        e->number = open_question_of(e->asking)->number;
        e->from = from;
        await_exec_answer(s, e);
        return;
    }
    reply_consume(from, answer.kind);
    free(e);
}

/* Whoever waited for one has ended, or was ended. */
static uint64_t find_unwanted(nacre_session *s)
{
    HOLD(&s->lock);
    for (const struct exec_question *e = s->exec_questions; e; e = e->next) {
        struct pollfd poller = {.fd = e->from->reply};
        if (poll(&poller, 1, 0) > 0)
            return e->number;
    }
    return 0;
}

void exec_gate_hear(nacre_session *s)
{
    for (uint64_t number; (number = find_unwanted(s));)
        exec_gate_answer(s, number, NACRE_ANSWER_CANCELLED);
    struct local_question *from;
    while ((from = local_take_question(s->keepers.self)))
        hear_one(s, from);
}

void exec_gate_done(nacre_session *s)
{
    while (s->exec_questions) {
        struct exec_question *e = s->exec_questions;
        s->exec_questions = e->next;
        local_question_free(e->from);
        free(e);
    }
}
