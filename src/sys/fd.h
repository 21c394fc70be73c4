/*
 * File descriptors, small files and locks. Everything is close-on-exec at birth; "none" is -EBADF.
 * Functions return >= 0 or -errno, and none of them allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/*
 * The one way to a file in a place that a command can reach. Opens a regular file of our own and
 * nothing else, without following a link: -EINVAL for what could block or surprise, -EPERM for
 * another user's. flags are those of openat(); what is made has the mode 0600.
 */
int fd_open_file_at(int dirfd, const char *name, int flags);

/* The same for a directory, for reading, whoever owns it. */
int fd_open_dir_at(int dirfd, const char *name);

/* Has a directory of ours be open to us, whatever its mode was; no link is followed. */
void fd_own_dir_at(int dirfd, const char *name);

/* The same for a file, which nobody else has under another name; whether it is so now. */
bool fd_own_file_at(int dirfd, const char *name);

/* What a file or directory itself takes of the disk: its blocks, and never nothing, since there is
 * only room for so many; 0 if it is not there. */
uint64_t fd_cost_at(int dirfd, const char *name);

/* Makes a directory, 0700, and those above it that are missing. */
int fd_make_dirs(const char *path);

/* The beginning of a small file (of /proc or a cgroup), NUL-terminated; returns its length. */
ssize_t fd_slurp_at(int dirfd, const char *path, char *buf, size_t size);

/* Writes a string to an existing file, as cgroup and /proc files want it. */
int fd_poke_at(int dirfd, const char *path, const char *text);

/* Calls fn for every entry of a directory but "." and ".."; a result != 0 ends the walk and is
 * returned. The directory's position is reset first. */
typedef int fd_entry_fn(const char *name, void *userdata);
int fd_walk(int dirfd, fd_entry_fn *fn, void *userdata);

/* Reads what is short lines, as in /proc, one by one; a result != 0 of fn ends it and is returned.
 */
typedef int fd_line_fn(char *line, void *userdata);
int fd_each_line(int fd, fd_line_fn *fn, void *userdata);
int fd_each_line_in(const char *path, fd_line_fn *fn, void *userdata);

/* Has a timerfd of CLOCK_MONOTONIC be readable from a moment on; 1 = at once, 0 = never. */
void fd_arm_timer(int fd, int64_t at_ns);

/* A number in decimal at the start of s, or -1. */
long fd_parse_number(const char *s);

/* -- Locks ------------------------------------------------------------------------------------ */

/* The lock that tells whether a run's keeper lives: an open-file-description lock, which belongs to
 * the keeper's descriptor, not to a pid, and vanishes with it. */

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
