/* What to run: the one structure that every way of starting a shell fills in. */
#ifndef NACRE_COMMAND_H
#define NACRE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef enum nacre_stdin {
    NACRE_STDIN_NULL = 0,  /* /dev/null: reading ends at once */
    NACRE_STDIN_BYTES = 1, /* input_data, then end of file */
    NACRE_STDIN_FD = 2,    /* input_fd, a file or pipe of the caller's, which keeps its own copy */
    NACRE_STDIN_PIPE = 3   /* a pipe that stays open for nacre_input() */
} nacre_stdin;

typedef enum nacre_lifetime {
    NACRE_LIFE_SESSION = 0, /* dies with the session that started it */
    NACRE_LIFE_KEEP = 1     /* survives it; ended by kill, timeout or itself */
} nacre_lifetime;

/* What a command with all that it starts may use; docs/limits.md says how each is held. */
typedef enum nacre_limit {
    NACRE_LIMIT_NONE = 0,
    NACRE_LIMIT_MEMORY = 1,
    NACRE_LIMIT_PROCESSES = 2,
    NACRE_LIMIT_CPU = 3,
    NACRE_LIMIT_CPU_TIME = 4,
    NACRE_LIMIT_FILES = 5,
    NACRE_LIMIT_FILE_SIZE = 6,
    NACRE_LIMIT_DISK = 7
} nacre_limit;

#define NACRE_LIMIT_COUNT 8 /* with NACRE_LIMIT_NONE */

/* 0 = none but what the settings of the session say, which can only be narrowed. */
typedef struct nacre_limits {
    uint64_t memory;      /* bytes, of all of its processes together */
    uint64_t processes;   /* processes and their threads at a time */
    uint64_t cpu;         /* share of processors in hundredths: 150 = one and a half */
    uint64_t cpu_time_ms; /* of all of its processes together */
    uint64_t files;       /* open at a time, of each process */
    uint64_t file_size;   /* bytes of each file that is written */
    uint64_t disk;        /* bytes that it may write and that are missing on the disk then */
    int strict;           /* 1 = nothing starts if one of them cannot be held here */
} nacre_limits;

/* What a command needs beyond the sandbox of its session. Its user is asked (ask.h); where nobody
 * can be, or the answer is no, nothing is started. Lists are ended by NULL; NULL = none. */
typedef struct nacre_permissions {
    const char *const *write;   /* paths that are there */
    const char *const *hosts;   /* as in sandbox_network */
    const char *const *sockets; /* paths of Unix sockets */
    int full;                   /* 1 = no sandbox at all */
} nacre_permissions;

/*
 * Start from NACRE_COMMAND_INIT and set what differs. All pointers are borrowed for the call
 * that takes the structure and copied where they are needed longer.
 *
 * Either text or argv must be set, not both.
 */
typedef struct nacre_command {
    size_t size; /* sizeof(nacre_command), set by NACRE_COMMAND_INIT */

    const char *text;        /* a shell command of any length, NUL-terminated */
    const char *const *argv; /* or a program with its arguments, NULL-terminated, no shell */
    const char *shell;       /* for text: a path, or a name found in PATH; NULL = the
                                setting, else bash, else sh */
    const char *cwd;         /* NULL = the session's */

    const char *const *env; /* "NAME=value" entries laid over the host's environment, from which
                               secrets are removed (see settings.h), or "NAME" to remove it;
                               NULL-terminated; NULL = none */

    nacre_stdin input;
    const void *input_data; /* for NACRE_STDIN_BYTES */
    size_t input_size;
    int input_fd; /* for NACRE_STDIN_FD */

    int64_t timeout_ms; /* > 0: killed after that long, counted by the keeper; 0 = none */
    int64_t grace_ms;   /* between SIGTERM and SIGKILL; < 0 = the session's (2 s) */
    uint64_t quota;     /* bytes kept of its output; 0 = the session's (64 MiB) */
    nacre_lifetime lifetime;
    const char *name;        /* makes a start idempotent, see nacre_start(); may be NULL */
    const char *description; /* for people; may be NULL */

    int paced;      /* 1 = the watch of nacre_start() sees every byte: a command that prints faster
                       than the watch is read waits, as it would for a pipe. 0 = it never waits, and
                       what the quota cannot hold is dropped from the middle */
    int background; /* 1 = nobody waits for it: it takes one of the session's places, stays listed
                       when it has ended, and its end is a completion (completion.h) */
    int replace;    /* 1 = if another command has the name, that one is ended first */

    const char *sandbox; /* narrows what the settings say: "read-only", "workspace-write"; NULL = as
                            they say */

    nacre_limits limits;

    int tty;     /* 1 = a terminal in place of pipes: one stream, which is stdout, and an input that
                    stays open for nacre_input(). input must be NACRE_STDIN_NULL or
                    NACRE_STDIN_PIPE then, and is the latter */
    int columns; /* of the terminal: 20 to 500; 0 = 120 */
    int rows;    /* 5 to 200; 0 = 40 */

    nacre_permissions permissions;
    const char *justification; /* why it needs them, for who is asked; may be NULL */
} nacre_command;

#define NACRE_COMMAND_INIT                                                                         \
    {                                                                                              \
        sizeof(nacre_command), NULL, NULL, NULL, NULL, NULL, NACRE_STDIN_NULL, NULL, 0, -1, 0, -1, \
            0, NACRE_LIFE_SESSION, NULL, NULL, 0, 0, 0, NULL, {0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0,   \
            {NULL, NULL, NULL, 0}, NULL                                                            \
    }

NACRE_END_DECLS

#endif
