/* Where nacre-keeper and nacre-gate are: beside the library or program, in its prefix, or where
 * they were built for. */
#pragma once

#include <nacre/error.h>

struct keeper_files {
    int keeper_fd; /* the program, pinned: an upgrade under a running host changes nothing */
    int text_fd;   /* its preload, or -EBADF if there is none */
};

/* configured: a path, or NULL = search. The caller closes the descriptors. */
int find_keeper(const char *configured, struct keeper_files *ret_files, nacre_error *err);

/* nacre-gate, which lies beside the keeper; likewise. */
int find_gate(const char *configured, int *ret_fd, nacre_error *err);
