/* Getting at shells: the session of one invocation, and the ids people type. */
#pragma once

#include <stdlib.h>

#include <nacre/nacre.h>

#include "console/out.h"

/* Each says what is wrong itself and returns the status to exit with. */
int open_session(nacre_session **ret_session);

/* The same with settings, which may be NULL. */
int open_session_with(const nacre_settings *settings, nacre_session **ret_session);
int find_shell(nacre_session *session, const char *word, nacre_id *ret_id);

/* All of these: a session, and the ids of all the shells that were named. */
int open_shells(char **words, size_t count, nacre_session **ret_session, nacre_id *ret_ids);

/* What a containment holds. */
const char *tier_meaning(nacre_tier tier);

/* The status that a command's end is worth, as "nacre run" passes it on. */
int record_status(const nacre_record *record);

/* Whether it ended badly, and not because somebody wanted it to end; the same of a status in words.
 */
bool record_has_failed(const nacre_record *record);
bool status_has_failed(const char *status);

/* The streams of --stream: "out", "err", or both if text is NULL. */
int parse_stream(const char *verb, const char *text, unsigned *ret_streams);

/* The moment of --since in ms since the epoch; 0 if text is NULL. */
int parse_since(const char *verb, const char *text, int64_t *ret_ms);

/* Does one thing with each of the shells that were named, in a session of its own, and returns the
 * worst status. Nothing is done if one of the words is neither
 * an id nor a name. */
typedef int shell_fn(nacre_session *session, const char *word, const void *argument);
int each_shell(char **words, size_t count, shell_fn *fn, const void *argument);

/* Which shells of the home are meant, if not by their ids. */
struct selection {
    const char *session; /* of this one, by its name or id; NULL = of all */
    bool ended;          /* those that are over, not those that run or linger */
};

/* The same with all that are selected; what ended or went meanwhile is for fn to judge. */
int each_selected(const struct selection *selection, shell_fn *fn, const void *argument);

/* The sessions that have a name, or the one whose id begins with a word. */
struct sessions {
    nacre_id *ids;
    size_t count;
};

int sessions_find(nacre_session *session, const char *word, struct sessions *ret);
bool sessions_have(const struct sessions *sessions, const nacre_id *id);

static inline void free_sessions(struct sessions *sessions)
{
    free(sessions->ids);
}

#define cleanup_sessions __attribute__((cleanup(free_sessions)))

static inline void end_session(nacre_session **session)
{
    nacre_close(*session, NULL);
}

#define cleanup_session __attribute__((cleanup(end_session)))
#define cleanup_watch   __attribute__((cleanup(close_watch)))

static inline void close_watch(nacre_watch **watch)
{
    nacre_watch_close(*watch);
}
