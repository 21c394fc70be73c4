/*
 * Who is let in: each request, before anything else is done with it. A page of the web can make a
 * browser send requests here, also by a name of its own that it has resolve to us; so the names by
 * which we are called count, and where a page is from. None of that is a secret; the token is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/http_request.h"
#include "serve/passes.h"

#define ADMIT_NAMES_MAX 16

struct admit {
    char names[ADMIT_NAMES_MAX][128]; /* HOST:PORT that it is called by */
    size_t count;
    bool any_name; /* a Unix socket: whoever can open it has the same uid; see admit_check() */
    const char *const *hosts; /* further names then, whatever the port; NULL = none */
    bool open;                /* nobody is asked for a token */
    struct token token;
    struct passes passes;
    int64_t second;  /* the one that failures are counted in */
    unsigned failed; /* wrong tokens, and requests without one, in it */
};

/* One more name; the port is put behind it. */
bool admit_add(struct admit *a, const char *host, unsigned port);

/* Before something secret is compared: 0, or 429 and why; and after it was wrong: 401. */
int admit_try(struct admit *a, const char **ret_why);
int admit_fail(struct admit *a);

/* What has to be shown. */
enum admit_need {
    ADMIT_NOTHING,
    ADMIT_TOKEN,
    ADMIT_PASS, /* the token, or the pass of a page */
};

/*
 * 0 = it may go on, with a right; or the status to refuse it with, fields for the answer and a
 * sentence. On a socket programs are not asked by which name they came, since there is none; a
 * browser can only come through a tunnel or a proxy, and a page of the web may have it resolve a
 * name of its own to that. So where browsers ask (for_page) the name counts.
 */
int admit_check(struct admit *a, const struct http_request *q, enum admit_need need, bool for_page,
                enum right *ret_right, const char **ret_fields, const char **ret_why);
