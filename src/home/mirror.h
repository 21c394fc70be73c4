/* What home and backends know of mirrors besides <nacre/backend.h>. */
#pragma once

#include <nacre/backend.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "run/log.h"
#include "run/rundir.h"
#include "run/spec.h"
#include "sys/fd.h"

/* A watch of a mirror, whose timer is due when something has happened. */
struct mirror_watcher {
    struct mirror_watcher *next;
    nacre_mirror *mirror; /* NULL = it does not watch one, or none any more */
    int timer_fd;
};

struct nacre_mirror {
    nacre_mirror *next; /* of the home */
    nacre_home *home;
    pid_t owner;          /* the process that writes it */
    pthread_mutex_t lock; /* over what is written */
    struct buf spec_bytes;
    struct spec spec;
    bool begun;
    struct run_state st;
    struct run_files files;
    struct lock_pin pin;
    struct logw log;

    /* With the lock of the home. */
    bool background;
    bool exited;
    bool over; /* nothing more is written */
    struct mirror_watcher *watchers;
    uint64_t rings;
    nacre_reason reason; /* why mirror_kill.c had it ended, if it had */
    int64_t deadline_ns; /* when it does that by itself */
    int64_t grace_ms;
    int64_t kill_ns; /* when SIGKILL follows the first signal */
    bool forced;     /* it has */
};

/* A mirror that is still written, or NULL. With the lock of the home. */
nacre_mirror *mirror_of(nacre_home *h, const nacre_id *id);

/* Whether the run is a mirror of this process that is still written. */
bool mirror_find(nacre_home *h, const nacre_id *id);

void mirror_watch(nacre_home *h, const nacre_id *id, int timer_fd, struct mirror_watcher *watcher);
void mirror_unwatch(nacre_home *h, struct mirror_watcher *watcher);

/* How often something has happened to it. */
uint64_t mirror_rings(nacre_home *h, const struct mirror_watcher *watcher);

/* What runs, until the mirror is begun. */
const struct spec *mirror_spec(const nacre_mirror *m);

/* It is a background shell from now on. */
void mirror_set_background(nacre_home *h, const nacre_id *id);

/* -- Of backends that have no kill (mirror_kill.c) --------------------------------------------- */

/* Sends what signals are due. Returns when the next one is, in ns of CLOCK_MONOTONIC. */
int64_t mirror_keep_time(nacre_home *h, const nacre_id *id);

/* Ends one, as the verb of a backend does; or all, as the close of a backend does. */
int mirror_kill(nacre_home *h, const nacre_id *id, const struct nacre_kill_options *options,
                nacre_op **ret_op, nacre_error *err);
int mirror_kill_all(nacre_home *h, nacre_op **ret_op, nacre_error *err);
