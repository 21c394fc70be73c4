/* The server for many clients at once: MCP over HTTP, on the loopback or a Unix socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/settings.h>

struct mcp_table;

struct serve_options {
    const struct mcp_table *table; /* what is served; NULL = the shells of nacre */
    const char *listen;      /* ADDRESS:PORT, or the path of a socket; NULL = 127.0.0.1:8737 */
    bool anywhere;           /* an address that is not of the loopback is meant */
    bool no_token;           /* nobody is asked for one; on the loopback alone */
    const char *token_file;  /* NULL = http-token in the home */
    const char *const *host; /* further names that it may be called by; NULL = none */
    const char *cwd;         /* of commands; NULL = that of the server */
    int64_t gone_ms;         /* a client whose streams are gone is taken for gone then */
    int64_t idle_ms;         /* and one that only has not asked for anything */
    bool log;
    bool no_page; /* MCP alone */
    const char *home;
    const nacre_settings *settings; /* NULL = the file and the environment */
};

#define SERVE_ADDRESS "127.0.0.1:8737"
#define SERVE_GONE_MS (INT64_C(5) * 60 * 1000)
#define SERVE_IDLE_MS (INT64_C(60) * 60 * 1000)

/* Serves until SIGTERM, SIGINT or SIGHUP comes. told, if not NULL, is called once with where. */
typedef void serve_told_fn(const char *where, void *userdata);
int serve_run(const struct serve_options *options, serve_told_fn *told, void *userdata,
              nacre_error *reterr);
