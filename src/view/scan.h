/* How far bytes are text that needs no thought, found many bytes at a time. */
#ifndef NACRE_VIEW_SCAN_H
#define NACRE_VIEW_SCAN_H

#include <stddef.h>

/* The length of the longest beginning of printable ASCII: space to tilde, nothing else. */
size_t scan_plain(const char *s, size_t size);

/*
 * The length of the longest beginning of lines of text: printable ASCII, tabs, newlines, and
 * whole valid characters that are not controls (U+0080 to U+009F).
 */
size_t scan_clean(const char *s, size_t size);

#endif
