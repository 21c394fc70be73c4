/*
 * Watching a run: what its keeper says, or, where there is none to listen to, what its state says
 * from time to time; and the log behind both. None of it waits.
 */
#pragma once

#include <nacre/watch.h>
#include <stdbool.h>

#include "base/buf.h"
#include "home/home.h"

/* A watch from the first byte on of a run that was just started, by the connection that its start
 * left, which watches already; both are consumed, spec is the run's. NULL if out of memory. */
nacre_watch *run_watch_of_start(nacre_home *h, const nacre_id *id, int sock, struct buf *spec);

/* What to poll now, until the next call of any function of the watch. Unlike nacre_watch_fd(), it
 * costs no descriptor of its own. */
int run_watch_fd(const nacre_watch *w);

/*
 * Says something to the keeper by the connection of the watch, which it answers by
 * WIRE_INPUT_DONE. 1 = it is said; 0 = what was said before is not answered yet; -ECONNREFUSED =
 * nobody is there to hear it; else what it answered before, once it has refused something. Or waits
 * for the answer, which is the result.
 */
int run_watch_say(nacre_watch *w, const void *message, size_t size);
int run_watch_ask(nacre_watch *w, const void *message, size_t size, int64_t timeout_ms);

nacre_id run_watch_id(const nacre_watch *w);

/* What was printed before an offset is not given any more, and what was printed behind it is. */
void run_watch_seek(nacre_watch *w, uint64_t offset);

/* Whether everything is over and the keeper has left. */
bool run_watch_is_over(nacre_watch *w);

/* Whether it does not end with its session, by the word of its keeper if there is one to hear. */
bool run_watch_is_kept(const nacre_watch *w);
