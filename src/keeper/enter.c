/*
 * The child enters its fence, and the filter of its system calls, before anybody asks for it: by
 * the time of the go nothing of that is left to do. What it cannot enter, or finds open, it does
 * not run in.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/filter.h"
#include "sys/host.h"
#include "sys/landlock.h"
#include "sys/privilege.h"
#include "sys/sock.h"
#include "sys/sock_diag.h"
#include "sys/syscalls.h"

#define ENTER_MS 5000 /* a machine that is this busy may try again */

bool enter_is_fenced(const struct keeper *k)
{
    return k->fd[FD_FENCE_RECORD] >= 0;
}

bool enter_is_needed(const struct keeper *k)
{
    return enter_is_fenced(k) || k->session.policy;
}

/* -- In the stand-in -------------------------------------------------------------------------- */

/* What it says when it is inside, with the listener of its filter; or what it could not do. */
struct entered {
    int32_t step;
    int32_t error;
};

/* Rights over the others come with the first one, so it is joined first. */
static int join_spaces(const struct standin *s)
{
    static const struct {
        enum keeper_fd fd;
        int kind;
    } spaces[] = {{FD_FENCE_USER, CLONE_NEWUSER},
                  {FD_FENCE_NETWORK, CLONE_NEWNET},
                  {FD_FENCE_IPC, CLONE_NEWIPC},
                  {FD_FENCE_MOUNT, CLONE_NEWNS}};
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
        if (s->fd[spaces[i].fd] >= 0 && setns(s->fd[spaces[i].fd], spaces[i].kind) < 0)
            return -errno;
    return 0;
}

static bool is_same_space(int fd, const char *path)
{
    struct stat ours, theirs;
    return fd < 0 || (fstat(fd, &theirs) == 0 && stat(path, &ours) == 0 &&
                      ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev);
}

/* By trying: a file in a directory of the user's that lies outside, a socket of a kind that is not
 * let through, and what the system says of where we are. */
static int try_the_fence(const struct keeper *k, const struct standin *s)
{
    const struct fence *fence = &k->session.fence;
    if (fence->head->canary) {
        const char *path = fence_string(fence, fence->head->canary);
        cleanup_close int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EROFS && errno != EACCES))
            return fd >= 0 ? -ENOTRECOVERABLE : -errno;
    }
    cleanup_close int packet = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (packet >= 0 || !is_same_space(s->fd[FD_FENCE_NETWORK], "/proc/self/ns/net") ||
        !is_same_space(s->fd[FD_FENCE_MOUNT], "/proc/self/ns/mnt"))
        return -ENOTRECOVERABLE;
    return 0;
}

/* What the keeper needs of here: in this order. */
enum entered_fd { ENTERED_CALLS, ENTERED_LISTENERS, ENTERED_FDS };

/* Nothing that was opened outside goes in: by its name in /proc it would lead past the mounts. */
static int leave_outside(const struct keeper *k, struct standin *s)
{
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0)
        return -errno;
    return plan_copy_preload(k, s);
}

static int enter_filter(struct standin *s, struct entered *word, int ret_fds[ENTERED_FDS])
{
    word->step = FENCE_STEP_FILTER;
    ret_fds[ENTERED_CALLS] = filter_enter(&s->wish);
    if (ret_fds[ENTERED_CALLS] < 0)
        return ret_fds[ENTERED_CALLS];
    word->step = FENCE_STEP_NONE;
    return 0;
}

static int enter_fence(const struct keeper *k, struct standin *s, struct entered *word,
                       int ret_fds[ENTERED_FDS])
{
    word->step = FENCE_STEP_JOIN;
    int r = join_spaces(s);
    if (r < 0)
        return r;
    word->step = FENCE_STEP_OPEN;
    r = leave_outside(k, s);
    if (r < 0)
        return r;
    word->step = FENCE_STEP_PRIVILEGES;
    r = privilege_give_up();
    if (r < 0)
        return r;
    word->step = FENCE_STEP_LANDLOCK;
    r = landlock_enter(s->fd[FD_FENCE_RULES]);
    if (r < 0)
        return r;
    word->step = FENCE_STEP_CANARY;
    r = try_the_fence(k, s);
    if (r < 0)
        return r;
    word->step = FENCE_STEP_FILTER;
    ret_fds[ENTERED_LISTENERS] = sock_diag_open();
    return MIN(ret_fds[ENTERED_LISTENERS], 0);
}

/* To change who one is takes the wish for a signal at the keeper's death away. */
void enter_all(const struct keeper *k, struct standin *s)
{
    struct entered word;
    int fds[ENTERED_FDS] = {-EBADF, -EBADF};
    int r = enter_is_fenced(k) ? enter_fence(k, s, &word, fds) : 0;
    if (r == 0)
        r = enter_filter(s, &word, fds);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != k->st.keeper_pid)
        sys_exit(127);
    word.error = -r;
    size_t count = r < 0 ? 0 : enter_is_fenced(k) ? ENTERED_FDS : ENTERED_LISTENERS;
    sock_send(s->fd[FD_FENCE_WORD], &word, sizeof word, fds, count, 0);
    if (r < 0)
        sys_exit(127);
    for (int i = 0; i < ENTERED_FDS; i++)
        close_fd(&fds[i]);
}

static int allow_to_truncate(const struct fence *fence, int rules)
{
    const uint64_t rights = LL_TRUNCATE | LL_REFER;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < fence->head->count; i++) {
        const struct fence_place *place = &fence_places(fence)[i];
        cleanup_close int fd = -EBADF;
        if (!fence_place_is_writable(place))
            continue;
        fd = open(fence_string(fence, place->path), O_PATH | O_CLOEXEC);
        r = fd >= 0 ? landlock_allow(rules, fd, rights) : errno == ENOENT ? 0 : -errno;
    }
    return r;
}

/* By its name in /proc it could be emptied past the mounts. To forbid that costs at every open, so
 * it is forbidden where there is such a file. A set of rules that does not speak of moving forbids
 * it. */
int enter_hold_file(const struct keeper *k, int input)
{
    struct stat st;
    if (!enter_is_fenced(k) || (fstat(input, &st) == 0 && !S_ISREG(st.st_mode)))
        return 0;
    cleanup_close int rules = landlock_new(LL_TRUNCATE | LL_REFER, 0);
    int r = rules < 0 ? rules : allow_to_truncate(&k->session.fence, rules);
    return r < 0 ? r : landlock_enter(rules);
}

/* -- In the keeper ---------------------------------------------------------------------------- */

/* Where the shell leaves the file that its run directory cannot take. */
static void name_room(const struct keeper *k, char *ret_name, size_t size)
{
    snprintf(ret_name, size, FENCE_RUN "/%s", nacre_id_format(&k->st.id).s);
}

int enter_room(const struct keeper *k)
{
    char name[NACRE_ID_DIGITS + 16];
    name_room(k, name, sizeof name);
    return fd_open_dir_at(k->fd[FD_FENCE_PRIVATE], name);
}

void enter_leave(const struct keeper *k)
{
    char name[NACRE_ID_DIGITS + 16];
    name_room(k, name, sizeof name);
    if (enter_is_fenced(k))
        run_remove_dir(k->fd[FD_FENCE_PRIVATE], name);
}

int enter_open(struct keeper *k)
{
    char name[NACRE_ID_DIGITS + 16];
    int pair[2];
    name_room(k, name, sizeof name);
    if (enter_is_fenced(k) && mkdirat(k->fd[FD_FENCE_PRIVATE], name, 0700) < 0)
        return -errno;
    int r = enter_is_needed(k) ? sock_pair(pair) : 0;
    if (r < 0 || !enter_is_needed(k))
        return r;
    k->fd[FD_FENCE_HEARD] = pair[0];
    k->fd[FD_FENCE_WORD] = pair[1];
    return 0;
}

/* What lets the command itself through is known to nobody else. */
int enter_prepare(const struct keeper *k, struct standin *s)
{
    s->wish = (struct filter_wish){.fence = enter_is_fenced(k), .execs = k->session.policy};
    return host_random(s->wish.pass, sizeof s->wish.pass);
}

int enter_await(struct keeper *k, enum fence_step *ret_step)
{
    struct entered word = {.step = FENCE_STEP_JOIN};
    *ret_step = FENCE_STEP_NONE;
    if (!enter_is_needed(k))
        return 0;
    struct pollfd poller = {.fd = k->fd[FD_FENCE_HEARD], .events = POLLIN};
    close_fd(&k->fd[FD_FENCE_WORD]);
    int fds[ENTERED_FDS] = {-EBADF, -EBADF};
    ssize_t n = RETRY(poll(&poller, 1, ENTER_MS)) <= 0
                    ? -ETIMEDOUT
                    : sock_recv(poller.fd, &word, sizeof word, fds, ENTERED_FDS, MSG_DONTWAIT);
    close_fd(&k->fd[FD_FENCE_HEARD]);
    k->fd[FD_CALLS] = fds[ENTERED_CALLS];
    k->fd[FD_LISTENERS] = fds[ENTERED_LISTENERS];
    if (n == sizeof word && word.step == FENCE_STEP_NONE && k->fd[FD_CALLS] >= 0) {
        filter_take_turns(k->fd[FD_CALLS]);
        loop_watch(k, FD_CALLS);
        return 0;
    }
    *ret_step = (enum fence_step)word.step;
    return n < 0 ? (int)n : n == 0 || word.error == 0 ? -ECHILD : -word.error;
}
