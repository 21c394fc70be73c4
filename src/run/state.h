/*
 * The `state` file of a run: all that changes, in a record of fixed size. There are two slots; an
 * update goes to the older one, so that a crash in its middle leaves the other. The one with the
 * higher generation and a right checksum counts. Only the keeper writes it, or, once the keeper
 * is gone, whoever took the lock in its place.
 *
 * It is read and written in rundir.c. All numbers are in the machine's byte order: a home is not
 * carried between machines.
 */
#pragma once

#include <nacre/id.h>
#include <nacre/record.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/format.h"
#include "sys/cgroup.h"

#define STATE_SLOT_SIZE 2048
#define STATE_SURVIVORS 8

#define STATE_WAITS     UINT32_MAX

enum run_phase {
    PHASE_WARM = 0, /* made ahead of time; not a run yet, and never shown */
    PHASE_RUN = 1,
};

/* What is where in log, tail and spans; see run/log.h. */
struct log_index {
    uint64_t end;        /* bytes read so far: the offset of the next one */
    uint64_t head;       /* offsets below this are in `log` */
    uint64_t head_spans; /* entries in `spans` */
    uint64_t ring_size;  /* bytes of the ring in `tail`; 0 = there is none */
    uint64_t ring_base;  /* the offset that was first written at ring position 0 */
    uint64_t tail_start; /* offsets from this on are in the ring; between: the gap */
    uint64_t span_cap;   /* entries of the ring of spans behind the ring */
    uint64_t span_first; /* the number of the first entry still there */
    uint64_t span_next;  /* the number of the next one */
    uint64_t bytes[2];
    uint64_t newlines[2];
    uint64_t dropped_bytes[2];
    uint64_t dropped_newlines[2];
    int32_t dropped_errno; /* 0 = for the quota */
    uint8_t unfinished[2]; /* the last byte was no newline */
    uint8_t pad[2];
};

/* What the limits of a run did to it; see docs/limits.md. */
struct state_limits {
    uint8_t held[NACRE_LIMIT_COUNT]; /* nacre_holder, by nacre_limit */
    uint32_t ended;                  /* nacre_limit that ended it, or what it left running */
    uint32_t killed;                 /* processes, by the limit on memory */
    uint32_t refused;                /* forks */
    uint32_t seen;                   /* bits by nacre_limit: its refusal was read in stderr */
    uint64_t value;                  /* of the limit that ended it */
    uint64_t peak;                   /* of what that one counts; 0 = not known */
    int64_t throttled_ms;
    uint64_t largest_bytes; /* of the process that had most memory */
    char largest[16];       /* its name, NUL-terminated */
};

struct run_state {
    uint8_t magic[8];
    uint32_t format;
    uint32_t size;
    uint64_t generation;
    nacre_id id;
    nacre_id session;

    uint32_t phase;
    uint32_t outcome; /* nacre_outcome */
    uint32_t tree;    /* nacre_tree */
    uint32_t tier;    /* nacre_tier */
    uint32_t reason;  /* nacre_reason */
    uint32_t settled; /* an answer may be given */
    int32_t exit_code;
    int32_t signal;
    uint32_t core_dumped;
    uint32_t kept;       /* it does not end with its session */
    uint32_t background; /* its end is told to its session */
    uint32_t fleeting;   /* removed with its session: no history is kept */

    uint8_t boot[16];
    uint64_t pid_ns;
    int32_t keeper_pid;
    int32_t main_pid;
    uint64_t keeper_start;
    uint64_t main_start;

    int64_t started_ns; /* calendar */
    int64_t started_mono_ns;
    int64_t exited_ns;  /* calendar */
    int64_t elapsed_ns; /* from start to exit */
    int64_t empty_ns;   /* calendar */
    int64_t cpu_us;
    int64_t max_rss_kb;

    struct log_index log;

    int32_t signalled;
    int32_t force_killed;
    int32_t survivors;
    int32_t survivor_pids[STATE_SURVIVORS];
    int32_t pipestatus_count; /* -1 = not known */
    uint8_t pipestatus[NACRE_PIPESTATUS_MAX];
    char cgroup[CGROUP_PATH_MAX]; /* "" = none */

    int32_t leader_pid; /* of its terminal: none of its processes; 0 = it has none */
    uint32_t marks;     /* that were written down; see run/marks.h */
    uint16_t columns;   /* which it has now; 0 = no terminal */
    uint16_t rows;
    uint16_t viewers;   /* persons who see it now, */
    uint16_t typists;   /* and those of them who may type */
    uint32_t waited_ms; /* for how long its deadline has waited for a person; STATE_WAITS = now */
    uint32_t pad;

    struct state_limits limits;

    uint64_t sum; /* over all of the above */
};

FORMAT_PIN(5, nacre_id, 16);
FORMAT_PIN(5, struct log_index, 144);
FORMAT_PIN(5, struct state_limits, 72);
FORMAT_PIN(5, struct run_state, 1048);
_Static_assert(sizeof(struct run_state) <= STATE_SLOT_SIZE, "a state fits its slot");
_Static_assert(sizeof(struct run_state) % 8 == 0, "the checksum covers eight bytes at a time");

void state_init(struct run_state *state, const nacre_id *id, const nacre_id *session);

/* Writes the next generation. Returns 0 or -errno. */
int state_write(int fd, struct run_state *state);

/* Reads the valid slot with the highest generation; it is no older than the newest at the time of
 * the call. -EBADMSG if there is none, -EPROTO if it is of a newer format. */
int state_read(int fd, struct run_state *ret_state);

/* Whether everything is over: an outcome is known and the tree is empty. */
static inline bool state_is_final(const struct run_state *state)
{
    return state->phase == PHASE_RUN && state->outcome != NACRE_RUNNING &&
           state->tree == NACRE_TREE_EMPTY;
}
