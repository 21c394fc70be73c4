#include "cli/shells.h"

#include <string.h>

#include "cli/out.h"

int open_session(nacre_session **ret_session)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_error error = NACRE_ERROR_INIT;
    options.single = 1;
    options.person = 1;
    return nacre_open(&options, ret_session, &error) < 0 ? library_failure(&error) : STATUS_OK;
}

/* Refuses what can be no id before anything is done with the others. */
int check_ids(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]);
        if (strspn(words[i], "0123456789abcdef") != length || length > NACRE_ID_DIGITS)
            return usage_error("\"%s\" is not an id: ids are hexadecimal digits in lower case, as "
                               "\"nacre list\" shows them",
                               words[i]);
        if (length < NACRE_ID_PREFIX_MIN)
            return usage_error("\"%s\" is too short for an id: give at least %d digits", words[i],
                               NACRE_ID_PREFIX_MIN);
    }
    return STATUS_OK;
}

int find_shell(nacre_session *session, const char *word, nacre_id *ret_id)
{
    nacre_error error = NACRE_ERROR_INIT;
    return nacre_find(session, word, ret_id, &error) < 0 ? library_failure(&error) : STATUS_OK;
}

int parse_stream(const char *verb, const char *text, unsigned *ret_streams)
{
    *ret_streams = !text                      ? NACRE_BOTH
                   : strcmp(text, "out") == 0 ? NACRE_OUT
                   : strcmp(text, "err") == 0 ? NACRE_ERR
                                              : 0;
    if (*ret_streams)
        return STATUS_OK;
    return usage_error("%s: --stream takes \"out\" or \"err\"; got \"%s\"", verb, text);
}

int each_shell(char **words, size_t count, shell_fn *fn, const void *argument)
{
    int status = check_ids(words, count);
    if (status != STATUS_OK)
        return status;
    nacre_session *session cleanup_session = NULL;
    if ((status = open_session(&session)) != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        int r = fn(session, words[i], argument);
        status = MAX(status, r);
    }
    return status;
}
