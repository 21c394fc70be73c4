#include "fence/fence_plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "sys/fd.h"

#define WORDS_SIZE 240

static const char *const mode_names[] = {"off", "read-only", "workspace-write"};

const char *fence_mode_name(enum fence_mode mode)
{
    return (unsigned)mode < ARRAY_SIZE(mode_names) ? mode_names[mode] : "?";
}

int fence_mode_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++)
        if (strcmp(mode_names[i], name) == 0)
            return (int)i;
    return -1;
}

/* -- Paths ------------------------------------------------------------------------------------ */

/* What stands for "~" or "$NAME" at the beginning, and how much of the text that is. */
static const char *beginning(const char *text, size_t *ret_size)
{
    char name[256];
    if (text[0] == '~' && (text[1] == '/' || !text[1])) {
        *ret_size = 1;
        return fence_user_home();
    }
    if (text[0] != '$') {
        *ret_size = 0;
        return "";
    }
    size_t n = strcspn(text + 1, "/");
    snprintf(name, sizeof name, "%.*s", (int)n, text + 1);
    *ret_size = n + 1;
    const char *value = getenv(name);
    return value ? value : "";
}

int fence_name(const struct fence_wish *wish, const char *text, char ret_path[4096])
{
    size_t skip;
    const char *start = beginning(text, &skip);
    bool relative = skip == 0 && text[0] != '/';
    if (skip > 0 && !*start)
        return -ENOENT;
    int n = snprintf(ret_path, 4096, "%s%s%s%s", relative ? wish->workspace : "",
                     relative ? "/" : "", start, text + skip);
    return n < 0 || n >= 4096 ? -ENAMETOOLONG : 0;
}

int fence_resolve(const struct fence_wish *wish, const char *text, char ret_path[4096])
{
    char path[4096];
    int r = fence_name(wish, text, path);
    return r < 0 ? r : realpath(path, ret_path) ? 0 : -errno;
}

/* The user's directory for caches may be a link; below it nobody has one to make. */
static bool find_caches(char ret_path[4096])
{
    char path[PATH_MAX];
    const char *base = getenv("XDG_CACHE_HOME");
    bool given = base && base[0] == '/';
    if (!given && !*fence_user_home())
        return false;
    int n = snprintf(path, sizeof path, "%s%s", given ? base : fence_user_home(),
                     given ? "" : "/.cache");
    return n > 0 && (size_t)n < sizeof path && fd_make_dirs(path) == 0 && realpath(path, ret_path);
}

/* The same workspace has the same one, and another has another. */
bool fence_cache_path(const struct fence_wish *wish, char ret_path[4096])
{
    char base[4096];
    uint64_t sum = UINT64_C(14695981039346656037);
    for (const char *p = wish->workspace; *p; p++)
        sum = (sum ^ (unsigned char)*p) * UINT64_C(1099511628211);
    int n = find_caches(base)
                ? snprintf(ret_path, 4096, "%s/nacre/caches/%016llx", base, (unsigned long long)sum)
                : -1;
    return n > 0 && n < 4096;
}

/* -- The network ------------------------------------------------------------------------------ */

static int add_hosts(struct buf *hosts, const char *const *list, bool *off, bool *on)
{
    int r = 0;
    for (const char *const *name = list; r == 0 && name && *name; name++) {
        bool is_off = strcmp(*name, "off") == 0, is_on = strcmp(*name, "on") == 0;
        *off = *off || is_off;
        *on = *on || is_on;
        if (!is_off && !is_on)
            r = buf_printf(hosts, "%s\n", *name);
    }
    return r;
}

/* Hosts that a command gets beyond its session's make no difference where all are reached. */
static int take_network(const struct fence_wish *wish, enum fence_network *ret_network,
                        char **ret_hosts, nacre_error *err)
{
    struct buf hosts cleanup_buf = BUF_UP_TO(FENCE_SIZE_MAX);
    bool off = false, on = false;
    int r = add_hosts(&hosts, wish->network, &off, &on);
    bool is_mixed = (off || on) && (hosts.len > 0 || (off && on));
    if (r == 0 && !on)
        r = add_hosts(&hosts, wish->more.hosts, &off, &on);
    if (r < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (is_mixed)
        return err_sys(err, NACRE_EINVAL, EINVAL, "sandbox",
                       "sandbox_network is off, on, or a list of hosts, and not several of these");
    *ret_network = on ? FENCE_NETWORK_ON : hosts.len > 0 ? FENCE_NETWORK_GATE : FENCE_NETWORK_OFF;
    *ret_hosts = hosts.len > 0 ? buf_take(&hosts) : NULL;
    return 0;
}

static const char *network_words(enum fence_network network)
{
    static const char *const words[] = {"network off", "network by named hosts", "network on"};
    return words[network];
}

static int add_more_words(struct buf *out, const char *const *list)
{
    int r = 0;
    for (; r == 0 && list && *list; list++)
        r = buf_printf(out, "%s%s", out->len > 0 ? ", " : "", *list);
    return r;
}

/* What it is called: "workspace-write, network off", and what a single command got beyond that. */
static void write_words(const struct fence_wish *wish, enum fence_network network, char *ret,
                        size_t size)
{
    const struct fence_more *more = &wish->more;
    struct buf list cleanup_buf = BUF_UP_TO(WORDS_SIZE);
    int n = snprintf(ret, size, "%s, %s", fence_mode_name(wish->mode), network_words(network));
    int r = add_more_words(&list, more->write);
    r = r < 0 ? r : add_more_words(&list, more->hosts);
    r = r < 0 ? r : add_more_words(&list, more->sockets);
    if (r < 0 || list.len > 0)
        snprintf(ret + n, size - (size_t)n, ", and more: %.150s%s", list.data ? list.data : "",
                 r < 0 || list.len > 150 ? "..." : "");
}

/* -- Variables -------------------------------------------------------------------------------- */

/* Where tools look for their caches, each below the one directory. */
static const char *const cache_variables[][2] = {
    {"XDG_CACHE_HOME", "xdg"}, {"npm_config_cache", "npm"}, {"YARN_CACHE_FOLDER", "yarn"},
    {"PIP_CACHE_DIR", "pip"},  {"UV_CACHE_DIR", "uv"},      {"GOCACHE", "go-build"},
    {"GOMODCACHE", "go-mod"},  {"CCACHE_DIR", "ccache"},    {"GRADLE_USER_HOME", "gradle"},
    {"CARGO_HOME", "cargo"},
};

static int add_text(char ***list, size_t *count, const char *text)
{
    char **more = realloc(*list, (*count + 2) * sizeof **list);
    if (!more)
        return -ENOMEM;
    *list = more;
    more[*count] = strdup(text);
    more[*count + 1] = NULL;
    return more[*count] ? ((*count)++, 0) : -ENOMEM;
}

/* A shell inside has a home of nacre's in the private /tmp; what the host's variables name is not
 * there. */
static int make_variables(const struct fence_wish *wish, char ***ret_list)
{
    char cache[4096], text[4096 + 64];
    size_t count = 0;
    int r = add_text(ret_list, &count, "NACRE_HOME=/tmp/.nacre");
    if (r == 0)
        r = add_text(ret_list, &count, "NACRE_SANDBOX");
    if (r == 0 && getenv("TMPDIR"))
        r = add_text(ret_list, &count, "TMPDIR=/tmp");
    if (r == 0 && getenv("XDG_RUNTIME_DIR"))
        r = add_text(ret_list, &count, "XDG_RUNTIME_DIR");
    bool private = wish->private_caches && fence_cache_path(wish, cache);
    for (size_t i = 0; r == 0 && private && i < ARRAY_SIZE(cache_variables); i++) {
        snprintf(text, sizeof text, "%s=%s/%s", cache_variables[i][0], cache,
                 cache_variables[i][1]);
        r = add_text(ret_list, &count, text);
    }
    return r;
}

/* -- What it was made of ---------------------------------------------------------------------- */

static struct fence_sight sight_of(const struct fence_place *place, const char *path)
{
    struct stat st;
    bool ours =
        place->kind == FENCE_DEVICES || place->kind == FENCE_MEMORY || place->kind == FENCE_PRIVATE;
    if (ours || lstat(path, &st) < 0)
        return (struct fence_sight){0};
    return (struct fence_sight){
        .device = st.st_dev,
        .inode = st.st_ino,
        .changed_ns =
            place->kind == FENCE_LISTED ? st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec : 0,
    };
}

static int remember_sights(struct fence_plan *plan)
{
    struct fence fence = {(const void *)plan->record.data, plan->record.len};
    plan->sights = calloc(fence.head->count + 1, sizeof *plan->sights);
    for (uint32_t i = 0; plan->sights && i < fence.head->count; i++) {
        const struct fence_place *place = &fence_places(&fence)[i];
        plan->sights[i] = sight_of(place, fence_string(&fence, place->path));
    }
    return plan->sights ? 0 : -ENOMEM;
}

static bool is_same_sight(const struct fence_sight *a, const struct fence_sight *b)
{
    return a->device == b->device && a->inode == b->inode && a->changed_ns == b->changed_ns;
}

bool fence_plan_is_current(const struct fence_plan *plan)
{
    const struct fence fence = {(const void *)plan->record.data, plan->record.len};
    for (uint32_t i = 0; i < fence.head->count; i++) {
        const struct fence_place *place = &fence_places(&fence)[i];
        struct fence_sight now = sight_of(place, fence_string(&fence, place->path));
        if (!is_same_sight(&now, &plan->sights[i]))
            return false;
    }
    return true;
}

bool fence_plan_is_same(const struct fence_plan *one, const struct fence_plan *other)
{
    const struct fence fence = {(const void *)one->record.data, one->record.len};
    if (one->record.len != other->record.len ||
        memcmp(one->record.data, other->record.data, one->record.len) != 0)
        return false;
    for (uint32_t i = 0; i < fence.head->count; i++)
        if (fence_places(&fence)[i].kind != FENCE_LISTED &&
            !is_same_sight(&one->sights[i], &other->sights[i]))
            return false;
    return true;
}

/* -- The whole -------------------------------------------------------------------------------- */

void fence_plan_done(struct fence_plan *plan)
{
    buf_done(&plan->record);
    for (char **p = plan->variables; p && *p; p++)
        free(*p);
    free(plan->variables);
    free(plan->hosts);
    free(plan->sights);
    *plan = (struct fence_plan){0};
}

static int write_record(const struct fence_wish *wish, struct fence_layout *l,
                        enum fence_network network, struct fence_plan *plan, nacre_error *err)
{
    char canary[4096], words[WORDS_SIZE];
    layout_sort(l);
    hidden_find_canary(l, canary);
    write_words(wish, network, words, sizeof words);
    int r = layout_write(l, network, canary, words, &plan->record);
    if (r == 0)
        plan->sum = ((const struct fence_head *)(const void *)plan->record.data)->sum;
    if (r == 0)
        r = remember_sights(plan);
    if (r == 0)
        r = make_variables(wish, &plan->variables);
    return r < 0 ? err_sys(err, r == -ENOMEM ? NACRE_ENOMEM : NACRE_EINVAL, -r, "sandbox",
                           "cannot lay out the sandbox")
                 : 0;
}

int fence_plan_make(const struct fence_wish *wish, struct fence_plan *ret_plan, nacre_error *err)
{
    struct fence_layout l = {0};
    enum fence_network network = FENCE_NETWORK_OFF;
    *ret_plan = (struct fence_plan){0};
    int r = take_network(wish, &network, &ret_plan->hosts, err);
    if (r == 0)
        r = roots_add(wish, &l, err);
    if (r == 0)
        r = hidden_add(wish, &l, err);
    if (r == 0)
        r = write_record(wish, &l, network, ret_plan, err);
    layout_done(&l);
    if (r < 0)
        fence_plan_done(ret_plan);
    return r;
}
