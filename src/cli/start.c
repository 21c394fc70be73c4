/* nacre start: a command that goes on after nacre has left. */
#include <stddef.h>
#include <stdlib.h>

#include <nacre/nacre.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/out.h"
#include "cli/shells.h"

struct start_options {
    const char *name;
    bool replace;
    int64_t timeout_ms;
    const char *cwd;
    const char **env;
    const char *shell;
    bool keep_stdin;
};

static int start(const void *options, char **words, size_t count)
{
    const struct start_options *o = options;
    if (o->replace && !(o->name && *o->name))
        return usage_error("start: --replace needs --name: it replaces the shell of that name");
    int status = check_env("start", (const char *const *)o->env);
    if (status != STATUS_OK)
        return status;
    cleanup_free char *text = join_words(words, count);
    if (!text)
        return STATUS_FAILED;
    nacre_session *session cleanup_session = NULL;
    if ((status = open_session(&session)) != STATUS_OK)
        return status;

    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    command.shell = o->shell;
    command.cwd = o->cwd;
    command.env = (const char *const *)o->env;
    command.timeout_ms = o->timeout_ms;
    command.name = o->name;
    command.replace = o->replace;
    command.lifetime = NACRE_LIFE_KEEP;
    command.background = 1;
    command.input = o->keep_stdin ? NACRE_STDIN_PIPE : NACRE_STDIN_NULL;

    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_start(session, &command, &id, NULL, &error);
    if (r < 0)
        return library_failure(&error);
    puts(nacre_id_format(&id).s);
    const char *outer = getenv("NACRE_ID");
    if (r > 0)
        say("already running: shell %s has the name \"%s\", this command and this directory",
            nacre_id_short(&id).s, o->name);
    else if (outer && *outer)
        say("this shell lives inside shell %.*s and ends with it", NACRE_ID_SHORT_DIGITS, outer);
    return STATUS_OK;
}

static const struct option options[] = {
    {"name", "N", "a name; if it runs already under that name, print that id", OPTION_TEXT, false,
     offsetof(struct start_options, name)},
    {"replace", NULL, "with --name: end what has the name and is another command", OPTION_FLAG,
     false, offsetof(struct start_options, replace)},
    {"timeout", "S", "end it after S seconds, with everything it started", OPTION_SECONDS, true,
     offsetof(struct start_options, timeout_ms)},
    {"cwd", "D", "the directory to run it in", OPTION_TEXT, false,
     offsetof(struct start_options, cwd)},
    {"env", "K=V", "set a variable in its environment; may be repeated", OPTION_LIST, false,
     offsetof(struct start_options, env)},
    {"shell", "SH", "the shell that reads the command (bash if there is one, else sh)", OPTION_TEXT,
     false, offsetof(struct start_options, shell)},
    {"keep-stdin", NULL, "keep its input open for \"nacre input\"; else it reads nothing",
     OPTION_FLAG, false, offsetof(struct start_options, keep_stdin)},
    {0},
};

const struct verb verb_start = {
    .name = "start",
    .words = "COMMAND",
    .summary = "start a command that goes on in the background, print its id",
    .details =
        "COMMAND is one shell command, normally one argument; several are joined by blanks. It\n"
        "ends by itself, by its timeout, or by \"nacre kill\"; its output can be read at any time\n"
        "with \"nacre output\". A shell started inside another shell of nacre ends with that one.\n"
        "\n"
        "With --name only one runs: if the same command runs under that name in the same\n"
        "directory, its id is printed, and nothing is started. If another command has the name,\n"
        "that is an error, or with --replace the other one is ended first.\n"
        "\n"
        "examples:\n"
        "  id=$(nacre start --name web --replace -- 'python3 -m http.server 8000')\n"
        "  nacre output \"$id\" --follow\n"
        "  nacre kill \"$id\"\n",
    .options = options,
    .options_size = sizeof(struct start_options),
    .min_words = 1,
    .max_words = SIZE_MAX,
    .is_command = true,
    .run = start,
};
