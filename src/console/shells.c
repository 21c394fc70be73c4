#include "console/shells.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "console/ask_person.h"
#include "console/out.h"
#include "recall/parse_query.h"

int open_session(nacre_session **ret_session)
{
    return open_session_with(NULL, ret_session);
}

int open_session_with(const nacre_settings *settings, nacre_session **ret_session)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_error error = NACRE_ERROR_INIT;
    options.single = 1;
    options.person = 1;
    options.settings = settings;
    options.ask = ask_person_at_terminal;
    return nacre_open(&options, ret_session, &error) < 0 ? library_failure(&error) : STATUS_OK;
}

int find_shell(nacre_session *session, const char *word, nacre_id *ret_id)
{
    nacre_error error = NACRE_ERROR_INIT;
    int r = nacre_find(session, word, ret_id, &error);
    return r == NACRE_EINVAL ? usage_error("%s", error.msg)
           : r < 0           ? library_failure(&error)
                             : STATUS_OK;
}

/* What is neither an id nor a name is refused before anything is done with the others. */
static int check_named(nacre_session *session, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nacre_id id;
        nacre_error error = NACRE_ERROR_INIT;
        if (nacre_find(session, words[i], &id, &error) == NACRE_EINVAL)
            return usage_error("%s", error.msg);
    }
    return STATUS_OK;
}

int open_shells(char **words, size_t count, nacre_session **ret_session, nacre_id *ret_ids)
{
    int status = open_session(ret_session);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = find_shell(*ret_session, words[i], &ret_ids[i]);
    return status;
}

int record_status(const nacre_record *record)
{
    switch (record->outcome) {
    case NACRE_EXITED:
        return record->exit_code;
    case NACRE_SIGNALED:
        return STATUS_SIGNAL + record->signal;
    case NACRE_TIMED_OUT:
        return STATUS_TIMEOUT;
    case NACRE_KILLED:
    case NACRE_CANCELLED:
        return STATUS_SIGNAL + (record->signal > 0 ? record->signal : SIGTERM);
    default:
        return STATUS_FAILED;
    }
}

bool status_has_failed(const char *status)
{
    static const char *const bad[] = {"exited(", "signaled(", "timed_out", "lost"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (strncmp(status, bad[i], strlen(bad[i])) == 0)
            return strncmp(status, "exited(0)", strlen("exited(0)")) != 0;
    return false;
}

bool record_has_failed(const nacre_record *record)
{
    char status[64];
    return status_has_failed(nacre_status(record, status, sizeof status));
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

int parse_since(const char *verb, const char *text, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (!text || parse_moment(text, clock_real_ns() / NS_PER_MS, ret_ms))
        return STATUS_OK;
    return usage_error("%s: --since takes %s; got \"%s\"", verb, MOMENT_HINT, text);
}

int each_shell(char **words, size_t count, shell_fn *fn, const void *argument)
{
    nacre_session *session cleanup_session = NULL;
    int status = open_session(&session);
    if (status == STATUS_OK)
        status = check_named(session, words, count);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        int r = fn(session, words[i], argument);
        status = MAX(status, r);
    }
    return status;
}

struct session_search {
    const char *word;
    struct sessions *found;
    size_t by_id;
};

static int add_session_id(struct sessions *found, const nacre_id *id)
{
    nacre_id *ids = realloc(found->ids, (found->count + 1) * sizeof *ids);
    if (!ids)
        return failure("out of memory");
    found->ids = ids;
    ids[found->count++] = *id;
    return STATUS_OK;
}

static int match(const nacre_session_info *info, void *userdata)
{
    struct session_search *search = userdata;
    size_t length = strlen(search->word);
    bool by_id = length >= NACRE_ID_PREFIX_MIN &&
                 strncmp(nacre_id_format(&info->id).s, search->word, length) == 0;
    search->by_id += by_id;
    return by_id || strcmp(info->name, search->word) == 0 ? add_session_id(search->found, &info->id)
                                                          : STATUS_OK;
}

int sessions_find(nacre_session *session, const char *word, struct sessions *ret)
{
    struct session_search search = {.word = word, .found = ret};
    nacre_error error = NACRE_ERROR_INIT;
    int r = *word ? nacre_list_sessions(session, match, &search, &error) : 0;
    if (r != 0)
        return r < 0 ? library_failure(&error) : r;
    if (ret->count == 0)
        return failure("no session with the name or id \"%s\"; see \"nacre sessions --all\"", word);
    if (search.by_id > 1)
        return failure("several sessions begin with \"%s\"; give more digits", word);
    return STATUS_OK;
}

bool sessions_have(const struct sessions *sessions, const nacre_id *id)
{
    for (size_t i = 0; i < sessions->count; i++)
        if (nacre_id_equal(&sessions->ids[i], id))
            return true;
    return false;
}

const char *tier_meaning(nacre_tier tier)
{
    switch (tier) {
    case NACRE_TIER_CGROUP:
        return "all that a command starts is held by a cgroup of its own; nothing escapes";
    case NACRE_TIER_SUBREAPER:
        return "all that a command starts stays below its keeper; after a crash of the keeper, "
               "what wiped its environment is out of reach";
    case NACRE_TIER_GROUP:
        return "only the process group of a command is held; what leaves the group escapes";
    default: /* of single shells, never of a machine */
        return "unknown";
    }
}

/* -- All that are selected -------------------------------------------------------------------- */

struct picking {
    const struct selection *selection;
    const struct sessions *only; /* NULL = of all sessions */
    nacre_id *ids;
    size_t count, cap;
};

static int pick(const nacre_listed *listed, void *userdata)
{
    struct picking *p = userdata;
    const nacre_record *record = listed->record;
    bool over = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_EMPTY;
    if (over != p->selection->ended || (p->only && !sessions_have(p->only, &record->session)))
        return 0;
    if (GROW(p->ids, p->count, p->cap) < 0)
        return failure("out of memory");
    p->ids[p->count++] = record->id;
    return 0;
}

static int do_each(nacre_session *session, struct picking *p, shell_fn *fn, const void *argument)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    options.only_alive = !p->selection->ended;
    int status = nacre_list(session, &options, pick, p, &error);
    if (status != 0)
        return status < 0 ? library_failure(&error) : status;
    for (size_t i = 0; i < p->count; i++) {
        int r = fn(session, nacre_id_format(&p->ids[i]).s, argument);
        status = MAX(status, r);
    }
    return status;
}

int each_selected(const struct selection *selection, shell_fn *fn, const void *argument)
{
    nacre_session *session cleanup_session = NULL;
    struct sessions only cleanup_sessions = {0};
    struct picking p = {.selection = selection, .only = selection->session ? &only : NULL};
    int status = open_session(&session);
    if (status == STATUS_OK && selection->session)
        status = sessions_find(session, selection->session, &only);
    if (status == STATUS_OK)
        status = do_each(session, &p, fn, argument);
    free(p.ids);
    return status;
}
