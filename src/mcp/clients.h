/*
 * The agents that the server can be added to: what each is told, which file it reads, and how the
 * server is written into that file, leaving everything else in it as it was.
 */
#pragma once

#include <stdbool.h>

#include <nacre/error.h>

#include "base/buf.h"

struct mcp_client;

/* How a client shall start the server. */
struct mcp_launch {
    const char *program;    /* the path of nacre */
    const char *const *env; /* "NAME=value" of the variables that it shall have; NULL-terminated */
};

/* NULL if there is none of that name. */
const struct mcp_client *mcp_client_find(const char *name);

/* The names of the known clients, as a sentence has them. */
const char *mcp_client_names(void);

/* Its file: "~/..." below the home directory, "$CONFIG/..." below that of configurations. */
const char *mcp_client_file(const struct mcp_client *client);

/* The rest return 0 or -ENOMEM unless they say more, and append to out. */

/* What the file would be if it had nothing else in it. */
int mcp_client_fragment(const struct mcp_client *client, const struct mcp_launch *launch,
                        struct buf *out);

/* The same for a server that runs already, at a URL without anything to escape. */
int mcp_client_http(const struct mcp_client *client, const char *url, const char *token,
                    struct buf *out);

/* What a person is told: where the fragment goes, and how the agent's own shell is switched off. */
int mcp_client_explain(const struct mcp_client *client, const struct mcp_launch *launch,
                       struct buf *out);

/* Only the last part of that. */
int mcp_client_next(const struct mcp_client *client, struct buf *out);

/* The text of the file with the server in it; out stays empty if it is there already. A code of
 * <nacre/error.h> if the text cannot be read, or the server is there in another form that cannot be
 * replaced. */
int mcp_client_merge(const struct mcp_client *client, const struct mcp_launch *launch,
                     const char *text, struct buf *out, nacre_error *err);
