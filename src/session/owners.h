/* The sessions of a home, for looking up whose a shell is. */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>

#include "catalog/catalog.h"

struct session_owner {
    nacre_id id;
    char *name;   /* "" = none */
    char *client; /* likewise */
    bool alive;
};

struct owners {
    struct session_owner *items; /* by id */
    size_t count;
    size_t cap;
    bool loaded;
};

/* Takes in all, or what can be had. Release with owners_done(). */
void owners_load(struct owners *owners, struct catalog *catalog);
void owners_done(struct owners *owners);

/* NULL if there is no such session (any more). */
const struct session_owner *owners_find(const struct owners *owners, const nacre_id *id);
