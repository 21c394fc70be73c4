#include "sys/asleep.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/sock_diag.h"

#define ARGUMENTS 6

struct sleeping_call {
    long number;
    uint64_t argument[ARGUMENTS];
    pid_t pid;
};

/* Notes the descriptors it waits for; false if they cannot be told. */
typedef bool waited_for_fn(const struct sleeping_call *call, struct asleep_fds *fds);

static bool note(struct asleep_fds *fds, int fd)
{
    if (fds->count == ASLEEP_FDS)
        return false;
    fds->fd[fds->count++] = fd;
    return true;
}

/* Memory of the process. It may have another thread that changes it, so it is only looked at. */
static bool peek(const struct sleeping_call *call, uint64_t address, void *buf, size_t size)
{
    struct iovec here = {.iov_base = buf, .iov_len = size};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = size}; // NOLINT
    return process_vm_readv(call->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool first_argument(const struct sleeping_call *call, struct asleep_fds *fds)
{
    return note(fds, (int)call->argument[0]);
}

static bool polled(const struct sleeping_call *call, struct asleep_fds *fds)
{
    struct pollfd list[ASLEEP_FDS];
    uint64_t count = call->argument[1];
    if (count > ARRAY_SIZE(list) ||
        (count > 0 && !peek(call, call->argument[0], list, count * sizeof *list)))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (list[i].fd >= 0 && (list[i].events & (POLLIN | POLLRDNORM)) && !note(fds, list[i].fd))
            return false;
    return true;
}

static bool selected(const struct sleeping_call *call, struct asleep_fds *fds)
{
    fd_set set;
    uint64_t count = call->argument[0];
    FD_ZERO(&set);
    if (count > FD_SETSIZE)
        return false;
    if (count == 0 || call->argument[1] == 0)
        return true;
    /* The kernel reads whole words of it. */
    size_t word = sizeof(long), size = (count + word * 8 - 1) / (word * 8) * word;
    if (!peek(call, call->argument[1], &set, size))
        return false;
    for (int fd = 0; fd < (int)count; fd++)
        if (FD_ISSET(fd, &set) && !note(fds, fd))
            return false;
    return true;
}

/* "tfd:        0 events:       19 data: ..." */
static int note_member(char *line, void *userdata)
{
    int fd;
    unsigned events;
    if (sscanf(line, "tfd: %d events: %x", &fd, &events) != 2 || !(events & EPOLLIN))
        return 0;
    return note(userdata, fd) ? 0 : 1;
}

static bool epoll_members(const struct sleeping_call *call, struct asleep_fds *fds)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", call->pid, (int)call->argument[0]);
    return fd_each_line_in(path, note_member, fds) == 0;
}

static const struct known_call {
    long number;
    enum asleep kind;
    waited_for_fn *waited_for;
} known_calls[] = {
    {SYS_read, ASLEEP_READS, first_argument},
    {SYS_readv, ASLEEP_READS, first_argument},
#ifdef SYS_poll
    {SYS_poll, ASLEEP_POLLS, polled},
#endif
    {SYS_ppoll, ASLEEP_POLLS, polled},
#ifdef SYS_select
    {SYS_select, ASLEEP_POLLS, selected},
#endif
    {SYS_pselect6, ASLEEP_POLLS, selected},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, ASLEEP_POLLS, epoll_members},
#endif
    {SYS_epoll_pwait, ASLEEP_POLLS, epoll_members},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, ASLEEP_POLLS, epoll_members},
#endif
};

static const struct known_call *known_call_of(long number)
{
    for (size_t i = 0; i < ARRAY_SIZE(known_calls); i++)
        if (known_calls[i].number == number)
            return &known_calls[i];
    return NULL;
}

/* "0 0x0 0x7ffd... ... 0x<stack> 0x<where>". A program of 32 bits on a kernel of 64 has numbers of
 * its own, which would pass for others: it shows in its stack. */
static bool parse_call(const char *text, struct sleeping_call *call)
{
    uint64_t *a = call->argument, stack;
    if (sscanf(text,
               "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
               " %" SCNx64,
               &call->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &stack) != 8)
        return false;
    return call->number >= 0 && (sizeof(void *) < 8 || stack > UINT32_MAX);
}

/* Of a task that is stopped the call is shown in which it was interrupted. */
static bool sleeps(pid_t pid, pid_t task)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, task);
    if (fd_slurp_at(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

enum asleep asleep_look(pid_t pid, pid_t task, struct asleep_fds *ret_fds)
{
    struct sleeping_call call = {.pid = pid};
    char path[64], text[256];
    ret_fds->count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, task);
    ssize_t n = fd_slurp_at(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return n != -ENOENT && n != -ESRCH && sleeps(pid, task) ? ASLEEP_HIDDEN : ASLEEP_NOT;
    const struct known_call *known = parse_call(text, &call) ? known_call_of(call.number) : NULL;
    if (!known)
        return strncmp(text, "running", 7) == 0 ? ASLEEP_NOT : ASLEEP_ELSE;
    if (!sleeps(pid, task))
        return ASLEEP_NOT;
    return known->waited_for(&call, ret_fds) ? known->kind : ASLEEP_ELSE;
}

/* -- What the descriptors of others are -------------------------------------------------------- */

int opened_look(pid_t pid, int fd, struct foreign_file *ret_file)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    if (stat(path, &st) < 0)
        return -errno;
    *ret_file = (struct foreign_file){
        .device = st.st_dev,
        .inode = st.st_ino,
        .special = S_ISCHR(st.st_mode) ? st.st_rdev : 0,
    };
    return 0;
}

/* Who else holds what: the other end of a pipe, or of a pair of sockets. */
struct end_search {
    int descriptors;
    pid_t pid;
    int own; /* the end that is known */
    char link[64];
    bool writes; /* it has to be one that is written to */
};

static bool is_written_to(pid_t pid, const char *fd)
{
    char path[64], text[256];
    unsigned flags;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%.12s", pid, fd);
    if (fd_slurp_at(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *at = strstr(text, "flags:");
    return at && sscanf(at, "flags: %o", &flags) == 1 && (flags & O_ACCMODE) != O_RDONLY;
}

static int look_for_end(const char *name, void *userdata)
{
    const struct end_search *s = userdata;
    char target[64];
    ssize_t n = readlinkat(s->descriptors, name, target, sizeof target - 1);
    if (n <= 0 || fd_parse_number(name) == s->own)
        return 0;
    target[n] = '\0';
    return strcmp(target, s->link) == 0 && (!s->writes || is_written_to(s->pid, name));
}

static bool holds_end(struct end_search *s)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", s->pid);
    cleanup_close int fd = s->descriptors = fd_open_dir_at(AT_FDCWD, path);
    return fd >= 0 && fd_walk(fd, look_for_end, s) > 0;
}

static bool holds_peer(pid_t pid, int fd, const char *link)
{
    struct end_search search = {.pid = pid, .own = fd};
    unsigned long peer = sock_diag_peer((unsigned long)fd_parse_number(link + strlen("socket:[")));
    if (peer == 0)
        return false;
    snprintf(search.link, sizeof search.link, "socket:[%lu]", peer);
    return holds_end(&search);
}

bool opened_is_own(pid_t pid, int fd)
{
    static const char *const events[] = {"anon_inode:[eventfd]", "anon_inode:[timerfd]",
                                         "anon_inode:[signalfd]", "anon_inode:inotify"};
    struct end_search search = {.pid = pid, .own = fd, .writes = true};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, search.link, sizeof search.link - 1);
    if (n <= 0)
        return false;
    search.link[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        if (strcmp(search.link, events[i]) == 0)
            return true;
    if (strncmp(search.link, "socket:[", 8) == 0)
        return holds_peer(pid, fd, search.link);
    return strncmp(search.link, "pipe:[", 6) == 0 && holds_end(&search);
}
