#include "shell/owners.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "shell/session.h"

struct loading {
    struct owners *owners;
    struct host host;
};

static int add(const struct catalog_session *row, void *userdata)
{
    const struct loading *loading = userdata;
    struct owners *owners = loading->owners;
    if (owners->count == owners->cap) {
        size_t cap = owners->cap ? owners->cap * 2 : 64;
        struct owner *items = realloc(owners->items, cap * sizeof *items);
        if (!items)
            return NACRE_ENOMEM;
        owners->items = items;
        owners->cap = cap;
    }
    struct owner owner = {
        .id = row->id,
        .name = strdup(row->name),
        .alive = scope_session_lives_on(row, &loading->host),
    };
    if (!owner.name)
        return NACRE_ENOMEM;
    owners->items[owners->count++] = owner;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(nacre_id));
}

_Static_assert(offsetof(struct owner, id) == 0, "an id is compared with an owner");

void owners_load(struct owners *owners, struct catalog *catalog)
{
    struct loading loading = {.owners = owners};
    owners->loaded = true;
    if (host_identify(&loading.host) == 0)
        catalog_each_session(catalog, NULL, add, &loading, NULL);
    if (owners->count > 1)
        qsort(owners->items, owners->count, sizeof *owners->items, by_id);
}

void owners_done(struct owners *owners)
{
    for (size_t i = 0; i < owners->count; i++)
        free(owners->items[i].name);
    free(owners->items);
    *owners = (struct owners){0};
}

const struct owner *owners_find(const struct owners *owners, const nacre_id *id)
{
    if (owners->count == 0)
        return NULL;
    return bsearch(id, owners->items, owners->count, sizeof *owners->items, by_id);
}
