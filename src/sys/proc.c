#include "sys/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/syscalls.h"

/* The tests build it with a name that no kernel has. */
#ifndef CHILDREN
#define CHILDREN "children"
#endif

#define KERNEL  2   /* the parent of its threads */
#define EXITING 0x4 /* PF_EXITING */

/* Of who is born while all are looked at. */
#define LATER_MAX 8192
#define WALKS     4

static int open_proc(pid_t pid, const char *file, int flags)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd_lift_consume(fd);
}

static ssize_t slurp_proc(pid_t pid, const char *file, char *buf, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return fd_slurp_at(AT_FDCWD, path, buf, size);
}

static const char *skip_fields(const char *p, int count)
{
    while (p && count-- > 0) {
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    return p;
}

static uint64_t amount(const char *field)
{
    long number = field ? fd_parse_number(field) : 0;
    return number > 0 ? (uint64_t)number : 0;
}

/* Two fields in a row, in clock ticks. */
static uint64_t ticks_ms(const char *field)
{
    uint64_t ticks = amount(field) + amount(skip_fields(field, 1));
    return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static int parse_stat(pid_t pid, const char *buf, struct proc_stat *ret_stat)
{
    /* The name may contain blanks and parentheses: fields begin after the last ')'. */
    const char *p = strrchr(buf, ')');
    if (!p || p[1] != ' ')
        return -ESRCH;
    p += 2;
    const char *group = skip_fields(p, 2);
    const char *flags = skip_fields(group, 4);
    const char *cpu = skip_fields(group, 9);
    const char *waited = skip_fields(cpu, 2);
    const char *threads = skip_fields(waited, 4);
    const char *start = skip_fields(threads, 2);
    const char *pages = skip_fields(start, 2);
    if (!pages)
        return -ESRCH;
    *ret_stat = (struct proc_stat){
        .ref = {.pid = pid, .start = (uint64_t)fd_parse_number(start)},
        .parent = (pid_t)fd_parse_number(p + 2),
        .group = (pid_t)fd_parse_number(group),
        .state = *p,
        .alive = (*p != 'Z' && *p != 'X') || fd_parse_number(threads) > 1,
        .exits = (amount(flags) & EXITING) != 0 && fd_parse_number(threads) <= 1,
        .cpu_ms = ticks_ms(cpu),
        .waited_ms = ticks_ms(waited),
        .memory_bytes = amount(pages) * (uint64_t)sysconf(_SC_PAGESIZE),
        .threads = (unsigned)amount(threads),
    };
    const char *name = strchr(buf, '(');
    if (name && name < p)
        snprintf(ret_stat->name, sizeof ret_stat->name, "%.*s", (int)(p - name - 3), name + 1);
    return 0;
}

int proc_stat(pid_t pid, struct proc_stat *ret_stat)
{
    char buf[1024];
    ssize_t n = slurp_proc(pid, "stat", buf, sizeof buf);
    if (n < 0)
        return n == -ENOENT ? -ESRCH : (int)n;
    return parse_stat(pid, buf, ret_stat);
}

/* size resident shared ..., in pages. */
uint64_t proc_own_memory(pid_t pid)
{
    char buf[128];
    if (slurp_proc(pid, "statm", buf, sizeof buf) < 0)
        return 0;
    const char *resident = skip_fields(buf, 1);
    uint64_t all = amount(resident), shared = amount(skip_fields(resident, 1));
    return all > shared ? (all - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static int64_t written_in(pid_t pid, const char *file)
{
    static const char written[] = "\nwrite_bytes: ", cancelled[] = "\ncancelled_write_bytes: ";
    char buf[512];
    ssize_t n = slurp_proc(pid, file, buf, sizeof buf);
    const char *plus = n < 0 ? NULL : strstr(buf, written);
    const char *minus = n < 0 ? NULL : strstr(buf, cancelled);
    if (!plus || !minus)
        return n < 0 ? n : -ENODATA;
    uint64_t all = amount(plus + strlen(written)), less = amount(minus + strlen(cancelled));
    return all > less ? (int64_t)(all - less) : 0;
}

int64_t proc_written(pid_t pid)
{
    return written_in(pid, "io");
}

/* A process of one thread: what is not that thread's is its children's. */
int64_t proc_children_written(pid_t pid)
{
    char file[32];
    snprintf(file, sizeof file, "task/%d/io", pid);
    int64_t all = written_in(pid, "io"), own = written_in(pid, file);
    return all < 0 ? all : own < 0 ? own : MAX(all - own, INT64_C(0));
}

int proc_ref(pid_t pid, struct proc_ref *ret_ref)
{
    struct proc_stat stat;
    int r = proc_stat(pid, &stat);
    if (r == 0)
        *ret_ref = stat.ref;
    return r;
}

bool proc_alive(const struct proc_ref *ref)
{
    struct proc_stat stat;
    return proc_stat(ref->pid, &stat) == 0 && stat.ref.start == ref->start && stat.alive;
}

/* Whether SIGKILL waits for one of its threads, or for all of them. */
static bool was_killed(pid_t pid)
{
    static const char *const masks[] = {"\nSigPnd:\t", "\nShdPnd:\t"};
    char buf[4096];
    bool killed = false;
    if (slurp_proc(pid, "status", buf, sizeof buf) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
        const char *mask = strstr(buf, masks[i]);
        killed = killed || (mask && strtoull(mask + strlen(masks[i]), NULL, 16) &
                                        UINT64_C(1) << (SIGKILL - 1));
    }
    return killed;
}

bool proc_is_ending(const struct proc_ref *ref)
{
    struct proc_stat stat;
    if (proc_stat(ref->pid, &stat) < 0 || stat.ref.start != ref->start || !stat.alive)
        return true;
    return stat.exits || was_killed(ref->pid);
}

int proc_kill(const struct proc_ref *ref, int signal)
{
    if (ref->pid <= 1)
        return -EINVAL;
    cleanup_close int pidfd = sys_pidfd_open(ref->pid);
    if (pidfd == -ESRCH)
        return -ESRCH;
    /* With the pidfd in hand the pid cannot change hands between this look and the signal. */
    if (!proc_alive(ref))
        return -ESRCH;
    if (pidfd >= 0) {
        int r = sys_pidfd_send_signal(pidfd, signal);
        if (r != -ENOSYS && r != -EPERM)
            return r;
    }
    return kill(ref->pid, signal) < 0 ? -errno : 0;
}

#define OOM "oom_score_adj"

int proc_get_oom(pid_t pid, int *ret_score)
{
    char text[16];
    ssize_t n = slurp_proc(pid, OOM, text, sizeof text);
    if (n < 0)
        return (int)n;
    *ret_score = atoi(text);
    return 0;
}

/* Its directory is that of this very process, also if the pid changes hands. */
int proc_set_oom(const struct proc_ref *ref, int score)
{
    char path[32], buf[1024];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d", ref->pid);
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    ssize_t n = fd_slurp_at(dir, "stat", buf, sizeof buf);
    if (n < 0 || parse_stat(ref->pid, buf, &stat) < 0 || stat.ref.start != ref->start)
        return n < 0 ? (int)n : -ESRCH;
    snprintf(buf, sizeof buf, "%d", score);
    return fd_poke_at(dir, OOM, buf);
}

struct pid_visitor {
    proc_each_fn *fn;
    void *userdata;
};

static int visit_pid(const char *name, void *userdata)
{
    const struct pid_visitor *each = userdata;
    pid_t pid = (pid_t)fd_parse_number(name);
    return pid > 0 ? each->fn(pid, each->userdata) : 0;
}

int proc_each(proc_each_fn *fn, void *userdata)
{
    struct pid_visitor each = {.fn = fn, .userdata = userdata};
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int proc = fd < 0 ? -errno : fd_lift_consume(fd);
    return proc < 0 ? proc : fd_walk(proc, visit_pid, &each);
}

int proc_each_later(pid_t pid, int most, proc_each_fn *fn, void *userdata)
{
    pid_t first = pid;
    for (pid_t last = host_last_pid(); last >= pid && last - first <= most;
         last = host_last_pid()) {
        if (last == pid)
            return 0;
        while (pid < last) {
            int r = kill(++pid, 0) < 0 && errno == ESRCH ? 0 : fn(pid, userdata);
            if (r != 0)
                return r;
        }
    }
    return -EAGAIN;
}

int proc_each_born(proc_each_fn *fn, void *userdata)
{
    int r = -EAGAIN;
    for (int i = 0; r == -EAGAIN && i < WALKS; i++) {
        pid_t before = host_last_pid();
        r = proc_each(fn, userdata);
        if (r == 0)
            r = proc_each_later(before, LATER_MAX, fn, userdata);
    }
    return r;
}

/* Calls fn for each piece of a file of any length that ends with the given character. */
typedef void piece_fn(const char *piece, void *userdata);
static void each_piece(int fd, char end_of_piece, piece_fn *fn, void *userdata)
{
    char buf[4096];
    size_t kept = 0;
    for (;;) {
        ssize_t n = RETRY(read(fd, buf + kept, sizeof buf - 1 - kept));
        if (n <= 0)
            return;
        size_t len = kept + (size_t)n;
        buf[len] = '\0';
        char *p = buf;
        for (char *end; (end = strchr(p, end_of_piece)); p = end + 1) {
            *end = '\0';
            fn(p, userdata);
        }
        kept = len - (size_t)(p - buf);
        memmove(buf, p, kept);
    }
}

struct refs {
    struct proc_ref *refs;
    size_t count;
    size_t max;
    pid_t of; /* whose they are: a group, or the process whose threads are being looked at */
    proc_visit_fn *visit;
    void *userdata;
};

static void refs_add(struct refs *refs, const struct proc_stat *stat)
{
    if (refs->count >= refs->max || !stat->alive)
        return;
    refs->refs[refs->count++] = stat->ref;
    if (refs->visit && refs->visit(&stat->ref, refs->userdata) != 0)
        refs->max = refs->count;
}

static int group_add_member(pid_t pid, void *userdata)
{
    struct refs *members = userdata;
    struct proc_stat stat;
    if (proc_stat(pid, &stat) == 0 && stat.group == members->of)
        refs_add(members, &stat);
    return members->count == members->max;
}

size_t proc_group(pid_t group, struct proc_ref *ret_refs, size_t max)
{
    struct refs members = {.refs = ret_refs, .max = max, .of = group};
    proc_each(group_add_member, &members);
    return members.count;
}

static void tree_add(const char *pid, void *userdata)
{
    struct refs *tree = userdata;
    struct proc_stat stat;
    if (tree->count < tree->max && proc_stat((pid_t)fd_parse_number(pid), &stat) == 0)
        refs_add(tree, &stat);
}

/* Children are listed under the thread that forked them. */
static int tree_add_children(const char *tid, void *userdata)
{
    struct refs *tree = userdata;
    char path[48];
    snprintf(path, sizeof path, "task/%.12s/" CHILDREN, tid);
    cleanup_close int fd = open_proc(tree->of, path, O_RDONLY);
    if (fd >= 0)
        each_piece(fd, ' ', tree_add, tree);
    return 0;
}

static void tree_by_children(struct refs *tree)
{
    for (size_t next = 0;; next++) {
        cleanup_close int tasks = open_proc(tree->of, "task", O_RDONLY | O_DIRECTORY);
        if (tasks >= 0)
            fd_walk(tasks, tree_add_children, tree);
        if (next >= tree->count || tree->count >= tree->max)
            return;
        tree->of = tree->refs[next].pid;
    }
}

struct child_visitor {
    pid_t parent;
    struct pid_visitor each;
};

static void visit_child(const char *pid, void *userdata)
{
    visit_pid(pid, &((struct child_visitor *)userdata)->each);
}

static int visit_children_of_task(const char *tid, void *userdata)
{
    const struct child_visitor *v = userdata;
    char path[48];
    snprintf(path, sizeof path, "task/%.12s/" CHILDREN, tid);
    cleanup_close int fd = open_proc(v->parent, path, O_RDONLY);
    if (fd >= 0)
        each_piece(fd, ' ', visit_child, userdata);
    return 0;
}

/* Where children are not listed: a tree of which some had their children looked for. */
struct ancestry {
    struct refs *tree;
    size_t looked;
};

static bool has_pid(const struct proc_ref *refs, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (refs[i].pid == pid)
            return true;
    return false;
}

/* Only children of those that were visited: the others have their turn in the next walk. */
static int ancestry_add(pid_t pid, void *userdata)
{
    struct ancestry *a = userdata;
    struct proc_stat stat;
    if (proc_stat(pid, &stat) < 0 || !stat.alive)
        return 0;
    bool below = stat.parent == a->tree->of || has_pid(a->tree->refs, a->looked, stat.parent);
    if (below && !has_pid(a->tree->refs, a->tree->count, pid))
        refs_add(a->tree, &stat);
    return a->tree->count >= a->tree->max;
}

static void tree_by_parents(struct refs *tree)
{
    struct ancestry a = {.tree = tree};
    size_t before;
    do {
        before = a.looked = tree->count;
        proc_each(ancestry_add, &a);
    } while (tree->count > before);
}

/* CONFIG_PROC_CHILDREN may be off. */
static bool kernel_lists_children(void)
{
    return access("/proc/thread-self/" CHILDREN, R_OK) == 0;
}

int proc_each_child(pid_t pid, proc_each_fn *fn, void *userdata)
{
    struct child_visitor v = {.parent = pid, .each = {.fn = fn, .userdata = userdata}};
    if (!kernel_lists_children())
        return -ENOSYS;
    cleanup_close int tasks = open_proc(pid, "task", O_RDONLY | O_DIRECTORY);
    if (tasks < 0)
        return tasks;
    fd_walk(tasks, visit_children_of_task, &v);
    return 0;
}

bool proc_is_hidden(pid_t pid)
{
    struct proc_stat stat;
    return proc_stat(pid, &stat) < 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

size_t proc_tree(pid_t root, struct proc_ref *ret_refs, size_t max, proc_visit_fn *visit,
                 void *userdata)
{
    struct refs tree = {
        .refs = ret_refs, .max = max, .of = root, .visit = visit, .userdata = userdata};
    (kernel_lists_children() ? tree_by_children : tree_by_parents)(&tree);
    return tree.count;
}

bool proc_is_only_child(pid_t child)
{
    char path[48], text[32], *end;
    snprintf(path, sizeof path, "/proc/self/task/%d/" CHILDREN, getpid());
    ssize_t n = fd_slurp_at(AT_FDCWD, path, text, sizeof text);
    if (n <= 0)
        return false;
    return strtol(text, &end, 10) == child && strspn(end, " ") == strlen(end);
}

bool proc_is_ours(void)
{
    char target[32];
    ssize_t n = readlink("/proc/self", target, sizeof target - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    return fd_parse_number(target) == getpid();
}

int proc_cmdline(pid_t pid, char *buf, size_t size)
{
    ssize_t n = slurp_proc(pid, "cmdline", buf, size);
    if (n < 0)
        return (int)n;
    while (n > 0 && buf[n - 1] == '\0')
        n--;
    if (n == 0) {
        char name[32];
        ssize_t len = slurp_proc(pid, "comm", name, sizeof name);
        if (len < 0)
            return (int)len;
        name[strcspn(name, "\n")] = '\0';
        snprintf(buf, size, "[%s]", name);
        return 0;
    }
    for (ssize_t i = 0; i < n; i++)
        if ((unsigned char)buf[i] < ' ')
            buf[i] = ' ';
    if ((size_t)n == size - 1)
        n = (ssize_t)text_whole(buf, (size_t)n);
    buf[n] = '\0';
    return 0;
}

struct thread_search {
    pid_t pid;
    const char *file;
    const char *entry;
};

static int has_entry(pid_t pid, const char *file, const char *entry);

static int thread_has_entry(const char *tid, void *userdata)
{
    const struct thread_search *search = userdata;
    char path[64];
    snprintf(path, sizeof path, "task/%.12s/%s", tid, search->file);
    return has_entry(search->pid, path, search->entry) > 0;
}

/* The first thread may have ended, and with it what is shown of the process. */
static int threads_have_entry(pid_t pid, const char *file, const char *entry)
{
    struct thread_search search = {.pid = pid, .file = file, .entry = entry};
    cleanup_close int tasks = open_proc(pid, "task", O_RDONLY | O_DIRECTORY);
    return tasks < 0 ? tasks : fd_walk(tasks, thread_has_entry, &search);
}

/* Whether a file of NUL-terminated entries has one that begins with so many bytes of entry, which
 * may end with its NUL: 1 or 0, or -ENODATA if it is empty. */
static int has_entry_of(pid_t pid, const char *file, const char *entry, size_t want)
{
    cleanup_close int fd = open_proc(pid, file, O_RDONLY);
    if (fd < 0)
        return fd;
    char buf[4096];
    size_t matched = 0; /* of entry and its NUL, since the last beginning of an entry */
    bool possible = true, empty = true;
    for (ssize_t n; (n = RETRY(read(fd, buf, sizeof buf))) > 0;) {
        empty = false;
        for (ssize_t i = 0; i < n; i++) {
            possible = possible && buf[i] == entry[matched];
            if (possible && ++matched == want)
                return 1;
            if (buf[i] == '\0') {
                possible = true;
                matched = 0;
            }
        }
    }
    return empty ? -ENODATA : 0;
}

static int has_entry(pid_t pid, const char *file, const char *entry)
{
    return has_entry_of(pid, file, entry, strlen(entry) + 1);
}

bool proc_has_variable(pid_t pid, const char *name)
{
    return has_entry_of(pid, "environ", name, strlen(name)) > 0;
}

/* In the middle of an exec there are neither variables nor arguments, and both come together. */
int proc_has_env(pid_t pid, const char *entry)
{
    int r = has_entry(pid, "environ", entry);
    if (r == -EACCES)
        return has_entry(pid, "cmdline", entry) > 0;
    if (r == -ESRCH)
        r = threads_have_entry(pid, "environ", entry);
    if (r != -ENODATA)
        return MAX(r, 0);
    if (has_entry(pid, "cmdline", entry) == -ENODATA)
        return -ENODATA;
    return has_entry(pid, "environ", entry) > 0;
}

/* "NSpid:", and its pid in each namespace from ours on down. */
bool proc_is_nested(pid_t pid)
{
    static const char key[] = "\nNSpid:\t";
    char buf[4096];
    if (slurp_proc(pid, "status", buf, sizeof buf) < 0)
        return false;
    const char *pids = strstr(buf, key);
    if (!pids)
        return false;
    pids += strlen(key);
    return pids[strspn(pids, "0123456789")] == '\t';
}

int proc_is_marked(pid_t pid, const char *entry, uint64_t since, struct proc_ref *ret_ref)
{
    char path[32];
    struct stat owner;
    struct proc_stat stat;
    if (pid <= 1 || pid == getpid())
        return 0;
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (lstat(path, &owner) < 0 || owner.st_uid != geteuid())
        return 0;
    if (proc_stat(pid, &stat) < 0 || stat.ref.start < since || !stat.alive || stat.parent == KERNEL)
        return 0;
    if (ret_ref)
        *ret_ref = stat.ref;
    return proc_has_env(pid, entry);
}
