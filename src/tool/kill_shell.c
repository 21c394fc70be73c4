/* kill_shell: ends a shell with everything it started. */
#include <stddef.h>

#include "base/err.h"
#include "tool/ending.h"
#include "tool/tool.h"

struct kill_args {
    const char *id;
    const char *signal;
    int64_t grace;
};

struct kill {
    nacre_id id;
    bool found;
    struct ending ending;
};

#define GRACE_MAX (INT64_C(60) * 1000)

/* clang-format off */
static const struct arg args[] = {
    {"id", ARG_TEXT, offsetof(struct kill_args, id), .required = true, .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "The id of the shell."},
    {"signal", ARG_TEXT, offsetof(struct kill_args, signal), .least = 1, .example = "\"SIGINT\"",
     .help = "The first signal; SIGTERM if not given."},
    {"grace", ARG_SECONDS, offsetof(struct kill_args, grace), .least = 0, .most = GRACE_MAX,
     .aliases = "grace_ms", .example = "5",
     .help = "Seconds until SIGKILL; {grace} if not given."},
    {0},
};
/* clang-format on */

static int begin(nacre_call *c, nacre_error *err)
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
    int r = nacre_find(c->session, a->id, &k->id, err);
    if (r == NACRE_ENOTFOUND || r == NACRE_EINVAL)
        return TOOL_DONE;
    if (r < 0)
        return r;
    k->found = true;
    r = ending_begin(&k->ending, c->session, &k->id, &options, err);
    return r == NACRE_ENOTFOUND ? TOOL_DONE : r == TOOL_WAIT ? ending_step(&k->ending, c, err) : r;
}

static int step(nacre_call *c, nacre_error *err)
{
    struct kill *k = c->state;
    return ending_step(&k->ending, c, err);
}

/* Who asked to end it goes on having it ended; only nobody waits for the proof. */
static int cancel(nacre_call *c, nacre_error *err)
{
    struct kill *k = c->state;
    return ending_is_sure(&k->ending) ? TOOL_DONE : ending_step(&k->ending, c, err);
}

static const char *processes(int count)
{
    return count == 1 ? "process" : "processes";
}

static int answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct kill_args *ka = c->args;
    const struct kill *k = c->state;
    nacre_record record = NACRE_RECORD_INIT;
    char status[64];
    if (!k->ending.was_alive)
        return answer_printf(a, err,
                             "no running background shell with id \"%.40s\" (already exited or "
                             "unknown)\n",
                             ka->id);
    int r = nacre_get(c->session, &k->id, &record, err);
    if (r < 0)
        return r;
    r = answer_printf(a, err,
                      "killed background shell %s: %d %s signalled, %d needed SIGKILL, %d "
                      "survivors; its status is %s\n",
                      nacre_id_short(&k->id).s, record.signalled, processes(record.signalled),
                      record.force_killed, record.survivors,
                      nacre_status(&record, status, sizeof status));
    answer_run(a, &record);
    if (r == 0)
        r = answer_shows(a, &k->id, NULL, true, err);
    nacre_record_done(&record);
    return r;
}

static void done(nacre_call *c)
{
    struct kill *k = c->state;
    ending_done(&k->ending);
}

const struct tool tool_kill_shell = {
    .name = "kill_shell",
    .title = "End a background shell",
    .description = "Ends a background shell with its whole process tree: SIGTERM once to each "
                   "process, {grace}, then SIGKILL to what is left. Answers when nothing is left. "
                   "Its output stays readable.",
    .args = args,
    .args_size = sizeof(struct kill_args),
    .state_size = sizeof(struct kill),
    .destructive = true,
    .idempotent = true,
    .begin = begin,
    .step = step,
    .answer = answer,
    .cancel = cancel,
    .done = done,
};
