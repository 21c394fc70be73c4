/*
 * Starting shells: a place for what runs in the background, taken before the start, so that never
 * more run than there are places. What is written about a shell is written while it runs already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "config/limits.h"
#include "local/local.h"
#include "session/asking.h"
#include "session/policy.h"
#include "session/session.h"

#define SHOWN_MAX 16
#define PLACE_MS  2  /* between two looks at places that may become free */
#define ROOM      16 /* shells that are remembered without a look */

/* -- Places ----------------------------------------------------------------------------------- */

static bool has_place(const struct shell *shell, const void *argument UNUSED)
{
    return shell->background && shell->life == SHELL_RUNNING && !shell->foreign;
}

static int no_place(nacre_session *s, size_t places, nacre_error *err)
{
    struct shell running[SHOWN_MAX];
    char ids[SHOWN_MAX * 10 + 8] = "";
    size_t count = registry_select(s->registry, has_place, NULL, running, SHOWN_MAX);
    size_t len = 0;
    for (size_t i = 0; i < MIN(count, (size_t)SHOWN_MAX); i++)
        len += (size_t)snprintf(ids + len, sizeof ids - len, "%s%s", i ? ", " : "",
                                nacre_id_short(&running[i].id).s);
    if (count > SHOWN_MAX)
        snprintf(ids + len, sizeof ids - len, ", ...");
    return err_set(err, NACRE_ELIMIT,
                   "%zu background shells are running, which is the limit: %s; kill one of them or "
                   "wait for its end",
                   places, ids);
}

/* -- One start -------------------------------------------------------------------------------- */

/* What was started in the foreground and ended unseen must not fill the registry. */
static void make_room(nacre_session *s)
{
    size_t count = registry_count(s->registry);
    pthread_mutex_lock(&s->lock);
    bool crowded = count >= MAX(s->crowded, (size_t)ROOM);
    if (crowded)
        s->crowded = count * 2;
    pthread_mutex_unlock(&s->lock);
    if (!crowded)
        return;
    ends_look_at_all(s);
    count = registry_count(s->registry);
    pthread_mutex_lock(&s->lock);
    s->crowded = count * 2;
    pthread_mutex_unlock(&s->lock);
}

/* -- The operation ---------------------------------------------------------------------------- */

enum start_stage {
    START_ADMITTED, /* a person is asked whether it may start */
    START_NAMED,    /* who has the name is found out */
    START_PLACED,   /* a place is taken */
    START_ASKED,    /* the backend is asked */
    START_AWAITED,  /* and at work */
};

struct session_start_op {
    nacre_op op;
    nacre_session *session;
    nacre_command command; /* with all limits that are in force */
    enum start_stage stage;
    struct naming *naming; /* NULL = it has no name */
    struct permissions wanted;
    struct admission admission;
    struct arena kept; /* what it borrowed, once nobody waits for it */
    bool reserved;     /* a place */
    bool over;
    nacre_op *inner;
    struct session_started result;
};

/* Its command runs already, and may have taken its directory away or written in it. */
static void shelve_started(nacre_session *s, const nacre_command *command,
                           const struct shell *shell)
{
    struct catalog_run known = {
        .id = shell->id,
        .started_ms = shell->started_ns / NS_PER_MS,
        .lifetime = command->lifetime,
        .command = command->text ? command->text : command->argv[0],
        .cwd = command->cwd ? command->cwd : s->cwd,
        .name = command->name,
        .description = command->description,
    };
    ends_shelve_awaited(s, &known);
}

static void note_started(const struct session_start_op *o, const nacre_id *id)
{
    nacre_session *s = o->session;
    const nacre_command *command = &o->command;
    struct shell shell = {
        .id = *id,
        .background = command->background,
        .awaited = command->background,
        .kept = command->lifetime == NACRE_LIFE_KEEP,
        .looked_ms = clock_mono_ns() / NS_PER_MS,
        .started_ns = clock_real_ns(),
    };
    make_room(s);
    registry_add(s->registry, &shell, o->reserved);
    audit_start(s->audit, id, command, &o->admission);
    if (command->background) {
        shelve_started(s, command, &shell);
        completion_set_bell(s);
    }
}

static int await_person(struct session_start_op *o, nacre_error *err)
{
    if (o->admission.asking) {
        int r = policy_hear(o->session, &o->admission, err);
        o->op.fd = asking_fd(o->admission.asking);
        o->op.wake_ns = INT64_MAX;
        if (r <= 0)
            return r;
    }
    o->stage = START_NAMED;
    return 0;
}

/* Something else that runs under the name is what is wanted. */
static int join_running(struct session_start_op *o, const nacre_id *id, nacre_error *err)
{
    o->result.joined = true;
    o->result.started.id = *id;
    int r = home_watch(o->session->home, id, 0, &o->result.started.watch, err);
    return r < 0 ? r : 1;
}

static int find_name(struct session_start_op *o, nacre_error *err)
{
    bool joined = false;
    nacre_id id;
    int r = o->naming ? naming_step(o->naming, &o->op, &joined, &id, err) : 1;
    if (r > 0 && joined)
        return join_running(o, &id, err);
    if (r > 0)
        o->stage = o->command.background ? START_PLACED : START_ASKED;
    return MIN(r, 0);
}

/* If all are taken, those who have them are looked at: one may have ended unheard. What is being
 * swept or started will have a place, or give it back, in a moment. */
static int find_place(struct session_start_op *o, nacre_error *err)
{
    nacre_session *s = o->session;
    size_t places = (size_t)session_setting(s, NACRE_SETTING_SHELLS);
    ends_hear(s);
    o->reserved = registry_reserve(s->registry, places) == 0;
    size_t unclear = o->reserved ? 0 : ends_look_at_all(s) + registry_reserved(s->registry);
    o->reserved = o->reserved || registry_reserve(s->registry, places) == 0;
    o->op.fd = -1;
    o->op.wake_ns = clock_deadline(PLACE_MS);
    if (o->reserved)
        o->stage = START_ASKED;
    return o->reserved || unclear > 0 ? 0 : no_place(s, places, err);
}

/* What runs elsewhere is held by nobody here. */
static int refuse_elsewhere(const nacre_session *s, const nacre_command *command, nacre_error *err)
{
    bool wanted = command->sandbox ||
                  nacre_settings_number(s->settings, NACRE_SETTING_SANDBOX) != NACRE_SANDBOX_OFF;
    if (!wanted || s->self == s->keepers.self)
        return 0;
    return err_sys(err, NACRE_ESTART, EOPNOTSUPP, "sandbox",
                   "nothing was started: the backend \"%s\" runs commands where no sandbox of this "
                   "session holds them; set sandbox=off if whoever runs them has one",
                   s->ops.name);
}

static int begin_start(struct session_start_op *o, nacre_error *err)
{
    nacre_session *s = o->session;
    int r = refuse_elsewhere(s, &o->command, err);
    if (r < 0)
        return r;
    o->stage = START_AWAITED;
    r = s->ops.start(s->self, &o->command, &o->inner, err);
    if (r == 0 && o->admission.granted.len > 0)
        local_grant(o->inner, o->admission.granted.data, o->admission.granted.len);
    return r;
}

static int await_start(struct session_start_op *o, nacre_error *err)
{
    int r = op_step_inner(&o->op, o->inner, err);
    if (r <= 0)
        return r;
    nacre_started *started = o->inner->result;
    o->result.started = (nacre_started){started->id, TAKE_PTR(started->watch)};
    note_started(o, &o->result.started.id);
    o->reserved = false;
    if (o->result.started.watch)
        return 1;
    nacre_error why;
    int watched =
        home_watch(o->session->home, &o->result.started.id, 0, &o->result.started.watch, &why);
    return watched < 0 ? err_set(err, watched,
                                 "shell %s was started and runs, but cannot be watched (%.120s); "
                                 "ask for it by its id, or kill it",
                                 nacre_id_short(&o->result.started.id).s, why.msg)
                       : 1;
}

/* A start that is over is one that a close has to wait for no longer. The session may be gone right
 * after, so what was held of it is given back first. */
static void finish_start(struct session_start_op *o, bool started)
{
    nacre_session *s = o->session;
    op_end(&o->inner);
    if (o->reserved)
        registry_unreserve(s->registry);
    o->reserved = false;
    naming_free(TAKE_PTR(o->naming));
    buf_done(&o->admission.granted);
    asking_close(s, TAKE_PTR(o->admission.asking));
    o->over = true;
    pthread_mutex_lock(&s->lock);
    s->starting--;
    s->started = s->started || started;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int step_session_start(nacre_op *op, nacre_error *err)
{
    static int (*const stages[])(struct session_start_op *, nacre_error *) = {
        [START_ADMITTED] = await_person, [START_NAMED] = find_name,     [START_PLACED] = find_place,
        [START_ASKED] = begin_start,     [START_AWAITED] = await_start,
    };
    struct session_start_op *o = (struct session_start_op *)op;
    nacre_error spare;
    enum start_stage stage;
    int r;
    err = err ? err : &spare;
    do {
        stage = o->stage;
        r = stages[stage](o, err);
    } while (r == 0 && o->stage != stage);
    if (r < 0)
        audit_denial(o->session->audit, &o->command, &o->admission, err);
    if (r != 0)
        finish_start(o, r > 0);
    return r;
}

bool session_start_asks(const nacre_op *op)
{
    const struct session_start_op *o = (const struct session_start_op *)op;
    return o->stage == START_ADMITTED && o->admission.asking && !o->admission.answered;
}

const struct question *session_start_question(const nacre_op *op)
{
    const struct session_start_op *o = (const struct session_start_op *)op;
    return session_start_asks(op) ? open_question_of(o->admission.asking) : NULL;
}

int session_start_bell(const nacre_op *op)
{
    const struct session_start_op *o = (const struct session_start_op *)op;
    return open_question_bell(o->admission.asking);
}

/* NULL stays NULL. False if out of memory. */
static bool keep_words(struct arena *arena, const char **text)
{
    return !*text || (*text = arena_copy(arena, *text, strlen(*text)));
}

static bool keep_lists(struct arena *arena, const char *const **list)
{
    size_t count = 0;
    while (*list && (*list)[count])
        count++;
    const char **copy = *list ? arena_take(arena, (count + 1) * sizeof *copy) : NULL;
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = arena_copy(arena, (*list)[i], strlen((*list)[i]))))
            return false;
    bool kept = copy || !*list;
    *list = copy;
    return kept;
}

int session_start_detach(nacre_op *op)
{
    struct session_start_op *o = (struct session_start_op *)op;
    nacre_command c = o->command;
    const char **texts[] = {&c.text,        &c.shell,   &c.cwd,          &c.name,
                            &c.description, &c.sandbox, &c.justification};
    if (c.input == NACRE_STDIN_FD)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (!keep_words(&o->kept, texts[i]))
            return -ENOMEM;
    if (!keep_lists(&o->kept, &c.argv) || !keep_lists(&o->kept, &c.env))
        return -ENOMEM;
    if (c.input_data && !(c.input_data = arena_copy(&o->kept, c.input_data, c.input_size)))
        return -ENOMEM;
    c.background = 1;
    o->command = c;
    return 0;
}

static void withdraw_question(struct session_start_op *o)
{
    nacre_error why = NACRE_ERROR_INIT;
    o->admission.answered = true;
    o->admission.answer = (struct desk_answer){.kind = NACRE_ANSWER_CANCELLED};
    err_set(&why, NACRE_EPERM, "nothing was started: the question was withdrawn");
    audit_denial(o->session->audit, &o->command, &o->admission, &why);
}

static void end_session_start(nacre_op *op)
{
    struct session_start_op *o = (struct session_start_op *)op;
    if (session_start_asks(op))
        withdraw_question(o);
    nacre_watch_close(o->result.started.watch);
    if (!o->over)
        finish_start(o, false);
    permissions_done(&o->wanted);
    arena_done(&o->kept);
    free(o);
}

static void know_home(nacre_session *s)
{
    const char *home;
    if (s->audit && nacre_session_home(s, &home, NULL, NULL) == 0)
        audit_set_home(s->audit, home);
}

static int begin_starting(nacre_session *s, nacre_error *err)
{
    pthread_mutex_lock(&s->lock);
    bool closing = s->closing;
    if (!closing)
        s->starting++;
    pthread_mutex_unlock(&s->lock);
    return closing
               ? err_set(err, NACRE_ECLOSED, "the session is being closed; nothing starts in it")
               : 0;
}

/* A rule narrows what the session and the call say, and never widens it. */
static void take_mode_of_rules(struct session_start_op *o)
{
    const char *wanted = o->admission.sandbox, *asked = o->command.sandbox;
    bool asked_none = !asked || !*asked;
    int64_t mode = session_setting(o->session, NACRE_SETTING_SANDBOX);
    if (!wanted)
        return;
    if (strcmp(wanted, "read-only") == 0 || (asked_none && mode == NACRE_SANDBOX_OFF))
        o->command.sandbox = wanted;
}

/* Before anything is done, also for a command that may run already under its name. A refusal is in
 * the log even if nothing has ever run here. */
static int ask_the_rules(struct session_start_op *o, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    int r = permissions_find(o->session, &o->command, &o->wanted, err);
    if (r < 0)
        return r;
    o->command.permissions = permissions_granted(&o->wanted);
    r = policy_admit(o->session, &o->command, &o->wanted, &o->admission, &why);
    if (r >= 0) {
        take_mode_of_rules(o);
        return 0;
    }
    if (o->session->audit && home_make_runs(o->session->home, NULL) >= 0)
        audit_denial(o->session->audit, &o->command, &o->admission, &why);
    if (err)
        *err = why;
    return r;
}

int session_start(nacre_session *s, const nacre_command *command, nacre_op **ret_op,
                  nacre_error *err)
{
    int r = session_check(s, err);
    if (r < 0)
        return r;
    if (!command || command->size != sizeof *command)
        return err_set(err, NACRE_EINVAL, "the command must start from NACRE_COMMAND_INIT");
    if (command->tty && !s->ops.resize)
        return session_unsupported(&s->ops, "give commands a terminal", err);
    r = begin_starting(s, err);
    if (r < 0)
        return r;
    know_home(s);
    struct session_start_op *o = calloc(1, sizeof *o);
    if (!o) {
        finish_start(&(struct session_start_op){.session = s}, false);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *o = (struct session_start_op){
        .op = OP_INIT(step_session_start, end_session_start), .session = s, .command = *command};
    o->op.result = &o->result;
    r = limits_narrow(s->settings, &command->limits, &o->command.limits, err);
    if (r == 0)
        r = ask_the_rules(o, err);
    if (r == 0 && command->name && *command->name)
        r = naming_new(s, &o->command, &o->naming, err);
    if (r < 0)
        end_session_start(&o->op);
    else
        *ret_op = &o->op;
    return r;
}

int nacre_start(nacre_session *session, const nacre_command *command, nacre_id *ret_id,
                nacre_watch **ret_watch, nacre_error *reterr)
{
    cleanup_op nacre_op *op = NULL;
    int r = session_start(session, command, &op, reterr);
    if (r < 0)
        return r;
    r = op_wait(op, -1, reterr);
    struct session_started *started = op->result;
    *ret_id = started->started.id;
    if (r < 0)
        return r;
    if (ret_watch)
        *ret_watch = TAKE_PTR(started->started.watch);
    return started->joined;
}
