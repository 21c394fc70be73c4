/* From a command to a terminal of the client's, with a run directory. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/acp.h"
#include "backend/compose.h"
#include "backend/local_parts.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/host.h"

#define SHELL "/bin/sh" /* what every client has */

void acp_shell_free(struct acp_shell *shell)
{
    if (!shell)
        return;
    acp_run_free(shell->run);
    free(shell->terminal);
    free(shell);
}

static int check(const nacre_command *command, nacre_error *err)
{
    int r = compose_check(command, err);
    if (r < 0)
        return r;
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

/* -- The spec, and the request made of it ------------------------------------------------------ */

static int compose(struct local *l, const nacre_command *command, const char *cwd, struct buf *spec,
                   nacre_error *err)
{
    bool absolute = command->shell && command->shell[0] == '/';
    nacre_id id;
    struct compose c = {.command = command,
                        .session = &l->session,
                        .owner = l->owner,
                        .fleeting = l->fleeting,
                        .session_name = l->name,
                        .session_cwd = l->place,
                        .run_path = "",
                        .elsewhere = true,
                        .shell = absolute ? command->shell : SHELL,
                        .quota = l->quota};
    int e = host_random(&id, sizeof id);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "random", "no random bytes for an id");
    return compose_spec(&c, &id, cwd, spec, err);
}

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

/* -- The start --------------------------------------------------------------------------------- */

static int ask_client(nacre_acp_agent *a, const struct spec *spec, char **ret_terminal,
                      nacre_error *err)
{
    json_t *result;
    json_t *params = params_of(a, spec);
    if (!is_text(params, spec)) {
        json_decref(params);
        return err_set(err, NACRE_EINVAL,
                       "the command, its directory or its environment is no UTF-8; an ACP client "
                       "takes nothing else");
    }
    int r = acp_call(a, ACP_CREATE, params, &result, err);
    if (r < 0)
        return r;
    const char *terminal = json_string_value(json_object_get(result, "terminalId"));
    *ret_terminal = terminal ? strdup(terminal) : NULL;
    json_decref(result);
    return *ret_terminal ? 0
                         : err_set(err, NACRE_EBACKEND, "the client's answer names no terminal");
}

/* The run directory is there before the request: what cannot be written down is not started. */
static int start(nacre_acp_agent *a, const struct spec *spec, struct acp_shell *shell,
                 nacre_error *err)
{
    int runs = local_make_runs(a->home.self, err);
    int r = runs < 0 ? runs : acp_run_make(runs, spec, &shell->run, err);
    if (r == 0)
        r = ask_client(a, spec, &shell->terminal, err);
    if (r < 0) {
        acp_run_undo(shell->run, runs);
        shell->run = NULL;
        return r;
    }
    int64_t timeout_ms = spec->head->timeout_ms;
    shell->id = spec->head->id;
    shell->exit_code = -1;
    shell->background = spec->head->background;
    shell->deadline_ns = clock_deadline(timeout_ms > 0 ? timeout_ms : -1);
    shell->patience_ns = INT64_MAX;
    /* If this fails the shell runs all the same, and its state is written again when it changes. */
    acp_run_begin(shell->run, err);
    return 0;
}

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

int acp_create(void *self, const nacre_command *command, nacre_id *ret_id, nacre_watch **ret_watch,
               nacre_error *err)
{
    nacre_acp_agent *a = self;
    char cwd[PATH_MAX];
    cleanup_buf struct buf bytes = {0};
    int r = check(command, err);
    if (r == 0)
        r = local_place(a->home.self, command, cwd, err);
    if (r == 0)
        r = check_place(a, cwd, err);
    if (r == 0)
        r = compose(a->home.self, command, cwd, &bytes, err);
    if (r < 0)
        return r;
    struct acp_shell *shell = bytes.data ? calloc(1, sizeof *shell) : NULL;
    if (!shell)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    struct spec spec = {.head = (const void *)bytes.data, .size = bytes.len};
    r = start(a, &spec, shell, err);
    if (r < 0) {
        acp_shell_free(shell);
        return r;
    }
    if (a->options.created)
        a->options.created(&shell->id, shell->terminal, a->options.userdata);
    enlist(a, shell);
    *ret_id = shell->id;
    return ret_watch ? acp_watch_new(a, shell, 0, ret_watch, err) : 0;
}
