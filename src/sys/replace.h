/* A file that is replaced by another content: whole, or not at all. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

/* old: what owner and mode are taken from; NULL = there is none, and it is made with 0600. path has
 * no link at its end. 0 or -errno. */
int replace_file(const char *path, const void *data, size_t size, const struct stat *old);
