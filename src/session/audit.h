/*
 * The session's log: one JSON line for each start, end, kill, denial, question and answer, in the
 * foreground and in the background alike, in `audit/<session>.jsonl` of the home. Names of
 * variables are in it, never their values. It is written while commands run, and what cannot be
 * written is not: a full disk is no reason not to work.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <sys/types.h>

#include "base/buf.h"
#include "session/policy.h"

struct audit;

/* Opens nothing yet. NULL if out of memory. All functions below take NULL for an audit that is
 * switched off. */
struct audit *audit_new(const nacre_id *session);
void audit_free(struct audit *a);

/* Where the home is, once that is known; the first call counts. */
void audit_set_home(struct audit *a, const char *home);

void audit_start(struct audit *a, const nacre_id *id, const nacre_command *command,
                 const struct admission *admission);
void audit_end(struct audit *a, const nacre_record *record);
void audit_kill(struct audit *a, const nacre_id *id, const nacre_kill_options *options,
                const nacre_kill_result *result);

/* The kill of a shell that is another session's, by a person: it goes into that session's log. */
void audit_kill_by_person(const char *home, const nacre_id *session, const nacre_id *id,
                          const nacre_kill_options *options, const nacre_kill_result *result);

/* A person is asked; and what they said, and by which way. */
void audit_question(struct audit *a, const struct question *q);
void audit_answer(struct audit *a, const struct question *q, const struct desk_answer *answer);

/* A start that was refused, or failed. */
void audit_denial(struct audit *a, const nacre_command *command, const struct admission *admission,
                  const nacre_error *err);

/* What the rules refused a process of a shell. */
void audit_refused_exec(struct audit *a, const nacre_id *id, const nacre_denial *denial);

/* Appends what a log of the home has from an offset on. 0, also if there is none, or -errno. */
int audit_read(const char *home, const nacre_id *session, off_t offset, struct buf *out);

/* Removes the log of a session that is over, if there is one. */
void audit_remove(const char *home, const nacre_id *session);

/* Calls fn for every log of the home, with the time of its last line in ms since the epoch, and
 * what it takes of the disk. */
typedef void audit_fn(const nacre_id *session, int64_t changed_ms, uint64_t cost, void *userdata);
void audit_each(const char *home, audit_fn *fn, void *userdata);
