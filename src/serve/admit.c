#include "serve/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"

#define FAILED_MAX 20 /* a second; beyond that, who has no token is told to wait */

bool admit_add(struct admit *a, const char *host, unsigned port)
{
    if (a->count == ADMIT_NAMES_MAX)
        return false;
    char *name = a->names[a->count];
    int n = snprintf(name, sizeof a->names[0], "%s:%u", host, port);
    a->count++;
    return n > 0 && (size_t)n < sizeof a->names[0];
}

/* Whole, and not only its beginning. */
static bool is_our_name(const struct admit *a, struct stretch name)
{
    for (size_t i = 0; i < a->count; i++)
        if (is_spelled(name, a->names[i]))
            return true;
    return false;
}

static bool is_our_origin(const struct admit *a, struct stretch origin)
{
    static const char scheme[] = "http://";
    size_t skip = sizeof scheme - 1;
    if (origin.size <= skip || memcmp(origin.at, scheme, skip) != 0)
        return false;
    return is_our_name(a, (struct stretch){origin.at + skip, origin.size - skip});
}

static bool is_from_us(struct stretch site)
{
    return is_spelled(site, "same-origin") || is_spelled(site, "none");
}

static int check_names(const struct admit *a, const struct http_request *q, const char **ret_why)
{
    if (a->any_name)
        return 0;
    *ret_why = "this server is not called so";
    if (!is_our_name(a, http_request_field(q, "Host")))
        return 403;
    *ret_why = "pages of other places may not ask here";
    if (http_request_count(q, "Origin") && !is_our_origin(a, http_request_field(q, "Origin")))
        return 403;
    if (http_request_count(q, "Sec-Fetch-Site") &&
        !is_from_us(http_request_field(q, "Sec-Fetch-Site")))
        return 403;
    return 0;
}

/* Without blanks in between; the word in front in any case. */
static bool shows_token(const struct admit *a, const struct http_request *q)
{
    struct stretch value = http_request_field(q, "Authorization");
    if (!value.at)
        return false;
    struct stretch scheme = cut_at(&value, ' ');
    return token_is(&a->token, value.at, value.size) && is_spelled(scheme, "Bearer");
}

static bool too_many_fail(struct admit *a)
{
    int64_t now = clock_mono_ns() / NS_PER_S;
    if (now != a->second) {
        a->second = now;
        a->failed = 0;
    }
    return a->failed >= FAILED_MAX;
}

int admit_check(struct admit *a, const struct http_request *q, bool needs_token,
                const char **ret_fields, const char **ret_why)
{
    *ret_fields = NULL;
    int r = check_names(a, q, ret_why);
    if (r != 0 || !needs_token || a->open)
        return r;
    if (shows_token(a, q))
        return 0;
    *ret_fields = "Retry-After: 1\r\n";
    *ret_why = "there were too many wrong tokens; try again in a second";
    if (too_many_fail(a))
        return 429;
    a->failed++;
    *ret_fields = "WWW-Authenticate: Bearer\r\n";
    *ret_why = "show the token of this server: Authorization: Bearer TOKEN";
    return 401;
}
