/* nacre wait: until shells have an outcome. */
#include <stddef.h>
#include <stdlib.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"

struct wait_options {
    bool any;
    bool exit_code;
    int64_t timeout_ms; /* < 0 = none */
};

/* The shells that are done, or all of them; *ret_code is the first exit status that is not 0. */
static int print_statuses(nacre_session *session, const nacre_id *ids, size_t count, bool only_done,
                          int *ret_code)
{
    int status = STATUS_OK;
    *ret_code = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        char text[64];
        nacre_error error = NACRE_ERROR_INIT;
        nacre_record record cleanup_record = NACRE_RECORD_INIT;
        if (nacre_get(session, &ids[i], &record, &error) < 0) {
            status = library_failure(&error);
            continue;
        }
        bool done = record.outcome != NACRE_RUNNING;
        if (done && *ret_code == STATUS_OK)
            *ret_code = record_status(&record);
        if (done || !only_done)
            printf("%s %s\n", nacre_id_format(&ids[i]).s, nacre_status(&record, text, sizeof text));
    }
    return status;
}

static int wait_for(const void *options, char **words, size_t count)
{
    const struct wait_options *o = options;
    cleanup_free nacre_id *ids = calloc(count, sizeof *ids);
    if (!ids)
        return failure("out of memory");
    nacre_session *session cleanup_session = NULL;
    int status = open_shells(words, count, &session, ids);
    if (status != STATUS_OK)
        return status;

    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_wait(session, ids, count, o->any ? NACRE_WAIT_ANY : NACRE_WAIT_ALL, o->timeout_ms,
                       NULL, &error);
    if (r < 0 && r != NACRE_ETIMEOUT)
        return library_failure(&error);
    int code;
    status = print_statuses(session, ids, count, o->any && r >= 0, &code);
    if (status == STATUS_OK && r == NACRE_ETIMEOUT)
        status = STATUS_TIMEOUT;
    return status == STATUS_OK && o->exit_code ? code : status;
}

const struct verb verb_wait = {
    .name = "wait",
    .words = "ID...",
    .summary = "wait until shells are done",
    .details =
        "Prints \"ID STATUS\" for each shell: running, exited(CODE), signaled(SIG), killed,\n"
        "timed_out, cancelled or lost. With --any, only for those that are done.\n"
        "\n"
        "exit status: 0 when they are done, whatever they returned, or with --exit-code what\n"
        "\"nacre run\" would have returned; 124 when the time was over (the shells go on); 1 if\n"
        "an id is unknown; 2 if the arguments make no sense.\n"
        "\n"
        "examples:\n"
        "  nacre wait 1a2b3c4d\n"
        "  nacre wait 1a2b 5e6f --any --timeout 30\n",
    .options = {{"any", NULL, "until one of them is done, not all", OPTION_FLAG, false,
                 offsetof(struct wait_options, any)},
                {"exit-code", NULL,
                 "return the first exit status that is not 0, in the order of the ids", OPTION_FLAG,
                 false, offsetof(struct wait_options, exit_code)},
                {"timeout", "S", "wait S seconds at most; 0 only looks", OPTION_SECONDS, false,
                 offsetof(struct wait_options, timeout_ms), 't'}},
    .options_size = sizeof(struct wait_options),
    .defaults = &(const struct wait_options){.timeout_ms = -1},
    .min_words = 1,
    .max_words = SIZE_MAX,
    .offered = OFFERED_ALIVE,
    .run = wait_for,
};
