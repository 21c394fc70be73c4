/*
 * Whose a Unix socket is that somebody inside wants to talk to: those of who listens inside are
 * theirs, and no other. A path says nothing of that, since a socket of the host's in the workspace
 * can be moved and linked from inside; so the kernel is asked who listens, and which file that is.
 * It answers for one network namespace, that of the socket which asks: the child makes one inside.
 * Where that is the host's, a process inside has to hold what listens.
 */
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock_diag.h"

/* Who holds a socket. */
struct holder_search {
    char link[48];   /* what /proc calls it */
    int space;       /* the ipc namespace of the fence */
    int descriptors; /* of who is looked at */
};

/* -- Names ------------------------------------------------------------------------------------ */

static long field_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? fd_parse_number(at + strlen(word) + strspn(at + strlen(word), " \t")) : -1;
}

struct device_search {
    long mount; /* its number */
    uint32_t device;
};

/* A line of mountinfo: id parent major:minor ... */
static int note_device(char *line, void *userdata)
{
    struct device_search *s = userdata;
    const char *parent = strchr(line, ' '), *major = parent ? strchr(parent + 1, ' ') : NULL;
    const char *minor = major ? strchr(major, ':') : NULL;
    if (!minor || fd_parse_number(line) != s->mount)
        return 0;
    s->device = (uint32_t)fd_parse_number(major + 1) << 20 | (uint32_t)fd_parse_number(minor + 1);
    return 1;
}

/* The number of a file system as the kernel has it, which what stat() says is not everywhere: it is
 * in the list of mounts. */
static int device_of(int fd, pid_t pid, uint32_t *ret_device)
{
    char path[48], text[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    ssize_t n = fd_slurp_at(AT_FDCWD, path, text, sizeof text);
    struct device_search s = {.mount = n > 0 ? field_behind(text, "mnt_id:") : -1};
    snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
    int r = s.mount < 0 ? -ENOENT : fd_each_line_in(path, note_device, &s);
    *ret_device = s.device;
    return r > 0 ? 0 : r < 0 ? r : -ENOENT;
}

int listeners_name(int fd, pid_t pid, struct socket_name *ret_name)
{
    struct stat st;
    *ret_name = (struct socket_name){0};
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ECONNREFUSED;
    ret_name->inode = (uint32_t)st.st_ino;
    return device_of(fd, pid, &ret_name->device);
}

/* -- Asking ----------------------------------------------------------------------------------- */

static bool is_name(const struct socket_name *name, const struct rtattr *a)
{
    if (a->rta_type == UNIX_DIAG_VFS && name->size == 0) {
        const struct unix_diag_vfs *file = RTA_DATA(a);
        return file->udiag_vfs_ino == name->inode && file->udiag_vfs_dev == name->device;
    }
    return a->rta_type == UNIX_DIAG_NAME && name->size > 0 && RTA_PAYLOAD(a) == name->size &&
           memcmp(RTA_DATA(a), name->abstract, name->size) == 0;
}

/* The number of the socket that has this name, or 0. */
static uint32_t socket_named(const struct nlmsghdr *message, const struct socket_name *name)
{
    const struct unix_diag_msg *one = NLMSG_DATA(message);
    const struct rtattr *a = (const void *)(one + 1);
    size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof *one);
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (is_name(name, a))
            return one->udiag_ino;
    return 0;
}

/* Which socket has a name. */
struct socket_search {
    const struct socket_name *name;
    uint32_t socket;
};

static int compare_name(const struct nlmsghdr *message, void *userdata)
{
    struct socket_search *s = userdata;
    s->socket = socket_named(message, s->name);
    return s->socket != 0;
}

int listeners_find(int diag, const struct socket_name *name, uint32_t *ret_socket)
{
    struct unix_diag_req question = {.sdiag_family = AF_UNIX,
                                     .udiag_states = 1u << TCP_LISTEN,
                                     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS};
    struct socket_search search = {.name = name};
    int r = sock_diag_ask(diag, &question, sizeof question, NLM_F_DUMP, compare_name, &search);
    *ret_socket = search.socket;
    return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

/* -- Who is inside ---------------------------------------------------------------------------- */

/* By its ipc namespace: what was born in the fence cannot leave it but for others of its own. The
 * mounts may be others from one command to the next. */
bool listeners_is_inside(int space, const char *pid)
{
    char path[64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%.20s/ns/ipc", pid);
    return fstat(space, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

static int look_at_descriptor(const char *name, void *userdata)
{
    struct holder_search *s = userdata;
    char target[64];
    ssize_t n = readlinkat(s->descriptors, name, target, sizeof target - 1);
    return n > 0 && (target[n] = '\0', strcmp(target, s->link) == 0);
}

static int look_at_process(const char *pid, void *userdata)
{
    struct holder_search *s = userdata;
    char path[64];
    if (fd_parse_number(pid) <= 0 || !listeners_is_inside(s->space, pid))
        return 0;
    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    cleanup_close int fd = s->descriptors = fd_open_dir_at(AT_FDCWD, path);
    return fd < 0 ? 0 : MAX(fd_walk(fd, look_at_descriptor, s), 0);
}

bool listeners_is_held_inside(int space, uint32_t socket)
{
    struct holder_search s = {.space = space};
    cleanup_close int proc = fd_open_dir_at(AT_FDCWD, "/proc");
    snprintf(s.link, sizeof s.link, "socket:[%u]", socket);
    return proc >= 0 && fd_walk(proc, look_at_process, &s) > 0;
}
