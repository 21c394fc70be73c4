/* JSON on stdout, for programs. */
#pragma once

#include "view/record_words.h"

/* Prints a value, which it takes, as one indented document; NULL is "out of memory". Returns the
 * status to exit with. */
int print_json(json_t *value);
