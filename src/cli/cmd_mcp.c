/* nacre mcp: the server for agents, and how each of them is told about it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cmd_doctor_env.h"
#include "cli/mcp_check.h"
#include "cli/mcp_install.h"
#include "cli/serve_place.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/command_args.h"
#include "console/fence_args.h"
#include "console/out.h"
#include "mcp/clients.h"
#include "mcp/mcp.h"
#include "serve/serve_http.h"
#include "serve/token.h"

struct mcp_verb_options {
    bool log;
    const char *name;
    const char **limits;
    struct fence_args fence;
    const char *client; /* to print the configuration of */
    bool http;          /* of a server that runs already */
    const char *install;
    bool check;
};

/* What the server has to know to be the one that is used here; the agent may start it elsewhere. */
static void take_variables(const char **ret_env)
{
    static char entries[2][PATH_MAX + 32];
    static const char *const names[ARRAY_SIZE(entries)] = {"NACRE_HOME", "NACRE_CONFIG"};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        int n = value && *value
                    ? snprintf(entries[count], sizeof entries[count], "%s=%s", names[i], value)
                    : 0;
        if (n > 0 && (size_t)n < sizeof entries[count]) {
            ret_env[count] = entries[count];
            count++;
        }
    }
    ret_env[count] = NULL;
}

static int unknown_client(const char *name)
{
    return usage_error("no client is called \"%s\"; those known are %s", name, mcp_client_names());
}

/* A person is told where it goes, and what else there is to do; a program gets what it asked for.
 */
static int print_config(const struct mcp_client *client, const struct mcp_launch *launch)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    bool person = isatty(STDOUT_FILENO);
    int r = person ? mcp_client_explain(client, launch, &text)
                   : mcp_client_fragment(client, launch, &text);
    if (r < 0)
        return failure("out of memory");
    fputs(text.data, stdout);
    return STATUS_OK;
}

/* The name in the URL keeps the sessions of agents apart. */
static int print_http_config(const char *name)
{
    char path[PATH_MAX], url[128];
    struct token token;
    nacre_error err = NACRE_ERROR_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    const struct mcp_client *client = mcp_client_find(name);
    if (!client)
        return unknown_client(name);
    int status = serve_token_path(NULL, NULL, path, sizeof path);
    if (status != STATUS_OK)
        return status;
    if (token_load(path, false, &token, &err) < 0)
        return library_failure(&err);
    snprintf(url, sizeof url, "http://" SERVE_ADDRESS "/mcp/%s", name);
    if (mcp_client_http(client, url, token.text, &text) < 0)
        return failure("out of memory");
    if (isatty(STDOUT_FILENO))
        printf("In %s, for \"nacre serve\" at its usual address:\n\n", mcp_client_file(client));
    fputs(text.data, stdout);
    return STATUS_OK;
}

/* Secrets are kept from commands; who adds a server shall hear of it now, and not from a failure.
 */
static int tell_what_is_withheld(void)
{
    putchar('\n');
    return doctor_env(false);
}

static int configure(const struct mcp_verb_options *o, const char *program)
{
    const char *env[3];
    struct mcp_launch launch = {.program = program, .env = env};
    const char *name = o->install ? o->install : o->client;
    const struct mcp_client *client = mcp_client_find(name);
    if (!client)
        return unknown_client(name);
    take_variables(env);
    int status = o->install ? mcp_install(client, &launch) : print_config(client, &launch);
    bool told = o->install || isatty(STDOUT_FILENO);
    return status == STATUS_OK && told ? tell_what_is_withheld() : status;
}

/* With a configuration that makes no sense the server answers all the same: its client would only
 * see that it is gone. */
static int take_configuration(const struct mcp_verb_options *o, nacre_settings **ret_settings,
                              struct mcp_options *serve, nacre_error *err)
{
    if (nacre_settings_load(NULL, ret_settings, err) < 0) {
        say("%s", err->msg);
        serve->fault = err->msg;
        *ret_settings = settings_new();
        return *ret_settings ? STATUS_OK : failure("out of memory");
    }
    nacre_settings_free(*ret_settings);
    *ret_settings = NULL;
    int status = limited_settings("mcp", (const char *const *)o->limits, ret_settings);
    return status == STATUS_OK ? fence_args_apply(&o->fence, ret_settings) : status;
}

static int serve_mcp(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct mcp_verb_options *o = options;
    struct mcp_options serve = {.log = o->log, .name = o->name};
    nacre_settings *settings cleanup_settings = NULL;
    nacre_error err = NACRE_ERROR_INIT, fault = NACRE_ERROR_INIT;
    char program[4096];
    if (o->check + (o->client != NULL) + (o->install != NULL) > 1)
        return usage_error("mcp: --check, --print-config and --install exclude each other");
    if (o->http && !o->client)
        return usage_error("mcp: --http goes with --print-config; \"nacre serve\" is the server");
    if (o->http)
        return print_http_config(o->client);
    if (o->check || o->client || o->install) {
        ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
        if (n < 0)
            return failure("cannot find the path of this program: %s", err_text(errno));
        program[n] = '\0';
        return o->check ? mcp_check(program) : configure(o, program);
    }
    int status = take_configuration(o, &settings, &serve, &fault);
    if (status != STATUS_OK)
        return status;
    serve.settings = settings;
    if (isatty(STDIN_FILENO))
        say("this is a server for agents; it reads JSON-RPC from stdin. \"nacre help mcp\" says "
            "how to add it to one");
    return mcp_serve(&serve, &err) < 0 ? library_failure(&err) : STATUS_OK;
}

const struct verb verb_mcp = {
    .name = "mcp",
    .words = "",
    .summary = "serve the tools to an agent over MCP, on stdin and stdout",
    .details =
        "An agent starts it. It ends, with every shell that was not started to be kept, when the\n"
        "agent closes its stdin, or on SIGTERM, SIGINT or SIGHUP. Nothing is created before the\n"
        "first command. Commands start in the directory that it was started in.\n"
        "\n"
        "The clients known to --print-config and --install are claude, codex, copilot, cursor,\n"
        "gemini, opencode, qwen, vscode and zed. On a terminal --print-config says where the\n"
        "configuration goes, how to switch the agent's own shell off, and which variables\n"
        "commands will not have (\"nacre doctor --env\"); on a pipe it prints the configuration\n"
        "alone. --install merges that into the agent's own file, and keeps the old one beside\n"
        "it. NACRE_HOME and NACRE_CONFIG, if they are set, are in it.\n"
        "\n"
        "examples:\n"
        "  nacre mcp --check\n"
        "  nacre mcp --install claude\n",
    .options = {{"log", NULL, "a line on stderr for every message", OPTION_FLAG, false,
                 offsetof(struct mcp_verb_options, log)},
                {"name", "N",
                 "of the session; one of the same name gets what this one could not deliver",
                 OPTION_TEXT, false, offsetof(struct mcp_verb_options, name)},
                LIMIT_OPTION(mcp_verb_options),
                FENCE_OPTIONS(mcp_verb_options),
                {"print-config", "CLIENT", "print how to add the server to an agent", OPTION_TEXT,
                 false, offsetof(struct mcp_verb_options, client), 0, OFFERED_CLIENTS},
                {"http", NULL, "that of an agent for \"nacre serve\", with its token", OPTION_FLAG,
                 false, offsetof(struct mcp_verb_options, http)},
                {"install", "CLIENT", "add the server to an agent's own configuration", OPTION_TEXT,
                 false, offsetof(struct mcp_verb_options, install), 0, OFFERED_CLIENTS},
                {"check", NULL, "start the server as an agent does, and say what it finds",
                 OPTION_FLAG, false, offsetof(struct mcp_verb_options, check)}},
    .options_size = sizeof(struct mcp_verb_options),
    .run = serve_mcp,
};
