/*
 * Landlock: rights that a process gives up for itself and for all it starts. The numbers stand
 * here, since the headers of a machine are often older than its kernel. Functions return >= 0 or
 * -errno.
 */
#pragma once

#include <stdint.h>

/* Rights over files. In brackets the version of the interface that knows them first. */
#define LL_EXECUTE     (1ULL << 0)
#define LL_WRITE_FILE  (1ULL << 1)
#define LL_READ_FILE   (1ULL << 2)
#define LL_READ_DIR    (1ULL << 3)
#define LL_REMOVE_DIR  (1ULL << 4)
#define LL_REMOVE_FILE (1ULL << 5)
#define LL_MAKE_CHAR   (1ULL << 6)
#define LL_MAKE_DIR    (1ULL << 7)
#define LL_MAKE_REG    (1ULL << 8)
#define LL_MAKE_SOCK   (1ULL << 9)
#define LL_MAKE_FIFO   (1ULL << 10)
#define LL_MAKE_BLOCK  (1ULL << 11)
#define LL_MAKE_SYM    (1ULL << 12)
#define LL_REFER       (1ULL << 13) /* 2 */
#define LL_TRUNCATE    (1ULL << 14) /* 3 */
#define LL_IOCTL_DEV   (1ULL << 15) /* 5 */

/* Of a rule over what is no directory, only these make sense. */
#define LL_OF_FILES     (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

#define LL_SCOPE_SOCKET (1ULL << 0) /* 6: abstract Unix sockets of others */
#define LL_SCOPE_SIGNAL (1ULL << 1) /* 6: signals to others */
#define LL_SCOPES_SINCE 6

/* The version of the interface; 0 = there is none, or it is switched off. */
int landlock_version(void);

/* All rights to change files that this version knows, but to truncate them: whether somebody may do
 * that is found out at every open, also of who only reads. */
uint64_t landlock_writes(int version);

/* A set of rules: what is in files needs a rule, what is in scopes is given up. */
int landlock_new(uint64_t files, uint64_t scopes);

/* Allows rights below what fd stands for: a file or a directory. */
int landlock_allow(int ruleset, int fd, uint64_t rights);

/* This thread and all it starts; needs no_new_privs. */
int landlock_enter(int ruleset);
