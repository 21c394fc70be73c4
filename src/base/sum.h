/* The checksum of records on disk. It has to notice a torn or truncated write, quickly; it is no
 * defence against somebody who forges one. */
#ifndef NACRE_BASE_SUM_H
#define NACRE_BASE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* size is taken down to whole 8-byte words. */
uint64_t sum64(const void *data, size_t size);

#endif
