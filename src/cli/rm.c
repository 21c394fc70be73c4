/* nacre rm: forgets shells that have ended, with all their output. */
#include <nacre/nacre.h>

#include "cli/cli.h"
#include "cli/out.h"
#include "cli/shells.h"

static int remove_one(nacre_session *session, const char *word, UNUSED const void *argument)
{
    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    int status = find_shell(session, word, &id);
    if (status != STATUS_OK)
        return status;
    return nacre_remove(session, &id, &error) < 0 ? library_failure(&error) : STATUS_OK;
}

static int remove_shells(UNUSED const void *options, char **words, size_t count)
{
    return each_shell(words, count, remove_one, NULL);
}

static const struct option options[] = {{0}};

const struct verb verb_rm = {
    .name = "rm",
    .words = "ID...",
    .summary = "forget shells that have ended, with their output",
    .details = "The record and everything the shell printed are removed at once and for ever. A\n"
               "shell that runs or lingers is refused: kill it first.\n"
               "\n"
               "examples:\n"
               "  nacre rm 1a2b3c4d\n",
    .options = options,
    .min_words = 1,
    .max_words = SIZE_MAX,
    .run = remove_shells,
};
