/* nacre mcp: the server for agents, and how each of them is told about it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "mcp/mcp.h"

struct mcp_verb_options {
    bool log;
    const char *name;
    const char *client;
};

/* Prints the text with the path of this program where it says @NACRE@. */
static void print_filled(const char *text, const char *program)
{
    static const char mark[] = "@NACRE@";
    const char *at;
    while ((at = strstr(text, mark))) {
        printf("%.*s%s", (int)(at - text), text, program);
        text = at + strlen(mark);
    }
    fputs(text, stdout);
}

static int print_config(const char *client)
{
    char program[4096];
    const char *text = mcp_client_config(client);
    if (!text)
        return usage_error("no client is called \"%s\"; those known are %s", client,
                           mcp_client_names());
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return failure("cannot find the path of this program: %s", strerror(errno));
    program[n] = '\0';
    print_filled(text, program);
    return STATUS_OK;
}

static int run(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct mcp_verb_options *o = options;
    struct mcp_options serve = {.log = o->log, .name = o->name};
    nacre_error err = NACRE_ERROR_INIT;
    if (o->client)
        return print_config(o->client);
    if (isatty(STDIN_FILENO))
        say("this is a server for agents; it reads JSON-RPC from stdin. \"nacre help mcp\" says "
            "how to add it to one");
    return mcp_serve(&serve, &err) < 0 ? library_failure(&err) : STATUS_OK;
}

static const struct option options[] = {
    {"log", NULL, "a line on stderr for every message", OPTION_FLAG, false,
     offsetof(struct mcp_verb_options, log)},
    {"name", "N", "of the session; one of the same name gets what this one could not deliver",
     OPTION_TEXT, false, offsetof(struct mcp_verb_options, name)},
    {"print-config", "CLIENT", "how to add the server to an agent, and nothing else", OPTION_TEXT,
     false, offsetof(struct mcp_verb_options, client)},
    {0},
};

const struct verb verb_mcp = {
    .name = "mcp",
    .words = "",
    .summary = "serve the tools to an agent over MCP, on stdin and stdout",
    .details =
        "An agent starts it. It ends, with every shell that was not started to be kept, when the\n"
        "agent closes its stdin, or on SIGTERM, SIGINT or SIGHUP. Nothing is created before the\n"
        "first command. Commands start in the directory that it was started in.\n"
        "\n"
        "Clients known to --print-config: claude, codex, copilot, cursor, gemini, opencode, qwen,\n"
        "vscode, zed.\n"
        "\n"
        "  nacre mcp --print-config claude\n",
    .options = options,
    .options_size = sizeof(struct mcp_verb_options),
    .run = run,
};
