/*
 * What a command printed, turned into the lines a person would have seen last.
 *
 * A render reads one stream of bytes as a terminal of unlimited width does, and gives whole lines:
 * escape sequences are gone, carriage returns, backspaces and redraws by cursor movement are
 * resolved, what is not valid UTF-8 is U+FFFD. The rules are in docs/view.md. It is streaming: the
 * same bytes in other pieces give the same lines, and memory is bounded whatever comes.
 *
 * The last RENDER_ROWS lines are held back, since the cursor may still come back to them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define RENDER_ROWS       64  /* how far up the cursor reaches */
#define RENDER_COLUMNS    256 /* how far right it moves beyond the text that is there */
#define RENDER_LINE_LEAST 128 /* line_max is brought into these bounds */
#define RENDER_LINE_MOST  65536

/* Many whole lines that show as they are, none equal to the one given before them. */
struct render_lines {
    const char *text; /* ends with a newline; borrowed for the call */
    size_t size;
    uint64_t line;   /* the raw number of the first */
    uint64_t offset; /* raw bytes before it */
    size_t line_max; /* some may be longer */
};

/* May take the first of them as they are, if it has a use for them without each being given: their
 * bytes, and sets how many lines that was. 0 = none of them. The line after them is not equal to
 * the last it took. */
typedef size_t render_pass_fn(void *self, const struct render_lines *lines, uint64_t *ret_count);

struct render_options {
    uint64_t first_line;  /* number of the first raw line fed (1 = first of the stream) */
    size_t line_max;      /* bytes of one rendered line; longer ones are cut in the middle and say
                             how many bytes were left out */
    bool fold;            /* runs of equal lines become one with a count */
    render_pass_fn *pass; /* NULL: every line is given */
};

/*
 * One line. Numbers count newlines of the raw stream and never decrease from one line to the
 * next; they skip what was drawn over an earlier line, so that sums of counts do not tell how many
 * raw lines there were.
 */
struct render_line {
    const char *text; /* valid UTF-8, no newline, no control but tab; borrowed for the call */
    size_t size;      /* <= line_max */
    uint64_t line;    /* raw number of the (first) line it shows: the one that began it */
    uint64_t count;   /* lines folded into it, >= 1 */
    bool complete;    /* false: the unfinished last line */
    uint64_t offset;  /* raw bytes before it, from the first one fed on; never decreases */
    uint64_t lost;    /* bytes that were left out for line_max: its text says so */
};

/* A result other than 0 stops the render; feed or finish return it. */
typedef int render_line_fn(void *self, const struct render_line *line);

struct render;

/* -ENOMEM. */
int render_new(const struct render_options *options, render_line_fn *fn, void *self,
               struct render **ret);

/* 0, -ENOMEM, or what fn returned. After a failure the render can only be freed. */
int render_feed(struct render *r, const void *bytes, size_t size);

/* Gives out what was held back; then the render is as new. Returns as render_feed() does. An
 * unfinished last line that shows nothing is not given. */
int render_finish(struct render *r);

void render_free(struct render *r);

static inline void render_free_ptr(struct render **r)
{
    render_free(*r);
}

#define cleanup_render __attribute__((cleanup(render_free_ptr)))

/*
 * What follows a line that stands for count equal ones, and was written in size bytes with its
 * newline: "[repeated N more times]" from three on, if that is shorter; else the line again, as
 * often as it came. Returns how many bytes that is; the other appends it, and returns 0, -ENOMEM or
 * -E2BIG.
 */
size_t render_repeated_size(size_t size, uint64_t count);
int render_repeat(struct buf *out, size_t size, uint64_t count);

/*
 * Appends the lines of a whole text to a buffer, each with its newline; an unfinished last line
 * gets none. Equal lines are folded as render_repeat() does. Returns 0, -ENOMEM or -E2BIG; then
 * some lines may have been appended.
 */
int render_text(struct buf *out, const void *bytes, size_t size,
                const struct render_options *options);
