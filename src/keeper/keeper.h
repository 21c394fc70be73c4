/*
 * The keeper: one small single-threaded program per shell. It owns the command from birth to the
 * proof of its death: contains whatever it forks, drains its output into the run directory, keeps
 * its deadline, and answers on the control socket. It links libc only and allocates nothing.
 *
 *   main.c     becomes a process of its own and runs the loop
 *   setup.c    makes the run directory, the pipes and the cgroup
 *   launch.c   the conversation with the library until the command runs, and the successor
 *   command.c  starts the command; birth.c is the system call behind it
 *   machine.c  the states, as a table
 *   tree.c     signals, kills and reaps the tree
 *   drain.c    the streams
 *   owner.c    whether the owner is still there
 *   ctl.c      the control socket
 *   text.c     not part of the program: preloaded into the shell (see there)
 */
#ifndef NACRE_KEEPER_KEEPER_H
#define NACRE_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

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
#define LOOK_NS    (INT64_C(20) * 1000000)   /* the same, where the end of orphans is not told */
#define QUIET_NS   (INT64_C(4) * 1000000)    /* a command is left alone that long; see on_quiet() */
#define PUBLISH_NS (INT64_C(1) * 1000000)    /* readers learn of output this often */
#define OWNER_NS   (INT64_C(1) * 1000000000) /* between two looks at an owner without a pidfd */
#define TREE_MAX   8192

/* States and events of the machine; machine.c has the table. */
enum keeper_state {
    ST_WARM,      /* ready; waits for the go */
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
    uint64_t turn;       /* the order in which input came */
};

/* Where the preload for shells lies, as long as it lies there. */
struct preload {
    char path[256]; /* "" = it cannot be said so that a loader understands it */
    dev_t dev;
    ino_t ino;
};

/* What a kill request asks for. */
struct kill_order {
    int signal;
    int64_t grace_ms;
    nacre_reason reason;
};

/* What became of a start. */
struct start_result {
    bool waits;            /* nothing yet */
    bool heard;            /* there was a go */
    enum wire_stage stage; /* STAGE_NONE = the child is the command now */
    int error;
    bool outside; /* it could not enter its cgroup */
};

struct keeper {
    enum keeper_state state;
    struct wire_hello hello;
    struct host host;
    struct proc_ref owner;                 /* without a pidfd of it; pid 0 = it cannot be told */
    struct spec_limit limits[SPEC_LIMITS]; /* our own */
    int nice;
    struct preload preload;
    uint32_t copies; /* see struct wire_ready */
    struct run_state st;
    struct spec_head spec;
    struct logw log;

    int epoll_fd;
    int signal_fd;
    int launch_fd;
    int next_fd; /* the socket of the keeper after us, which is ours to make */
    int runs_fd;
    int dir_fd;
    int state_fd;
    int spec_fd;
    int listen_fd;
    int text_fd;
    int cgroup_fd;
    int owner_line; /* to the session; see run/wire.h */
    int owner_pidfd;
    int out_fd[2];               /* read ends of the command's streams */
    int ended_fd[2];             /* the same at their end, still to be closed */
    int in_fd;                   /* write end of its stdin */
    int child_in;                /* read end, until it has it */
    int word_fd;                 /* the child says on it what becomes of it; see run/wire.h */
    int born_fd;                 /* its other end */
    int alarm_fd;                /* wakes us when the command has been left alone long enough */
    int child_fd[2];             /* the command's ends, until it has them */
    struct start_result *result; /* a page shared with the child */
    pid_t main;
    struct proc_ref member; /* of the group tier: the last one of the group that was seen alive */
    bool main_reaped;
    bool proc_ours; /* /proc shows our pids */
    bool hurried;   /* the keeper after us is wanted at once */
    bool reborn;    /* this process is the successor now */
    uint64_t turns;
    struct conn *pacer; /* whose reading the command is held to, or NULL */
    uint64_t seen;      /* by it */
    bool held;          /* the streams are not being read */
    bool aside;         /* see drain_step() */
    bool bell_due;      /* the session has something to hear */

    struct kill_order order;
    int64_t quiet_at; /* monotonic ns, or NEVER: what nobody waits for is done then */
    int64_t deadline_at;
    int64_t grace_at;
    int64_t proof_at;
    int64_t sweep_at;
    int64_t settle_at;
    int64_t publish_at; /* output that readers do not know of yet is published then */
    int64_t published;
    int64_t rested;   /* when a flood was last left to itself for a moment */
    int64_t owner_at; /* the next look at it */

    struct conn conns[CONN_MAX];
};

/* setup.c: 0 or -errno; on failure everything it made is removed again. */
int setup(struct keeper *k);
/* Removes what the run leaves outside its directory, and, with all, the directory too. */
void setup_undo(struct keeper *k, bool all);
/* Does without the cgroup. */
void setup_leave_cgroup(struct keeper *k);

/* command.c: finds out where the preload lies, once; a successor inherits it. */
void start_introduce(struct keeper *k);
/* Has a child wait for the go; k->main is 0 if we have to do that ourselves. */
int start_prepare(struct keeper *k);
/* There will be no go: the stand-in, whatever it has become, is ended and reaped. */
void start_dismiss(struct keeper *k);
/* Wakes us when a command that begins now has lasted for a while. */
void start_set_alarm(const struct keeper *k);
/* What has become of the stand-in. */
struct start_result start_born(struct keeper *k);
/* Hears the go, which is there, and starts what it says. */
struct start_result start_by_fork(struct keeper *k);
/* Gives back what only a start needs. */
void start_forget(struct keeper *k);

/* launch.c */
int launch_hello(struct keeper *k);
/* 0, or the error: that of before, or another. */
int launch_ready(struct keeper *k, int error);
/* Looks whether the stand-in has become something, and goes on from there. */
void launch_born(struct keeper *k);
/* The stand-in has had its time; if it is not done, we look again. */
void launch_alarm(struct keeper *k);
/* The go is there, and nobody to hear it but us. */
void launch_go(struct keeper *k);
/* Makes the keeper after us, if one is wanted; in it, k->reborn is set. */
void launch_successor(struct keeper *k);
/* All is done here: we are the keeper after us ourselves, if one is wanted. */
void launch_again(struct keeper *k);
/* The library wants it now, or not at all. */
void launch_next(struct keeper *k);

/* machine.c */
void machine_event(struct keeper *k, enum keeper_event event);
void machine_timers(struct keeper *k);
int64_t machine_next_timer(const struct keeper *k);
/* How long the kill that was ordered may take. */
int64_t machine_kill_ms(const struct keeper *k);

/* tree.c */
void tree_signal(struct keeper *k, int signal);
void tree_force(struct keeper *k);
void tree_sweep(struct keeper *k);
void tree_count_survivors(struct keeper *k);
/* Reaps what has ended; raises EV_EXIT and EV_EMPTY. */
void tree_reap(struct keeper *k);

/* drain.c */
void drain_stream(struct keeper *k, nacre_stream stream);
/* All that is in the pipes now, but not what keeps coming. */
void drain_now(struct keeper *k);
bool drain_at_eof(const struct keeper *k);
void drain_close_ended(struct keeper *k);
/* Aside, or back: whether others go first when there is not enough for all. */
void drain_step(struct keeper *k, bool aside);
/* The pacer has read up to an offset, or (UINT64_MAX) is gone. */
void drain_seen(struct keeper *k, uint64_t offset);
/* Ties the log to the state, and catches what may happen to its mapping. */
void drain_guard(struct keeper *k);
/* Writes the state and tells whoever watches, and the session if it is due. */
void publish(struct keeper *k);

/* owner.c: who that is, before the first run; a successor inherits it. */
void owner_note(struct keeper *k);
void owner_watch(struct keeper *k);
/* Raises EV_OWNER_GONE, once. */
void owner_gone(struct keeper *k);
/* The same, if /proc says so. */
void owner_look(struct keeper *k);
/* From now on its end is not ours. */
void outlive_owner(struct keeper *k);

/* ctl.c: a connection is placed, to be spoken to, and then listened to. */
struct conn *ctl_place(struct keeper *k, int fd, bool watching);
void ctl_listen(struct keeper *k, const struct conn *c);
struct conn *ctl_add(struct keeper *k, int fd, bool watching);
void ctl_accept(struct keeper *k);
void ctl_readable(struct keeper *k, struct conn *c);
void ctl_feed(struct keeper *k);
void ctl_close_input(struct keeper *k);
void ctl_tell_watchers(struct keeper *k);
void ctl_tell_killers(struct keeper *k);
void ctl_ring(struct keeper *k);

/* main.c: descriptors of the session, kept by a successor, are the first LAUNCH_FDS from 3 on. */
#define LAUNCH_FD 3
void forget_descriptors(struct keeper *k);

/* Watching descriptors. The tag comes back with the event. */
enum tag {
    TAG_SIGNAL,
    TAG_LISTEN,
    TAG_LAUNCH,
    TAG_BORN,
    TAG_NEXT,
    TAG_ALARM,
    TAG_OWNER,
    TAG_OUT,
    TAG_ERR,
    TAG_IN,
    TAG_CONN
};
void loop_add(struct keeper *k, int fd, uint32_t events, enum tag tag, uint32_t index);
void loop_remove(struct keeper *k, int fd);
/* Removes before it closes: a forked child may still hold the description open. */
void loop_close(struct keeper *k, int *fd);

#endif
