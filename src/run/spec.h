/*
 * What was asked: composed by the library, sent to the keeper, and kept by it as the `spec` file
 * of the run. A fixed head, then NUL-terminated strings at the offsets the head names.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/format.h"

#define SPEC_LIMITS    16
#define SPEC_GROUPS    3                /* as enum controller has them */
#define SPEC_TEXT_NAME "NACRE_COMMAND=" /* stands right before the text, as in an environment */

/* How the command is handed to what is executed. */
enum spec_kind {
    SPEC_ARGV = 0, /* argv is a program and its arguments */
    SPEC_BASH = 1, /* text for bash */
    SPEC_SH = 2,   /* text for another shell that takes -c */
};

/*
 * What is in a shell's argv in place of its text. Where the preload cannot be used (a static shell,
 * or one of another libc) it is what runs the text: from the variable NACRE_COMMAND, or from
 * descriptor 3 when it is long.
 */
const char *spec_stand_in(uint32_t kind, bool is_long);

/* Whether this is one of them, or the beginning of one. */
bool spec_is_stand_in(const char *text);

struct spec_limit {
    uint64_t soft;
    uint64_t hard;
};

/* How the host stands when it starts something. */
struct spec_host {
    uint32_t umask;
    int32_t nice;
    struct spec_limit limits[SPEC_LIMITS];
};

struct spec_head {
    uint8_t magic[8];
    uint32_t format;
    uint32_t size; /* of the whole file */
    nacre_id id;
    nacre_id session;
    int64_t timeout_ms; /* 0 = none */
    int64_t grace_ms;
    uint64_t quota;
    uint32_t kind;
    uint32_t lifetime;
    uint32_t input;
    uint32_t umask;
    int32_t nice;
    uint32_t successor; /* the keeper shall make the next one ready */
    uint32_t preload;   /* the program's loader reads LD_PRELOAD */
    uint32_t pipeline;  /* the text has a pipe in it: its PIPESTATUS is of interest */
    int32_t owner_pid;
    uint32_t background; /* its session wants to hear of its end */
    uint32_t fleeting;   /* to be removed with its session: no history is kept */
    uint32_t paced;      /* the first watch is waited for */
    uint64_t owner_start;
    struct spec_limit limits[SPEC_LIMITS];
    uint64_t bounds[NACRE_LIMIT_COUNT]; /* what the command may use, by nacre_limit; 0 = all */
    /* Offsets of strings; argv and env are argc and envc consecutive ones. */
    uint32_t program; /* what to execute */
    uint32_t text;
    uint32_t text_size;
    uint32_t cwd;
    uint32_t run_path; /* of the run directory */
    uint32_t name;
    uint32_t description;
    uint32_t session_name;
    uint32_t session_cwd; /* its default directory */
    uint32_t argv;
    uint32_t argc;
    uint32_t env;
    uint32_t envc;
    uint32_t groups;  /* SPEC_GROUPS: in which cgroups of version 1 it may get one of its own */
    uint32_t strict;  /* all bounds have to be held */
    uint32_t sandbox; /* what it runs in, in words; "" = none */
    uint32_t person;  /* its session acts for a person, for this command alone */
    uint16_t columns; /* it has a terminal of this size; 0 = pipes */
    uint16_t rows;
    uint32_t granted; /* what of it a person has said yes to; see policy/packed.h */
    uint32_t granted_size;
    uint32_t gated; /* the rules of its session are held against whatever is executed */
    uint32_t pad;
    uint64_t sum; /* over all of the head above */
};

FORMAT_PIN(5, struct spec_limit, 16);
FORMAT_PIN(5, struct spec_host, 264);
FORMAT_PIN(5, struct spec_head, 544);

/* A spec in memory: mapped or read, checked, with every offset inside. */
struct spec {
    const struct spec_head *head;
    size_t size;
};

void spec_head_init(struct spec_head *head);

/* Sets the checksum; the head is final after this, unless the host is noted. */
void spec_head_seal(struct spec_head *head);
void spec_note_host(struct spec_head *head, const struct spec_host *host);

/* Maps a spec file, privately. -EBADMSG if anything in it does not hold. */
int spec_map(int fd, struct spec *ret_spec);
void spec_unmap(struct spec *spec);

static inline const char *spec_string(const struct spec *spec, uint32_t offset)
{
    return (const char *)spec->head + offset;
}

/* Whether it has any bounds. */
static inline bool spec_is_bounded(const struct spec_head *head)
{
    uint64_t any = 0;
    for (int i = 0; i < NACRE_LIMIT_COUNT; i++)
        any |= head->bounds[i];
    return any != 0;
}

/* Checks the head against the bytes that follow it. */
int spec_check(const void *data, size_t size);
