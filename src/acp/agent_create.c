/* From a command to a terminal of the client's, with a run directory. */
#include <string.h>

#include "acp/agent.h"
#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "home/mirror.h"

void acp_shell_free(struct acp_shell *shell)
{
    if (!shell)
        return;
    nacre_mirror_free(shell->mirror);
    free(shell->terminal);
    free(shell);
}

static int check_ability(const nacre_command *command, nacre_error *err)
{
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

static int check_place(const nacre_acp_agent *a, const char *cwd, nacre_error *err)
{
    int r = a->workspace ? acp_place_is_within(cwd, a->workspace) : 1;
    if (r < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    return r > 0 ? 0
                 : err_set(err, NACRE_EPERM,
                           "the directory \"%.100s\" is outside the workspace; use %.100s or a "
                           "directory below it",
                           cwd, a->workspace[0]);
}

/* -- The request, made of the spec ------------------------------------------------------------ */

/* Consecutive strings, the first of which are left out. */
static void append_strings(json_t *array, const char *s, uint32_t count, uint32_t skip)
{
    for (uint32_t i = 0; i < count; i++, s += strlen(s) + 1)
        if (i >= skip)
            json_array_append_new(array, json_string(s));
}

static json_t *args_of(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    json_t *args = json_array();
    if (head->kind == SPEC_ARGV) {
        append_strings(args, spec_string(spec, head->argv), head->argc, 1);
    } else {
        json_array_append_new(args, json_string("-c"));
        json_array_append_new(args, json_string(spec_string(spec, head->text)));
    }
    return args;
}

static json_t *env_of(const struct spec *spec)
{
    json_t *env = json_array();
    const char *entry = spec_string(spec, spec->head->env);
    for (uint32_t i = 0; i < spec->head->envc; i++, entry += strlen(entry) + 1) {
        size_t name = strcspn(entry, "=");
        json_array_append_new(
            env, json_pack("{s:s%, s:s}", "name", entry, name, "value", entry + name + 1));
    }
    return env;
}

static json_t *params_of(const nacre_acp_agent *a, const struct spec *spec)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:I}", "sessionId", a->session_id, "command",
                     spec_string(spec, spec->head->program), "args", args_of(spec), "env",
                     env_of(spec), "cwd", spec_string(spec, spec->head->cwd), "outputByteLimit",
                     (json_int_t)a->options.output_limit);
}

/* JSON has text only. */
static bool is_text(json_t *params, const struct spec *spec)
{
    size_t args = spec->head->kind == SPEC_ARGV ? spec->head->argc - 1 : 2;
    return params && json_array_size(json_object_get(params, "args")) == args &&
           json_array_size(json_object_get(params, "env")) == spec->head->envc;
}

/* -- The start -------------------------------------------------------------------------------- */

struct acp_start_op {
    struct acp_op base; /* its shell is in no list; NULL once it is */
    nacre_started result;
};

static void enlist(nacre_acp_agent *a, struct acp_shell *shell)
{
    pthread_mutex_lock(&a->lock);
    shell->next = a->shells;
    a->shells = shell;
    bool gone = a->gone;
    pthread_mutex_unlock(&a->lock);
    acp_post(a, ACP_WAIT, shell);
    if (gone) /* it was not in the list when the others were told */
        nacre_acp_agent_gone(a);
}

static void begin_shell(nacre_acp_agent *a, struct acp_shell *shell, nacre_error *err)
{
    int64_t timeout_ms = mirror_spec(shell->mirror)->head->timeout_ms;
    shell->deadline_ns = clock_deadline(timeout_ms > 0 ? timeout_ms : -1);
    /* If this fails the shell runs all the same, and its state is written again when it changes. */
    nacre_mirror_begin(shell->mirror, err);
    if (a->options.created)
        a->options.created(&shell->id, shell->terminal, a->options.userdata);
    enlist(a, shell);
}

static int see_created(struct acp_op *o, nacre_error *err)
{
    json_t *result;
    int r = acp_op_hear(o, &result, err);
    if (r <= 0)
        return r;
    const char *terminal = json_string_value(json_object_get(result, "terminalId"));
    o->shell->terminal = terminal ? strdup(terminal) : NULL;
    json_decref(result);
    if (!o->shell->terminal)
        return err_set(err, NACRE_EBACKEND, "the client's answer names no terminal");
    ((struct acp_start_op *)o)->result.id = o->shell->id;
    begin_shell(o->agent, TAKE_PTR(o->shell), err);
    return 1;
}

static void end_start_op(nacre_op *op)
{
    acp_shell_free(((struct acp_op *)op)->shell);
    acp_op_end(op);
}

/* The run directory is there before the request: what cannot be written down is not started. */
static int shell_new(nacre_acp_agent *a, const nacre_command *command, struct acp_shell **ret,
                     nacre_error *err)
{
    const char *cwd;
    struct acp_shell *shell = calloc(1, sizeof *shell);
    if (!shell)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = nacre_mirror_new(a->home, command, &shell->mirror, &cwd, err);
    if (r == 0)
        r = check_place(a, cwd, err);
    if (r < 0) {
        acp_shell_free(shell);
        return r;
    }
    shell->id = nacre_mirror_id(shell->mirror);
    shell->exit_code = -1;
    shell->background = command->background != 0;
    shell->patience_ns = INT64_MAX;
    *ret = shell;
    return 0;
}

static int ask_client(struct acp_op *o, nacre_error *err)
{
    const struct spec *spec = mirror_spec(o->shell->mirror);
    json_auto_t *params = params_of(o->agent, spec);
    if (is_text(params, spec))
        return acp_ask(o, ACP_CREATE, TAKE_PTR(params), err);
    return err_set(err, NACRE_EINVAL,
                   "the command, its directory or its environment is no UTF-8; an ACP client "
                   "takes nothing else");
}

int acp_start(void *self, const nacre_command *command, nacre_op **ret_op, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_op *o = acp_op_new(a, sizeof(struct acp_start_op), see_created, NULL, err);
    if (!o)
        return NACRE_ENOMEM;
    o->op.result = &((struct acp_start_op *)o)->result;
    o->op.end = end_start_op;
    int r = check_ability(command, err);
    if (r == 0)
        r = shell_new(a, command, &o->shell, err);
    if (r == 0)
        r = ask_client(o, err);
    if (r < 0)
        end_start_op(&o->op);
    else
        *ret_op = &o->op;
    return r;
}
