/* The acp backend: commands run in the terminals of an ACP client. */
#include "backend/acp.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <nacre/session.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/host.h"

#define OUTPUT_LIMIT ((size_t)4 << 20)
#define ANSWER_MS    30000
#define END_MS       10000 /* for an exit to be reported after a kill */

/* -- Shells ----------------------------------------------------------------------------------- */

static void free_shell(struct acp_shell *shell)
{
    free(shell->terminal);
    free(shell->command);
    free(shell->cwd);
    free(shell->name);
    free(shell->description);
    buf_done(&shell->text.bytes);
    free(shell);
}

/* Shells stay until the agent is closed, so what was found stays valid. */
static int find_shell(nacre_acp_agent *a, const nacre_id *id, struct acp_shell **ret_shell,
                      nacre_error *err)
{
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shell = a->shells;
    while (shell && !nacre_id_equal(&shell->id, id))
        shell = shell->next;
    pthread_mutex_unlock(&a->lock);
    *ret_shell = shell;
    return shell ? 0
                 : err_set(err, NACRE_ENOTFOUND, "no terminal with id %s", nacre_id_short(id).s);
}

static nacre_outcome outcome_of(const struct acp_shell *shell)
{
    if (!shell->exited)
        return NACRE_RUNNING;
    switch (shell->reason) {
    case NACRE_REASON_DEADLINE:
        return NACRE_TIMED_OUT;
    case NACRE_REASON_CANCEL:
        return NACRE_CANCELLED;
    case NACRE_REASON_KILL:
    case NACRE_REASON_OWNER:
        return NACRE_KILLED;
    case NACRE_REASON_NONE:
        break;
    }
    return shell->signal > 0 ? NACRE_SIGNALED : shell->exit_code >= 0 ? NACRE_EXITED : NACRE_LOST;
}

static int copy_strings(const struct acp_shell *shell, nacre_record *record, nacre_error *err)
{
    record->command = strdup(shell->command);
    record->cwd = strdup(shell->cwd);
    record->name = strdup(shell->name);
    record->description = strdup(shell->description);
    if (record->command && record->cwd && record->name && record->description)
        return 0;
    nacre_record_done(record);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

int acp_record(const struct acp_shell *shell, bool strings, nacre_record *ret_record,
               nacre_error *err)
{
    int64_t now = clock_real_ns() / NS_PER_MS;
    nacre_record_done(ret_record);
    ret_record->id = shell->id;
    ret_record->outcome = outcome_of(shell);
    ret_record->tree = shell->over ? NACRE_TREE_EMPTY : NACRE_TREE_ALIVE;
    ret_record->tier = NACRE_TIER_GROUP;
    ret_record->reason = shell->reason;
    ret_record->exit_code = shell->exit_code;
    ret_record->signal = shell->signal;
    ret_record->started_ms = shell->started_ms;
    ret_record->exited_ms = shell->exited_ms;
    ret_record->elapsed_ms = (shell->exited ? shell->exited_ms : now) - shell->started_ms;
    ret_record->timeout_ms = shell->timeout_ms;
    ret_record->bytes[NACRE_STDOUT] = acp_text_end(&shell->text);
    ret_record->dropped_bytes[NACRE_STDOUT] = shell->text.base;
    ret_record->lines[NACRE_STDOUT] = shell->text.lines;
    ret_record->pipestatus_count = -1;
    ret_record->background = shell->background;
    return strings ? copy_strings(shell, ret_record, err) : 0;
}

bool acp_is_late(struct acp_shell *shell)
{
    if (shell->exited || shell->reason != NACRE_REASON_NONE ||
        clock_left_ms(shell->deadline_ns) != 0)
        return false;
    shell->reason = NACRE_REASON_DEADLINE;
    return true;
}

/* -- Create ----------------------------------------------------------------------------------- */

static int place_of(const nacre_command *command, char *ret_path, nacre_error *err)
{
    const char *cwd = command->cwd ? command->cwd : "";
    char here[PATH_MAX] = "";
    if (cwd[0] != '/' && !getcwd(here, sizeof here))
        return err_sys(err, NACRE_ESTART, errno, "chdir", "cannot tell the current directory");
    int n = snprintf(ret_path, PATH_MAX, "%s%s%s", here, *here && *cwd ? "/" : "", cwd);
    return n < PATH_MAX ? 0 : err_set(err, NACRE_EINVAL, "the directory has too long a path");
}

/* NULL if out of memory, or if an entry removes a variable: clients cannot do that. */
static json_t *env_of(const nacre_command *command)
{
    json_t *env = json_array();
    for (const char *const *entry = command->env; env && entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        json_t *variable = equals ? json_pack("{s:s%, s:s}", "name", *entry,
                                              (size_t)(equals - *entry), "value", equals + 1)
                                  : NULL;
        if (!variable || json_array_append_new(env, variable) < 0) {
            json_decref(env);
            env = NULL;
        }
    }
    return env;
}

static json_t *args_of(const nacre_command *command)
{
    json_t *args = json_array();
    if (command->text) {
        json_array_append_new(args, json_string("-c"));
        json_array_append_new(args, json_string(command->text));
    }
    for (const char *const *arg = command->argv ? command->argv + 1 : NULL; arg && *arg; arg++)
        json_array_append_new(args, json_string(*arg));
    return args;
}

static int check_command(const nacre_command *command, nacre_error *err)
{
    if (!command->text == !command->argv || (command->argv && !command->argv[0]))
        return err_set(err, NACRE_EINVAL, "a command has either a text or an argv");
    if (command->input != NACRE_STDIN_NULL)
        return err_set(err, NACRE_EUNSUPPORTED, "terminals of an ACP client take no input");
    if (command->lifetime != NACRE_LIFE_SESSION)
        return err_set(err, NACRE_EUNSUPPORTED, "terminals of an ACP client cannot be kept");
    for (const char *const *entry = command->env; entry && *entry; entry++)
        if (!strchr(*entry, '='))
            return err_set(err, NACRE_EUNSUPPORTED,
                           "an ACP client cannot remove the variable %.80s", *entry);
    return 0;
}

static json_t *create_params(const nacre_acp_agent *a, const nacre_command *command,
                             const char *cwd)
{
    bool has_shell = command->shell && command->shell[0] == '/';
    const char *program = !command->text ? command->argv[0]
                          : has_shell    ? command->shell
                                         : "/bin/sh";
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:I}", "sessionId", a->session_id, "command",
                     program, "args", args_of(command), "env", env_of(command), "cwd", cwd,
                     "outputByteLimit", (json_int_t)a->options.output_limit);
}

static char *text_of(const nacre_command *command)
{
    struct buf text cleanup_buf;
    buf_init(&text, SIZE_MAX / 2);
    int r = command->text ? buf_str(&text, command->text) : 0;
    for (const char *const *arg = command->argv; r == 0 && arg && *arg; arg++)
        r = buf_printf(&text, "%s%s", arg == command->argv ? "" : " ", *arg);
    return r < 0 ? NULL : buf_take(&text);
}

static struct acp_shell *new_shell(const nacre_command *command, const char *cwd)
{
    struct acp_shell *shell = calloc(1, sizeof *shell);
    if (!shell)
        return NULL;
    buf_init(&shell->text.bytes, SIZE_MAX / 2);
    shell->command = text_of(command);
    shell->cwd = strdup(cwd);
    shell->name = strdup(command->name ? command->name : "");
    shell->description = strdup(command->description ? command->description : "");
    shell->exit_code = -1;
    shell->background = command->background;
    shell->timeout_ms = command->timeout_ms;
    if (shell->command && shell->cwd && shell->name && shell->description &&
        host_random(&shell->id, sizeof shell->id) == 0)
        return shell;
    free_shell(shell);
    return NULL;
}

/* Has the client start it. */
static int start_shell(nacre_acp_agent *a, const nacre_command *command, struct acp_shell *shell,
                       nacre_error *err)
{
    json_t *result;
    int r = acp_call(a, ACP_CREATE, create_params(a, command, shell->cwd), &result, err);
    if (r < 0)
        return r;
    const char *terminal = json_string_value(json_object_get(result, "terminalId"));
    shell->terminal = terminal ? strdup(terminal) : NULL;
    json_decref(result);
    if (!shell->terminal)
        return err_set(err, NACRE_EBACKEND, "the client's answer names no terminal");
    shell->started_ms = clock_real_ns() / NS_PER_MS;
    shell->deadline_ns = clock_deadline(command->timeout_ms > 0 ? command->timeout_ms : -1);
    return 0;
}

static int acp_create(void *self, const nacre_command *command, nacre_id *ret_id,
                      nacre_watch **ret_watch, nacre_error *err)
{
    nacre_acp_agent *a = self;
    char cwd[PATH_MAX];
    int r = check_command(command, err);
    if (r == 0)
        r = place_of(command, cwd, err);
    if (r < 0)
        return r;
    struct acp_shell *shell = new_shell(command, cwd);
    if (!shell)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    r = start_shell(a, command, shell, err);
    if (r < 0) {
        free_shell(shell);
        return r;
    }
    pthread_mutex_lock(&a->lock);
    shell->next = a->shells;
    a->shells = shell;
    bool gone = a->gone;
    pthread_mutex_unlock(&a->lock);
    acp_post(a, ACP_WAIT, shell);
    if (gone) /* it was not in the list when the others were told */
        nacre_acp_agent_gone(a);
    *ret_id = shell->id;
    return ret_watch ? acp_watch_new(a, shell, 0, ret_watch, err) : 0;
}

/* -- The other verbs -------------------------------------------------------------------------- */

/* Asks for the output and waits until it is there, unless all of it is. */
static int refresh(nacre_acp_agent *a, struct acp_shell *shell, nacre_error *err)
{
    int64_t deadline = clock_deadline(a->options.answer_ms);
    pthread_mutex_lock(&a->lock);
    bool post = !shell->final && !shell->fetching && !a->gone;
    uint64_t fetches = shell->fetches;
    if (post)
        shell->fetching = true;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_OUTPUT, shell);
    pthread_mutex_lock(&a->lock);
    bool more = true;
    while (!shell->final && shell->fetches == fetches && more)
        more = acp_pause(a, deadline);
    pthread_mutex_unlock(&a->lock);
    return more ? 0 : err_set(err, NACRE_EBACKEND, "the client does not answer terminal/output");
}

static int64_t acp_output(void *self, const nacre_id *id, uint64_t *cursor, unsigned streams,
                          void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    uint64_t gap = 0;
    int r = find_shell(a, id, &shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    bool read_all = *cursor >= acp_text_end(&shell->text);
    pthread_mutex_unlock(&a->lock);
    r = read_all ? refresh(a, shell, err) : 0;
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    size_t n = streams & NACRE_OUT ? acp_text_read(&shell->text, cursor, buf, size, &gap) : 0;
    pthread_mutex_unlock(&a->lock);
    if (ret_piece)
        *ret_piece = (nacre_piece){.stream = NACRE_STDOUT,
                                   .offset = *cursor - n,
                                   .size = n,
                                   .time_ms = clock_real_ns() / NS_PER_MS,
                                   .gap_bytes = gap};
    return (int64_t)n;
}

/* Waits for the exit and the last output; kills it when its own time is over. */
static int acp_wait(void *self, const nacre_id *id, int64_t timeout_ms, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    int64_t deadline = clock_deadline(timeout_ms);
    int r = find_shell(a, id, &shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    bool more = true;
    while (!shell->final && more) {
        if (acp_is_late(shell)) {
            pthread_mutex_unlock(&a->lock);
            acp_post(a, ACP_KILL, shell);
            pthread_mutex_lock(&a->lock);
        }
        int64_t until =
            shell->exited || shell->reason ? deadline : MIN(deadline, shell->deadline_ns);
        more = acp_pause(a, until) || clock_left_ms(deadline) != 0;
    }
    bool done = shell->final;
    pthread_mutex_unlock(&a->lock);
    return done ? 0 : err_set(err, NACRE_ETIMEOUT, "shell %s goes on", nacre_id_short(id).s);
}

static int acp_kill(void *self, const nacre_id *id, const struct nacre_kill_options *options,
                    struct nacre_kill_result *ret_result, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    json_t *result = NULL;
    int r = find_shell(a, id, &shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    bool alive = !shell->exited;
    if (alive && shell->reason == NACRE_REASON_NONE)
        shell->reason = options && options->cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL;
    pthread_mutex_unlock(&a->lock);
    if (ret_result)
        *ret_result = (struct nacre_kill_result){.was_alive = alive, .signalled = alive};
    if (!alive)
        return 0;
    if (options && options->no_wait) {
        acp_post(a, ACP_KILL, shell);
        return 0;
    }
    r = acp_call(a, ACP_KILL, acp_target(a, shell), &result, err);
    json_decref(result);
    if (r == 0 && acp_wait(a, id, END_MS, err) < 0)
        r = err_set(err, NACRE_EBACKEND, "the client has killed shell %s but reports no exit",
                    nacre_id_short(id).s);
    return r;
}

/* The client kills what runs; that it did is its word. */
static int acp_release(void *self, const nacre_id *id, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    int r = find_shell(a, id, &shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    bool post = !shell->releasing;
    shell->releasing = true;
    if (!shell->exited && shell->reason == NACRE_REASON_NONE)
        shell->reason = NACRE_REASON_KILL;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_RELEASE, shell);
    int64_t deadline = clock_deadline(a->options.answer_ms);
    pthread_mutex_lock(&a->lock);
    while (!shell->over && acp_pause(a, deadline))
        continue;
    bool over = shell->over;
    pthread_mutex_unlock(&a->lock);
    return over ? 0 : err_set(err, NACRE_EBACKEND, "the client does not answer terminal/release");
}

static int acp_peek(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    int r = find_shell(a, id, &shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    r = acp_record(shell, false, ret_record, err);
    pthread_mutex_unlock(&a->lock);
    return r;
}

static int acp_get(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell;
    int r = find_shell(a, id, &shell, err);
    if (r == 0)
        r = refresh(a, shell, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    r = acp_record(shell, true, ret_record, err);
    pthread_mutex_unlock(&a->lock);
    return r;
}

static int acp_watch(void *self, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
                     nacre_error *err)
{
    struct acp_shell *shell;
    int r = find_shell(self, id, &shell, err);
    return r < 0 ? r : acp_watch_new(self, shell, offset, ret_watch, err);
}

/* Everything that was not released is, all at once. */
static int acp_close(void *self, int forked, nacre_error *err)
{
    nacre_acp_agent *a = self;
    int left = 0;
    if (forked)
        return 0;
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shells = a->shells;
    pthread_mutex_unlock(&a->lock);
    for (struct acp_shell *shell = shells; shell; shell = shell->next) {
        nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
        options.no_wait = 1;
        acp_kill(a, &shell->id, &options, NULL, err);
    }
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        left += acp_release(a, &shell->id, err) < 0;
    return left;
}

static const nacre_backend_ops acp_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof acp_ops,
    .name = "acp",
    .create = acp_create,
    .output = acp_output,
    .wait_for_exit = acp_wait,
    .kill = acp_kill,
    .release = acp_release,
    .get = acp_get,
    .peek = acp_peek,
    .watch = acp_watch,
    .close = acp_close,
};

/* -- The agent -------------------------------------------------------------------------------- */

const nacre_backend *nacre_backend_acp(nacre_acp_agent *agent)
{
    return &agent->backend;
}

int nacre_acp_agent_terminal(nacre_acp_agent *agent, const nacre_id *id, char **ret_terminal,
                             nacre_error *reterr)
{
    struct acp_shell *shell;
    int r = find_shell(agent, id, &shell, reterr);
    if (r < 0)
        return r;
    *ret_terminal = strdup(shell->terminal);
    return *ret_terminal ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

int nacre_acp_agent_open(const nacre_acp_agent_options *options, nacre_acp_agent **ret_agent,
                         nacre_error *reterr)
{
    if (!options || options->size != sizeof *options || !options->send || !options->session_id)
        return err_set(reterr, NACRE_EINVAL,
                       "the options must start from NACRE_ACP_AGENT_OPTIONS_INIT, with send and "
                       "session_id set");
    nacre_acp_agent *a = calloc(1, sizeof *a);
    char *session_id = strdup(options->session_id);
    if (!a || !session_id) {
        free(a);
        free(session_id);
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&a->lock, NULL);
    a->backend = (nacre_backend){.ops = &acp_ops, .self = a};
    a->options = *options;
    a->session_id = session_id;
    a->options.session_id = session_id;
    if (!a->options.output_limit)
        a->options.output_limit = OUTPUT_LIMIT;
    if (a->options.answer_ms <= 0)
        a->options.answer_ms = ANSWER_MS;
    *ret_agent = a;
    return 0;
}

void nacre_acp_agent_close(nacre_acp_agent *agent)
{
    if (!agent)
        return;
    nacre_acp_agent_gone(agent);
    while (agent->shells) {
        struct acp_shell *shell = agent->shells;
        agent->shells = shell->next;
        free_shell(shell);
    }
    pthread_cond_destroy(&agent->changed);
    pthread_mutex_destroy(&agent->lock);
    free(agent->session_id);
    free(agent);
}
