/* "120x40": the size of a terminal. */
#pragma once

/* Both are 0 if text is NULL. A status, with a sentence said unless it is STATUS_OK. */
int parse_size(const char *verb, const char *text, int *ret_columns, int *ret_rows);
