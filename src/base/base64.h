/* Bytes as text, for messages that can only carry text. */
#ifndef NACRE_BASE_BASE64_H
#define NACRE_BASE_BASE64_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the bytes in base64 with padding (RFC 4648, section 4). 0 or -errno, as buf_append(). */
int base64_append(struct buf *b, const void *bytes, size_t size);

#endif
