/*
 * What was asked: composed by the library, sent to the keeper, and kept by it as the `spec` file
 * of the run. A fixed head, then NUL-terminated strings at the offsets the head names.
 */
#ifndef NACRE_RUN_SPEC_H
#define NACRE_RUN_SPEC_H

#include <nacre/command.h>
#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_LIMITS    16
#define SPEC_TEXT_NAME "NACRE_COMMAND=" /* stands right before the text, as in an environment */

/* How the command is handed to what is executed. */
enum spec_kind {
    SPEC_ARGV = 0, /* argv is a program and its arguments */
    SPEC_BASH = 1, /* text for bash */
    SPEC_SH = 2,   /* text for another shell that takes -c */
};

/*
 * What is in a shell's argv in place of its text. Where the preload cannot be used (a static shell)
 * it is what runs the text: from the variable NACRE_COMMAND, or from descriptor 3 when it is long.
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
    uint64_t owner_start;
    struct spec_limit limits[SPEC_LIMITS];
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
    uint32_t paced; /* the first watch is waited for */
    uint32_t pad;
    uint64_t sum; /* over all of the head above */
};

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

/* Checks the head against the bytes that follow it. */
int spec_check(const void *data, size_t size);

#endif
