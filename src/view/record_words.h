/* What a record says: in words (<nacre/record.h>), and as JSON, for programs, with the field names
 * of the documentation. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include <nacre/record.h>

/* Text of a stranger, with what is not UTF-8 replaced. NULL if out of memory. */
json_t *json_text(const char *text, size_t size);

/* An array of such texts, from a list that ends with NULL. */
json_t *json_list(const char *const *list);

/* NULL if out of memory. */
json_t *json_record(const nacre_record *record);
