/*
 * What a server offers: its name, its tools, and the methods beyond those that every server has.
 * The protocol (dispatch.c, calls.c) takes it from a table, so that the same objects serve another
 * one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>

struct mcp_peer;
struct mcp_request;
struct rpc_message;

enum mcp_era { MCP_LEGACY_ONLY = 1, MCP_MODERN_ONLY = 2, MCP_BOTH_ERAS = 3 };

struct mcp_method {
    const char *name;
    enum mcp_era eras;
    void (*answer)(const struct mcp_request *q);
};

/* Calls, as <nacre/tool.h> has them; a call is known to who began it alone. */
struct mcp_tools {
    json_t *(*list)(const struct mcp_peer *p);
    /* NACRE_ENOTFOUND: there is no such tool; 1: the request was answered. arguments may be NULL.
     */
    int (*begin)(const struct mcp_request *q, const char *tool, json_t *arguments, bool progress,
                 void **ret_call, nacre_error *err);
    int (*fd)(const void *call);
    int64_t (*timeout)(const void *call);
    int (*step)(void *call, nacre_error *err);
    const char *(*progress)(void *call);
    json_t *(*take_result)(void *call);
    void (*no_memory)(const void *call, nacre_error *err);
    void (*delivered)(void *call);
    void (*cancel)(void *call);
    void (*free)(void *call);
};

struct mcp_table {
    const char *name, *title;
    json_t *(*version)(void);
    json_t *(*capabilities)(void);
    json_t *(*instructions)(const struct mcp_peer *p);
    const struct mcp_tools *tools;
    const struct mcp_method *methods; /* the first without a name ends them */
    void (*hear)(struct mcp_peer *p, const struct rpc_message *m); /* an answer of the client's */
};

/* The shells of nacre: shell_table.c. */
extern const struct mcp_table mcp_shells;
