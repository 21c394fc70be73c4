/* nacre serve: the server for many agents at once, over HTTP. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/serve_place.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/command_args.h"
#include "console/fence_args.h"
#include "console/out.h"
#include "serve/serve_http.h"
#include "serve/token.h"

struct serve_verb_options {
    const char *listen;
    bool anywhere;
    bool no_token;
    bool rotate;
    const char *token_file;
    const char **host;
    const char *cwd;
    int64_t gone_ms, idle_ms;
    bool log;
    bool no_page;
    const char **limits;
    struct fence_args fence;
};

static const struct serve_verb_options usual = {.gone_ms = SERVE_GONE_MS, .idle_ms = SERVE_IDLE_MS};

static void tell_where(const char *where, void *userdata)
{
    (void)userdata;
    printf("%s\n", where);
    fflush(stdout);
}

static int rotate_token(const char *path)
{
    struct token token;
    nacre_error err = NACRE_ERROR_INIT;
    if (token_load(path, true, &token, &err) < 0)
        return library_failure(&err);
    say("%s holds a new token; a server that runs takes it when it is started again", path);
    return STATUS_OK;
}

static int serve_http(const void *options, UNUSED char **words, UNUSED size_t count)
{
    const struct serve_verb_options *o = options;
    nacre_settings *settings cleanup_settings = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    char token_file[PATH_MAX], home[PATH_MAX];
    if (o->cwd && *o->cwd != '/')
        return usage_error("serve: --cwd takes an absolute path");
    int status = limited_settings("serve", (const char *const *)o->limits, &settings);
    if (status == STATUS_OK)
        status = fence_args_apply(&o->fence, &settings);
    if (status == STATUS_OK)
        status = serve_token_path(o->token_file, settings, token_file, sizeof token_file);
    if (status == STATUS_OK)
        status = serve_home(settings, home, sizeof home);
    if (status != STATUS_OK)
        return status;
    if (o->rotate)
        return rotate_token(token_file);
    struct serve_options serve = {.listen = o->listen,
                                  .anywhere = o->anywhere,
                                  .no_token = o->no_token,
                                  .token_file = token_file,
                                  .host = (const char *const *)o->host,
                                  .cwd = o->cwd,
                                  .gone_ms = o->gone_ms,
                                  .idle_ms = o->idle_ms,
                                  .log = o->log,
                                  .no_page = o->no_page,
                                  .home = home,
                                  .settings = settings};
    return serve_run(&serve, tell_where, NULL, &err) < 0 ? library_failure(&err) : STATUS_OK;
}

const struct verb verb_serve = {
    .name = "serve",
    .words = "",
    .summary = "serve the tools to many agents at once over MCP, on HTTP",
    .details =
        "One process serves every agent that asks at /mcp, or at /mcp/NAME; each has a session\n"
        "of its own with its own shells. It prints where it listens, and ends, with all shells\n"
        "that were not started to be kept, on SIGTERM, SIGINT or SIGHUP.\n"
        "\n"
        "Whoever asks shows a token: Authorization: Bearer TOKEN. It is in the file http-token of\n"
        "the home, which only you can read, and is made by the first server; \"nacre mcp\n"
        "--print-config CLIENT --http\" prints how an agent is told. Nothing is encrypted: other\n"
        "machines come by an ssh tunnel, or by a proxy in front of a socket.\n"
        "\n"
        "A session ends when its agent says so; when all of its streams are gone and it asked\n"
        "for nothing since (--gone); or when it asked for nothing for long (--idle). A call that\n"
        "is under way counts as life. Commands start in the directory of the server, in --cwd, or\n"
        "in that which the URL names: /mcp?cwd=/path. Their environment is that of the server.\n"
        "\n"
        "examples:\n"
        "  nacre serve\n"
        "  nacre serve --listen localhost:9000\n"
        "  nacre serve --listen /run/user/1000/nacre.sock\n",
    .options = {{"listen", "WHERE",
                 "ADDRESS:PORT of the loopback, or the absolute path of a socket that only you can "
                 "use; " SERVE_ADDRESS " if it is not given",
                 OPTION_TEXT, false, offsetof(struct serve_verb_options, listen)},
                {"listen-anywhere", NULL, "allow --listen an address that others can reach",
                 OPTION_FLAG, false, offsetof(struct serve_verb_options, anywhere)},
                {"host", "NAME", "a further name by which the server is called", OPTION_LIST, false,
                 offsetof(struct serve_verb_options, host)},
                {"token-file", "FILE", "where the token is", OPTION_TEXT, false,
                 offsetof(struct serve_verb_options, token_file), 0, OFFERED_FILES},
                {"rotate", NULL, "make a new token, and serve nothing", OPTION_FLAG, false,
                 offsetof(struct serve_verb_options, rotate)},
                {"no-token", NULL,
                 "ask nobody for a token; every user of this machine may run "
                 "commands as you then",
                 OPTION_FLAG, false, offsetof(struct serve_verb_options, no_token)},
                {"cwd", "DIR", "where commands start", OPTION_TEXT, false,
                 offsetof(struct serve_verb_options, cwd), 0, OFFERED_FOLDERS},
                {"gone", "TIME", "until a session whose streams are gone ends; 5m", OPTION_SECONDS,
                 true, offsetof(struct serve_verb_options, gone_ms)},
                {"idle", "TIME", "until a session that asks for nothing ends; 1h", OPTION_SECONDS,
                 true, offsetof(struct serve_verb_options, idle_ms)},
                {"no-page", NULL, "no page for people, MCP alone", OPTION_FLAG, false,
                 offsetof(struct serve_verb_options, no_page)},
                {"log", NULL, "a line on stderr for every message", OPTION_FLAG, false,
                 offsetof(struct serve_verb_options, log)},
                LIMIT_OPTION(serve_verb_options),
                FENCE_OPTIONS(serve_verb_options)},
    .options_size = sizeof(struct serve_verb_options),
    .defaults = &usual,
    .run = serve_http,
};
