/*
 * What somebody is about to execute, or has just executed: read from its memory, and from what the
 * system says of it. Nothing here waits: where a path leads is followed only as far as the kernel
 * knows that by heart, since what lies behind a path may be somebody's who does not answer.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/sum.h"
#include "keeper/keeper.h"
#include "sys/fd.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
#define PAGE      ((uint64_t)4096) /* what is read at once ends with one */
#define POINTERS  64               /* that are read at once */
#define SHEBANG   256
#define RECALL_NS INT64_C(1000000000)

/* -- Memory ----------------------------------------------------------------------------------- */

/* Up to size bytes; how many, or -errno. */
static ssize_t peek_bytes(pid_t pid, uint64_t at, void *buf, size_t size)
{
    size = MIN(size, (size_t)(PAGE - at % PAGE));
    struct iovec ours = {buf, size}, theirs = {(void *)(uintptr_t)at, size};
    ssize_t n = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
    return n < 0 ? -errno : n == 0 ? -EFAULT : n;
}

/* A string, with its NUL: its length. -E2BIG if it is longer. */
static ssize_t peek_string(pid_t pid, uint64_t at, char *buf, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = peek_bytes(pid, at + have, buf + have, MIN(size - have, (size_t)512));
        if (n < 0)
            return n;
        const char *end = memchr(buf + have, '\0', (size_t)n);
        if (end)
            return end - buf;
        have += (size_t)n;
    }
    return -E2BIG;
}

/* The path, and the first pointer of argv: most calls need no more of the memory. */
static int peek_call(struct exec_look *look, uint64_t path, uint64_t *ret_first)
{
    size_t size = MIN(sizeof look->path, (size_t)(PAGE - path % PAGE));
    struct iovec ours[] = {{look->path, size}, {ret_first, look->pointer}};
    struct iovec theirs[] = {{(void *)(uintptr_t)path, size},
                             {(void *)(uintptr_t)look->argv, look->pointer}};
    *ret_first = 0;
    ssize_t n = process_vm_readv(look->pid, ours, 2, theirs, look->argv ? 2 : 1, 0);
    if (n <= 0)
        return n < 0 ? -errno : -EFAULT;
    if ((size_t)n < size + look->pointer)
        *ret_first = 0;
    if (memchr(look->path, '\0', MIN((size_t)n, size)))
        return 0;
    ssize_t more = peek_string(look->pid, path + size, look->path + size, sizeof look->path - size);
    return more == -E2BIG ? -ENAMETOOLONG : MIN((int)more, 0);
}

/* The pointers from number `from` on, up to a NULL: how many, -errno. */
static ssize_t peek_pointers(const struct exec_look *look, size_t from, uint64_t ret[POINTERS])
{
    char raw[POINTERS * sizeof(uint64_t)];
    size_t wanted = POINTERS * look->pointer, have = 0, count = 0;
    while (have < wanted) {
        ssize_t n = peek_bytes(look->pid, look->argv + from * look->pointer + have, raw + have,
                               wanted - have);
        if (n < 0 && have < look->pointer)
            return n;
        if (n < 0)
            break;
        have += (size_t)n;
        for (; (count + 1) * look->pointer <= have; count++) {
            uint32_t narrow;
            memcpy(&narrow, raw + count * look->pointer, sizeof narrow);
            ret[count] = narrow;
            if (look->pointer == sizeof ret[count])
                memcpy(&ret[count], raw + count * look->pointer, sizeof ret[count]);
            if (ret[count] == 0)
                return (ssize_t)count;
        }
    }
    return (ssize_t)count;
}

/* -- Words ------------------------------------------------------------------------------------ */

/* What is behind the last one that there is room for. */
static void add_rest(struct exec_look *look)
{
    look->words[EXEC_FIRST + look->argc++] = (struct shell_word){.text = "", .kind = WORD_ANY};
}

/* False if there is room for no more. */
static bool note_word(struct exec_look *look, size_t at, size_t size)
{
    look->words[EXEC_FIRST + look->argc++] =
        (struct shell_word){.text = look->text + at, .size = size};
    return EXEC_FIRST + look->argc + 1 < EXEC_WORDS;
}

static int read_from_memory(struct exec_look *look)
{
    uint64_t pointers[POINTERS];
    size_t used = 0, from = 0;
    ssize_t count = POINTERS;
    while (count == POINTERS) {
        count = look->argv ? peek_pointers(look, from, pointers) : 0;
        if (count < 0)
            return (int)count;
        for (ssize_t i = 0; i < count; i++) {
            ssize_t n = peek_string(look->pid, pointers[i], look->text + used, EXEC_TEXT - used);
            if (n < 0 && n != -E2BIG)
                return (int)n;
            if (n < 0 || !note_word(look, used, (size_t)n)) {
                add_rest(look);
                return 0;
            }
            used += (size_t)n + 1;
        }
        from += (size_t)count;
    }
    return 0;
}

static int read_command_line(struct exec_look *look)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/cmdline", look->pid);
    ssize_t n = fd_slurp_at(AT_FDCWD, path, look->text, EXEC_TEXT);
    if (n < 0)
        return (int)n;
    for (size_t at = 0; at < (size_t)n;) {
        size_t size = strlen(look->text + at);
        bool is_cut = at + size + 1 >= EXEC_TEXT;
        if (is_cut || !note_word(look, at, size)) {
            add_rest(look);
            return 0;
        }
        at += size + 1;
    }
    return 0;
}

int exec_read_words(struct exec_look *look)
{
    look->argc = 0;
    int r = look->argv ? read_from_memory(look) : read_command_line(look);
    if (r == 0 && look->argc == 0)
        note_word(look, 0, (size_t)(*look->text = '\0'));
    if (r == 0 && !look->first[0])
        snprintf(look->first, sizeof look->first, "%s", look->words[EXEC_FIRST].text);
    return r;
}

static void read_first_word(struct exec_look *look, uint64_t pointer)
{
    ssize_t n =
        pointer ? peek_string(look->pid, pointer, look->first, sizeof look->first) : -EFAULT;
    if (n < 0)
        look->first[n == -E2BIG ? sizeof look->first - 1 : 0] = '\0';
}

/* -- The file --------------------------------------------------------------------------------- */

/* What a name in /proc leads to. */
static int read_link(const char *link, char *ret, size_t size)
{
    static const char deleted[] = " (deleted)";
    ssize_t n = readlink(link, ret, size - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    if ((size_t)n > sizeof deleted - 1 && strcmp(ret + n - (sizeof deleted - 1), deleted) == 0)
        ret[n - (ssize_t)(sizeof deleted - 1)] = '\0';
    return 0;
}

/* "#!", blanks, the interpreter, and all that follows as one word. */
static void read_shebang(struct exec_look *look, int fd)
{
    char line[SHEBANG];
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    cleanup_close int file = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : pread(file, line, sizeof line - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char *at = line + 2 + strspn(line + 2, " \t");
    size_t size = strcspn(at, " \t");
    char *argument = at + size + strspn(at + size, " \t");
    size_t length = strlen(argument);
    while (length > 0 && strchr(" \t", argument[length - 1]))
        length--;
    snprintf(look->interpreter, sizeof look->interpreter, "%.*s", (int)size, at);
    snprintf(look->argument, sizeof look->argument, "%.*s", (int)length, argument);
}

/* Of somebody who may not answer. */
static bool is_served_by_program(int fd)
{
    static const long far[] = {FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,
                               CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, V9FS_MAGIC,
                               AFS_SUPER_MAGIC,  CODA_SUPER_MAGIC, CEPH_SUPER_MAGIC};
    struct statfs fs;
    bool found = fstatfs(fd, &fs) < 0;
    for (size_t i = 0; i < ARRAY_SIZE(far); i++)
        found = found || (long)fs.f_type == far[i];
    return found;
}

static void look_at_file(struct exec_look *look, int fd)
{
    struct stat st;
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (read_link(name, look->real, sizeof look->real) < 0)
        look->real[0] = '\0';
    if (!is_served_by_program(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        read_shebang(look, fd);
}

/* As they see it: from their root. -EAGAIN: that is not known by heart, or not shown to us. */
static int follow_path(struct exec_look *look, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
    char link[32];
    snprintf(link, sizeof link, "/proc/%d/root", look->pid);
    cleanup_close int root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -EAGAIN;
    cleanup_close int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0)
        look_at_file(look, fd);
    return fd < 0 ? -errno : 0;
}

/* From the directory that a descriptor of theirs stands for, or that they are in. */
static int follow_from(struct exec_look *look, int dirfd)
{
    char link[48], whole[2 * PATH_MAX];
    if (look->path[0] == '/')
        return follow_path(look, look->path);
    if (dirfd == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", look->pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", look->pid, dirfd);
    if (read_link(link, whole, PATH_MAX) < 0)
        return -EAGAIN;
    size_t n = strlen(whole);
    snprintf(whole + n, sizeof whole - n, "/%s", look->path);
    return follow_path(look, whole);
}

/* -- What was found out a moment ago ---------------------------------------------------------- */

/* Most of what is executed is executed again and again. It may lead elsewhere by now, which shows
 * when it begins. */
static struct exec_path *path_place(const struct exec_look *look, struct exec_path *paths)
{
    bool fits = look->path[0] == '/' && strlen(look->path) < sizeof paths->path &&
                strlen(look->real) < sizeof paths->real;
    return fits ? &paths[sum_text(SUM_TEXTS, look->path) % EXEC_PATHS] : NULL;
}

static bool recall_path(struct exec_look *look, struct exec_path *paths)
{
    const struct exec_path *place = path_place(look, paths);
    if (!place || strcmp(place->path, look->path) != 0 || clock_mono_ns() > place->until)
        return false;
    snprintf(look->real, sizeof look->real, "%s", place->real);
    snprintf(look->interpreter, sizeof look->interpreter, "%s", place->interpreter);
    snprintf(look->argument, sizeof look->argument, "%s", place->argument);
    look->recalled = true;
    return true;
}

static void remember_path(const struct exec_look *look, struct exec_path *paths)
{
    struct exec_path *place = path_place(look, paths);
    if (!place)
        return;
    snprintf(place->path, sizeof place->path, "%.255s", look->path);
    snprintf(place->real, sizeof place->real, "%.255s", look->real);
    snprintf(place->interpreter, sizeof place->interpreter, "%s", look->interpreter);
    snprintf(place->argument, sizeof place->argument, "%s", look->argument);
    place->until = clock_mono_ns() + RECALL_NS;
}

/* -- Who ------------------------------------------------------------------------------------- */

static void clear_look(struct exec_look *look, pid_t pid)
{
    look->pid = pid;
    look->argv = 0;
    look->path[0] = look->real[0] = look->interpreter[0] = look->argument[0] = look->first[0] =
        '\0';
    look->argc = 0;
    look->recalled = false;
}

int exec_meet(struct exec_look *look, struct exec_path *paths, const struct seccomp_notif *n,
              bool fresh)
{
    bool at = filter_which(n->data.arch, n->data.nr, &look->pointer) == FILTERED_EXECVEAT;
    const __u64 *args = n->data.args + at;
    int dirfd = at ? (int)n->data.args[0] : AT_FDCWD;
    char link[48];
    clear_look(look, (pid_t)n->pid);
    look->argv = args[1];
    uint64_t first;
    int r = peek_call(look, args[0], &first);
    if (r < 0)
        return r;
    read_first_word(look, first);
    if (!look->path[0] && at && (n->data.args[4] & AT_EMPTY_PATH)) {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", look->pid, dirfd);
        return read_link(link, look->path, sizeof look->path);
    }
    if (!look->path[0])
        return 1;
    if (!fresh && recall_path(look, paths))
        return 0;
    r = follow_from(look, dirfd);
    if (r == 0)
        remember_path(look, paths);
    return r == 0 || r == -EAGAIN || r == -ELOOP || r == -ENOSYS || r == -EINVAL ? 0 : 1;
}

int exec_meet_begun(struct exec_look *look, pid_t pid)
{
    char link[32];
    clear_look(look, pid);
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    return read_link(link, look->path, sizeof look->path);
}
