/* Bytes as text, for messages that can only carry text. */
#pragma once

#include <stddef.h>

#include <sys/types.h>

#include "base/buf.h"

/* Appends the bytes in base64 with padding (RFC 4648, section 4). 0 or -errno, as buf_append(). */
int base64_append(struct buf *b, const void *bytes, size_t size);

/* The bytes of a text in base64, padded or not, with no other character in it: their number, or
 * -EINVAL, also if there are more than max. */
ssize_t base64_decode(const char *text, size_t size, void *ret, size_t max);
