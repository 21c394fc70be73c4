/*
 * Which directories belong to a workspace. The client may be on another machine, so a path is
 * judged by its text; where it exists here as well, also by what it leads to.
 */
#include <limits.h>
#include <string.h>

#include "acp/agent.h"
#include "base/defs.h"

char *acp_place_normal(const char *path)
{
    char *result = malloc(strlen(path) + 2);
    if (!result)
        return NULL;
    size_t len = 0;
    for (const char *part = path; *part;) {
        size_t n = strcspn(part, "/");
        if (n == 2 && memcmp(part, "..", 2) == 0) {
            while (len > 0 && result[--len] != '/')
                continue;
        } else if (n > 0 && !(n == 1 && *part == '.')) {
            result[len++] = '/';
            memcpy(result + len, part, n);
            len += n;
        }
        part += n + (part[n] == '/');
    }
    if (len == 0)
        result[len++] = '/';
    result[len] = '\0';
    return result;
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    if (n == 1)
        return true;
    return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The list's entries are normalised; those that exist here are compared by what they lead to. */
static bool leads_within(const char *path, char *const *list)
{
    char real[PATH_MAX], top[PATH_MAX];
    if (!realpath(path, real))
        return true;
    for (; *list; list++)
        if (is_below(real, realpath(*list, top) ? top : *list))
            return true;
    return false;
}

int acp_place_is_within(const char *path, char *const *list)
{
    cleanup_free char *normal = acp_place_normal(path);
    if (!normal)
        return -ENOMEM;
    for (char *const *top = list; *top; top++)
        if (is_below(normal, *top))
            return leads_within(path, list);
    return 0;
}
