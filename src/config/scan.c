#include "config/scan.h"

#include <string.h>

static bool more(const struct scan *scan)
{
    return scan->at < scan->end;
}

static bool is_at(const struct scan *scan, const char *any)
{
    return more(scan) && *scan->at && strchr(any, *scan->at);
}

static void skip(struct scan *scan, const char *any)
{
    for (; is_at(scan, any); scan->at++)
        scan->line += *scan->at == '\n';
}

static void skip_string(struct scan *scan)
{
    for (scan->at++; more(scan) && *scan->at != '"'; scan->at++)
        if (*scan->at == '\\' && scan->end - scan->at > 1)
            scan->at++;
    if (more(scan))
        scan->at++;
}

/* To the end of a value: a string, what brackets enclose, or a word. */
static void skip_value(struct scan *scan)
{
    size_t depth = 0;
    do {
        if (is_at(scan, "\"")) {
            skip_string(scan);
            continue;
        }
        if (depth == 0 && is_at(scan, ",} \t\r\n"))
            return;
        if (is_at(scan, "{["))
            depth++;
        else if (is_at(scan, "}]"))
            depth--;
        else if (is_at(scan, "\n"))
            scan->line++;
        scan->at++;
    } while (more(scan));
}

struct scan scan_begin(const char *text, size_t size)
{
    struct scan scan = {.at = text, .end = text + size, .line = 1};
    skip(&scan, " \t\r\n");
    if (more(&scan))
        scan.at++; /* the brace */
    return scan;
}

bool scan_next(struct scan *scan, struct scan_place *ret_place)
{
    skip(scan, ", \t\r\n");
    if (!is_at(scan, "\""))
        return false;
    ret_place->line = scan->line;
    skip_string(scan);
    skip(scan, ": \t\r\n");
    ret_place->value = scan->at;
    if (more(scan))
        skip_value(scan);
    ret_place->length = (size_t)(scan->at - ret_place->value);
    return true;
}
