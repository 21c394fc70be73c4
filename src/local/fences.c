#include "local/fences.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/hold.h"
#include "home/keeper_line.h"
#include "local/remedies.h"
#include "run/hosts.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/sock.h"
#include "sys/spawn.h"

#define PROGRAM      "nacre-fence"
#define PRIVATE_DIRS "fence" /* in the home; a directory of each session is in it */

_Static_assert((int)FENCE_WORKSPACE_WRITE < FENCES_MAX, "each mode but off has one, and is kept");

static int slot_of(enum wire_fence_fds which)
{
    return __builtin_ctz(which);
}

void fences_init(struct fences *f, const struct fence_wish *wish)
{
    *f = (struct fences){.wish = *wish, .private_fd = -EBADF};
    pthread_mutex_init(&f->lock, NULL);
}

/* All of it but where it is, and its way out, by which somebody may still go. */
static void empty_fence(struct made_fence *fence)
{
    for (size_t i = 0; i < ARRAY_SIZE(fence->fd); i++)
        close_fd(&fence->fd[i]);
    fence_plan_done(&fence->plan);
}

static void free_fence(struct made_fence *fence)
{
    gate_let_go(&fence->gate);
    (void)gate_is_gone(&fence->gate);
    empty_fence(fence);
    fence_more_done(&fence->more);
    free(fence);
}

/* -- The session's private directory ---------------------------------------------------------- */

/* Nobody holds it: neither its session nor a keeper. */
static void remove_unused(int dirs, const char *name)
{
    cleanup_close int fd = fd_open_dir_at(dirs, name);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        run_remove_dir(dirs, name);
}

static int collect_private_dir(const char *name, void *userdata)
{
    remove_unused(*(const int *)userdata, name);
    return 0;
}

static int open_private_dirs(const char *home, bool make)
{
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/" PRIVATE_DIRS, home);
    if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    return fd_open_dir_at(AT_FDCWD, path);
}

/* Removes what sessions that are gone have left. */
static void fences_collect(const char *home)
{
    cleanup_close int dirs = open_private_dirs(home, false);
    if (dirs >= 0)
        fd_walk(dirs, collect_private_dir, (void *)&dirs);
}

static int make_directories(int dir)
{
    static const struct {
        const char *name;
        mode_t mode;
    } directories[] = {{FENCE_TMP, 01777}, {FENCE_VAR_TMP, 01777}, {FENCE_RUN, 0700}};
    for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
        if (mkdirat(dir, directories[i].name, 0700) < 0 && errno != EEXIST)
            return -errno;
        cleanup_close int fd = fd_open_dir_at(dir, directories[i].name);
        if (fd < 0 || fchmod(fd, directories[i].mode) < 0)
            return fd < 0 ? fd : -errno;
    }
    return 0;
}

void fences_name_private_dir(const char *home, const nacre_id *session, char ret_path[4096])
{
    snprintf(ret_path, 4096, "%.4000s/" PRIVATE_DIRS "/%s", home, nacre_id_format(session).s);
}

/* With the lock. It is locked before it has a name that others look for. */
static int make_private_dir(struct fences *f, const char *home, const nacre_id *session)
{
    nacre_id_text name = nacre_id_format(session);
    fences_collect(home);
    cleanup_close int dirs = open_private_dirs(home, true);
    if (dirs < 0)
        return dirs;
    if (mkdirat(dirs, name.s, 0700) < 0 && errno != EEXIST)
        return -errno;
    cleanup_close int dir = fd_open_dir_at(dirs, name.s);
    if (dir < 0)
        return dir;
    int r = flock(dir, LOCK_SH | LOCK_NB) < 0 ? -errno : make_directories(dir);
    if (r < 0 && r != -EWOULDBLOCK)
        run_remove_dir(dirs, name.s); /* nobody else knows of it */
    if (r < 0)
        return r;
    fences_name_private_dir(home, session, f->private_dir);
    f->private_fd = TAKE_FD(dir);
    return 0;
}

/* With the lock. */
static int need_private_dir(struct fences *f, nacre_home *home, nacre_error *err)
{
    const char *path;
    int r = home_path(home, &path, NULL, err);
    if (r < 0)
        return r;
    f->wish.home = path;
    int e = f->private_dir[0] ? 0 : make_private_dir(f, path, &home->options.session);
    /* Somebody who collects may have had it in his hands. */
    if (e == -EWOULDBLOCK || e == -ENOENT)
        e = make_private_dir(f, path, &home->options.session);
    f->wish.private_dir = f->private_dir;
    return e < 0 ? err_sys(err, NACRE_ESTART, -e, "sandbox",
                           "cannot make the private directory of the sandbox in %.120s", path)
                 : 0;
}

/* Keepers hold the same description, and with it the lock. */
void fences_let_go(struct fences *f)
{
    close_fd(&f->private_fd);
}

bool fences_are_left(const struct fences *f)
{
    cleanup_close int fd = f->private_dir[0] ? fd_open_dir_at(AT_FDCWD, f->private_dir) : -EBADF;
    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void fences_done(struct fences *f, bool forked)
{
    for (size_t i = 0; i < f->count; i++)
        free_fence(f->list[i]);
    for (struct made_fence *fence = f->replaced, *next; fence; fence = next) {
        next = fence->next;
        free_fence(fence);
    }
    close_fd(&f->private_fd);
    char *slash = strrchr(f->private_dir, '/');
    if (!forked && slash) {
        *slash = '\0';
        cleanup_close int dirs = fd_open_dir_at(AT_FDCWD, f->private_dir);
        if (dirs >= 0)
            remove_unused(dirs, slash + 1);
    }
    pthread_mutex_destroy(&f->lock);
}

/* -- Composing -------------------------------------------------------------------------------- */

/* A call may want less than its session, never more. */
static int choose_mode(const struct fences *f, const nacre_command *command,
                       enum fence_mode *ret_mode, nacre_error *err)
{
    *ret_mode = command->permissions.full ? FENCE_OFF : f->wish.mode;
    if (command->permissions.full || !command->sandbox || !*command->sandbox)
        return 0;
    int wanted = fence_mode_of(command->sandbox);
    if (wanted < 0)
        return err_set(err, NACRE_EINVAL,
                       "the sandbox \"%.40s\" is unknown; it is read-only or workspace-write",
                       command->sandbox);
    bool narrower = wanted == FENCE_READ_ONLY || wanted == (int)f->wish.mode ||
                    (wanted == FENCE_WORKSPACE_WRITE && f->wish.mode == FENCE_OFF);
    if (!narrower)
        return err_set(err, NACRE_EPERM,
                       "the sandbox of this session is %s; a call may only narrow it. Its user "
                       "widens it by sandbox=%s in the configuration",
                       fence_mode_name(f->wish.mode), command->sandbox);
    *ret_mode = (enum fence_mode)wanted;
    return 0;
}

static int hold_record(struct made_fence *fence)
{
    FSIZE_SHELTER();
    cleanup_close int fd = fd_lift_consume(memfd_create("fence", MFD_CLOEXEC));
    int r = fd < 0 ? -errno : fd_write_all(fd, fence->plan.record.data, fence->plan.record.len);
    if (r == 0)
        fence->fd[slot_of(FENCE_FD_RECORD)] = TAKE_FD(fd);
    return r;
}

static void path_of_fd(int fd, char *ret_path, size_t size)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = fd < 0 ? -1 : readlink(link, ret_path, size - 1);
    ret_path[MAX(n, 0)] = '\0';
}

/* With the lock. */
static int compose_fence(const struct fences *f, enum fence_mode mode,
                         const struct fence_more *more, int keeper_fd,
                         struct made_fence **ret_fence, nacre_error *err)
{
    char keeper[4096];
    struct made_fence *fence = calloc(1, sizeof *fence);
    if (!fence || fence_more_copy(more, &fence->more) < 0) {
        free(fence);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    fence->mode = mode;
    for (size_t i = 0; i < ARRAY_SIZE(fence->fd); i++)
        fence->fd[i] = -EBADF;
    fence->gate = (struct gate)GATE_NONE;
    path_of_fd(keeper_fd, keeper, sizeof keeper);
    struct fence_wish wish = f->wish;
    wish.mode = mode;
    wish.more = fence->more;
    wish.keeper = keeper;
    int r = fence_plan_make(&wish, &fence->plan, err);
    int e = r < 0 ? 0 : hold_record(fence);
    if (e < 0)
        r = err_sys(err, NACRE_ELIMIT, -e, "sandbox", "cannot hold what the sandbox is made of");
    if (r < 0) {
        free_fence(fence);
        return r;
    }
    *ret_fence = fence;
    return 0;
}

/* -- Composing anew --------------------------------------------------------------------------- */

/* With the lock. Who runs in the other one and who will run in this one meet in one network. */
static int share_network(struct made_fence *fence, const struct made_fence *other)
{
    static const enum wire_fence_fds shared[] = {FENCE_FD_USER, FENCE_FD_NETWORK, FENCE_FD_IPC};
    for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
        int slot = slot_of(shared[i]);
        fence->fd[slot] = other->fd[slot] < 0 ? -EBADF : fcntl(other->fd[slot], F_DUPFD_CLOEXEC, 3);
        if (other->fd[slot] >= 0 && fence->fd[slot] < 0)
            return -errno;
    }
    fence->port = other->port;
    fence->gate_open = other->gate_open;
    return 0;
}

/* With the lock. It is there, and so is its way out. */
static bool is_settled(const struct made_fence *fence)
{
    return fence->made && (!fence->plan.hosts || fence->gate_open);
}

/* With the lock. */
static void replace_fence(struct fences *f, size_t which, struct made_fence *fence)
{
    struct made_fence *old = f->list[which];
    old->replaced = true;
    old->next = f->replaced;
    f->replaced = old;
    f->list[which] = fence;
    if (old->users == 0)
        empty_fence(old);
}

/* With the lock. A home directory gets new files all the time: mostly nothing of the fence is in
 * them. */
static int renew_fence(struct fences *f, size_t which, int keeper_fd, nacre_error *err)
{
    struct made_fence *old = f->list[which], *fence = NULL;
    if (!is_settled(old) || fence_plan_is_current(&old->plan))
        return 0;
    int r = compose_fence(f, old->mode, &old->more, keeper_fd, &fence, err);
    if (r < 0)
        return r;
    if (fence_plan_is_same(&old->plan, &fence->plan)) {
        struct fence_sight *sights = old->plan.sights;
        old->plan.sights = fence->plan.sights;
        fence->plan.sights = sights;
        free_fence(fence);
        return 0;
    }
    int e = share_network(fence, old);
    if (e == 0) {
        fence->gate = old->gate;
        old->gate = (struct gate)GATE_NONE;
        replace_fence(f, which, fence);
        return 0;
    }
    free_fence(fence);
    return err_sys(err, NACRE_ELIMIT, -e, "sandbox", "no descriptor left for the sandbox");
}

/* -- The one of a command ---------------------------------------------------------------------- */

static size_t find_fence(const struct fences *f, enum fence_mode mode,
                         const struct fence_more *more)
{
    size_t i = 0;
    while (i < f->count &&
           (f->list[i]->mode != mode || !fence_more_is_same(&f->list[i]->more, more)))
        i++;
    return i;
}

/* With the lock. What got more shares the network of those that did not, unless it is other hosts
 * that it got. */
static int join_plain_fence(const struct fences *f, struct made_fence *fence)
{
    const struct fence_more none = {0};
    size_t plain = find_fence(f, fence->mode, &none);
    if (plain == f->count || !is_settled(f->list[plain]) || fence->more.hosts)
        return 0;
    return share_network(fence, f->list[plain]);
}

/* With the lock. Those of the modes stay; of the others the oldest makes room. */
static int add_fence(struct fences *f, struct made_fence *fence, nacre_error *err)
{
    int r = join_plain_fence(f, fence);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "sandbox", "no descriptor left for the sandbox");
    if (f->count < FENCES_MAX) {
        f->list[f->count++] = fence;
        return 0;
    }
    size_t oldest = 0;
    while (fence_more_is_none(&f->list[oldest]->more))
        oldest++;
    replace_fence(f, oldest, fence);
    for (; oldest + 1 < f->count; oldest++) {
        struct made_fence *next = f->list[oldest + 1];
        f->list[oldest + 1] = f->list[oldest];
        f->list[oldest] = next;
    }
    return 0;
}

/* With the lock. */
static int make_fence(struct fences *f, nacre_home *home, enum fence_mode mode,
                      const struct fence_more *more, int keeper_fd, nacre_error *err)
{
    struct made_fence *fence = NULL;
    int r = need_private_dir(f, home, err);
    if (r == 0)
        r = compose_fence(f, mode, more, keeper_fd, &fence, err);
    if (r == 0)
        r = add_fence(f, fence, err);
    if (r < 0 && fence)
        free_fence(fence);
    return r;
}

int fences_want(struct fences *f, nacre_home *home, const nacre_command *command, int keeper_fd,
                struct made_fence **ret_fence, nacre_error *err)
{
    const nacre_permissions *p = &command->permissions;
    const struct fence_more more = {p->write, p->hosts, p->sockets};
    enum fence_mode mode;
    *ret_fence = NULL;
    int r = choose_mode(f, command, &mode, err);
    if (r < 0 || mode == FENCE_OFF)
        return r;
    HOLD(&f->lock);
    size_t i = find_fence(f, mode, &more);
    r = i < f->count ? renew_fence(f, i, keeper_fd, err)
                     : make_fence(f, home, mode, &more, keeper_fd, err);
    if (r < 0)
        return r;
    *ret_fence = f->list[find_fence(f, mode, &more)];
    (*ret_fence)->users++;
    return 0;
}

void fences_give_back(struct fences *f, struct made_fence *fence)
{
    HOLD(&f->lock);
    if (--fence->users == 0 && fence->replaced)
        empty_fence(fence);
}

const char *fences_words(const struct made_fence *fence)
{
    const struct fence_head *head = (const void *)fence->plan.record.data;
    return fence->plan.record.data + head->words;
}

bool fences_of_words(struct fences *f, const char *words, struct fence *ret_record)
{
    HOLD(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        const struct buf *record = &f->list[i]->plan.record;
        if (strcmp(fences_words(f->list[i]), words) == 0)
            return fence_check(record->data, record->len, ret_record) == 0;
    }
    return false;
}

/* -- Making ----------------------------------------------------------------------------------- */

static int open_builder(int keeper_fd)
{
    char path[4096 + sizeof PROGRAM];
    path_of_fd(keeper_fd, path, 4096);
    char *slash = strrchr(path, '/');
    if (!slash)
        return -ENOENT;
    memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

/* With the lock. What it is made of: the record, and what is there already of another one. */
static int send_order(const struct made_fence *fence, int sock)
{
    struct wire_fence order = {.head = keeper_line_head(WIRE_FENCE)};
    int fds[FENCE_FDS];
    size_t count = 0;
    for (unsigned i = 0; i < FENCE_FDS; i++)
        if (fence->fd[i] >= 0) {
            order.fds |= 1u << i;
            fds[count++] = fence->fd[i];
        }
    return sock_send(sock, &order, sizeof order, fds, count, 0);
}

int fences_begin(struct fences *f, const struct made_fence *fence, int keeper_fd, int *ret_sock,
                 nacre_error *err)
{
    char *argv[] = {(char *)PROGRAM, NULL}, *env[] = {NULL};
    int pair[2] = {-EBADF, -EBADF};
    cleanup_close int program = open_builder(keeper_fd);
    int r = program < 0 ? program : sock_pair(pair);
    if (r == 0)
        r = spawn_orphan(program, pair[1], argv, env);
    close_fd(&pair[1]);
    if (r >= 0) {
        HOLD(&f->lock);
        r = send_order(fence, pair[0]);
    }
    if (r < 0) {
        close_fd(&pair[0]);
        return err_sys(err, NACRE_ESTART, -r, "sandbox",
                       "cannot execute " PROGRAM ", which lies beside nacre-keeper");
    }
    *ret_sock = pair[0];
    return 0;
}

/* Two starts may have had it made at once: the first one counts. */
static void take_made(struct fences *f, struct made_fence *fence, const struct wire_fenced *word,
                      int *fds)
{
    size_t next = 0;
    HOLD(&f->lock);
    for (unsigned i = 0; i < FENCE_FDS; i++) {
        if (!(word->fds & 1u << i))
            continue;
        if (!fence->made) {
            close_fd(&fence->fd[i]);
            fence->fd[i] = TAKE_FD(fds[next]);
        }
        close_fd(&fds[next++]);
    }
    fence->landlock = word->landlock;
    if (word->port)
        fence->port = word->port;
    fence->made = true;
}

/* Ours is closed when the gate has it: else who waits to be let in would wait for ever when the
 * gate is gone. */
int fences_open_gate(struct fences *f, struct made_fence *fence, const struct gate_order *order,
                     int *ret_fd, nacre_error *err)
{
    int *listen = &fence->fd[slot_of(FENCE_FD_GATE)];
    *ret_fd = -1;
    HOLD(&f->lock);
    if (fence->gate_open || !fence->plan.hosts)
        return 1;
    int r = 0;
    if (fence->gate.sock < 0) {
        struct gate_order whole = *order;
        whole.listen = *listen;
        whole.rules = fence->plan.hosts;
        r = gate_begin(&whole, &fence->gate, err);
        close_fd(listen);
    }
    if (r == 0)
        r = gate_hear_ready(&fence->gate, err);
    fence->gate_open = r > 0;
    *ret_fd = fence->gate.sock;
    return r;
}

/* Tools agree on no one name; those who know none go nowhere. What has no scheme is set as it is,
 * or to the hosts that are reached without the gate. */
static const struct proxy_variable {
    const char *name, *scheme;
} proxy_variables[] = {
    {"HTTP_PROXY", "http"},
    {"HTTPS_PROXY", "http"},
    {"http_proxy", "http"},
    {"https_proxy", "http"},
    {"ALL_PROXY", "socks5h"},
    {"all_proxy", "socks5h"},
    {"NO_PROXY=", NULL},
    {"no_proxy=", NULL},
    {"NODE_USE_ENV_PROXY=1", NULL},
    {"GIT_HTTP_PROXY_AUTHMETHOD=basic", NULL}, /* it says who it is at once, and not when asked */
};

/* Loopback is the fence's own; but where a rule names localhost that is the machine's, and the way
 * there is the gate. */
static const char *near_hosts(const char *rules)
{
    static const char all[] = "localhost,127.0.0.1,::1";
    const char *addresses = strchr(all, ',') + 1;
    struct net_host host;
    uint16_t port;
    for (size_t size; *rules; rules += size + (rules[size] == '\n')) {
        size = strcspn(rules, "\n");
        size_t name = strcspn(rules, ":\n");
        if (net_host_parse_port(rules, name, 1, &host, &port) && net_host_is_localhost(&host))
            return addresses;
    }
    return all;
}

void fences_free_variables(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

char **fences_variables(const struct made_fence *fence, const nacre_id *run)
{
    size_t count = 0, room = ARRAY_SIZE(proxy_variables) + 1;
    while (fence->plan.variables[count])
        count++;
    char **list = calloc(count + room, sizeof *list);
    bool whole = list != NULL;
    for (size_t i = 0; whole && i < count; i++)
        whole = (list[i] = strdup(fence->plan.variables[i])) != NULL;
    for (size_t i = 0; whole && fence->port && i < ARRAY_SIZE(proxy_variables); i++) {
        const struct proxy_variable *v = &proxy_variables[i];
        char text[128];
        if (v->scheme)
            snprintf(text, sizeof text, "%s=%s://%s:x@127.0.0.1:%u", v->name, v->scheme,
                     nacre_id_format(run).s, (unsigned)fence->port);
        else
            snprintf(text, sizeof text, "%s%s", v->name,
                     strchr(v->name, '=')[1] ? "" : near_hosts(fence->plan.hosts));
        whole = (list[count + i] = strdup(text)) != NULL;
    }
    if (!whole)
        fences_free_variables(list);
    return whole ? list : NULL;
}

static const char *place_of(const struct made_fence *fence, const struct wire_fenced *word)
{
    struct fence record;
    bool named = word->step == FENCE_STEP_OPEN || word->step == FENCE_STEP_PLACE ||
                 (word->step == FENCE_STEP_LANDLOCK && word->error != EOPNOTSUPP);
    if (!named || fence_check(fence->plan.record.data, fence->plan.record.len, &record) < 0 ||
        word->place >= record.head->count)
        return "";
    return fence_string(&record, fence_places(&record)[word->place].path);
}

int fences_hear(struct fences *f, struct made_fence *fence, int sock, nacre_error *err)
{
    struct wire_fenced word;
    int fds[FENCE_FDS];
    ssize_t n = sock_recv(sock, &word, sizeof word, fds, ARRAY_SIZE(fds), MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n != sizeof word || word.head.type != WIRE_FENCED || word.head.format != RUN_FORMAT)
        return err_sys(err, NACRE_ESTART, n < 0 ? (int)-n : EPROTO, "sandbox",
                       PROGRAM
                       " ended, or does not belong to this library; check the installation");
    if (word.error)
        return fences_failed((enum fence_step)word.step, word.error, place_of(fence, &word), err);
    take_made(f, fence, &word, fds);
    return 1;
}

int fences_tell(const struct fences *f, const struct made_fence *fence, int sock)
{
    struct wire_fence word = {.head = keeper_line_head(WIRE_FENCE)};
    int fds[FENCE_FDS];
    size_t count = 0;
    for (unsigned i = 0; i < FENCE_FDS; i++) {
        enum wire_fence_fds which = 1u << i;
        int fd = which == FENCE_FD_PRIVATE ? f->private_fd : fence->fd[i];
        if (fd < 0 || which == FENCE_FD_GATE)
            continue;
        word.fds |= which;
        fds[count++] = fd;
    }
    return sock_send(sock, &word, sizeof word, fds, count, 0);
}
