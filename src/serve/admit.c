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

/* localhost and the like with any port, since a tunnel has one of its own, and further names. */
static bool is_local_name(const struct admit *a, struct stretch name)
{
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t size = name.size;
    while (size > 0 && name.at[size - 1] >= '0' && name.at[size - 1] <= '9')
        size--;
    if (size > 0 && size < name.size && name.at[size - 1] == ':')
        name.size = size - 1;
    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        if (is_spelled(name, local[i]))
            return true;
    for (const char *const *host = a->hosts; host && *host; host++)
        if (is_spelled(name, *host))
            return true;
    return false;
}

static bool is_our_origin(const struct admit *a, struct stretch origin)
{
    static const char scheme[] = "http://";
    size_t skip = sizeof scheme - 1;
    if (origin.size <= skip || memcmp(origin.at, scheme, skip) != 0)
        return false;
    struct stretch name = {origin.at + skip, origin.size - skip};
    return a->any_name ? is_local_name(a, name) : is_our_name(a, name);
}

static bool is_from_us(struct stretch site)
{
    return is_spelled(site, "same-origin") || is_spelled(site, "none");
}

static int check_names(const struct admit *a, const struct http_request *q, bool for_page,
                       const char **ret_why)
{
    struct stretch host = http_request_field(q, "Host");
    *ret_why = "this server is not called so";
    if (a->any_name ? for_page && !is_local_name(a, host) : !is_our_name(a, host))
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
static enum right right_shown(const struct admit *a, const struct http_request *q,
                              enum admit_need need)
{
    struct stretch value = http_request_field(q, "Authorization");
    if (!value.at)
        return RIGHT_NONE;
    struct stretch scheme = cut_at(&value, ' ');
    bool is_token = token_is(&a->token, value.at, value.size);
    enum right of_pass = passes_find(&a->passes, value.at, value.size);
    if (!is_spelled(scheme, "Bearer"))
        return RIGHT_NONE;
    return is_token ? RIGHT_ACT : need == ADMIT_PASS ? of_pass : RIGHT_NONE;
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

int admit_try(struct admit *a, const char **ret_why)
{
    if (!too_many_fail(a))
        return 0;
    *ret_why = "there were too many wrong tokens; try again in a second";
    return 429;
}

int admit_fail(struct admit *a)
{
    a->failed++;
    return 401;
}

int admit_check(struct admit *a, const struct http_request *q, enum admit_need need, bool for_page,
                enum right *ret_right, const char **ret_fields, const char **ret_why)
{
    *ret_fields = NULL;
    *ret_right = a->open ? RIGHT_ACT : RIGHT_NONE;
    int r = check_names(a, q, for_page, ret_why);
    if (r != 0 || need == ADMIT_NOTHING || a->open)
        return r;
    *ret_right = right_shown(a, q, need);
    if (*ret_right != RIGHT_NONE)
        return 0;
    *ret_fields = "Retry-After: 1\r\n";
    r = admit_try(a, ret_why);
    if (r != 0)
        return r;
    *ret_fields = "WWW-Authenticate: Bearer\r\n";
    *ret_why = "show the token of this server: Authorization: Bearer TOKEN";
    return admit_fail(a);
}
