#include "view/recall_hint.h"

#define TOOL_LINES    "recall(id: \"%s\", lines: \"%llu-%llu\", stream: \"%s\")"
#define PEOPLE_LINES  "nacre recall --id %s --lines %llu-%llu --stream %s"

#define TOOL_SEARCH   "recall(id: \"%s\", pattern: \"%s\")"
#define PEOPLE_SEARCH "nacre recall --id %s '%s'"

const char *recall_stream(nacre_stream stream)
{
    return stream == NACRE_STDERR ? "stderr" : "stdout";
}

int recall_binary(struct buf *out, nacre_stream stream, uint64_t bytes)
{
    return buf_printf(out, "--- %s (binary: %llu bytes, not shown) ---\n", recall_stream(stream),
                      (unsigned long long)bytes);
}

int recall_amounts(struct buf *out, const char *before, const uint64_t lines[2],
                   const uint64_t bytes[2])
{
    int r = 0;
    for (int s = NACRE_STDERR; s >= 0 && r == 0; s--) {
        if (bytes[s] == 0)
            continue;
        r = buf_printf(out, "%s%s %llu lines (%llu bytes)", before, recall_stream(s),
                       (unsigned long long)lines[s], (unsigned long long)bytes[s]);
        before = ", ";
    }
    return r;
}

static int one_range(struct buf *out, const char *id, const struct recall_range *range, int stream,
                     nacre_audience audience)
{
    unsigned long long from = range->from, to = range->to;
    if (audience == NACRE_FOR_PEOPLE)
        return buf_printf(out, PEOPLE_LINES, id, from, to, stream == NACRE_STDERR ? "err" : "out");
    return buf_printf(out, TOOL_LINES, id, from, to, recall_stream(stream));
}

int recall_hint(struct buf *out, const nacre_id *id, const struct recall_range ranges[2],
                nacre_audience audience)
{
    nacre_id_text text = nacre_id_short(id);
    const char *before = ". Get it back with: ";
    int r = 0;
    for (int s = NACRE_STDERR; s >= 0 && r == 0; s--) {
        if (ranges[s].from == 0)
            continue;
        r = buf_str(out, before);
        if (r == 0)
            r = one_range(out, text.s, &ranges[s], s, audience);
        before = "; ";
    }
    return r;
}

int recall_search_hint(struct buf *out, const nacre_id *id, const char *pattern,
                       nacre_audience audience)
{
    nacre_id_text text = nacre_id_short(id);
    if (audience == NACRE_FOR_PEOPLE)
        return buf_printf(out, PEOPLE_SEARCH, text.s, pattern);
    return buf_printf(out, TOOL_SEARCH, text.s, pattern);
}
