/* The template of a line: what it has in common with lines of the same kind, such as the many of
 * one log statement. Numbers, hex digits and blanks are set aside. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The same for all lines of one template, and hardly ever for two of others. */
uint64_t template_hash(const char *line, size_t size);
