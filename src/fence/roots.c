/* What may be written to, and what of it may not be. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fence/fence_plan.h"
#include "sys/fd.h"

static int too_much(int r, nacre_error *err)
{
    return r == -ENOMEM
               ? err_set(err, NACRE_ENOMEM, "out of memory")
               : err_sys(err, NACRE_EINVAL, E2BIG, "sandbox",
                         "the sandbox has too many places: %d are possible", FENCE_PLACES_MAX);
}

/* A root this large would make most of what the sandbox is for writable. */
static int check_workspace(const struct fence_wish *wish, const char *root, nacre_error *err)
{
    const char *home = fence_user_home();
    const char *what = strcmp(root, "/") == 0               ? "the whole system"
                       : *home && path_is_below(home, root) ? "your whole home directory"
                       : path_is_below(wish->home, root)    ? "where nacre keeps its shells"
                                                            : NULL;
    if (!what || wish->wide)
        return 0;
    return err_sys(err, NACRE_EINVAL, EPERM, "sandbox",
                   "the workspace %.100s is %s: start in the directory of a project, or say "
                   "sandbox_wide=on if that is what you want",
                   root, what);
}

/* A name in the workspace that leads out of it is a link that any command may have put there. */
static bool leads_out(const struct fence_wish *wish, const char *text, const char *path)
{
    char root[4096];
    bool is_relative = !strchr("/~$", text[0]);
    bool is_inside = is_relative ? !strstr(text, "..") : path_is_below(text, wish->workspace);
    return is_inside && realpath(wish->workspace, root) && !path_is_below(path, root);
}

static int add_named(const struct fence_wish *wish, enum fence_kind kind, const char *setting,
                     const char *const *list, struct fence_layout *l, nacre_error *err)
{
    char path[4096];
    for (; list && *list; list++) {
        int r = fence_resolve(wish, *list, path);
        if (r < 0)
            return err_sys(err, NACRE_EINVAL, -r, "sandbox",
                           "%s names %.150s, which cannot be used", setting, *list);
        if (kind == FENCE_WRITE && leads_out(wish, *list, path))
            return err_sys(err, NACRE_EINVAL, EPERM, "sandbox",
                           "%s names %.60s, a link out of the workspace: name %.100s itself, if "
                           "that is what you want",
                           setting, *list, path);
        r = kind == FENCE_WRITE ? check_workspace(wish, path, err) : 0;
        if (r < 0)
            return r;
        r = layout_add(l, kind, path, NULL);
        if (r < 0)
            return too_much(r, err);
    }
    return 0;
}

/* -- Caches ----------------------------------------------------------------------------------- */

/* What tools fetch is kept, but not where tools outside of the fence would find it. */
static int add_private_cache(const struct fence_wish *wish, struct fence_layout *l)
{
    char path[4096];
    if (!fence_cache_path(wish, path) || fd_make_dirs(path) < 0)
        return 0;
    return layout_add(l, FENCE_WRITE, path, NULL);
}

static int add_shared_caches(struct fence_layout *l)
{
    static const char *const names[] = {".cache", ".npm", ".cargo/registry", ".cargo/git",
                                        "go/pkg"};
    char path[PATH_MAX], real[PATH_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%.4000s/%s", fence_user_home(), names[i]);
        if (*fence_user_home() && realpath(path, real))
            r = layout_add(l, FENCE_WRITE, real, NULL);
    }
    return r;
}

/* -- The whole -------------------------------------------------------------------------------- */

static int add_workspace(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err)
{
    char root[4096];
    int r = fence_resolve(wish, wish->workspace, root);
    if (r < 0)
        return err_sys(err, NACRE_EINVAL, -r, "sandbox", "cannot use the workspace %.150s",
                       wish->workspace);
    r = check_workspace(wish, root, err);
    if (r < 0)
        return r;
    r = layout_add(l, FENCE_WRITE, root, NULL);
    return r < 0 ? too_much(r, err) : 0;
}

/* Where nothing may be written the workspace is seen all the same, even where something else lies
 * inside. */
static int show_workspace(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err)
{
    static const char *const covered[] = {"/tmp/", "/var/tmp/", "/run/", "/dev/shm/"};
    char root[4096];
    int r = fence_resolve(wish, wish->workspace, root);
    if (r < 0)
        return err_sys(err, NACRE_EINVAL, -r, "sandbox", "cannot use the workspace %.150s",
                       wish->workspace);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(covered); i++)
        if (strncmp(root, covered[i], strlen(covered[i])) == 0)
            r = layout_add(l, FENCE_PROTECT, root, NULL);
    return r < 0 ? too_much(r, err) : 0;
}

/* Where nothing else may be written this lies in what is shown read-only, over which nothing that
 * may be written can lie. */
static int add_more(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err)
{
    for (const char *const *path = wish->more.write; path && *path; path++)
        if (layout_covers(l, FENCE_PROTECT, *path))
            return err_sys(err, NACRE_EINVAL, EPERM, "sandbox",
                           "the workspace lies below /tmp and is read-only, so %.100s cannot be "
                           "written alone; ask for it in workspace-write",
                           *path);
    int r = add_named(wish, FENCE_SOCKET, "permissions", wish->more.sockets, l, err);
    return r < 0 ? r : add_named(wish, FENCE_WRITE, "permissions", wish->more.write, l, err);
}

int roots_add(const struct fence_wish *wish, struct fence_layout *l, nacre_error *err)
{
    int r = add_named(wish, FENCE_SOCKET, "sandbox_sockets", wish->sockets, l, err);
    if (r == 0)
        r = wish->mode == FENCE_WORKSPACE_WRITE ? add_workspace(wish, l, err)
                                                : show_workspace(wish, l, err);
    if (r == 0 && wish->mode == FENCE_WORKSPACE_WRITE)
        r = add_named(wish, FENCE_WRITE, "sandbox_write", wish->write, l, err);
    if (r == 0)
        r = add_more(wish, l, err);
    if (r < 0)
        return r;
    size_t named = l->count;
    for (size_t i = 0; r == 0 && i < named; i++)
        if (l->places[i].kind == FENCE_WRITE) {
            /* The list may move while it grows. */
            cleanup_free char *root = strdup(l->places[i].path);
            r = root ? protect_names(wish, l, root) : -ENOMEM;
            if (r == 0)
                r = protect_repository(wish, l, root);
        }
    if (r == 0 && wish->private_caches)
        r = add_private_cache(wish, l);
    if (r == 0 && wish->shared_caches)
        r = add_shared_caches(l);
    if (r == 0)
        r = protect_ours(wish, l);
    if (r < 0)
        return too_much(r, err);
    layout_drop_nested(l, FENCE_WRITE);
    return 0;
}
