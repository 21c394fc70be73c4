/* Looking at processes through /proc: who is there, whose child, with which words in its argv. */
#include "harness.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

size_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
    char path[64];
    size_t used = 0;
    ssize_t got = 0;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while (used < size - 1 && (got = read(fd, buf + used, size - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    buf[used] = 0;
    return used;
}

void each_process(void (*fn)(pid_t pid, void *arg), void *arg)
{
    DIR *dir = opendir("/proc");

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (isdigit((unsigned char)e->d_name[0]))
            fn((pid_t)atoi(e->d_name), arg);
    }
    closedir(dir);
}

bool read_stat(pid_t pid, char *ret_state, pid_t *ret_parent, unsigned long long *ret_start)
{
    char buf[1024];
    int parent = 0;

    if (read_proc(pid, "stat", buf, sizeof(buf)) == 0)
        return false;
    const char *rest = strrchr(buf, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        ret_state, &parent, ret_start) != 3)
        return false;
    *ret_parent = parent;
    return true;
}

struct process process_of(pid_t pid)
{
    struct process p = {pid, 0};
    pid_t parent;
    char state;

    if (!read_stat(pid, &state, &parent, &p.start))
        p.pid = 0;
    return p;
}

char process_state(pid_t pid)
{
    unsigned long long start;
    pid_t parent;
    char state;

    return read_stat(pid, &state, &parent, &start) ? state : 0;
}

pid_t process_parent(pid_t pid)
{
    unsigned long long start;
    pid_t parent;
    char state;

    return read_stat(pid, &state, &parent, &start) ? parent : 0;
}

bool process_alive(struct process process)
{
    unsigned long long start;
    pid_t parent;
    char state;

    return process.pid > 0 && read_stat(process.pid, &state, &parent, &start) &&
           start == process.start && state != 'Z' && state != 'X';
}

static long memory_kb(pid_t pid, const char *what)
{
    char buf[8192];
    const char *line;

    if (read_proc(pid, "status", buf, sizeof(buf)) == 0 || !(line = strstr(buf, what)))
        return -1;
    return atol(line + strlen(what));
}

long process_rss_kb(pid_t pid)
{
    return memory_kb(pid, "VmRSS:");
}

long process_anon_kb(pid_t pid)
{
    return memory_kb(pid, "RssAnon:");
}

/* -- Markers --------------------------------------------------------------------------------- */

const char *marker(void)
{
    static atomic_int serial;
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return format("0%07d%06ld%03d", (int)getpid(), ts.tv_nsec / 1000 % 1000000,
                  atomic_fetch_add(&serial, 1));
}

struct search {
    const char *mark;
    struct process *found;
    size_t count, max;
};

static void match_marked(pid_t pid, void *arg)
{
    struct search *search = arg;
    char argv[4096];
    size_t size = read_proc(pid, "cmdline", argv, sizeof(argv));

    if (size == 0 || !memmem(argv, size, search->mark, strlen(search->mark)))
        return;
    struct process p = process_of(pid);
    if (!process_alive(p))
        return;
    if (search->count < search->max)
        search->found[search->count] = p;
    search->count++;
}

size_t find_marked(const char *mark, struct process *found, size_t max)
{
    struct search search = {mark, found, 0, max};

    each_process(match_marked, &search);
    return search.count;
}

int count_marked(const char *mark)
{
    return (int)find_marked(mark, NULL, 0);
}

void await_marked(const char *mark, int count)
{
    if (!AWAIT(count_marked(mark) == count, 5000))
        FAIL("%d processes are marked, wanted %d", count_marked(mark), count);
}

static void match_child(pid_t pid, void *arg)
{
    struct search *search = arg;

    search->count += process_parent(pid) == search->found->pid;
}

int count_children(pid_t parent)
{
    struct process p = {parent, 0};
    struct search search = {NULL, &p, 0, 0};

    each_process(match_child, &search);
    return (int)search.count;
}

int count_keepers(void)
{
    return count_children(getppid()) - 1;
}

/* -- Threads --------------------------------------------------------------------------------- */

struct thread {
    pthread_t handle;
    int index;
    void (*fn)(int index, void *arg);
    void *arg;
};

static void *thread_main(void *arg)
{
    struct thread *thread = arg;

    thread->fn(thread->index, thread->arg);
    return NULL;
}

void run_threads(int count, void (*fn)(int index, void *arg), void *arg)
{
    struct thread *threads = calloc((size_t)count, sizeof(*threads));

    CHECK(threads);
    for (int i = 0; i < count; i++) {
        threads[i] = (struct thread){.index = i, .fn = fn, .arg = arg};
        CHECK_EQ_INT(0, pthread_create(&threads[i].handle, NULL, thread_main, &threads[i]));
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].handle, NULL);
    free(threads);
}
