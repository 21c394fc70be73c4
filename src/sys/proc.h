/*
 * What /proc knows of processes. A process is a reference, pid and start time, never a bare pid:
 * pids are reused. No function allocates; all return >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_ref {
    pid_t pid;
    uint64_t start; /* clock ticks since boot */
};

struct proc_stat {
    struct proc_ref ref;
    pid_t parent;
    pid_t group;
    char state;            /* 'R', 'S', 'D', 'T', 'Z', ... of its first thread */
    bool alive;            /* not a zombie; one whose first thread ended may have others */
    bool exits;            /* its only thread has begun to end */
    uint64_t cpu_ms;       /* its own, user and system */
    uint64_t waited_ms;    /* that of ended children it waited for, and of theirs */
    uint64_t memory_bytes; /* resident */
    unsigned threads;
    char name[16]; /* NUL-terminated, of whatever bytes */
};

int proc_stat(pid_t pid, struct proc_stat *ret_stat);

/* Its resident memory that it shares with nobody, in bytes; 0 if that is not known. */
uint64_t proc_own_memory(pid_t pid);

/* What it and the ended children it waited for have had written to disks, in bytes, without what
 * was removed again in time. -errno if that is not known. */
int64_t proc_written(pid_t pid);

/* Of that, what is the children's: of a process with one thread. */
int64_t proc_children_written(pid_t pid);

/* The reference of a pid that is known to be alive and ours. */
int proc_ref(pid_t pid, struct proc_ref *ret_ref);

/* Whether that very process still exists and is not a zombie. */
bool proc_alive(const struct proc_ref *ref);

/* Whether that very process is on its way out, or gone: SIGKILL was sent to it, or it has begun to
 * end. On a machine without memory or processor time that may take seconds. */
bool proc_is_ending(const struct proc_ref *ref);

/* Sends a signal to that very process: -ESRCH if the pid now belongs to another one. Refuses
 * pid <= 1 with -EINVAL. */
int proc_kill(const struct proc_ref *ref, int signal);

/* How early that very process is ended when memory runs out: from -1000, never, to 1000, first. */
int proc_get_oom(pid_t pid, int *ret_score);
int proc_set_oom(const struct proc_ref *ref, int score);

/* Calls fn for the pid of every process; a result != 0 ends the walk and is returned. */
typedef int proc_each_fn(pid_t pid, void *userdata);
int proc_each(proc_each_fn *fn, void *userdata);

/* The same for those with a later pid, one by one, and for whoever gets a pid meanwhile. -EAGAIN if
 * these are more than most, or pids begin anew. */
int proc_each_later(pid_t pid, int most, proc_each_fn *fn, void *userdata);

/*
 * All of them, and whoever is born meanwhile. Who forks and is gone when we come to look at it
 * cannot hide this way: pids are handed out in order, so its child is met later. -EAGAIN if there
 * is no end of them.
 */
int proc_each_born(proc_each_fn *fn, void *userdata);

/* Calls fn for each child of a process, zombies and those included of which nothing else may be
 * seen. What fn says is ignored. -ENOSYS if the kernel does not list children. */
int proc_each_child(pid_t pid, proc_each_fn *fn, void *userdata);

/* Whether there is such a process of which nothing may be seen: /proc hides it, since it belongs to
 * another user, or may not be traced. */
bool proc_is_hidden(pid_t pid);

/* The living members of a process group, without zombies; returns how many were stored. */
size_t proc_group(pid_t group, struct proc_ref *ret_refs, size_t max);

/*
 * All living descendants of root, parents before their children, without root itself and without
 * zombies. Returns the number stored, at most max. visit, if not NULL, is called for each when it
 * is found, before its children are listed: a process that was signalled there cannot have forked,
 * unnoticed, between the signal and the list. A result != 0 ends the walk. A kernel that does not
 * list children costs a look at every process per generation.
 */
typedef int proc_visit_fn(const struct proc_ref *ref, void *userdata);
size_t proc_tree(pid_t root, struct proc_ref *ret_refs, size_t max, proc_visit_fn *visit,
                 void *userdata);

/* Whether this process, of one thread, has that child, and no other, a zombie or not. Its word is
 * certain: only we take somebody off the list, and who loses a parent joins it at its end. False if
 * the kernel has no such list. */
bool proc_is_only_child(pid_t child);

/* Whether /proc shows the pids of our own pid namespace. */
bool proc_is_ours(void);

/* The command line, arguments joined by blanks, or the name in brackets; cut to size. */
int proc_cmdline(pid_t pid, char *buf, size_t size);

/* Whether the environment the process was started with has exactly this "NAME=value" entry: 1 or 0.
 * -ENODATA if it has none; nor does a process in the middle of an exec. Of a process of ours that
 * is not dumpable, whether it is one of its arguments. */
int proc_has_env(pid_t pid, const char *entry);

/* Whether that environment had a variable; name ends with "=". False if it cannot be read. */
bool proc_has_variable(pid_t pid, const char *name);

/* Whether it lives in a pid namespace below ours. */
bool proc_is_nested(pid_t pid);

/* Whether a process carries such an entry as a mark: it is alive, of our own user, not older than
 * since (clock ticks), and no thread of the kernel's. 1, with its reference if that is not NULL; 0;
 * or -ENODATA: it cannot be told now. */
int proc_is_marked(pid_t pid, const char *entry, uint64_t since, struct proc_ref *ret_ref);
