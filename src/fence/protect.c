/* What stays as it is although it lies in what may be written to: what makes others run something
 * when they only meant to look, and what is nacre's. */
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "fence/fence_plan.h"
#include "fence/git.h"

#define MODULES_DEEP 16 /* a module's name may have slashes, and a module has modules */

static int protect_git_dir(struct fence_layout *l, const char *root, const char *dir, int depth);

/* Every directory between what is protected and the root could be moved away, with what it has. */
static int add_pins(struct fence_layout *l, const char *root, const char *path)
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/')) && slash != above;) {
        *slash = '\0';
        if (strlen(above) <= strlen(root))
            return 0;
        int r = layout_add(l, FENCE_PIN, above, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static int protect_real(struct fence_layout *l, const char *root, const char *real)
{
    if (!path_is_below(real, root))
        return 0;
    int r = layout_add(l, FENCE_PROTECT, real, NULL);
    return r < 0 ? r : add_pins(l, root, real);
}

/* Where a name lies, whether there is something or a link or nothing. */
static bool real_above(const char *path, char ret_path[PATH_MAX])
{
    char above[PATH_MAX], real[PATH_MAX];
    snprintf(above, sizeof above, "%s", path);
    char *slash = strrchr(above, '/');
    if (!slash)
        return false;
    *slash = '\0';
    if (!realpath(slash == above ? "/" : above, real))
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash + 1);
    return n > 0 && n < PATH_MAX;
}

/* It could be replaced by something that leads elsewhere, or by a file. */
static int protect_link(struct fence_layout *l, const char *root, const char *path)
{
    char link[PATH_MAX];
    return real_above(path, link) ? protect_real(l, root, link) : 0;
}

/* A link is protected itself, and so is what it leads to, as far as that lies in the root. */
static int protect_path(struct fence_layout *l, const char *root, const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) < 0)
        return layout_add(l, FENCE_WATCH, path, NULL);
    int r = S_ISLNK(st.st_mode) ? protect_link(l, root, path) : 0;
    return r < 0 || !realpath(path, real) ? r : protect_real(l, root, real);
}

static int protect_all(struct fence_layout *l, const char *root, const char *dir,
                       const char *const *names)
{
    char path[2 * PATH_MAX];
    int r = 0;
    for (; r == 0 && *names; names++) {
        snprintf(path, sizeof path, "%s/%s", dir, *names);
        r = strlen(path) < PATH_MAX ? protect_path(l, root, path) : 0;
    }
    return r;
}

/* -- Names of the settings -------------------------------------------------------------------- */

static int protect_pattern(struct fence_layout *l, const char *root, const char *name)
{
    char pattern[PATH_MAX + 300];
    glob_t found;
    int r = 0;
    if (!strpbrk(name, "*?["))
        return protect_all(l, root, root, (const char *const[]){name, NULL});
    snprintf(pattern, sizeof pattern, "%s/%s", root, name);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = protect_path(l, root, found.gl_pathv[i]);
    globfree(&found);
    return r;
}

static bool protects_git(const struct fence_wish *wish)
{
    for (const char *const *name = wish->protect; name && *name; name++)
        if (strncmp(*name, ".git/", 5) == 0)
            return true;
    return false;
}

/* Of a worktree .git is a file, which says where git finds its configuration; and where there is no
 * repository yet somebody may make one. */
static int protect_dot_git(struct fence_layout *l, const char *root, bool *ret_is_repository)
{
    char git[PATH_MAX + 8];
    struct stat st;
    snprintf(git, sizeof git, "%s/.git", root);
    int r = lstat(git, &st) < 0 ? -errno : 0;
    *ret_is_repository = r == 0 && !S_ISREG(st.st_mode);
    if (r == 0 && S_ISLNK(st.st_mode))
        return protect_link(l, root, git);
    if (r == 0 && S_ISREG(st.st_mode))
        return protect_path(l, root, git);
    return r < 0 ? layout_add(l, FENCE_LISTED, git, NULL) : 0;
}

int protect_names(const struct fence_wish *wish, struct fence_layout *l, const char *root)
{
    bool is_repository = false;
    int r = protects_git(wish) ? protect_dot_git(l, root, &is_repository) : 0;
    for (const char *const *name = wish->protect; r == 0 && name && *name; name++)
        if (strncmp(*name, ".git/", 5) != 0 || is_repository)
            r = protect_pattern(l, root, *name);
    return r;
}

/* -- Repositories ----------------------------------------------------------------------------- */

typedef int directory_fn(struct fence_layout *l, const char *root, const char *dir, int depth);

/* Each directory in one that git keeps them in; others may come. */
static int each_directory(struct fence_layout *l, const char *root, const char *above, int depth,
                          directory_fn *fn)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    int r = layout_add(l, FENCE_LISTED, above, NULL);
    DIR *dir = depth > 0 ? opendir(above) : NULL;
    for (struct dirent *entry; r == 0 && dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", above, entry->d_name);
        if (entry->d_name[0] != '.' && strlen(path) < PATH_MAX && lstat(path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            r = fn(l, root, path, depth - 1);
    }
    if (dir)
        closedir(dir);
    return r;
}

static int protect_worktree(struct fence_layout *l, const char *root, const char *dir, int depth)
{
    static const char *const names[] = {"commondir", "config.worktree", NULL};
    (void)depth;
    return protect_all(l, root, dir, names);
}

/* "libs/foo" is one module and two directories. */
static int protect_module(struct fence_layout *l, const char *root, const char *dir, int depth)
{
    char head[PATH_MAX + 8];
    snprintf(head, sizeof head, "%s/HEAD", dir);
    return access(head, F_OK) == 0 ? protect_git_dir(l, root, dir, depth)
                                   : each_directory(l, root, dir, depth, protect_module);
}

static int protect_git_dir(struct fence_layout *l, const char *root, const char *dir, int depth)
{
    static const char *const names[] = {"hooks",     "config",          "config.worktree",
                                        "commondir", "info/attributes", NULL};
    char below[PATH_MAX + 16];
    int r = protect_all(l, root, dir, names);
    snprintf(below, sizeof below, "%s/worktrees", dir);
    if (r == 0)
        r = each_directory(l, root, below, depth, protect_worktree);
    snprintf(below, sizeof below, "%s/modules", dir);
    return r < 0 ? r : each_directory(l, root, below, depth, protect_module);
}

struct obeyed_search {
    struct fence_layout *layout;
    const char *root;
};

/* As far as it lies, or would lie, in the root: hooks that are kept with the sources, as a rule.
 * Those of husky are in "_", and run what lies beside it. */
static int protect_obeyed(const char *path, void *userdata)
{
    const struct obeyed_search *s = userdata;
    char real[PATH_MAX];
    if (!real_above(path, real) || !path_is_below(real, s->root) || strcmp(real, s->root) == 0)
        return 0;
    size_t size = strlen(real);
    if (size > 2 && strcmp(real + size - 2, "/_") == 0)
        real[size - 2] = '\0';
    return strcmp(real, s->root) == 0 ? 0 : protect_path(s->layout, s->root, real);
}

static int protect_git_at(struct fence_layout *l, const char *root, const char *dir)
{
    struct obeyed_search s = {l, root};
    int r = protect_git_dir(l, path_is_below(dir, root) ? root : dir, dir, MODULES_DEEP);
    return r < 0 ? r : git_each_obeyed(dir, protect_obeyed, &s);
}

/* The repository's own directory may lie elsewhere, and it is written to by every commit. */
int protect_repository(const struct fence_wish *wish, struct fence_layout *l, const char *root)
{
    char own[4096], common[4096];
    if (!git_find(root, own, common))
        return protects_git(wish) && git_is_bare(root) ? protect_git_at(l, root, root) : 0;
    int r = layout_add(l, FENCE_WRITE, common, NULL);
    return r < 0 || !protects_git(wish) ? r : protect_git_at(l, root, common);
}

/* -- What is nacre's -------------------------------------------------------------------------- */

/* In whichever of the places that may be written to it lies. */
static int protect_one(struct fence_layout *l, const char *path)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < l->count; i++)
        if (l->places[i].kind == FENCE_WRITE && path_is_below(path, l->places[i].path)) {
            /* The list may move while it grows. */
            cleanup_free char *root = strdup(l->places[i].path);
            r = root ? protect_path(l, root, path) : -ENOMEM;
        }
    return r;
}

int protect_ours(const struct fence_wish *wish, struct fence_layout *l)
{
    static const char *const names[] = {"nacre-keeper", "nacre-fence", "nacre-gate",
                                        "nacre-text.so", "nacre"};
    char path[PATH_MAX], real[PATH_MAX];
    const char *slash = wish->keeper ? strrchr(wish->keeper, '/') : NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && slash && i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - wish->keeper), wish->keeper, names[i]);
        if (access(path, F_OK) == 0)
            r = protect_one(l, path);
    }
    if (r < 0 || !wish->config || !*wish->config)
        return r;
    return protect_one(l, realpath(wish->config, real) ? real : wish->config);
}
