#include "console/size_args.h"

#include <stdlib.h>

#include "console/out.h"
#include "screen/terminal.h"

int parse_size(const char *verb, const char *text, int *ret_columns, int *ret_rows)
{
    char *end = NULL;
    *ret_columns = *ret_rows = 0;
    if (!text)
        return STATUS_OK;
    unsigned long columns = strtoul(text, &end, 10), rows = 0;
    if (*end == 'x')
        rows = strtoul(end + 1, &end, 10);
    if (*end || columns < TERMINAL_COLUMNS_MIN || columns > TERMINAL_COLUMNS_MAX ||
        rows < TERMINAL_ROWS_MIN || rows > TERMINAL_ROWS_MAX)
        return usage_error("%s: a size is columns and rows, from %ux%u to %ux%u; got \"%s\"", verb,
                           TERMINAL_COLUMNS_MIN, TERMINAL_ROWS_MIN, TERMINAL_COLUMNS_MAX,
                           TERMINAL_ROWS_MAX, text);
    *ret_columns = (int)columns;
    *ret_rows = (int)rows;
    return STATUS_OK;
}
