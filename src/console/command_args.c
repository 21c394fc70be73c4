#include "console/command_args.h"

#include <stdint.h>
#include <string.h>

#include "config/limits.h"
#include "config/settings.h"
#include "console/out.h"

int take_words(const char *verb, char **words, size_t count, nacre_command *command)
{
    if (count == 1) {
        command->text = words[0];
        return STATUS_OK;
    }
    if (command->shell)
        return usage_error("%s: --shell reads a command of one argument; several are a program and "
                           "its arguments, which no shell reads",
                           verb);
    command->argv = (const char *const *)words;
    return STATUS_OK;
}

int start_failure(const nacre_command *command, const nacre_error *error)
{
    bool no_program = strcmp(error->stage, "exec") == 0 && command->argv;
    int status = library_failure(error);
    if (no_program && error->sys_errno == ENOENT)
        say("several arguments are a program with its arguments; a shell command is one argument, "
            "in quotes");
    if (no_program)
        return error->sys_errno == ENOENT ? STATUS_NO_PROGRAM : STATUS_NOT_EXECUTABLE;
    return status;
}

int check_env(const char *verb, const char *const *env)
{
    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        if (!equals || equals == *env)
            return usage_error("%s: --env takes NAME=value; got \"%s\"", verb, *env);
    }
    return STATUS_OK;
}

/* One "memory=2G" of several with commas between; word is written to. */
static int set_limit(const char *verb, char *word, nacre_settings *settings)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_limits checked = {0};
    char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return usage_error("%s: --limit takes NAME=VALUE, such as memory=2G; got \"%s\"", verb,
                           word);
    *equals = '\0';
    if (limits_parse("--limit ", word, equals + 1, &checked, &error) < 0)
        return usage_error("%s: %s", verb, error.msg);
    const char *name = limit_setting(limit_find(word))->name;
    return nacre_settings_set(settings, name, equals + 1, "--limit", &error) < 0
               ? library_failure(&error)
               : STATUS_OK;
}

static int set_limits(const char *verb, const char *list, nacre_settings *settings)
{
    cleanup_free char *words = strdup(list);
    char *rest = NULL;
    int status = words ? STATUS_OK : failure("out of memory");
    for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && status == STATUS_OK;
         word = strtok_r(NULL, ",", &rest))
        status = set_limit(verb, word, settings);
    return status;
}

int limited_settings(const char *verb, const char *const *words, nacre_settings **ret_settings)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_settings *settings cleanup_settings = NULL;
    if (nacre_settings_load(NULL, &settings, &error) < 0)
        return library_failure(&error);
    int status = STATUS_OK;
    for (; words && *words && status == STATUS_OK; words++)
        status = set_limits(verb, *words, settings);
    if (status == STATUS_OK)
        *ret_settings = TAKE_PTR(settings);
    return status;
}
