/*
 * What the library and a keeper say to each other, one message per packet, over the socket the
 * keeper was born with (hello, ready, go) and over `ctl` (everything else; the first one turns into
 * such a connection once the command runs). Descriptors travel where noted.
 */
#pragma once

#include <nacre/id.h>
#include <stdint.h>

#include "run/denial.h"
#include "run/hosts.h"
#include "run/spec.h"
#include "run/state.h"

#define WIRE_INPUT_MAX 4096
#define WIRE_SPEC_MAX  (16 * 1024)

enum wire_type {
    WIRE_HELLO = 1,  /* library: who you are. fds: runs directory, the session's line, then those
                        of enum wire_hello_fds that are marked present */
    WIRE_READY = 2,  /* keeper: the run directory is made. fds: a pipe, see struct wire_started,
                        and the socket of the keeper after this one, which may not exist yet */
    WIRE_GO = 3,     /* library: the spec. fds: stdin if has_input, then the spec itself if
                        it is longer than fits */
    WIRE_HURRY = 4,  /* library, on the socket of a keeper that does not exist yet: make it now */
    WIRE_WATCH = 5,  /* library: tell me what happens */
    WIRE_EVENT = 6,  /* keeper: something happened; the state tells what */
    WIRE_KILL = 7,   /* library */
    WIRE_ACK = 8,    /* keeper: heard; the result follows */
    WIRE_KILLED = 9, /* keeper: the tree is empty, or what is left of it */
    WIRE_INPUT = 10, /* library */
    WIRE_INPUT_DONE = 11, /* keeper: the command's pipe took it, or why not */
    WIRE_SEEN = 12,       /* library, of a paced run: read up to here */
    WIRE_CHANGE = 13,     /* library: what the run is to its session. Answered by WIRE_ACK */
    WIRE_SIGNAL = 14,     /* library: to the command's process group. Answered by WIRE_INPUT_DONE */
    WIRE_SURE = 15,   /* library, after GO: the keeper is still like its host, which is like this */
    WIRE_DENIED = 16, /* the gate: something of this run was refused */
    WIRE_FENCE = 17,  /* library, to nacre-fence: make this one; and right after HELLO, to a keeper:
                         your commands run in this one. fds: those of enum wire_fence_fds that are
                         marked present, in their order */
    WIRE_FENCED = 18, /* nacre-fence: it is made, or what could not be done. fds: likewise */
    WIRE_RESIZE = 19, /* library: the terminal is to have this size. Answered by WIRE_INPUT_DONE */
    WIRE_ATTACH = 20, /* library: from now on, and until it ends, this connection is that of a
                         person. Answered by WIRE_INPUT_DONE */
    WIRE_LOOK = 21,   /* library: who reads the command's input? Answered by WIRE_LOOKED once it is
                         as wanted; a connection has one such question at a time */
    WIRE_LOOKED = 22, /* keeper */
    WIRE_MADE = 23,   /* keeper that is a copy of the one before it, before READY: here I am. One
                         that somebody stops before it is ready can be woken then */
    WIRE_ASKED = 24,  /* keeper, on the session's line: somebody is to be asked. fds: one that takes
                         the answer */
    WIRE_ANSWER = 25, /* library, on that one */
    WIRE_GATE_HELLO = 32, /* library, to a gate: the rules. fds: the listening socket, the session's
                             line, then those of enum wire_hello_fds that are marked present */
    WIRE_GATE_READY = 33, /* gate: it lets through from now on, or why not */
};

/*
 * The session's line is a pair of sockets: the owner holds one end, all its keepers the other. Its
 * end is the owner's end. Keepers of background shells say the id of their run on it when it has an
 * outcome, and when its tree is empty; if nobody listens for long, that is lost, and the state
 * files tell it. What somebody has to be asked about is said on it, too (WIRE_ASKED): it is the one
 * way to the session on which a command can say nothing.
 */

/* Optional descriptors of the hello. */
enum wire_hello_fds {
    WIRE_FD_TEXT = 1u << 0,   /* the preload that hands a shell its text */
    WIRE_FD_OWNER = 1u << 1,  /* a pidfd of the owner */
    WIRE_FD_FENCE = 1u << 2,  /* not a descriptor: a WIRE_FENCE follows */
    WIRE_IN_SCOPE = 1u << 3,  /* likewise: the keeper is in a scope that was made for it, and leaves
                                 are to be made there */
    WIRE_FD_POLICY = 1u << 4, /* the rules that forbid and ask (policy/packed.h), in memory */
};

/* What a fence consists of. */
enum wire_fence_fds {
    FENCE_FD_RECORD = 1u << 0, /* struct fence_head and what follows, in memory */
    FENCE_FD_PRIVATE =
        1u << 1,             /* the session's directory for what is private; locked while in use */
    FENCE_FD_USER = 1u << 2, /* namespaces */
    FENCE_FD_MOUNT = 1u << 3,
    FENCE_FD_NETWORK = 1u << 4,
    FENCE_FD_IPC = 1u << 5,
    FENCE_FD_RULES = 1u << 6, /* of Landlock */
    FENCE_FD_GATE = 1u << 7,  /* a socket that listens inside, for the gate */
};
#define FENCE_FDS 8

/* Where a start failed. */
enum wire_stage {
    STAGE_NONE = 0,
    STAGE_SPEC = 1,
    STAGE_CHDIR = 2,
    STAGE_STDIN = 3,
    STAGE_EXEC = 4,
    STAGE_PREPARE = 5, /* while the keeper made itself or the child ready */
    STAGE_LIMITS = 6,  /* one of its limits cannot be held; the error says which nacre_limit */
    STAGE_TERMINAL = 7,
};

struct wire_head {
    uint32_t type;
    uint32_t format;
};

struct wire_hello {
    struct wire_head head;
    nacre_id session;
    uint32_t tier; /* the best one to try */
    uint32_t fds;  /* of enum wire_hello_fds */
    int32_t host_pid;
    uint32_t home;                       /* its number, for the sign (run/sign.h); 0 = no sign */
    char cgroup_parent[CGROUP_PATH_MAX]; /* "" = none */
};

/* major << 16 | minor << 8 | patch */
#define WIRE_VERSION \
    ((uint32_t)NACRE_VERSION_MAJOR << 16 | NACRE_VERSION_MINOR << 8 | NACRE_VERSION_PATCH)

struct wire_ready {
    struct wire_head head;
    int32_t error; /* errno, 0 = ready */
    int32_t pid;
    uint64_t start;
    nacre_id id;            /* of the run that is prepared */
    uint32_t child_of_host; /* the host is PID 1 or a subreaper and must reap the keeper */
    uint32_t tier;
    uint32_t copies;  /* how many forks lie between it and the keeper that was executed */
    uint32_t version; /* WIRE_VERSION of its build; 0 = from before there was this field */
    uint32_t step;    /* enum fence_step: the fence cannot be entered; else 0 */
    uint32_t pad;
};

struct wire_made {
    struct wire_head head;
    int32_t pid;
    uint32_t pad;
    uint64_t start;
};

struct wire_fence {
    struct wire_head head;
    uint32_t fds; /* of enum wire_fence_fds */
    uint32_t pad;
};

struct wire_fenced {
    struct wire_head head;
    int32_t error;     /* errno, 0 = it is made */
    uint32_t step;     /* enum fence_step */
    uint32_t place;    /* the number of the place that was put in then */
    uint32_t fds;      /* of enum wire_fence_fds */
    uint32_t landlock; /* version; 0 = without */
    uint32_t port;     /* of the gate's socket, or 0 */
};

struct wire_go {
    struct wire_head head;
    uint32_t has_input;
    uint32_t size;            /* of the spec */
    char spec[WIRE_SPEC_MAX]; /* cut to size; empty if it came as a descriptor */
};

/* What the library finds out while the child wakes up and gets ready; before it nothing begins. */
struct wire_sure {
    struct wire_head head;
    struct spec_host host;
};

/*
 * What the pipe of a ready keeper says, from the child that becomes the command, without the
 * keeper: STAGE_NONE right before the exec, and why it failed if it does. The exec ends the pipe,
 * so at its end the last word counts; without any the child is gone.
 */
struct wire_started {
    int32_t stage; /* enum wire_stage */
    int32_t error;
};

struct wire_event {
    struct wire_head head;
    struct run_state state;
};

struct wire_kill {
    struct wire_head head;
    int32_t signal;
    uint32_t reason;  /* nacre_reason */
    int64_t grace_ms; /* < 0 = the run's own */
};

struct wire_ack {
    struct wire_head head;
    int64_t wait_ms; /* the result will be there by then; < 0 = it is refused */
};

struct wire_killed {
    struct wire_head head;
    struct run_state state;
};

struct wire_change {
    struct wire_head head;
    uint32_t background; /* 1 = from now on */
    uint32_t kept;       /* 1 = from now on */
};

struct wire_signal {
    struct wire_head head;
    int32_t signal;
    uint32_t pad;
};

struct wire_resize {
    struct wire_head head;
    uint32_t columns;
    uint32_t rows;
};

/* The size is that of the window, for a terminal that is to have it; without, it keeps its own. */
struct wire_attach {
    struct wire_head head;
    uint32_t types; /* 1 = what this person types is for the command */
    uint32_t columns;
    uint32_t rows;
    uint32_t pad;
};

/* Who reads. */
enum wire_reads {
    READS_NO = 0,            /* nobody was seen to */
    READS_UNKNOWN = 1u << 0, /* somebody sleeps at the terminal who may not be looked at */
    READS_LISTENS = 1u << 1, /* somebody waits for input, and for other things */
    READS_LINE = 1u << 2, /* for a line, and for nothing else; or at a pipe, for whatever comes */
    READS_KEYS = 1u << 3, /* for a key */
    READS_PASSWORD = 1u << 4, /* for a line that is not shown */
};

struct wire_look {
    struct wire_head head;
    uint32_t wanted;  /* bits of enum wire_reads; 0 = answer however it is */
    uint32_t held_ms; /* it has to be so for that long, and nothing printed meanwhile; to listen
                         only, for a second */
};

struct wire_looked {
    struct wire_head head;
    uint32_t reads;    /* enum wire_reads */
    int32_t pid;       /* of who does; 0 = not known */
    uint64_t start;    /* and when that process began */
    int64_t since_ms;  /* looks have agreed for that long */
    uint32_t terminal; /* it has one; else a pipe */
    uint32_t echo;     /* which shows what is typed, */
    uint32_t lines;    /* and hands it over in lines */
    char name[20];     /* of the process, NUL-terminated; of whatever bytes */
};

struct wire_denied {
    struct wire_head head;
    struct denial denial;
};

struct wire_seen {
    struct wire_head head;
    uint64_t offset;
};

struct wire_input {
    struct wire_head head;
    uint32_t size;
    uint32_t eof;
    char data[WIRE_INPUT_MAX];
};

struct wire_input_done {
    struct wire_head head;
    int32_t error; /* errno, 0 = all of it was taken */
    uint32_t taken;
};

#define WIRE_ASKED_MAX 8192

struct wire_asked {
    struct wire_head head;
    nacre_id id;
    uint32_t argc;
    uint32_t size;             /* of the text */
    char text[WIRE_ASKED_MAX]; /* the words, each with its NUL, and the directory; cut to size */
};

enum wire_answer_kind {
    WIRE_ANSWER_NO,
    WIRE_ANSWER_YES,
    WIRE_ANSWER_CANCELLED, /* nobody answers */
    WIRE_ANSWER_CANNOT,    /* nobody can be asked */
    WIRE_ANSWER_HEARD,     /* somebody is being asked */
};

struct wire_answer {
    struct wire_head head;
    uint32_t answer; /* enum wire_answer_kind */
    uint32_t pad;
};

struct wire_gate_hello {
    struct wire_head head;
    uint32_t fds; /* of enum wire_hello_fds */
    int32_t host_pid;
    uint32_t patience_ms;        /* to say what is wanted, and to connect; 0 = 30 s */
    uint32_t size;               /* of the rules */
    char rules[HOST_RULES_SIZE]; /* lines, as in run/hosts.h; cut to size */
};

struct wire_gate_ready {
    struct wire_head head;
    int32_t error; /* errno, 0 = ready */
    int32_t pid;
    uint32_t child_of_host; /* as in struct wire_ready */
    uint32_t version;       /* WIRE_VERSION of its build */
};

FORMAT_PIN(5, struct wire_head, 8);
FORMAT_PIN(5, struct wire_hello, 552);
FORMAT_PIN(5, struct wire_ready, 64);
FORMAT_PIN(5, struct wire_made, 24);
FORMAT_PIN(5, struct wire_fence, 16);
FORMAT_PIN(5, struct wire_fenced, 32);
FORMAT_PIN(5, struct wire_go, 16400);
FORMAT_PIN(5, struct wire_sure, 272);
FORMAT_PIN(5, struct wire_started, 8);
FORMAT_PIN(5, struct wire_event, 1056);
FORMAT_PIN(5, struct wire_kill, 24);
FORMAT_PIN(5, struct wire_ack, 16);
FORMAT_PIN(5, struct wire_killed, 1056);
FORMAT_PIN(5, struct wire_change, 16);
FORMAT_PIN(5, struct wire_signal, 16);
FORMAT_PIN(5, struct wire_resize, 16);
FORMAT_PIN(5, struct wire_attach, 24);
FORMAT_PIN(5, struct wire_look, 16);
FORMAT_PIN(5, struct wire_looked, 64);
FORMAT_PIN(5, struct wire_denied, 464);
FORMAT_PIN(5, struct wire_seen, 16);
FORMAT_PIN(5, struct wire_input, 4112);
FORMAT_PIN(5, struct wire_input_done, 16);
FORMAT_PIN(5, struct wire_asked, 8224);
FORMAT_PIN(5, struct wire_answer, 16);
FORMAT_PIN(5, struct wire_gate_hello, 16408);
FORMAT_PIN(5, struct wire_gate_ready, 24);
