/*
 * Mounts as descriptors: a tree is copied, changed while nobody sees it, and then put somewhere.
 * Functions return >= 0 or -errno.
 */
#pragma once

#include <stdint.h>

/* What a mount can be forbidden. */
#define MOUNTS_READ_ONLY (1ULL << 0)
#define MOUNTS_NO_DEVICE (1ULL << 2)

/* A copy of the mount that shows path, nobody's yet; with everything that is mounted below it, or
 * alone. No link is followed, on the way neither. */
int mounts_copy(int dirfd, const char *path, int everything);

/* The same of what path itself is, with everything: it may be a link, and lies over that then. */
int mounts_copy_itself(int dirfd, const char *path);

/* A new file system in memory: "tmpfs" or "devpts", with options such as "mode=755,size=64m". */
int mounts_new(const char *type, const char *options);

/* Sets and clears attributes of a mount, or of a tree of them. */
int mounts_change(int fd, uint64_t set, uint64_t clear, int everything);
int mounts_change_at(const char *path, uint64_t set, uint64_t clear, int everything);

/* Puts a copy over path, which exists, and to which no link leads; it is one itself only if the
 * copy is of one. */
int mounts_put(int fd, int dirfd, const char *path);

/* What is mounted from now on is seen by nobody else. */
int mounts_make_private(void);
