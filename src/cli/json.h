/* JSON on stdout, for programs. */
#ifndef NACRE_CLI_JSON_H
#define NACRE_CLI_JSON_H

#include "view/record_json.h"

/* Prints a value, which it takes, as one indented document; NULL is "out of memory". Returns the
 * status to exit with. */
int print_json(json_t *value);

#endif
