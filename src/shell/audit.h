/*
 * The session's log: one JSON line for each start, end, kill and denial, in the foreground and in
 * the background alike, in `audit/<session>.jsonl` of the home. Names of variables are in it, never
 * their values. It is written while commands run, and what cannot be written is not: a full disk is
 * no reason not to work.
 */
#ifndef NACRE_SHELL_AUDIT_H
#define NACRE_SHELL_AUDIT_H

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>

struct audit;

/* Opens nothing yet. NULL if out of memory. All functions below take NULL for an audit that is
 * switched off. */
struct audit *audit_new(const nacre_id *session);
void audit_free(struct audit *a);

/* Where the home is, once that is known; the first call counts. */
void audit_set_home(struct audit *a, const char *home);

void audit_start(struct audit *a, const nacre_id *id, const nacre_command *command);
void audit_end(struct audit *a, const nacre_record *record);
void audit_kill(struct audit *a, const nacre_id *id, const nacre_kill_options *options,
                const nacre_kill_result *result);

/* A start that was refused, or failed. */
void audit_denial(struct audit *a, const nacre_command *command, const nacre_error *err);

/* Removes the log of a session that is over, if there is one. */
void audit_remove(const char *home, const nacre_id *session);

/* Calls fn for every log of the home, with the time of its last line in ms since the epoch. */
typedef void audit_fn(const nacre_id *session, int64_t changed_ms, void *userdata);
void audit_each(const char *home, audit_fn *fn, void *userdata);

#endif
