/*
 * What a command asks for beyond its sandbox, read once: what the sandbox gives already is left
 * out, paths are without links, and what nobody could allow is refused. So the user is asked for
 * what then happens, and for nothing else.
 */
#pragma once

#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/session.h>
#include <nacre/settings.h>
#include <stdbool.h>

#include "base/buf.h"
#include "fence/more.h"

struct permissions {
    struct fence_more more; /* that is left */
    bool full;
};

/* Release with permissions_done(). NACRE_EINVAL if something of it is nothing that can be allowed.
 */
int permissions_find(nacre_session *s, const nacre_command *command, struct permissions *ret,
                     nacre_error *err);
void permissions_done(struct permissions *p);

bool permissions_are_none(const struct permissions *p);

/* For the command that is started, once they were allowed; borrowed. */
nacre_permissions permissions_granted(const struct permissions *p);

/* "to write /srv/data; to reach example.org". */
int permissions_describe(const struct permissions *p, struct buf *out);

/* The line of the configuration that would allow it: "sandbox_write": ["/srv/data"] */
int permissions_write_line(const struct permissions *p, struct buf *out);

/* A part of it: "sandbox_write": ["/srv/data"], behind ", " if something is there already. */
int permissions_write_setting(struct buf *out, nacre_setting setting, const char *const *list);
