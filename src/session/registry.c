#include "session/registry.h"

#include <pthread.h>

#include "base/defs.h"
#include "base/grow.h"
#include "base/hold.h"

#define FOREIGN_MAX 1024 /* cursors of other sessions' shells */

/* Shells stand in the order in which they were added. */
struct registry {
    pthread_mutex_t lock;
    struct shell *shells;
    size_t count;
    size_t cap;
    size_t reserved;
};

struct registry *registry_new(void)
{
    struct registry *r = calloc(1, sizeof *r);
    if (r)
        pthread_mutex_init(&r->lock, NULL);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r->shells);
    free(r);
}

static bool takes_place(const struct shell *shell)
{
    return shell->background && shell->life == SHELL_RUNNING;
}

static struct shell *find_in_registry(struct registry *r, const nacre_id *id)
{
    /* What is asked for is mostly what was started last. */
    for (size_t i = r->count; i-- > 0;)
        if (nacre_id_equal(&r->shells[i].id, id))
            return &r->shells[i];
    return NULL;
}

static void drop_shell(struct registry *r, struct shell *shell)
{
    for (struct shell *next = shell + 1; next < r->shells + r->count; next++)
        next[-1] = *next;
    r->count--;
}

int registry_reserve(struct registry *r, size_t places)
{
    HOLD(&r->lock);
    size_t taken = r->reserved;
    for (size_t i = 0; i < r->count; i++)
        taken += takes_place(&r->shells[i]);
    if (taken >= places)
        return -EAGAIN;
    r->reserved++;
    return 0;
}

void registry_unreserve(struct registry *r)
{
    HOLD(&r->lock);
    r->reserved--;
}

size_t registry_reserved(struct registry *r)
{
    HOLD(&r->lock);
    return r->reserved;
}

/* Cursors of others' shells are worth less than memory. */
static void trim_foreign(struct registry *r)
{
    size_t foreign = 0;
    struct shell *oldest = NULL;
    for (size_t i = 0; i < r->count; i++)
        if (r->shells[i].foreign && !r->shells[i].awaited && ++foreign == 1)
            oldest = &r->shells[i];
    if (foreign > FOREIGN_MAX)
        drop_shell(r, oldest);
}

int registry_add(struct registry *r, const struct shell *shell, bool reserved)
{
    HOLD(&r->lock);
    struct shell *known = find_in_registry(r, &shell->id);
    if (!known && GROW(r->shells, r->count, r->cap) < 0)
        return -ENOMEM;
    if (known)
        *known = *shell;
    else
        r->shells[r->count++] = *shell;
    if (reserved)
        r->reserved--;
    trim_foreign(r);
    return 0;
}

void registry_remove(struct registry *r, const nacre_id *id)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (shell)
        drop_shell(r, shell);
}

size_t registry_count(struct registry *r)
{
    HOLD(&r->lock);
    return r->count;
}

bool registry_get(struct registry *r, const nacre_id *id, struct shell *ret_shell)
{
    HOLD(&r->lock);
    const struct shell *shell = find_in_registry(r, id);
    if (shell)
        *ret_shell = *shell;
    return shell != NULL;
}

bool registry_set_background(struct registry *r, const nacre_id *id)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (!shell || shell->background || shell->foreign)
        return false;
    shell->background = shell->awaited = true;
    return true;
}

bool registry_note(struct registry *r, const nacre_id *id, enum shell_life life, uint64_t end,
                   int64_t now_ms)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (!shell)
        return false;
    bool ended = shell->life == SHELL_RUNNING && life != SHELL_RUNNING;
    shell->life = MAX(shell->life, life);
    shell->end = MAX(shell->end, end);
    shell->looked_ms = now_ms;
    if (shell->life == SHELL_OVER && !shell->background && !shell->foreign)
        drop_shell(r, shell);
    return ended;
}

void registry_mark_ended(struct registry *r, const nacre_id *id)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (shell)
        shell->ended_here = true;
}

bool registry_stop_awaiting(struct registry *r, const nacre_id *id)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    bool awaited = shell && shell->awaited;
    if (awaited)
        shell->awaited = false;
    return awaited;
}

bool registry_mark_read(struct registry *r, const nacre_id *id, uint64_t offset, bool saw_end)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (!shell)
        return false;
    shell->read_to = MAX(shell->read_to, offset);
    shell->end = MAX(shell->end, offset);
    shell->end_seen = shell->end_seen || saw_end;
    return true;
}

bool registry_set_position(struct registry *r, const nacre_id *id, const nacre_position *position)
{
    HOLD(&r->lock);
    struct shell *shell = find_in_registry(r, id);
    if (!shell)
        return false;
    if (position->offset >= shell->position.offset)
        shell->position = *position;
    return true;
}

size_t registry_select(struct registry *r, registry_match_fn *match, const void *argument,
                       struct shell *ret_shells, size_t max)
{
    HOLD(&r->lock);
    size_t found = 0;
    for (size_t i = 0; i < r->count; i++)
        if (match(&r->shells[i], argument) && found++ < max)
            ret_shells[found - 1] = r->shells[i];
    return found;
}

static bool was_read(const struct shell *shell)
{
    return shell->end_seen && shell->read_to >= shell->end;
}

/* The oldest that is over; read ones first. While an outcome is on its way to the catalog somebody
 * awaits it: one that had left by then would never be told. */
static struct shell *next_to_leave(struct registry *r)
{
    struct shell *unread = NULL;
    for (size_t i = 0; i < r->count; i++) {
        struct shell *shell = &r->shells[i];
        if (!shell->background || shell->foreign || shell->awaited || shell->life != SHELL_OVER)
            continue;
        if (was_read(shell))
            return shell;
        if (!unread)
            unread = shell;
    }
    return unread;
}

size_t registry_evict(struct registry *r, size_t listed, struct shell *ret_dropped, size_t max)
{
    HOLD(&r->lock);
    size_t count = 0, dropped = 0;
    for (size_t i = 0; i < r->count; i++)
        count += r->shells[i].background && !r->shells[i].foreign;
    struct shell *shell;
    while (count > listed && (shell = next_to_leave(r))) {
        if (dropped < max)
            ret_dropped[dropped] = *shell;
        dropped++;
        count--;
        drop_shell(r, shell);
    }
    return dropped;
}
