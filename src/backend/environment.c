#include "backend/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No pager, no editor, no prompt, no colours. An editor that fails, never one that succeeds: a
 * rebase whose editor says yes is a rebase that is run. */
static const char *const quiet[] = {
    "PAGER=cat",
    "GIT_PAGER=cat",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_EDITOR=false",
    "GIT_SEQUENCE_EDITOR=false",
    "GCM_INTERACTIVE=never",
    "DEBIAN_FRONTEND=noninteractive",
    "TERM=dumb",
    "NO_COLOR=1",
    NULL,
};

/* Ours; never inherited. */
static const char *const reserved[] = {"NACRE_ID", "NACRE_COMMAND", "NACRE_COMMAND_FD", "NACRE_RUN",
                                       NULL};

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static bool same_name(const char *a, const char *b)
{
    while (*a == *b && *a && *a != '=') {
        a++;
        b++;
    }
    return (!*a || *a == '=') && (!*b || *b == '=');
}

static const char *find(const char *const *list, const char *name)
{
    const char *found = NULL;
    for (; list && *list; list++)
        if (same_name(*list, name))
            found = *list;
    return found;
}

const char *environment_lookup(const char *const *extra, const struct secret_rules *rules,
                               const char *name)
{
    const char *entry = find(extra, name);
    if (entry)
        return entry[name_length(entry)] ? entry + name_length(entry) + 1 : NULL;
    return secrets_is_secret(name, rules) ? NULL : getenv(name);
}

static int add(struct buf *out, uint32_t *count, const char *entry)
{
    int r = buf_append(out, entry, strlen(entry) + 1);
    if (r == 0)
        ++*count;
    return r;
}

static int add_quiet(const char *const *extra, struct buf *out, uint32_t *count)
{
    int r = 0;
    for (const char *const *entry = quiet; r == 0 && *entry; entry++)
        if (!find(extra, *entry))
            r = add(out, count, *entry);
    return r;
}

static int add_extra(const char *const *extra, struct buf *out, uint32_t *count)
{
    int r = 0;
    for (const char *const *entry = extra; r == 0 && entry && *entry; entry++)
        if (strchr(*entry, '=') && !find(reserved, *entry) && find(extra, *entry) == *entry)
            r = add(out, count, *entry);
    return r;
}

static int add_ours(const nacre_id *id, const char *cwd, const char *const *extra, struct buf *out,
                    uint32_t *count)
{
    char mark[64];
    snprintf(mark, sizeof mark, "NACRE_ID=%s", nacre_id_format(id).s);
    int r = add(out, count, mark);
    if (r == 0)
        r = add_quiet(extra, out, count);
    if (r == 0 && !find(extra, "PWD")) {
        r = buf_str(out, "PWD=");
        if (r == 0)
            r = add(out, count, cwd);
    }
    return r;
}

int environment_build(const nacre_id *id, const char *cwd, const char *const *extra,
                      const struct secret_rules *rules, struct buf *out, uint32_t *ret_count)
{
    uint32_t count = 0;
    int r = 0;
    for (char **entry = environ; r == 0 && entry && *entry; entry++)
        if (strchr(*entry, '=') && !find(extra, *entry) && !find(quiet, *entry) &&
            !find(reserved, *entry) && !same_name(*entry, "PWD") &&
            !secrets_is_secret(*entry, rules))
            r = add(out, &count, *entry);
    if (r == 0)
        r = add_ours(id, cwd, extra, out, &count);
    if (r == 0)
        r = add_extra(extra, out, &count);
    *ret_count = count;
    return r;
}

int environment_own(const char *const *extra, struct buf *out, uint32_t *ret_count)
{
    *ret_count = 0;
    int r = add_quiet(extra, out, ret_count);
    return r < 0 ? r : add_extra(extra, out, ret_count);
}
