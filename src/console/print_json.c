#include "console/print_json.h"

#include <stdio.h>

#include "console/out.h"

int print_json(json_t *value)
{
    if (!value)
        return failure("out of memory");
    int r = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    json_decref(value);
    putchar('\n');
    return r == 0 ? STATUS_OK : failure("cannot write to stdout");
}
