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
    int64_t port;       /* < 0 = none */
    bool until_input;
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

static int failed_to_come(const nacre_error *error)
{
    return error->code == NACRE_ETIMEOUT ? STATUS_TIMEOUT : library_failure(error);
}

/* Until one shell listens, or its program reads. */
static int wait_for_sign(const struct wait_options *o, char **words, size_t count)
{
    nacre_session *session cleanup_session = NULL;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_port port = NACRE_PORT_INIT;
    nacre_reading reading = NACRE_READING_INIT;
    char text[128];
    nacre_id id;
    if (count > 1 || o->any || (o->port >= 0 && o->until_input))
        return usage_error("wait: --port and --until-input are for one shell, one at a time");
    if (o->port > 65535)
        return usage_error("wait: --port goes from 0 to 65535");
    int status = open_shells(words, count, &session, &id);
    if (status != STATUS_OK)
        return status;
    int r = o->until_input
                ? nacre_wait_reading(session, &id,
                                     NACRE_READS_TYPED | NACRE_READS_BIT(NACRE_READS_LISTENS), 0,
                                     o->timeout_ms, &reading, &error)
                : nacre_wait_port(session, &id, (int)o->port, o->timeout_ms, &port, &error);
    if (r < 0)
        return failed_to_come(&error);
    if (o->until_input)
        printf("%s %s\n", nacre_id_format(&id).s, nacre_reading_text(&reading, text, sizeof text));
    else
        printf("%s %d\n", nacre_id_format(&id).s, port.port);
    return STATUS_OK;
}

static int wait_for(const void *options, char **words, size_t count)
{
    const struct wait_options *o = options;
    if (o->port >= 0 || o->until_input)
        return wait_for_sign(o, words, count);
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
        "timed_out, cancelled or lost. With --any, only for those that are done. With --port\n"
        "\"ID PORT\" once it listens there, with --until-input \"ID\" and who reads.\n"
        "\n"
        "exit status: 0 when they are done, whatever they returned, or with --exit-code what\n"
        "\"nacre run\" would have returned; 124 when the time was over (the shells go on); 1 if\n"
        "an id is unknown, or a shell ended before what was waited for; 2 if the arguments make no "
        "sense.\n"
        "\n"
        "examples:\n"
        "  nacre wait 1a2b3c4d\n"
        "  nacre wait 1a2b 5e6f --any --timeout 30\n"
        "  nacre wait web --port 3000 --timeout 60\n",
    .options = {{"any", NULL, "until one of them is done, not all", OPTION_FLAG, false,
                 offsetof(struct wait_options, any)},
                {"exit-code", NULL,
                 "return the first exit status that is not 0, in the order of the ids", OPTION_FLAG,
                 false, offsetof(struct wait_options, exit_code)},
                {"port", "N", "until it listens on TCP port N (0 = on any)", OPTION_COUNT, false,
                 offsetof(struct wait_options, port)},
                {"until-input", NULL, "until its program was seen to read its input", OPTION_FLAG,
                 false, offsetof(struct wait_options, until_input)},
                {"timeout", "S", "wait S seconds at most; 0 only looks", OPTION_SECONDS, false,
                 offsetof(struct wait_options, timeout_ms), 't'}},
    .options_size = sizeof(struct wait_options),
    .defaults = &(const struct wait_options){.timeout_ms = -1, .port = -1},
    .min_words = 1,
    .max_words = SIZE_MAX,
    .offered = OFFERED_ALIVE,
    .run = wait_for,
};
