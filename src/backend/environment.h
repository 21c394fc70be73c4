/* The environment a command gets: the host's without its secrets, then what keeps tools from
 * asking, then the call's. */
#ifndef NACRE_BACKEND_ENVIRONMENT_H
#define NACRE_BACKEND_ENVIRONMENT_H

#include <nacre/id.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "config/secrets.h"

/*
 * Appends the entries to out, each with its NUL, and counts them. extra: "NAME=value" or "NAME"
 * to remove; NULL-terminated or NULL. What it sets is passed on, whatever it is called; of the
 * host's, only what the rules let pass. cwd becomes PWD. 0 or -errno.
 */
int environment_build(const nacre_id *id, const char *cwd, const char *const *extra,
                      const struct secret_rules *rules, struct buf *out, uint32_t *ret_count);

/* The same of a command that runs elsewhere: without the host's, NACRE_ID and PWD. */
int environment_own(const char *const *extra, struct buf *out, uint32_t *ret_count);

/* The value a command will see for a name, from extra or the host; NULL if none. */
const char *environment_lookup(const char *const *extra, const struct secret_rules *rules,
                               const char *name);

#endif
