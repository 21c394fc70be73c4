/* nacre rm: forgets shells that have ended, with all their output. */
#include <stdbool.h>
#include <stddef.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"

struct rm_options {
    bool all;
};

static int remove_shell(nacre_session *session, const char *word, UNUSED const void *argument)
{
    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    if (nacre_find(session, word, &id, &error) < 0 || nacre_remove(session, &id, &error) < 0)
        return library_failure(&error);
    return STATUS_OK;
}

static int remove_shells(const void *options, char **words, size_t count)
{
    static const struct selection ended = {.ended = true};
    const struct rm_options *o = options;
    if ((count > 0) == o->all)
        return usage_error("rm: which shells? Give an ID..., or --all for all that have ended");
    return o->all ? each_selected(&ended, remove_shell, NULL)
                  : each_shell(words, count, remove_shell, NULL);
}

const struct verb verb_rm = {
    .name = "rm",
    .words = "[ID]...",
    .summary = "forget shells that have ended, with their output",
    .details = "The record and everything the shell printed are removed at once and for ever. A\n"
               "shell that runs or lingers is refused: kill it first.\n"
               "\n"
               "examples:\n"
               "  nacre rm 1a2b3c4d\n",
    .options = {{"all", NULL, "all that have ended, in this home", OPTION_FLAG, false,
                 offsetof(struct rm_options, all)}},
    .options_size = sizeof(struct rm_options),
    .max_words = SIZE_MAX,
    .offered = OFFERED_ENDED,
    .run = remove_shells,
};
