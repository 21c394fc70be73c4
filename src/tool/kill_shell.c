/* kill_shell: ends a shell with everything it started. */
#include <stddef.h>

#include "backend/op.h"
#include "base/err.h"
#include "session/deferred.h"
#include "session/session.h"
#include "tool/tool.h"
#include "view/ending_words.h"

struct kill_args {
    const char *id;
    const char *signal;
    int64_t grace;
};

struct kill {
    nacre_id id;
    nacre_op *op;
    bool withdrawn; /* it was a question that nobody has answered */
};

#define GRACE_MAX (INT64_C(60) * 1000)

/* clang-format off */
static const struct arg kill_args_table[] = {
    {"id", ARG_TEXT, offsetof(struct kill_args, id), .required = true, .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "The id or name of the shell."},
    {"signal", ARG_TEXT, offsetof(struct kill_args, signal), .least = 1, .example = "\"SIGINT\"",
     .help = "The first signal; SIGTERM if not given."},
    {"grace", ARG_SECONDS, offsetof(struct kill_args, grace), .least = 0, .most = GRACE_MAX,
     .aliases = "grace_ms", .example = "5",
     .help = "Seconds until SIGKILL; {grace} if not given."},
    {0},
};
/* clang-format on */

static int kill_begin(nacre_call *c, nacre_error *err)
{
    const struct kill_args *a = c->args;
    struct kill *k = c->state;
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    options.grace_ms = a->grace;
    options.signal = a->signal ? nacre_signal_number(a->signal) : 0;
    if (options.signal < 0)
        return err_set(err, NACRE_EINVAL,
                       "signal must be the name of a signal, such as \"SIGINT\"; it is \"%.40s\"",
                       a->signal);
    k->withdrawn = deferred_withdraw(c->session, a->id);
    if (k->withdrawn)
        return TOOL_DONE;
    int r = call_find(c, a->id, &k->id, err);
    if (r == 0)
        r = session_kill(c->session, &k->id, &options, &k->op, err);
    return r < 0 ? r : call_step_op(c, k->op, err);
}

static int kill_step(nacre_call *c, nacre_error *err)
{
    struct kill *k = c->state;
    return call_step_op(c, k->op, err);
}

/* Its keeper has heard of it, and goes on without us. */
static bool was_alive(const struct kill *k)
{
    return ((const nacre_kill_result *)k->op->result)->was_alive;
}

/* Who asked to end it goes on having it ended; only nobody waits for the proof. */
static int kill_cancel(nacre_call *c, nacre_error *err)
{
    struct kill *k = c->state;
    return was_alive(k) ? TOOL_DONE : call_step_op(c, k->op, err);
}

static const char *processes(int count)
{
    return count == 1 ? "process" : "processes";
}

static int kill_answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct kill *k = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    char status[64];
    if (k->withdrawn)
        return answer_line(a, err, "the question was withdrawn; nothing was started");
    int r = call_record(c, &k->id, &record, err);
    if (r < 0)
        return r;
    nacre_status(&record, status, sizeof status);
    if (!was_alive(k))
        r = answer_line(a, err, "background shell %s had ended already: %s",
                        nacre_id_short(&k->id).s, status);
    else
        r = answer_line(a, err,
                        "killed background shell %s: %d %s signalled, %d needed SIGKILL, %d "
                        "survivors; its status is %s",
                        nacre_id_short(&k->id).s, record.signalled, processes(record.signalled),
                        record.force_killed, record.survivors, status);
    struct buf held cleanup_buf = BUF_UP_TO(HELD_WORDS_MAX);
    if (r == 0 && was_alive(k) && held_words(&held, &record) == 0 && held.len > 0)
        r = answer_text(a, held.data, err);
    answer_run(a, &record);
    return r < 0 ? r : answer_shows(a, &k->id, NULL, true, err);
}

static void kill_done(nacre_call *c)
{
    struct kill *k = c->state;
    op_end(&k->op);
}

const struct tool tool_kill_shell = {
    .name = "kill_shell",
    .title = "End a background shell",
    .description = "Ends a background shell with its whole process tree: SIGTERM once to each "
                   "process, {grace}, then SIGKILL to what is left. Answers when nothing is left. "
                   "Its output stays readable.",
    .args = kill_args_table,
    .args_size = sizeof(struct kill_args),
    .state_size = sizeof(struct kill),
    .destructive = true,
    .idempotent = true,
    .begin = kill_begin,
    .step = kill_step,
    .answer = kill_answer,
    .cancel = kill_cancel,
    .done = kill_done,
};
