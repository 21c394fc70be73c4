/*
 * The lock that tells whether a run's keeper lives: an open-file-description lock, which belongs
 * to the keeper's descriptor, not to a pid, and vanishes with it. Returns >= 0 or -errno.
 */
#ifndef NACRE_SYS_LOCK_H
#define NACRE_SYS_LOCK_H

#include <sys/types.h>

/* Takes the write lock without waiting: -EAGAIN if somebody has it. */
int lock_take(int fd);

/* 1 if somebody else has it, 0 if it is free. */
int lock_held(int fd);

/*
 * A lock that ends with this process, whoever it forked. A forked child shares every descriptor of
 * its parent, and so the lock; but the description also lives as long as a mapping of it, and
 * children can be kept from getting that. Once the lock is pinned, the descriptor it was taken by
 * has to be closed: a child that is forked before still shares it.
 */
struct lock_pin {
    void *page; /* NULL = nothing is pinned */
    pid_t owner;
};

int lock_pin(int fd, struct lock_pin *ret_pin);

/* Frees the lock; in a forked child it only forgets it. */
void lock_unpin(struct lock_pin *pin);

#endif
