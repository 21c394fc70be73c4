/* Where nacre-keeper is: beside the library or program, in its prefix, or where it was built for.
 */
#ifndef NACRE_BACKEND_FIND_KEEPER_H
#define NACRE_BACKEND_FIND_KEEPER_H

#include <nacre/error.h>

struct keeper_files {
    int keeper_fd; /* the program, pinned: an upgrade under a running host changes nothing */
    int text_fd;   /* its preload, or -EBADF if there is none */
};

/* configured: a path, or NULL = search. The caller closes the descriptors. */
int find_keeper(const char *configured, struct keeper_files *ret_files, nacre_error *err);

#endif
