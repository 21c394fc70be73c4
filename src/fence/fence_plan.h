/*
 * From what a session is told about its fence to the record that nacre-fence and keepers work with.
 * Here it is decided what is hidden, protected, private and writable; docs/sandbox.md says why.
 *
 *   fence_plan.c  the whole, in order
 *   layout.c    the list of places while it grows, and the bytes that it becomes
 *   roots.c     what may be written to: the workspace, its repository, what the settings name
 *   protect.c   what of that stays as it is
 *   hidden.c    what is hidden, and what of it is shown all the same
 *   git.c       where a repository has its files
 *   judge.c     what a fence makes of a path
 *   more.c      what a single command gets beyond the rest
 */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "fence/layout.h"
#include "fence/more.h"

enum fence_mode { FENCE_OFF, FENCE_READ_ONLY, FENCE_WORKSPACE_WRITE };

/* What is asked for. All is borrowed; lists end with NULL. */
struct fence_wish {
    enum fence_mode mode;
    const char *workspace; /* absolute; where the session is at home */
    const char *const *write;
    const char *const *hide;
    const char *const *protect;
    const char *const *network; /* "off", "on", or hosts */
    const char *const *sockets;
    struct fence_more more;
    bool private_caches;
    bool shared_caches;
    bool private_tmp;
    bool wide; /* the workspace may be as much as the whole home directory */

    const char *home;        /* nacre's own, which is hidden */
    const char *private_dir; /* the session's directory for what is private, below it */
    const char *keeper;      /* the program that is in use, and what lies beside it */
    const char *config;      /* the configuration file; NULL or "" = there is none */
};

/* What lay at a place when the fence was composed; all 0 = nothing. */
struct fence_sight {
    uint64_t device, inode;
    int64_t changed_ns; /* what is listed only: its entries */
};

/* What came of it. */
struct fence_plan {
    struct buf record; /* struct fence_head and what follows */
    uint64_t sum;
    char **variables;           /* "NAME=value" or "NAME" for commands inside; ended by NULL */
    char *hosts;                /* a rule a line for the gate; NULL = there is none */
    struct fence_sight *sights; /* one for each place of the record */
};

/* On success the plan is the caller's, who ends it with fence_plan_done(). Makes the directories of
 * private caches. */
int fence_plan_make(const struct fence_wish *wish, struct fence_plan *ret_plan, nacre_error *err);
void fence_plan_done(struct fence_plan *plan);

/* Whether each place is still what it was: a mount goes away with the file that it lies over, and
 * whoever replaces that file outside leaves a new one without it. Nor does a fence know of what has
 * come since. */
bool fence_plan_is_current(const struct fence_plan *plan);
/* Whether two that were made one after the other mean the very same. */
bool fence_plan_is_same(const struct fence_plan *one, const struct fence_plan *other);

/* "off", "read-only", "workspace-write". */
const char *fence_mode_name(enum fence_mode mode);
/* The mode of that name: below 0 if there is none. */
int fence_mode_of(const char *name);

/* roots.c */
int roots_add(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err);
/* protect.c: each for a place that may be written to, the last one for all of them. -errno. */
int protect_names(const struct fence_wish *wish, struct fence_layout *l, const char *root);
int protect_repository(const struct fence_wish *wish, struct fence_layout *l, const char *root);
int protect_ours(const struct fence_wish *wish, struct fence_layout *l);
/* hidden.c */
int hidden_add(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err);
/* Whether somebody may write there and the fence does not let them: see struct fence_head. "" if
 * there is no such place. */
void hidden_find_canary(const struct fence_layout *l, char ret_path[4096]);

/* The home directory of the user, "" if it has none. */
const char *fence_user_home(void);

/* Where tools of this workspace keep what they fetched. False if there is no such place. */
bool fence_cache_path(const struct fence_wish *wish, char ret_path[4096]);

/* A path as a person writes it, "~/x", "$NAME/x" or relative to the workspace: absolute and without
 * links. -ENOENT if it is not there. */
int fence_resolve(const struct fence_wish *wish, const char *text, char ret_path[4096]);

/* The same for what need not be there: absolute, with the links that it has. -ENOENT if the
 * variable that it begins with is not set. */
int fence_name(const struct fence_wish *wish, const char *text, char ret_path[4096]);
