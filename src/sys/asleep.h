/*
 * What a task sleeps in: whether it reads, or waits for descriptors, and for which. The kernel
 * tells it by the system call and its arguments, to whoever may trace the task; system calls are
 * known by the numbers of our own architecture, and what is not known counts as something else.
 * Nothing is stopped by a look, and nothing is allocated. What is seen is of the past.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ASLEEP_FDS 64 /* of more descriptors than that it is not told for which it waits */

enum asleep {
    ASLEEP_NOT,    /* it runs, is stopped, or has ended */
    ASLEEP_READS,  /* in a read of one descriptor */
    ASLEEP_POLLS,  /* until one of several can be read */
    ASLEEP_ELSE,   /* in something else */
    ASLEEP_HIDDEN, /* it sleeps, and more may not be looked at */
};

struct asleep_fds {
    int fd[ASLEEP_FDS];
    size_t count;
};

/* Of a task of a process; the descriptors are the process's. */
enum asleep asleep_look(pid_t pid, pid_t task, struct asleep_fds *ret_fds);

/* -- What the descriptors of others are -------------------------------------------------------- */

/* A file, by what stat() says of it. */
struct foreign_file {
    dev_t device;
    ino_t inode;
    dev_t special; /* of a device file: which device it is; else 0 */
};

/* -errno if that may not be seen. */
int opened_look(pid_t pid, int fd, struct foreign_file *ret_file);

/* Whether nobody but the process itself, or the time, makes it readable: an event, a timer, a
 * signal, or a pipe or pair of sockets of which it holds the other end, too. */
bool opened_is_own(pid_t pid, int fd);
