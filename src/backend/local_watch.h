/* Watching a shell of the local backend: the keeper's events, and the log behind them. */
#ifndef NACRE_BACKEND_LOCAL_WATCH_H
#define NACRE_BACKEND_LOCAL_WATCH_H

#include <nacre/error.h>
#include <nacre/watch.h>

#include "base/buf.h"
#include "run/rundir.h"

struct local_watch;

/*
 * Watches a run from an offset on, with a connection that already is a watching one (consumed),
 * or -EBADF to make one. runs_fd is borrowed.
 */
int local_watch_new(int runs_fd, const nacre_id *id, int sock, uint64_t offset,
                    struct local_watch **ret_watch, nacre_error *err);

/* Watches a run that this very process writes. There is no descriptor: whoever writes says when
 * next has to be called. */
int local_watch_new_own(int runs_fd, const nacre_id *id, uint64_t offset,
                        struct local_watch **ret_watch, nacre_error *err);
void local_watch_free(struct local_watch *w);

/* Gives it the spec that was composed, so that it need not be read. Takes spec's bytes over. */
void local_watch_give_spec(struct local_watch *w, struct buf *spec);

/* Waits until the run has an outcome (final = 0) or everything is over and its keeper has left
 * (final = 1). Output is not read. NACRE_ETIMEOUT at the deadline. */
int local_watch_until(struct local_watch *w, int final, int64_t timeout_ms, nacre_error *err);

/* The contracts of the functions of nacre_watch_ops. */
int local_watch_next(void *self, void *buf, size_t size, nacre_event *ret_event, nacre_error *err);
int local_watch_record(void *self, nacre_record *ret_record, nacre_error *err);
void local_watch_skip(void *self);

/* The same as a public watch, which takes w over. NULL if out of memory. */
nacre_watch *local_watch_publish(struct local_watch *w);

#endif
