/*
 * The lock that tells whether a run's keeper lives: an open-file-description lock, which belongs
 * to the keeper's descriptor, not to a pid, and vanishes with it. Returns >= 0 or -errno.
 */
#ifndef NACRE_SYS_LOCK_H
#define NACRE_SYS_LOCK_H

#include <stdbool.h>

/* Takes the write lock without waiting: -EAGAIN if somebody has it. */
int lock_take(int fd);

/* 1 if somebody else has it, 0 if it is free. */
int lock_held(int fd);

#endif
