/*
 * The record of a run: everything that is known about one shell. Two facts are kept apart: the
 * outcome of the command, written once, and whether anything of its process tree still lives.
 */
#ifndef NACRE_RECORD_H
#define NACRE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/command.h>
#include <nacre/id.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef enum nacre_outcome {
    NACRE_RUNNING = 0,   /* no outcome yet */
    NACRE_EXITED = 1,    /* exit_code holds */
    NACRE_SIGNALED = 2,  /* ended by a signal nobody here sent; signal holds */
    NACRE_KILLED = 3,    /* ended by nacre_kill(), or because its session ended: see reason */
    NACRE_TIMED_OUT = 4, /* ended because its time was over */
    NACRE_CANCELLED = 5, /* ended because the call that waited for it was cancelled */
    NACRE_LOST = 6       /* its keeper vanished: how the command ended cannot be known */
} nacre_outcome;

typedef enum nacre_tree {
    NACRE_TREE_ALIVE = 0, /* with an outcome: lingering */
    NACRE_TREE_EMPTY = 1  /* proven; of a lost run without a cgroup: as far as the mark in its
                             processes' environments reaches */
} nacre_tree;

/* How its processes are held together, best first. */
typedef enum nacre_tier {
    NACRE_TIER_CGROUP = 0,    /* a cgroup v2 leaf of its own, and all of the next */
    NACRE_TIER_SUBREAPER = 1, /* whatever it daemonises becomes its keeper's child */
    NACRE_TIER_GROUP = 2,     /* its process group only */
    NACRE_TIER_CLIENT = 3     /* by an ACP client, whose word is all there is */
} nacre_tier;

/* Why it was ended, if it was. */
typedef enum nacre_reason {
    NACRE_REASON_NONE = 0,
    NACRE_REASON_KILL = 1,     /* nacre_kill() or `nacre kill` */
    NACRE_REASON_DEADLINE = 2, /* its timeout */
    NACRE_REASON_CANCEL = 3,   /* nacre_kill() with cancel */
    NACRE_REASON_OWNER = 4,    /* the session closed or its process ended */
    NACRE_REASON_LIMIT = 5     /* one of its limits; see limits.ended of the record */
} nacre_reason;

/* By what a limit is held. */
typedef enum nacre_holder {
    NACRE_HELD_NOT = 0,     /* it was not asked for, or cannot be held here */
    NACRE_HELD_CGROUP2 = 1, /* by the kernel, for all processes together */
    NACRE_HELD_CGROUP1 = 2, /* likewise */
    NACRE_HELD_RLIMIT = 3,  /* by the kernel, for each process */
    NACRE_HELD_KEEPER = 4,  /* the keeper looks, and ends the command */
    NACRE_HELD_NICE = 5     /* not held: it only runs at a lower priority */
} nacre_holder;

/* The limits of a run, and what they did to it. */
typedef struct nacre_limits_report {
    nacre_limits in_force;
    nacre_holder held[NACRE_LIMIT_COUNT]; /* by nacre_limit */
    nacre_limit ended;                    /* which one ended it or what it left running, if one */
    uint64_t peak;          /* of what that one counts, as far as it is known; 0 = it is not */
    uint64_t largest_bytes; /* of memory: the process that had most of it, and */
    char largest[16];       /* its name; "" = not known */
    unsigned killed;        /* processes that the limit on memory killed */
    unsigned refused;       /* forks that the limit on processes refused */
    int64_t throttled_ms;   /* that the limit on its share of processors kept it waiting */
    int files_refused;      /* 1 = its stderr says that too many files were open */
    int file_size_refused;  /* 1 = its stderr says that a file was too large */
} nacre_limits_report;

typedef enum nacre_stream { NACRE_STDOUT = 0, NACRE_STDERR = 1 } nacre_stream;

/* Which streams a read wants. */
#define NACRE_OUT            (1u << NACRE_STDOUT)
#define NACRE_ERR            (1u << NACRE_STDERR)
#define NACRE_BOTH           (NACRE_OUT | NACRE_ERR)

#define NACRE_PIPESTATUS_MAX 32
#define NACRE_LEFTOVER_MAX   16
#define NACRE_PORTS_MAX      8

/* A process that the command left running. */
typedef struct nacre_process {
    int32_t pid;
    uint16_t ports[NACRE_PORTS_MAX]; /* TCP ports it listens on; ends at the first 0 */
    char command[160];               /* its command line, cut at a character */
} nacre_process;

/* What a sandbox refused a process of the shell. */
typedef enum nacre_denial_kind {
    NACRE_DENIAL_NETWORK = 0,   /* target is host:port */
    NACRE_DENIAL_SOCKET = 1,    /* a Unix socket */
    NACRE_DENIAL_PROTECTED = 2, /* a name that may not appear: what appeared was moved aside */
    NACRE_DENIAL_WRITE = 3,     /* a file, found in what the command printed and checked */
    NACRE_DENIAL_READ = 4,      /* likewise */
    NACRE_DENIAL_RIGHTS = 5,    /* a program that needs more of them, by its own words */
    NACRE_DENIAL_EXEC = 6       /* a command, by a rule about commands: target is its words */
} nacre_denial_kind;

typedef struct nacre_denial {
    nacre_denial_kind kind;
    int32_t pid;      /* 0 = not known */
    char program[64]; /* "" = not known */
    char target[256];
    char why[128]; /* without a full stop */
} nacre_denial;

#define NACRE_USAGE_PORTS_MAX 16

/* What the processes of a shell use at one moment. Start from NACRE_USAGE_INIT. */
typedef struct nacre_usage {
    size_t size;
    int processes;  /* that are alive; 0 = the tree is empty */
    int64_t cpu_ms; /* user and system since the start, of all that ran in the tree; without a
                       cgroup, what ended unwaited for is missing. Of an empty tree: as in the
                       record */
    uint64_t memory_bytes;                 /* resident; what processes share counts for each */
    uint16_t ports[NACRE_USAGE_PORTS_MAX]; /* TCP ports they listen on, in ascending order; ends at
                                              the first 0 */
} nacre_usage;

#define NACRE_USAGE_INIT              \
    {                                 \
        sizeof(nacre_usage), 0, 0, 0, \
        {                             \
            0                         \
        }                             \
    }

/*
 * Start from NACRE_RECORD_INIT; release with nacre_record_done(). A record that was filled may
 * be filled again.
 */
typedef struct nacre_record {
    size_t size; /* sizeof(nacre_record), set by NACRE_RECORD_INIT */

    nacre_id id;
    nacre_id session;
    nacre_outcome outcome;
    nacre_tree tree;
    nacre_tier tier;
    nacre_reason reason;
    int exit_code;   /* of the command itself, or -1; also known for most killed ones */
    int signal;      /* that ended it, or 0 */
    int core_dumped; /* 0 or 1 */

    int64_t started_ms; /* since the epoch */
    int64_t exited_ms;  /* since the epoch, 0 while running */
    int64_t elapsed_ms; /* until the exit, or until now */
    int64_t timeout_ms; /* as asked, 0 = none */
    int64_t cpu_ms;     /* user and system, of the command and the children it waited for */
    int64_t max_rss_kb;

    uint64_t bytes[2];         /* printed so far, per stream */
    uint64_t lines[2];         /* likewise; an unfinished last line counts */
    uint64_t dropped_bytes[2]; /* of these, no longer in the log */
    uint64_t dropped_lines[2];
    int dropped_errno; /* why, if not for the quota: ENOSPC, EIO, ... */

    int pipestatus_count; /* -1 = not known */
    int pipestatus[NACRE_PIPESTATUS_MAX];

    int signalled;    /* processes that a kill sent its first signal */
    int force_killed; /* processes that needed SIGKILL */
    int survivors;    /* processes that SIGKILL did not end in time */

    int pid; /* of the command; never an id, and only meaningful while it runs */
    nacre_lifetime lifetime;
    int background; /* 1 = its session hears of its end as a completion */
    nacre_stdin input;

    int leftover_count; /* processes alive now besides the command, at most NACRE_LEFTOVER_MAX */
    nacre_process leftover[NACRE_LEFTOVER_MAX];

    char *command; /* the text, or the arguments joined by blanks; never NULL after a fill */
    char *cwd;
    char *name;        /* "" if it has none */
    char *description; /* likewise */

    int spare; /* 1 = the home had no room: it is kept elsewhere, in memory if possible, and not
                  for long */

    char *sandbox;    /* what it ran in: "workspace-write, network off"; "" = none */
    int denial_count; /* what the sandbox refused, as far as that is known */
    nacre_denial *denials;

    nacre_limits_report limits;

    int columns; /* of its terminal, as it is now; 0 = it has pipes */
    int rows;
    int viewers; /* people who are attached now (attach.h), */
    int typists; /* and those of them who may type */
} nacre_record;

#define NACRE_RECORD_INIT                                                                       \
    {                                                                                           \
        sizeof(nacre_record), {{0}}, {{0}}, NACRE_RUNNING, NACRE_TREE_ALIVE, NACRE_TIER_CGROUP, \
            NACRE_REASON_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0, \
            {0}, 0, 0, 0, 0, NACRE_LIFE_SESSION, 0, NACRE_STDIN_NULL, 0, {{0, {0}, {0}}}, NULL, \
            NULL, NULL, NULL, 0, NULL, 0, NULL, {{0, 0, 0, 0, 0, 0, 0, 0},                      \
                                                 {NACRE_HELD_NOT},                              \
                                                 NACRE_LIMIT_NONE,                              \
                                                 0,                                             \
                                                 0,                                             \
                                                 {0},                                           \
                                                 0,                                             \
                                                 0,                                             \
                                                 0,                                             \
                                                 0,                                             \
                                                 0},                                            \
            0, 0, 0, 0                                                                          \
    }

/* Frees what the record owns and makes it empty. NULL is ignored. */
NACRE_API void nacre_record_done(nacre_record *record);

/*
 * The status in words, written into buf and returned: "running", "exited(7)",
 * "signaled(SIGSEGV)", "killed", "killed(limit memory)", "timed_out", "cancelled", "lost"; with
 * ", lingering" behind it if there is an outcome and the tree is alive. 64 bytes are always enough.
 */
NACRE_API const char *nacre_status(const nacre_record *record, char *buf, size_t size);

/* "SIGTERM" for 15; "SIG<n>" for a number without a name. Written into buf and returned. */
NACRE_API const char *nacre_signal_name(int signal, char *buf, size_t size);

/* 15 for "SIGTERM", "TERM", "term" or "15"; -1 for anything else. */
NACRE_API int nacre_signal_number(const char *name);

/* "memory", "processes", "cpu", "cpu_time", "files", "file_size" or "disk"; "none" for others. */
NACRE_API const char *nacre_limit_name(nacre_limit limit);

/* "cgroup2", "cgroup1", "rlimit", "keeper", "nice" or "not". */
NACRE_API const char *nacre_holder_name(nacre_holder holder);

/* "cgroup", "subreaper" or "group". */
NACRE_API const char *nacre_tier_name(nacre_tier tier);

NACRE_END_DECLS

#endif
