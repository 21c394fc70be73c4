/*
 * The keeper: one small single-threaded program per shell. It owns the command from birth to the
 * proof of its death: contains whatever it forks, drains its output into the run directory, keeps
 * its deadline, and answers on the control socket. It links libc only and allocates nothing.
 *
 *   keeper.c     becomes a process of its own, and keeps one run after another
 *   life.c       the life of the process around its runs, as a table
 *   machine.c    the states of a run, and its timers, as tables
 *   loop.c       every descriptor, whose it is and what it wakes, as a table; the loop
 *   handshake.c  hello and ready: the conversation with the library until the go
 *   setup.c      makes the run directory, the pipes and the cgroup
 *   standin.c    the child that waits for the go and becomes the command; see docs/standin.md
 *   enter.c      it enters its fence, if there is one, and the filter that has its calls wait
 *   held_calls.c those; connects.c who it may talk to from its fence, listeners.c whose that is;
 *                execs.c what it may execute, exec_words.c which words that is
 *   denied.c     what it was refused, told to who reads of it
 *   appeared.c   what it made under protected names is moved aside
 *   plan.c       what it will execute; birth.c is the system call that makes it
 *   tree.c       who belongs to the tree, and when nobody does any more
 *   hunt.c       signals to all of it; reap.c who has ended
 *   tty.c        a terminal in place of pipes, and who leads its session
 *   reads.c      who reads the command's input, for who asks
 *   drain.c      the streams; flood.c has the manners of one who drains very much
 *   restore.c    puts the run directory back, whatever was done to it
 *   bound.c      in the stand-in: its limits; excess.c looks who uses more, and says what they did
 *   owner.c      whether the owner is still there
 *   ctl.c        the control socket; persons.c who comes by it to sit beside the command
 *   preload.c    not part of the program: preloaded into the shell (see there)
 */
#pragma once

#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include "policy/packed.h"
#include "run/denial.h"
#include "run/fence.h"
#include "run/log.h"
#include "run/marks.h"
#include "run/spec.h"
#include "run/state.h"
#include "run/wire.h"
#include "screen/terminal.h"
#include "sys/asleep.h"
#include "sys/controller.h"
#include "sys/filter.h"
#include "sys/host.h"
#include "sys/proc.h"

#define NEVER        INT64_MAX
#define CONN_MAX     64
#define SETTLE_NS    (INT64_C(50) * 1000000)   /* an answer waits this long for `> >(...)` */
#define PROOF_NS     (INT64_C(5) * 1000000000) /* SIGKILL has this long to be proven */
#define LATE_EXIT_NS (INT64_C(1) * 1000000000) /* after its deadline no exit counts as in time */
#define SWEEP_NS     (INT64_C(5) * 1000000)    /* between two looks for what still forks */
#define LOOK_NS      (INT64_C(20) * 1000000)   /* the same, where the end of orphans is not told */
#define STRAY_NS     (INT64_C(200) * 1000000)  /* the same for strays; the first time */
#define LATE_NS      (INT64_C(1) * 1000000) /* that: a leaf may be empty a moment after its last */
#define QUIET_NS     (INT64_C(4) * 1000000) /* a command is left alone that long; see life.c */
#define PUBLISH_NS   (INT64_C(1) * 1000000) /* readers learn of output this often */
#define OWNER_NS     (INT64_C(1) * 1000000000) /* between two looks at an owner without a pidfd */
#define WAITING_MAX  32
#define EXEC_WORDS   4096
#define EXEC_TEXT    ((size_t)128 * 1024)
#define EXEC_PATHS   128 /* that are remembered */
#define EXEC_FIRST   2   /* words before it are those of an interpreter */
#define ASKED_MAX    8   /* calls that wait for a person */
#define GRANTS_MAX   64  /* answers that are remembered for what comes of them */
#define TREE_MAX     8192

/* The life of the process; life.c has the table. */
enum keeper_life {
    LIFE_READY,    /* the stand-in waits for the go */
    LIFE_HURRIED,  /* the same; the keeper after us is wanted as soon as the command runs */
    LIFE_BEGUN,    /* the command runs; the keeper after us is not made yet */
    LIFE_FOLLOWED, /* the keeper after us is made, or nobody wants one */
    LIFE_REBORN,   /* this process is the keeper after us now, and starts over */
    LIFE_OVER,     /* it exits */
    LIFE_COUNT
};

enum life_event {
    LE_STARTED,     /* the stand-in has become the command */
    LE_NOT_STARTED, /* it could not, or will not, or is gone */
    LE_HURRY,       /* the library wants the keeper after us now */
    LE_UNWANTED,    /* nobody wants it */
    LE_QUIET,       /* the command has lasted for a while */
    LE_RUN_OVER,    /* the run is at ST_DONE */
    LE_COUNT
};

/* States and events of a run; machine.c has the table. */
enum keeper_state {
    ST_WARM,      /* prepared; the command has not begun */
    ST_RUNNING,   /* the command runs */
    ST_LINGERING, /* it has exited; its tree is alive */
    ST_STOPPING,  /* the first signal was sent; the grace runs */
    ST_FORCING,   /* SIGKILL was sent; the proof is awaited */
    ST_DONE,      /* everything is over */
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
    EV_LIMIT,       /* the command has used more than it may; the order says how it is ended */
    EV_COUNT
};

/* Moments at which something is to be done; machine.c says what. Those that are due together are
 * served in this order. */
enum keeper_timer {
    AT_DEADLINE,
    AT_GRACE,
    AT_PROOF,
    AT_REAP, /* there was more to reap than a turn takes */
    AT_SWEEP,
    AT_SETTLE,
    AT_REVIVE,  /* a terminal that nobody had open is looked at again */
    AT_PUBLISH, /* readers learn then of output that they do not know of yet */
    AT_OWNER,   /* the next look at it */
    AT_ASKED,   /* the next look at those who wait for a person */
    AT_LIMITS,  /* the next look at what a bounded run uses */
    AT_READS,   /* the next look who reads, while somebody waits for that */
    AT_QUIET,   /* what nobody waits for is done then */
    AT_COUNT
};

/* Our descriptors; loop.c says to whom each belongs and what it wakes. Streams come in pairs, and
 * are reached by FD_OUT + stream. */
enum keeper_fd {
    FD_LAUNCH, /* the library, until the command runs */
    FD_RUNS,
    FD_LINE,         /* to the session; see run/wire.h */
    FD_OWNER,        /* its pidfd */
    FD_TEXT,         /* the preload */
    FD_FENCE_RECORD, /* what the commands of the session run in; run/wire.h */
    FD_FENCE_PRIVATE,
    FD_FENCE_USER,
    FD_FENCE_MOUNT,
    FD_FENCE_NETWORK,
    FD_FENCE_IPC,
    FD_FENCE_RULES,
    FD_NEXT, /* the socket of the keeper after us, which is ours to make */
    FD_EPOLL,
    FD_SIGNAL,
    FD_DIR,
    FD_STATE,
    FD_SPEC,
    FD_LISTEN, /* in the directory, */
    FD_DOOR,   /* and under its abstract name */
    FD_SIGN,   /* on the door, until nothing is left of the run: run/sign.h */
    FD_CGROUP,
    FD_LEAF,   /* whether somebody is in it */
    FD_MEMORY, /* groups of version 1 for its limits, in the order of enum controller */
    FD_PIDS,
    FD_CPU,
    FD_DISK, /* where the command began */
    FD_OUT,  /* read ends of the command's streams */
    FD_ERR,
    FD_OUT_ENDED, /* the same at their end, still to be closed */
    FD_ERR_ENDED,
    FD_IN,        /* write end of its stdin */
    FD_CHILD_OUT, /* the command's ends, until it has them */
    FD_CHILD_ERR,
    FD_CHILD_IN,
    FD_TTY_WORD,    /* the child hands us the terminal on it, if it is to have one */
    FD_TTY,         /* its other end */
    FD_WORD,        /* the child says on it what becomes of it; see run/wire.h */
    FD_BORN,        /* its other end */
    FD_ALARM,       /* wakes us when the command has been left alone long enough */
    FD_FENCE_WORD,  /* the child says on it that it is inside */
    FD_FENCE_HEARD, /* its other end */
    FD_CALLS,       /* system calls that wait for us */
    FD_LISTENERS,   /* says who listens inside */
    FD_DENIED,      /* the file of what was refused */
    FD_COUNT
};

/* Of a connection that is a person's; see persons.c. */
struct person {
    bool is_here;
    bool types;             /* and may */
    uint16_t columns, rows; /* of the window that the terminal shall fit; 0 = of none */
    uint64_t turn;          /* the order in which these came */
    int64_t typed_ns;       /* when that was noted last */
};

struct conn {
    int fd;
    bool watching;
    bool behind;         /* it has not heard of the newest state: there was no room */
    bool kill_waits;     /* wants to hear how the kill ended */
    bool input_waits;    /* has input that the pipe did not take yet */
    uint32_t input_done; /* bytes of it taken */
    uint64_t turn;       /* the order in which input came */
    struct person person;
    bool look_waits;   /* wants to hear who reads, once it is */
    uint32_t look_for; /* so: bits of enum wire_reads; 0 = however it is */
    int looks;         /* taken since it asked */
    int64_t look_held; /* and for that long, ns */
};

/* What becomes of a call, beside -errno. */
#define CALL_WAITS   1 /* it is answered later */
#define CALL_GOES_ON 2 /* the call itself is made */

/* A call inside the fence that waits for a connection to be made. */
struct waiting {
    uint64_t id;
    int sock; /* 0 or less = the place is free */
};

/* What was said about a command that a process wants to execute. */
struct exec_grant {
    pid_t pid;
    bool refused;
    uint64_t sum; /* of its words */
};

/* One that waits for a person: somebody is about to execute what is asked about. */
struct exec_asked {
    struct seccomp_notif call;
    struct exec_grant grant; /* if the answer is yes */
    int reply;               /* it comes here; 0 or less = the place is free */
    bool heard;              /* by who asks the person */
    int64_t begun;
    struct denial denial; /* if it is no */
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

/* What is to be executed. */
struct plan {
    struct spec spec;
    const char *program;
    const char *cwd;
    char **argv;
    char **env;
    int input;    /* stdin that came with the go, or -EBADF */
    int text;     /* of a long text, or -EBADF */
    bool preload; /* is read through its descriptor */
};

#define STANDIN_STACK   ((size_t)32 * 1024)
#define PLAN_POINTERS   512  /* more are mapped */
#define PLAN_ENTRY_SIZE 4096 /* longer entries do without the preload */

/* The stand-in's own memory: whole pages, given back when it has become the command. */
struct standin {
    _Alignas(4096) char stack[STANDIN_STACK];
    struct wire_go go;
    struct plan plan;
    int fd[FD_COUNT]; /* as they were at its birth: ours may be closed already */
    struct filter_wish wish;
    char *pointers[PLAN_POINTERS];
    char preload_entry[PLAN_ENTRY_SIZE];
    char run_entry[PLAN_ENTRY_SIZE];
};

/* A program that somebody is about to execute, or just has; see exec_words.c. */
struct exec_look {
    pid_t pid;
    size_t pointer;        /* bytes of one there */
    uint64_t argv;         /* where they are there; 0 = in its command line */
    char path[4096];       /* as it was asked for */
    char real[4096];       /* where that leads; "" = not known, or what it is executed from */
    char interpreter[256]; /* of a script; "" = it is none */
    char argument[256];    /* of that; "" = none */
    char first[256];       /* word, as far as that */
    bool recalled;         /* where the path leads was found out a moment ago */
    size_t argc;           /* of words from EXEC_FIRST on; the last one is WORD_ANY if there are
                              more than there is room for */
    struct shell_word words[EXEC_WORDS];
    char text[EXEC_TEXT];
};

/* Where a path led, until then. */
struct exec_path {
    int64_t until;
    char path[256], real[256];
    char interpreter[256], argument[256];
};

/* What it leaves for the keeper, on pages that are shared even where memory is copied. */
struct standin_page {
    bool outside;              /* it is not in its cgroup */
    pid_t leader, command;     /* of a terminal, which the stand-in has made in its place; or 0 */
    struct foreign_file input; /* the terminal, as its programs have it open */
    enum wire_stage stage;     /* STAGE_NONE = nothing failed */
    int error;
    struct spec_head spec;
    struct run_state st; /* of a run from when it is about to be the command */
    char group[CONTROLLER_COUNT][CGROUP_PATH_MAX]; /* of version 1, for its limits; "" = none */
    uint64_t disk_free;                            /* when it began, where it began; for a limit */
    uint32_t granted_size;
    char granted[GRANTED_MAX]; /* see policy/packed.h */
};

_Static_assert(sizeof(struct standin_page) <= 8192, "it is two pages");

/* What a client may say; see ctl.c. */
union ctl_message {
    struct wire_head head;
    struct wire_kill kill;
    struct wire_input input;
    struct wire_seen seen;
    struct wire_change change;
    struct wire_signal signal;
    struct wire_resize resize;
    struct wire_attach attach;
    struct wire_denied denied;
    struct wire_look look;
};

#define HEARD_MAX 32 /* bytes of the longest message that is listened for */

/* What is known of a bounded run beside its state; see excess.c. */
struct excess_watch {
    int64_t pause;   /* until the next look */
    int64_t cpu_ms;  /* of our earlier children, */
    int64_t written; /* and what they wrote */
    uint64_t disk_free;
    uint64_t largest_bytes;
    char largest[16];
    char main_name[16];    /* of the command: by then it may have executed another program */
    char heard[HEARD_MAX]; /* the end of stderr so far */
    size_t heard_size;
};

/* Large memory of which most runs touch little or nothing: apart from the keeper, so that it is
 * neither cleared nor copied with it. */
struct keeper_room {
    struct standin standin;
    union ctl_message messages[CONN_MAX]; /* the last one of each connection */
    struct terminal terminal;             /* of this run, as the next three; without cells */
    struct excess_watch watch;
    uint64_t denied[DENIALS_MAX]; /* sums of what was written down */
    struct waiting waiting[WAITING_MAX];
    struct exec_asked asked[ASKED_MAX];
    struct exec_grant grants[GRANTS_MAX]; /* the last ones */
    struct exec_look look;
    struct exec_path paths[EXEC_PATHS];
    char granted[GRANTED_MAX];
    struct proc_ref scan[TREE_MAX];
    struct proc_ref signalled[TREE_MAX];
};

/* What is found out once; a successor inherits it. */
struct keeper_session {
    struct keeper_room *room;
    struct wire_hello hello;
    struct host host;
    struct proc_ref owner;                 /* without a pidfd of it; pid 0 = it cannot be told */
    struct spec_limit limits[SPEC_LIMITS]; /* our own */
    int nice;
    int oom_score; /* our own, and that of the host */
    struct preload preload;
    struct fence fence; /* head NULL = there is none */
    const struct packed_head
        *policy;     /* what is held against whatever is executed; NULL = nothing */
    uint32_t copies; /* see struct wire_ready */
};

/* Who was seen to read, as long as somebody wants to know; see reads.c. */
struct reads_watch {
    struct wire_looked seen; /* at the last look */
    int64_t looked;          /* when that was; 0 = never */
    int64_t since;           /* and since when looks agree */
    int64_t heard;           /* the last output that came meanwhile */
    int64_t pause;
};

/* How the run directory was when it was last seen to be whole. */
struct restore_mark {
    struct timespec changed; /* its ctime, and */
    struct timespec entries; /* its mtime, as we have set it */
    ino_t ctl;               /* 0 = there is none */
    int64_t again;           /* something could not be put back: the next try, monotonic ns */
};

/* All but the session begins anew with each run. */
struct keeper {
    struct keeper_session session;
    enum keeper_life life;
    enum keeper_state state;
    int fd[FD_COUNT];
    int64_t at[AT_COUNT]; /* monotonic ns, or NEVER */
    struct run_state st;
    struct spec_head spec;
    struct logw log;
    volatile sig_atomic_t ring_lost; /* see drain.c */
    struct restore_mark mark;
    struct standin_page *page;
    struct kill_order order;

    pid_t main;             /* the stand-in, and then the command */
    pid_t leader;           /* of its terminal; 0 = there is none */
    struct proc_ref member; /* whose end nobody tells: the last one that was seen alive */
    int64_t stray_pause;    /* until the next look for such a one */
    int doubts;             /* looks that could not tell, one after the other */
    bool first;             /* we are served before others; see hunt.c */
    size_t signalled_count;
    bool main_reaped;
    bool proc_ours; /* /proc shows our pids */

    uint64_t turns;                 /* of input */
    struct conn *pacer;             /* whose reading the command is held to, or NULL */
    uint64_t seen;                  /* by it */
    bool held;                      /* the streams are not being read */
    bool is_terminal;               /* there is one stream, and FD_IN is the same terminal */
    bool hung_up;                   /* nobody has it open */
    uint16_t own_columns, own_rows; /* its size when nobody's window is to be fitted */
    bool aside;                     /* see flood.c */
    bool must_ring;                 /* the session has something to hear */
    int64_t published;
    int64_t revive_pause; /* until a terminal that is hung up is looked at again */
    void (*hear_after)(void *userdata, nacre_stream stream, const char *data, size_t size);
    int64_t rested;            /* when a flood was last left to itself for a moment */
    struct foreign_file input; /* of a terminal, as its programs have it open */
    struct reads_watch reads;

    uint32_t denied_count;
    bool main_has_begun; /* what the command first executed has been looked at */
    uint32_t granted_size;
    int asked_count;        /* calls that wait for a person, */
    int64_t asked_since;    /* the first of them since then, */
    int64_t asked_deadline; /* and the deadline as it was, */
    uint32_t asked_before;  /* and for how long it had waited before */
    uint32_t grant_count;
    struct conn conns[CONN_MAX];
};

/* setup.c: 0 or -errno. */
int setup(struct keeper *k);
/* Removes what the run leaves outside its directory, and, with all, the directory too. */
void setup_undo(struct keeper *k, bool all);
/* Does without the cgroup. */
void setup_leave_cgroup(struct keeper *k);

/* enter.c: whether commands run in a fence; and whether in that, or a filter of their own. */
bool enter_is_fenced(const struct keeper *k);
bool enter_is_needed(const struct keeper *k);
/* Before the child is made, in the child, and after it was made: 0 or -errno, with the step that
 * failed. */
int enter_open(struct keeper *k);
int enter_prepare(const struct keeper *k, struct standin *s);
void enter_all(const struct keeper *k, struct standin *s);
int enter_await(struct keeper *k, enum fence_step *ret_step);
/* In the child, before it becomes the command: what it gets as its stdin was opened outside. 0 or
 * -errno. */
int enter_hold_file(const struct keeper *k, int input);
/* The directory that the shell inside can leave a file in, opened; and its removal. */
int enter_room(const struct keeper *k);
void enter_leave(const struct keeper *k);

/* The name of a Unix socket: a file, or what is no path. */
struct socket_name {
    uint32_t inode, device;
    char abstract[108];
    size_t size; /* of that; 0 = it is a file */
};

/* listeners.c: the name of the file that fd stands for, which process pid sees. */
int listeners_name(int fd, pid_t pid, struct socket_name *ret_name);
/* The number of the socket that listens there: 0, or -ENOENT if none does. */
int listeners_find(int diag, const struct socket_name *name, uint32_t *ret_socket);
/* Whether a process, by its number as text, is inside; and whether one that is holds the socket. */
bool listeners_is_inside(int space, const char *pid);
bool listeners_is_held_inside(int space, uint32_t socket);

/* tty.c: makes the line on which the child hands over its terminal. 0 or -errno. */
int tty_open_line(struct keeper *k);
/* In the child: makes leader and command in its place; go_on() is called in the command, with 0 or
 * the error, and does not return. 0 = what called it is not needed any more, or -errno. */
int tty_become(const struct keeper *k, const struct standin *s,
               void (*go_on)(const struct keeper *k, int error));
/* In the keeper: the command has begun. */
void tty_begin(struct keeper *k);
/* Whether it is certain that nobody is left but the leader: as good as if there were no child left,
 * and nobody has to wait for the end of one more process. */
bool tty_is_over(struct keeper *k);
/* Where that cannot be told: whether there seems to be nobody else. Then the leader is ended, and
 * what is left tells. */
bool tty_is_alone(const struct keeper *k);
void tty_end(struct keeper *k);
void tty_hang_up(struct keeper *k);
void tty_revive(struct keeper *k);
/* To the end of what is there. */
void tty_drain(struct keeper *k, ssize_t (*pull)(struct keeper *k, nacre_stream stream));
void tty_end_input(const struct keeper *k);
int tty_resize(struct keeper *k, unsigned columns, unsigned rows);

/* persons.c: notes it at the end of the log, with the size that the terminal has. */
void mark_note(struct keeper *k, enum mark_kind kind);
/* The connection becomes that of a person, until person_end(). 0 or an errno. */
int person_begin(struct keeper *k, struct conn *c, const struct wire_attach *wish);
void person_end(struct keeper *k, struct conn *c);
/* Whether what comes by it is for the command. It is noted that, and not what. */
bool person_may_type(struct keeper *k, struct conn *c);
/* The terminal of the command, or the window of a person, has another size. 0 or an errno. */
int person_resize(struct keeper *k, struct conn *c, unsigned columns, unsigned rows);

/* held_calls.c: somebody waits for us. */
void calls_look(struct keeper *k);
void calls_answer(struct keeper *k, uint64_t id, int error);
bool calls_is_waiting(const struct keeper *k, uint64_t id);
/* The process that a thread belongs to, or -ESRCH. */
pid_t calls_leader(pid_t thread);

/* connects.c: one inside wants to connect, or to change another: what becomes of the call. */
int connects_serve(struct keeper *k, const struct seccomp_notif *n);
/* One of those who wait may be answered. */
void connects_know(struct keeper *k, int which);
void connects_drop(struct keeper *k);
/* They belong to the run that is over; their descriptors are closed with its others. */
void connects_forget(struct keeper *k);

/* execs.c: one is about to execute, or what it executed begins: what becomes of the call. */
int execs_serve(struct keeper *k, const struct seccomp_notif *n);
/* An answer is there. */
void execs_know(struct keeper *k, int which);
/* The look of AT_ASKED: who still waits, and whether somebody asks. */
void execs_look(struct keeper *k);
/* Nobody is asked any more: those who wait are refused. */
void execs_call_off(struct keeper *k);
/* Likewise, but nobody waits. */
void execs_drop(struct keeper *k);
void execs_forget(struct keeper *k);

/* appeared.c: moves aside what the command has made under protected names. */
void appeared_look(struct keeper *k);

/* exec_words.c: 0, or -errno of its memory, or 1: there seems to be nothing to be executed, of
 * which the kernel says why. Where its path leads may not be known: then it is judged by its name,
 * and once more when it begins. fresh: nothing is recalled. */
int exec_meet(struct exec_look *look, struct exec_path *paths, const struct seccomp_notif *n,
              bool fresh);
/* The same of a program that begins: what it was made of. */
int exec_meet_begun(struct exec_look *look, pid_t pid);
/* All of its words, which meet leaves aside. */
int exec_read_words(struct exec_look *look);

/* denied.c: what was refused; program and pid may be filled in by denied_name(). */
void denied_note(struct keeper *k, const struct denial *denial);
void denied_name(struct denial *d, pid_t pid);

/* reads.c: somebody has asked; output has come; something was typed. */
void reads_begin(struct keeper *k);
void reads_hear(struct keeper *k);
void reads_forget(struct keeper *k);
/* Looks, and tells whoever waits for what is seen. */
void reads_look(struct keeper *k);

/* plan.c: finds out where the preload lies, once. */
void plan_note_preload(struct keeper *k);
/* In a stand-in that is inside: 0 or -errno. */
int plan_copy_preload(const struct keeper *k, struct standin *s);
/* In the stand-in: the spec of a go of that many bytes, or from spec_fd; then all that follows. */
int plan_load(struct standin *s, size_t received, int spec_fd);
int plan_lay_out(const struct keeper *k, struct standin *s);
/* Gives back what was mapped for it. */
void plan_forget(struct standin *s);

/* standin.c: has a child wait for the go. */
int standin_make(struct keeper *k);
/* Whether it has become something else; then k->page says what, and k knows what it heard. */
bool standin_is_over(struct keeper *k);
/* There will be no go: the stand-in, whatever it has become, is ended and reaped. */
void standin_dismiss(struct keeper *k);
/* It has had its time; if it is not done, we look again. */
void standin_alarm(struct keeper *k);
/* Gives back what only a start needs. */
void standin_forget(struct keeper *k);

/*
 * birth.c: a child that shares our memory until it executes, on a stack of STANDIN_STACK bytes: the
 * pid, or -errno. Where memory cannot be shared (sanitizers keep books on stacks; other machines
 * need other instructions) the same child runs in a copy of it. It is in the cgroup of cgroup_fd
 * (< 0 = ours); where clone3 is refused *ret_outside is set before it runs, and it has to walk in.
 */
typedef void birth_fn(void *argument); /* never returns */
pid_t birth(int cgroup_fd, char *stack, birth_fn *fn, void *argument, bool *ret_outside);
/* The same as a child of our parent, in the cgroup that we are in. */
pid_t birth_sibling(char *stack, birth_fn *fn, void *argument);
/* Gives back nearly all memory, and sleeps until it is killed. All signals are blocked. */
_Noreturn void birth_sleep(void);

/* handshake.c */
int handshake_hello(struct keeper *k);
/* 0, or the error, that of before or another: then the run is given up. */
/* Of a copy, before anything else. */
void handshake_made(struct keeper *k);
int handshake_ready(struct keeper *k, int error, enum fence_step step);

/* life.c */
void life_event(struct keeper *k, enum life_event event);
/* Looks whether the stand-in has become something, and goes on from there. */
void life_look(struct keeper *k);
/* The library has something to say about the keeper after us. */
void life_hear_next(struct keeper *k);

/* machine.c */
void machine_event(struct keeper *k, enum keeper_event event);
void machine_timers(struct keeper *k);
int64_t machine_next_timer(const struct keeper *k);
/* How long the kill that was ordered may take. */
int64_t machine_kill_ms(const struct keeper *k);

/* tree.c: neither orphans nor descendants can be told: the command's group is all there is. */
bool tree_is_group(const struct keeper *k);
/* Everybody who is known to live, into the room's scan: how many. */
size_t tree_list(struct keeper *k);
/* The same for strays, behind count others. */
size_t tree_add_strays(struct keeper *k, size_t count);
void tree_count_survivors(struct keeper *k);
/* When memory runs out, it is ended before us and our host. */
void tree_yield_memory(const struct keeper *k);
/* Whether nobody is left, when there is no child left. */
bool tree_is_empty(struct keeper *k);

/* hunt.c: one signal to each who is there now. */
void hunt_signal(struct keeper *k, int signal);
/* SIGKILL to all, counted; and again to who is left. */
void hunt_force(struct keeper *k);
void hunt_sweep(struct keeper *k);
/* Whether we are served before others, where we may be. */
void hunt_go_first(struct keeper *k, bool first);

/* reap.c: what has ended; raises EV_EXIT and EV_EMPTY. */
void tree_reap(struct keeper *k);

/* drain.c */
void drain_stream(struct keeper *k, nacre_stream stream);
/* All that is in the pipes now, but not what keeps coming. */
void drain_now(struct keeper *k);
bool drain_at_eof(const struct keeper *k);
void drain_close_ended(struct keeper *k);
/* The pacer has read up to an offset, or (UINT64_MAX) is gone. */
void drain_seen(struct keeper *k, uint64_t offset);
/* Ties the log to the state, and catches what may happen to its mapping. */
void drain_guard(struct keeper *k);
/* Writes the state and tells whoever watches, and the session if it is due. */
void publish(struct keeper *k);

/* restore.c: the directory is whole now. */
void restore_note(struct keeper *k);
/* Whether it still is, in one look, and if not, what follows. */
void restore_look(struct keeper *k);
/* Has the run directory, and every file in it, be what we hold, and what they say be true. What
 * cannot be put back is kept as it is, and tried again: nothing else depends on it. */
void restore_files(struct keeper *k);

/* flood.c: aside, or back: whether others go first when there is not enough for all. */
void flood_step_aside(struct keeper *k, bool aside);
/* Whether to read again after a read that returned n. */
bool flood_reads_on(ssize_t n, int *patience);
bool flood_needs_rest(const struct keeper *k, int patience);
void flood_rest(struct keeper *k);

/* bound.c: in the stand-in: its groups, and by what each limit will be held. The one that has to be
 * held and cannot be, or NACRE_LIMIT_NONE. */
nacre_limit bound_take(const struct keeper *k, const struct standin *s);
/* Right before it executes: what would hold itself up, too. */
void bound_take_own(const struct spec_head *spec, const struct state_limits *st);

/* excess.c: a run has begun; nothing of this does anything to one without bounds. */
void excess_begin(struct keeper *k);
/* The look of AT_LIMITS; raises EV_LIMIT. */
void excess_look(struct keeper *k);
/* What the kernel has counted until now goes to the state. */
void excess_note(struct keeper *k);
/* The command has exited: whether that was a limit's doing is noted as the reason. */
void excess_judge_exit(struct keeper *k);
/* After EV_EXIT: if so, what it left running is ended too. */
void excess_end_rest(struct keeper *k);
/* Removes its groups. */
void excess_leave(struct keeper *k);

/* owner.c: who that is, once. */
void owner_note(struct keeper *k);
void owner_watch(struct keeper *k);
/* Raises EV_OWNER_GONE, once. */
void owner_gone(struct keeper *k);
/* The same, if /proc says so. */
void owner_look(struct keeper *k);
/* From now on its end is not ours. */
void outlive_owner(struct keeper *k);

/* ctl.c: who reads, to one who waits for it. */
void ctl_tell_reads(struct keeper *k, struct conn *c, const struct wire_looked *looked);
/* A connection is placed, to be spoken to, and then listened to. */
struct conn *ctl_place(struct keeper *k, int fd, bool watching);
void ctl_listen(struct keeper *k, const struct conn *c);
void ctl_accept(struct keeper *k);
void ctl_readable(struct keeper *k, struct conn *c);
void ctl_feed(struct keeper *k);
void ctl_close_input(struct keeper *k);
void ctl_tell_watchers(struct keeper *k);
void ctl_tell_killers(struct keeper *k);
void ctl_ring(struct keeper *k);

/* loop.c */
int loop_open(struct keeper *k);
/* Until the run is over. */
void loop_run(struct keeper *k);
void loop_watch(struct keeper *k, enum keeper_fd which);
void loop_ignore(struct keeper *k, enum keeper_fd which);
/* Ignores before it closes: a forked child may still hold the description open. */
void loop_close(struct keeper *k, enum keeper_fd which);
/* The same for connections; events 0 = only that it hangs up. */
void loop_watch_conn(struct keeper *k, const struct conn *c, uint32_t events);
void loop_close_conn(struct keeper *k, struct conn *c);
void loop_watch_waiting(struct keeper *k, int which);
void loop_close_waiting(struct keeper *k, int which);
void loop_watch_asked(struct keeper *k, int which);
void loop_close_asked(struct keeper *k, int which);
/* None is open. */
void loop_forget(struct keeper *k);
/* In a successor: keeps those of the session and closes all others. */
void loop_inherit(struct keeper *k);
