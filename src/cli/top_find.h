/* The search of nacre top: what is looked for, what was found, and which of it is chosen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/nacre.h>

#include "base/buf.h"

#define FIND_MAX 64

struct found_line {
    nacre_id id;
    uint64_t offset; /* of its first byte in the log */
    char *text;
};

struct top_find {
    bool types; /* what is looked for is being typed */
    bool shown; /* what was found stands in place of the output */
    char text[FIND_MAX];
    char summary[160];
    struct found_line *lines;
    size_t count, room;
    size_t at, scrolled; /* the chosen one, and the first that is shown */
};

void top_find_done(struct top_find *f);

/* Searches everything; whoever types meanwhile has ended it. */
void top_find_run(struct top_find *f, nacre_session *session);

/* A key while it types or is shown. Returns the line that is to be opened, or NULL. */
const struct found_line *top_find_press(struct top_find *f, int key, nacre_session *session);

/* Its rows, none wider than so many columns. 0 or -errno. */
int top_find_put(struct top_find *f, size_t rows, size_t columns, struct buf *out);
