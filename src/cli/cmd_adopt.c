/* nacre adopt: takes shells out of their sessions, so that they survive them. */
#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"

static int adopt_one(nacre_session *session, const char *word, UNUSED const void *argument)
{
    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_find(session, word, &id, &error);
    if (r < 0 || (r = nacre_keep(session, &id, &error)) < 0)
        return library_failure(&error);
    printf(r > 0 ? "shell %s is kept already, and its session has ended: there is nothing to do\n"
                 : "shell %s is kept: it no longer ends with its session, but by itself, its "
                   "timeout or \"nacre kill\"\n",
           nacre_id_format(&id).s);
    return STATUS_OK;
}

static int adopt_shells(UNUSED const void *options, char **words, size_t count)
{
    return each_shell(words, count, adopt_one, NULL);
}

const struct verb verb_adopt = {
    .name = "adopt",
    .words = "ID...",
    .summary = "take shells out of their session, so that they survive it",
    .details = "A shell that an agent started ends with the agent. adopt takes it out of that\n"
               "session: it goes on until it ends by itself, by its timeout or by \"nacre kill\".\n"
               "What has ended cannot be adopted; what is kept already stays as it is.\n"
               "\n"
               "examples:\n"
               "  nacre adopt 1a2b3c4d\n",
    .min_words = 1,
    .max_words = SIZE_MAX,
    .offered = OFFERED_ALIVE,
    .run = adopt_shells,
};
