/*
 * Who is let in: each request, before anything else is done with it. A page of the web can make a
 * browser send requests here, also by a name of its own that it has resolve to us; so the names by
 * which we are called count, and where a page is from. None of that is a secret; the token is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/http_request.h"
#include "serve/token.h"

#define ADMIT_NAMES_MAX 16

struct admit {
    char names[ADMIT_NAMES_MAX][128]; /* HOST:PORT that it is called by */
    size_t count;
    bool any_name; /* a Unix socket: whoever can open it has the same uid */
    bool open;     /* nobody is asked for a token */
    struct token token;
    int64_t second;  /* the one that failures are counted in */
    unsigned failed; /* wrong tokens, and requests without one, in it */
};

/* One more name; the port is put behind it. */
bool admit_add(struct admit *a, const char *host, unsigned port);

/* 0 = it may go on; or the status to refuse it with, fields for the answer and a sentence. */
int admit_check(struct admit *a, const struct http_request *q, bool needs_token,
                const char **ret_fields, const char **ret_why);
