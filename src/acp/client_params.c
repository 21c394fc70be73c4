/* Reading the parameters of terminal/..., field by field. */
#include "acp/client_params.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"

/* What a program's name has none of, usually. */
#define SHELL_BYTES        " \t\r\n|&;<>()$`\\\"'*?[]#~={}!"

#define BAD_PARAMS(f, ...) rpc_fail(f, RPC_INVALID_PARAMS, "Invalid params: " __VA_ARGS__)

/* A field that may be missing; NULL for null too. */
static json_t *optional(const json_t *params, const char *name)
{
    json_t *value = json_object_get(params, name);
    return json_is_null(value) ? NULL : value;
}

static int read_string(const json_t *params, const char *name, const char **ret,
                       struct rpc_fault *f)
{
    *ret = rpc_text(json_object_get(params, name));
    return *ret ? 0 : BAD_PARAMS(f, "%s must be a string without NUL", name);
}

static int check_object(const json_t *params, struct rpc_fault *f)
{
    return json_is_object(params) ? 0 : BAD_PARAMS(f, "params must be an object");
}

int acp_target_read(const json_t *params, struct acp_target *ret, struct rpc_fault *ret_fault)
{
    int r = check_object(params, ret_fault);
    if (r == 0)
        r = read_string(params, "sessionId", &ret->session, ret_fault);
    if (r == 0)
        r = read_string(params, "terminalId", &ret->terminal, ret_fault);
    return r;
}

static int read_args(const json_t *params, struct acp_create *c, struct rpc_fault *f)
{
    const json_t *args = optional(params, "args");
    if (args && !json_is_array(args))
        return BAD_PARAMS(f, "args must be an array of strings");
    size_t count = args ? json_array_size(args) : 0;
    c->argv = calloc(count + 2, sizeof *c->argv);
    if (!c->argv)
        return -ENOMEM;
    c->argv[0] = c->command;
    for (size_t i = 0; i < count; i++) {
        c->argv[i + 1] = rpc_text(json_array_get(args, i));
        if (!c->argv[i + 1])
            return BAD_PARAMS(f, "args[%zu] must be a string without NUL", i);
    }
    return 0;
}

static int read_variable(const json_t *variable, size_t i, char **ret, struct rpc_fault *f)
{
    const char *name = rpc_text(json_object_get(variable, "name"));
    const char *value = rpc_text(json_object_get(variable, "value"));
    if (!name || !*name || strchr(name, '='))
        return BAD_PARAMS(f, "env[%zu].name must be the name of a variable", i);
    if (!value)
        return BAD_PARAMS(f, "env[%zu].value must be a string without NUL", i);
    size_t size = strlen(name) + strlen(value) + 2;
    *ret = malloc(size);
    if (!*ret)
        return -ENOMEM;
    snprintf(*ret, size, "%s=%s", name, value);
    return 0;
}

static int read_env(const json_t *params, struct acp_create *c, struct rpc_fault *f)
{
    const json_t *env = optional(params, "env");
    if (env && !json_is_array(env))
        return BAD_PARAMS(f, "env must be an array of {name, value}");
    size_t count = env ? json_array_size(env) : 0;
    if (count == 0)
        return 0;
    c->env = calloc(count + 1, sizeof *c->env);
    int r = c->env ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_variable(json_array_get(env, i), i, &c->env[i], f);
    return r;
}

static int read_cwd(const json_t *params, struct acp_create *c, struct rpc_fault *f)
{
    const json_t *cwd = optional(params, "cwd");
    c->cwd = cwd ? rpc_text(cwd) : NULL;
    if (cwd && (!c->cwd || c->cwd[0] != '/'))
        return BAD_PARAMS(f, "cwd must be an absolute path");
    return 0;
}

static int read_limit(const json_t *params, struct acp_create *c, struct rpc_fault *f)
{
    const json_t *limit = optional(params, "outputByteLimit");
    if (!limit)
        return 0;
    if (!json_is_integer(limit) || json_integer_value(limit) < 0)
        return BAD_PARAMS(f, "outputByteLimit must be a whole number, 0 or more");
    c->has_limit = true;
    c->limit = (uint64_t)json_integer_value(limit);
    return 0;
}

int acp_create_read(const json_t *params, struct acp_create *ret, struct rpc_fault *ret_fault)
{
    *ret = (struct acp_create){0};
    int r = check_object(params, ret_fault);
    if (r == 0)
        r = read_string(params, "sessionId", &ret->session, ret_fault);
    if (r == 0)
        r = read_string(params, "command", &ret->command, ret_fault);
    if (r == 0 && !*ret->command)
        r = BAD_PARAMS(ret_fault, "command is empty");
    if (r == 0)
        r = read_args(params, ret, ret_fault);
    if (r == 0)
        r = read_env(params, ret, ret_fault);
    if (r == 0)
        r = read_cwd(params, ret, ret_fault);
    return r < 0 ? r : read_limit(params, ret, ret_fault);
}

void acp_create_done(struct acp_create *c)
{
    for (char **entry = c->env; entry && *entry; entry++)
        free(*entry);
    free(c->env);
    free(c->argv);
    *c = (struct acp_create){0};
}

static bool is_in_directory(const char *dir, size_t dir_size, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)dir_size, dir, name);
    return n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
}

static const char *search_path(const struct acp_create *c)
{
    for (char **entry = c->env; entry && *entry; entry++)
        if (strncmp(*entry, "PATH=", strlen("PATH=")) == 0)
            return *entry + strlen("PATH=");
    const char *path = getenv("PATH");
    return path ? path : "";
}

static bool names_a_file(const struct acp_create *c)
{
    const char *command = c->command;
    if (command[0] == '/')
        return access(command, F_OK) == 0;
    if (strchr(command, '/'))
        return is_in_directory(c->cwd ? c->cwd : ".", c->cwd ? strlen(c->cwd) : 1, command);
    for (const char *dir = search_path(c); *dir;) {
        size_t size = strcspn(dir, ":");
        if (size > 0 && is_in_directory(dir, size, command))
            return true;
        dir += size + (dir[size] == ':');
    }
    return false;
}

bool acp_create_is_shell_text(const struct acp_create *c)
{
    return !c->argv[1] && strpbrk(c->command, SHELL_BYTES) && !names_a_file(c);
}
