/* Getting at shells: the session of one invocation, and the ids people type. */
#ifndef NACRE_CLI_SHELLS_H
#define NACRE_CLI_SHELLS_H

#include <stdlib.h>

#include <nacre/nacre.h>

#include "cli/cli.h"

/* Each says what is wrong itself and returns the status to exit with. */
int open_session(nacre_session **ret_session);
int check_ids(char **words, size_t count);
int find_shell(nacre_session *session, const char *word, nacre_id *ret_id);

/* The streams of --stream: "out", "err", or both if text is NULL. */
int parse_stream(const char *verb, const char *text, unsigned *ret_streams);

/* Does one thing with each of the shells that were named, in a session of its own, and returns the
 * worst status. Nothing is done if one of the words can be no id. */
typedef int shell_fn(nacre_session *session, const char *word, const void *argument);
int each_shell(char **words, size_t count, shell_fn *fn, const void *argument);

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

static inline void close_session(nacre_session **session)
{
    nacre_close(*session, NULL);
}

#define cleanup_session __attribute__((cleanup(close_session)))
#define cleanup_record  __attribute__((cleanup(nacre_record_done)))
#define cleanup_watch   __attribute__((cleanup(close_watch)))

static inline void close_watch(nacre_watch **watch)
{
    nacre_watch_close(*watch);
}

#endif
