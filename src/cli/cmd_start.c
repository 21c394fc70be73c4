/* nacre start: a command that goes on after nacre has left. */
#include <stddef.h>
#include <stdlib.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "config/settings.h"
#include "console/command_args.h"
#include "console/fence_args.h"
#include "console/out.h"
#include "console/shells.h"
#include "console/size_args.h"

struct start_options {
    const char *name;
    bool replace;
    int64_t timeout_ms;
    const char *cwd;
    const char **env;
    const char *shell;
    const char **limits;
    struct fence_args fence;
    bool keep_stdin;
    bool tty;
    const char *size;
};

static int start_shell(const void *options, char **words, size_t count)
{
    const struct start_options *o = options;
    if (o->replace && !(o->name && *o->name))
        return usage_error("start: --replace needs --name: it replaces the shell of that name");
    int status = check_env("start", (const char *const *)o->env);
    if (status != STATUS_OK)
        return status;
    nacre_command command = NACRE_COMMAND_INIT;
    command.shell = o->shell;
    if ((status = take_words("start", words, count, &command)) != STATUS_OK)
        return status;
    if ((status = parse_size("start", o->size, &command.columns, &command.rows)) != STATUS_OK)
        return status;
    nacre_settings *settings cleanup_settings = NULL;
    nacre_session *session cleanup_session = NULL;
    status = limited_settings("start", (const char *const *)o->limits, &settings);
    if (status == STATUS_OK)
        status = fence_args_apply(&o->fence, &settings);
    if (status == STATUS_OK)
        status = open_session_with(settings, &session);
    if (status != STATUS_OK)
        return status;

    command.cwd = o->cwd;
    command.env = (const char *const *)o->env;
    command.timeout_ms = o->timeout_ms;
    command.name = o->name;
    command.replace = o->replace;
    command.lifetime = NACRE_LIFE_KEEP;
    command.background = 1;
    command.tty = o->tty || o->size;
    command.input = o->keep_stdin ? NACRE_STDIN_PIPE : NACRE_STDIN_NULL;

    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_start(session, &command, &id, NULL, &error);
    if (r < 0)
        return start_failure(&command, &error);
    puts(nacre_id_format(&id).s);
    const char *outer = getenv("NACRE_ID");
    if (r > 0)
        say("already running: shell %s has the name \"%s\", this command and this directory",
            nacre_id_short(&id).s, o->name);
    else if (outer && *outer)
        say("this shell lives inside shell %.*s and ends with it", NACRE_ID_SHORT_DIGITS, outer);
    return STATUS_OK;
}

const struct verb verb_start = {
    .name = "start",
    .words = "COMMAND",
    .summary = "start a command that goes on in the background, print its id",
    .details =
        "COMMAND is as for \"nacre run\": one argument is a shell command, several are a\n"
        "program with its arguments. It ends by itself, by its timeout, or by \"nacre kill\"; its "
        "output can be read at any time\n"
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
    .options = {{"name", "N", "a name; if it runs already under that name, print that id",
                 OPTION_TEXT, false, offsetof(struct start_options, name)},
                {"replace", NULL, "with --name: end what has the name and is another command",
                 OPTION_FLAG, false, offsetof(struct start_options, replace)},
                {"timeout", "S", "end it after S seconds, with everything it started",
                 OPTION_SECONDS, true, offsetof(struct start_options, timeout_ms)},
                {"cwd", "D", "the directory to run it in", OPTION_TEXT, false,
                 offsetof(struct start_options, cwd), 'C', OFFERED_FOLDERS},
                {"env", "K=V", "set a variable in its environment; may be repeated", OPTION_LIST,
                 false, offsetof(struct start_options, env), 'e'},
                {"shell", "SH", "the shell that reads the command (bash if there is one, else sh)",
                 OPTION_TEXT, false, offsetof(struct start_options, shell)},
                LIMIT_OPTION(start_options),
                FENCE_OPTIONS(start_options),
                {"keep-stdin", NULL,
                 "keep its input open for \"nacre input\"; else it reads nothing", OPTION_FLAG,
                 false, offsetof(struct start_options, keep_stdin)},
                {"tty", NULL, "give it a terminal, of 120x40; see \"nacre screen\"", OPTION_FLAG,
                 false, offsetof(struct start_options, tty), 't'},
                {"size", "CxR", "likewise, with so many columns and rows", OPTION_TEXT, false,
                 offsetof(struct start_options, size)}},
    .options_size = sizeof(struct start_options),
    .min_words = 1,
    .max_words = SIZE_MAX,
    .is_command = true,
    .offered = OFFERED_PROGRAMS,
    .run = start_shell,
};
