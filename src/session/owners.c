#include "session/owners.h"

#include <string.h>

#include "base/defs.h"
#include "base/grow.h"
#include "session/session.h"

struct loading {
    struct owners *owners;
    struct host host;
};

static int add_owner(const struct catalog_session *row, void *userdata)
{
    const struct loading *loading = userdata;
    struct owners *owners = loading->owners;
    if (GROW(owners->items, owners->count, owners->cap) < 0)
        return NACRE_ENOMEM;
    struct session_owner owner = {
        .id = row->id,
        .name = strdup(row->name),
        .client = strdup(row->client),
        .alive = scope_session_lives_on(row, &loading->host),
    };
    if (!owner.name || !owner.client) {
        free(owner.name);
        free(owner.client);
        return NACRE_ENOMEM;
    }
    owners->items[owners->count++] = owner;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(nacre_id));
}

_Static_assert(offsetof(struct session_owner, id) == 0, "an id is compared with an owner");

void owners_load(struct owners *owners, struct catalog *catalog)
{
    struct loading loading = {.owners = owners};
    owners->loaded = true;
    if (host_identify(&loading.host) == 0)
        catalog_each_session(catalog, NULL, add_owner, &loading, NULL);
    if (owners->count > 1)
        qsort(owners->items, owners->count, sizeof *owners->items, by_id);
}

void owners_done(struct owners *owners)
{
    for (size_t i = 0; i < owners->count; i++) {
        free(owners->items[i].name);
        free(owners->items[i].client);
    }
    free(owners->items);
    *owners = (struct owners){0};
}

const struct session_owner *owners_find(const struct owners *owners, const nacre_id *id)
{
    if (owners->count == 0)
        return NULL;
    return bsearch(id, owners->items, owners->count, sizeof *owners->items, by_id);
}
