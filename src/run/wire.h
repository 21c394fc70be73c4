/*
 * What the library and a keeper say to each other, one message per packet, over the socket the
 * keeper was born with (hello, ready, go) and over `ctl` (everything else; the first one turns into
 * such a connection once the command runs). Descriptors travel where noted.
 */
#ifndef NACRE_RUN_WIRE_H
#define NACRE_RUN_WIRE_H

#include <nacre/id.h>
#include <stdint.h>

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
    WIRE_SURE = 15 /* library, after GO: the keeper is still like its host, which is like this */
};

/*
 * The session's line is a pair of sockets: the owner holds one end, all its keepers the other. Its
 * end is the owner's end. Keepers of background shells say the id of their run on it when it has an
 * outcome, and when its tree is empty; if nobody listens for long, that is lost, and the state
 * files tell it.
 */

/* Optional descriptors of the hello. */
enum wire_hello_fds {
    WIRE_FD_TEXT = 1u << 0,  /* the preload that hands a shell its text */
    WIRE_FD_OWNER = 1u << 1, /* a pidfd of the owner */
};

/* Where a start failed. */
enum wire_stage {
    STAGE_NONE = 0,
    STAGE_SPEC = 1,
    STAGE_CHDIR = 2,
    STAGE_STDIN = 3,
    STAGE_EXEC = 4,
    STAGE_PREPARE = 5, /* while the keeper made itself or the child ready */
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
    uint32_t pad;
    char cgroup_parent[CGROUP_PATH_MAX]; /* "" = none */
};

struct wire_ready {
    struct wire_head head;
    int32_t error; /* errno, 0 = ready */
    int32_t pid;
    uint64_t start;
    nacre_id id;            /* of the run that is prepared */
    uint32_t child_of_host; /* the host is PID 1 or a subreaper and must reap the keeper */
    uint32_t tier;
    uint32_t copies; /* how many forks lie between it and the keeper that was executed */
    uint32_t pad;
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
    int64_t wait_ms; /* the result will be there by then */
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

#endif
