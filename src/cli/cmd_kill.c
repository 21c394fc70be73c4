/* nacre kill: ends whole trees, and says what that took. */
#include <stdbool.h>
#include <stddef.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"

struct kill_options {
    const char *signal;
    int64_t grace_ms; /* < 0 = the shell's own */
    bool all;
    const char *session;
};

/* How it ended is what who kills it again wants to know. */
static int print_ended(nacre_session *session, const nacre_id *id)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    char status[64];
    if (nacre_get(session, id, &record, &error) < 0)
        return library_failure(&error);
    printf("shell %s had ended already: %s\n", nacre_id_format(id).s,
           nacre_status(&record, status, sizeof status));
    return STATUS_OK;
}

static int print_killed(const nacre_id *id, const nacre_kill_result *result)
{
    printf("killed background shell %s: %d %s signalled, %d needed SIGKILL, %d survivor%s\n",
           nacre_id_format(id).s, result->signalled, PROCESSES(result->signalled),
           result->force_killed, result->survivors, result->survivors == 1 ? "" : "s");
    if (result->keeper_killed)
        say("the keeper of %s did not answer and was ended too; the run is recorded as lost",
            nacre_id_short(id).s);
    for (size_t i = 0; i < ARRAY_SIZE(result->survivor_pids) && (int)i < result->survivors; i++)
        say("pid %d could not be ended: it is another user's or in uninterruptible sleep",
            (int)result->survivor_pids[i]);
    return result->survivors > 0 ? STATUS_FAILED : STATUS_OK;
}

static int kill_named(nacre_session *session, const char *word, const void *how)
{
    nacre_id id;
    nacre_error error = NACRE_ERROR_INIT;
    nacre_kill_result result = {0};
    if (nacre_find(session, word, &id, &error) < 0 ||
        nacre_kill(session, &id, how, &result, &error) < 0)
        return library_failure(&error);
    return result.was_alive ? print_killed(&id, &result) : print_ended(session, &id);
}

static int kill_shells(const void *options, char **words, size_t count)
{
    const struct kill_options *o = options;
    struct selection selection = {.session = o->session};
    if ((count > 0) + o->all + (o->session != NULL) != 1)
        return usage_error("kill: which shells? Give an ID..., --session S, or --all");
    nacre_kill_options how = NACRE_KILL_OPTIONS_INIT;
    how.grace_ms = o->grace_ms;
    if (o->signal && (how.signal = nacre_signal_number(o->signal)) < 0)
        return usage_error("kill: --signal takes a name or number such as INT or 9; got \"%s\"",
                           o->signal);
    return count > 0 ? each_shell(words, count, kill_named, &how)
                     : each_selected(&selection, kill_named, &how);
}

const struct verb verb_kill = {
    .name = "kill",
    .aliases = "stop",
    .words = "[ID]...",
    .summary = "end shells with everything they started",
    .details =
        "Each process of the tree gets the first signal once; what is left after the grace gets\n"
        "SIGKILL. kill returns when the tree is proven empty, or names who is left. The record "
        "and\n"
        "the output stay, until \"nacre rm\".\n"
        "\n"
        "exit status: 0, also for a shell that had already ended; 1 if an id is unknown or\n"
        "ambiguous or a process survived; 2 if the arguments make no sense.\n"
        "\n"
        "examples:\n"
        "  nacre kill 1a2b3c4d\n"
        "  nacre kill 1a2b 5e6f --signal INT --grace 10\n"
        "  nacre kill --session agent\n",
    .options = {{"signal", "S", "the first signal, by name or number (TERM); KILL has no grace",
                 OPTION_TEXT, false, offsetof(struct kill_options, signal), 's', OFFERED_SIGNALS},
                {"all", NULL, "all that run or linger in this home", OPTION_FLAG, false,
                 offsetof(struct kill_options, all)},
                {"session", "S", "all of a session, by its name or id", OPTION_TEXT, false,
                 offsetof(struct kill_options, session), 0, OFFERED_SESSIONS},
                {"grace", "S", "seconds until SIGKILL (2)", OPTION_SECONDS, false,
                 offsetof(struct kill_options, grace_ms)}},
    .options_size = sizeof(struct kill_options),
    .defaults = &(const struct kill_options){.grace_ms = -1},
    .max_words = SIZE_MAX,
    .offered = OFFERED_ALIVE,
    .run = kill_shells,
};
