/*
 * The keeper: one small single-threaded program per shell. It owns the command from birth to the
 * proof of its death: contains whatever it forks, drains its output into the run directory, keeps
 * its deadline, and answers on the control socket. It links libc only and allocates nothing.
 *
 *   main.c     becomes a process of its own and runs the loop
 *   setup.c    makes the run directory, the pipes and the cgroup
 *   stub.c     the child that waits for the go and becomes the command
 *   machine.c  the states, as a table
 *   tree.c     signals, kills and reaps the tree
 *   drain.c    the streams
 *   ctl.c      the control socket
 *   text.c     not part of the program: preloaded into the shell (see there)
 */
#ifndef NACRE_KEEPER_KEEPER_H
#define NACRE_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "run/log.h"
#include "run/spec.h"
#include "run/state.h"
#include "run/wire.h"
#include "sys/host.h"
#include "sys/proc.h"

#define NEVER      INT64_MAX
#define CONN_MAX   64
#define SETTLE_NS  (INT64_C(50) * 1000000)   /* an answer waits this long for `> >(...)` */
#define PROOF_NS   (INT64_C(5) * 1000000000) /* SIGKILL has this long to be proven */
#define SWEEP_NS   (INT64_C(5) * 1000000)    /* between two looks for what still forks */
#define PUBLISH_NS (INT64_C(1) * 1000000)    /* readers learn of output this often */
#define TREE_MAX   8192

/* States and events of the machine; machine.c has the table. */
enum keeper_state {
    ST_WARM,      /* ready; the child waits for the go */
    ST_RUNNING,   /* the command runs */
    ST_LINGERING, /* it has exited; its tree is alive */
    ST_STOPPING,  /* the first signal was sent; the grace runs */
    ST_FORCING,   /* SIGKILL was sent; the proof is awaited */
    ST_DONE,      /* everything is over; the keeper leaves */
    ST_COUNT
};

enum keeper_event {
    EV_STARTED,     /* the child has become the command */
    EV_NOT_STARTED, /* it could not, or will not */
    EV_EXIT,        /* the command has exited */
    EV_EMPTY,       /* nothing of the tree is left */
    EV_KILL,        /* somebody asks for the end */
    EV_DEADLINE,    /* the time of the command is over */
    EV_OWNER_GONE,  /* the session has ended */
    EV_GRACE_OVER,  /* the first signal had its time */
    EV_PROOF_OVER,  /* SIGKILL had its time */
    EV_COUNT
};

struct conn {
    int fd;
    bool watching;
    bool kill_waits;     /* wants to hear how the kill ended */
    bool input_waits;    /* has input that the pipe did not take yet */
    uint32_t input_done; /* bytes of it taken */
};

/* What a kill request asks for. */
struct kill_order {
    int signal;
    int64_t grace_ms;
    nacre_reason reason;
};

struct keeper {
    enum keeper_state state;
    struct wire_hello hello;
    struct host host;
    struct run_state st;
    struct spec_head spec;
    struct logw log;

    int epoll_fd;
    int signal_fd;
    int launch_fd;
    int runs_fd;
    int dir_fd;
    int state_fd;
    int spec_fd;
    int listen_fd;
    int text_fd;
    int cgroup_fd;
    int owner_pipe;
    int owner_pidfd;
    int out_fd[2];  /* read ends of the command's streams */
    int in_fd;      /* write end of its stdin */
    int start_pipe; /* closes when the child has become the command */
    pid_t main;
    bool main_reaped;
    bool proc_ours; /* /proc shows our pids */
    bool reborn;    /* this process is the successor now */

    struct kill_order order;
    int64_t deadline_at; /* monotonic ns, or NEVER */
    int64_t grace_at;
    int64_t proof_at;
    int64_t sweep_at;
    int64_t settle_at;
    int64_t publish_at; /* output that readers do not know of yet is published then */
    int64_t published;

    struct conn conns[CONN_MAX];
};

/* The child's ends, which setup hands to the stub and then closes. */
struct stub_ends {
    int in;
    int out;
    int err;
    int start; /* where it reports */
};

/* One record on the start pipe. Nothing before its end = it has become the command. */
struct start_report {
    int32_t stage;
    int32_t error;
};

/* setup.c: 0 or -errno; on failure everything it made is removed again. */
int setup(struct keeper *k);
/* Removes what the run leaves outside its directory, and, with all, the directory too. */
void setup_undo(struct keeper *k, bool all);

/* stub.c: never returns. */
_Noreturn void stub_main(struct keeper *k, const struct stub_ends *ends);

/* machine.c */
void machine_event(struct keeper *k, enum keeper_event event);
void machine_timers(struct keeper *k);
int64_t machine_next_timer(const struct keeper *k);

/* tree.c */
void tree_signal(struct keeper *k, int signal);
void tree_force(struct keeper *k);
void tree_sweep(struct keeper *k);
void tree_count_survivors(struct keeper *k);
/* Kills and reaps whatever there is, at once; for a run that never became one. */
void tree_end(struct keeper *k);
/* Reaps what has ended; raises EV_EXIT and EV_EMPTY. */
void tree_reap(struct keeper *k);

/* drain.c */
void drain_stream(struct keeper *k, nacre_stream stream);
/* All that is in the pipes now, but not what keeps coming. */
void drain_now(struct keeper *k);
bool drain_at_eof(const struct keeper *k);
/* Ties the log to the state, and catches what may happen to its mapping. */
void drain_guard(struct keeper *k);
/* Writes the state and tells whoever watches. */
void publish(struct keeper *k);

/* ctl.c */
void ctl_add(struct keeper *k, int fd, bool watching);
void ctl_accept(struct keeper *k);
void ctl_readable(struct keeper *k, struct conn *c);
void ctl_feed(struct keeper *k);
void ctl_close_input(struct keeper *k);
void ctl_tell_watchers(struct keeper *k);
void ctl_tell_killers(struct keeper *k);

/* main.c: watching descriptors. The tag comes back with the event. */
enum tag { TAG_SIGNAL, TAG_LISTEN, TAG_START, TAG_OWNER, TAG_OUT, TAG_ERR, TAG_IN, TAG_CONN };
void loop_add(struct keeper *k, int fd, uint32_t events, enum tag tag, uint32_t index);
void loop_remove(struct keeper *k, int fd);
/* Removes before it closes: a forked child may still hold the description open. */
void loop_close(struct keeper *k, int *fd);

#endif
