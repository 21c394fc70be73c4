/* Small files that only their owner may read: the token, the passes of pages, where the server is.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <nacre/error.h>

/* Writes the whole file, or nothing of it. 0 or -errno. */
int secret_file_write(const char *path, const char *text, size_t size);

/* Reads at most size - 1 bytes, and ends them with a NUL: how many, or a code; NACRE_ENOTFOUND if
 * there is none. A file that others could read, or that is not ours, is refused. */
ssize_t secret_file_read(const char *path, char *ret, size_t size, nacre_error *err);
