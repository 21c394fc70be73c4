/*
 * File descriptors and small files. Everything is close-on-exec at birth; "none" is -EBADF.
 * Functions return >= 0 or -errno, and none of them allocates.
 */
#ifndef NACRE_SYS_FD_H
#define NACRE_SYS_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Moves fd to 3 or above if it is below (a host may have 0-2 closed). Consumes fd always. */
int fd_lift_consume(int fd);

/*
 * Where a library below us opens files by itself: takes those of 0-2 that the host has closed, so
 * that none of its files gets there, and gives them back. A bit for each one taken.
 */
unsigned fd_plug_low(void);
void fd_unplug_low(unsigned taken);

/* A close-on-exec duplicate at 3 or above. */
int fd_dup(int fd);

/* The same for two that belong together: both, or neither. */
int fd_lift_pair_consume(const int fds[2], int ret_fds[2]);

/* A pipe, both ends close-on-exec and above 2. */
int fd_pipe(int ret_fds[2]);

int fd_set_nonblock(int fd);

/* Closes every descriptor from first on; without close_range by walking /proc/self/fd. */
int fd_close_from(int first);

/* The same, but only marks them close-on-exec, so that they live until the exec. */
int fd_cloexec_from(int first);

/* Writes all of it, or fails. */
int fd_write_all(int fd, const void *data, size_t size);

/* Reads until size bytes or the end; returns the count. */
ssize_t fd_read_all(int fd, void *buf, size_t size);
ssize_t fd_pread_all(int fd, void *buf, size_t size, off_t offset);
int fd_pwrite_all(int fd, const void *data, size_t size, off_t offset);

/* Opens a regular file and nothing else: -EINVAL for what could block or surprise. flags are
 * those of openat(). */
int fd_open_file_at(int dirfd, const char *name, int flags);

/* The beginning of a small file (of /proc or a cgroup), NUL-terminated; returns its length. */
ssize_t fd_slurp_at(int dirfd, const char *path, char *buf, size_t size);

/* Writes a string to an existing file, as cgroup and /proc files want it. */
int fd_poke_at(int dirfd, const char *path, const char *text);

/* Calls fn for every entry of a directory but "." and ".."; a result != 0 ends the walk and is
 * returned. The directory's position is reset first. */
typedef int fd_entry_fn(const char *name, void *userdata);
int fd_walk(int dirfd, fd_entry_fn *fn, void *userdata);

/* A number in decimal at the start of s, or -1. */
long fd_parse_number(const char *s);

#endif
