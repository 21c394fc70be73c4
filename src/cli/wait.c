/* nacre wait: until shells have an outcome. */
#include <stddef.h>
#include <stdlib.h>

#include <nacre/nacre.h>

#include "cli/cli.h"
#include "cli/out.h"
#include "cli/shells.h"

struct wait_options {
    bool any;
    int64_t timeout_ms; /* < 0 = none */
};

/* The shells that are done, or all of them. */
static int print_statuses(nacre_session *session, const nacre_id *ids, size_t count, bool only_done)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        char text[64];
        nacre_error error = NACRE_ERROR_INIT;
        nacre_record record cleanup_record = NACRE_RECORD_INIT;
        if (nacre_get(session, &ids[i], &record, &error) < 0)
            status = library_failure(&error);
        else if (record.outcome != NACRE_RUNNING || !only_done)
            printf("%s %s\n", nacre_id_format(&ids[i]).s, nacre_status(&record, text, sizeof text));
    }
    return status;
}

static int wait_for(const void *options, char **words, size_t count)
{
    const struct wait_options *o = options;
    int status = check_ids(words, count);
    if (status != STATUS_OK)
        return status;
    nacre_session *session cleanup_session = NULL;
    if ((status = open_session(&session)) != STATUS_OK)
        return status;
    cleanup_free nacre_id *ids = calloc(count, sizeof *ids);
    if (!ids)
        return failure("out of memory");
    for (size_t i = 0; i < count; i++)
        if ((status = find_shell(session, words[i], &ids[i])) != STATUS_OK)
            return status;

    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_wait(session, ids, count, o->any ? NACRE_WAIT_ANY : NACRE_WAIT_ALL, o->timeout_ms,
                       NULL, &error);
    if (r < 0 && r != NACRE_ETIMEOUT)
        return library_failure(&error);
    status = print_statuses(session, ids, count, o->any && r >= 0);
    return status != STATUS_OK ? status : r == NACRE_ETIMEOUT ? STATUS_TIMEOUT : STATUS_OK;
}

static const struct option options[] = {
    {"any", NULL, "until one of them is done, not all", OPTION_FLAG, false,
     offsetof(struct wait_options, any)},
    {"timeout", "S", "wait S seconds at most; 0 only looks", OPTION_SECONDS, false,
     offsetof(struct wait_options, timeout_ms)},
    {0},
};

const struct verb verb_wait = {
    .name = "wait",
    .words = "ID...",
    .summary = "wait until shells are done",
    .details =
        "Prints \"ID STATUS\" for each shell: running, exited(CODE), signaled(SIG), killed,\n"
        "timed_out, cancelled or lost. With --any, only for those that are done.\n"
        "\n"
        "exit status: 0 when they are done, whatever they returned; 124 when the time was over\n"
        "(the shells go on); 1 if an id is unknown; 2 if the arguments make no sense.\n"
        "\n"
        "examples:\n"
        "  nacre wait 1a2b3c4d\n"
        "  nacre wait 1a2b 5e6f --any --timeout 30\n",
    .options = options,
    .options_size = sizeof(struct wait_options),
    .defaults = &(const struct wait_options){.timeout_ms = -1},
    .min_words = 1,
    .max_words = SIZE_MAX,
    .run = wait_for,
};
