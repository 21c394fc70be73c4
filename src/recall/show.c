#include "recall/show.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "screen/render.h"
#include "text/utf8.h"

/* The part of a line that is shown: all of it, or so much that the match is in it. */
struct line_window {
    const char *data;
    size_t size;
    uint64_t before; /* bytes of the line left out on both sides */
    uint64_t after;
};

/* Of a line that was drawn over by carriage returns, the frame with the match in it. */
static void choose_frame(const nacre_recall_line *line, size_t *start, size_t *end)
{
    if (line->match_end == line->match_start)
        return;
    const char *before = memrchr(line->text, '\r', line->match_start);
    const char *after = memchr(line->text + line->match_end, '\r', line->size - line->match_end);
    if (after && (size_t)(after + 1 - line->text) < line->size)
        *end = (size_t)(after - line->text);
    if (before && (*end < line->size || after))
        *start = (size_t)(before + 1 - line->text);
}

/* A match that stands early needs no window: the beginning of the line is worth more, and the
 * render cuts the middle. */
static struct line_window choose_window(const nacre_recall_line *line, size_t max)
{
    size_t start = 0, end = line->size;
    choose_frame(line, &start, &end);
    if (end - start > max && line->match_end - MIN(start, line->match_end) > max / 2) {
        size_t near = line->match_start - MIN(line->match_start - start, max / 4);
        start = MIN(near, end - max);
        start += utf8_torn(line->text + start, end - start);
        end = MIN(end, start + max);
    }
    return (struct line_window){line->text + start, end - start, line->left_before + start,
                                line->left_after + (line->size - end)};
}

static int left_out(struct buf *out, uint64_t bytes)
{
    return bytes == 0 ? 0 : buf_printf(out, "[%llu bytes]", (unsigned long long)bytes);
}

/* Where rendering changed nothing, the match is where it was. */
static struct shown_match locate_match(const struct buf *out, size_t begun,
                                       const struct line_window *window,
                                       const nacre_recall_line *line)
{
    size_t at = (size_t)(window->data - line->text);
    size_t start = line->match_start - MIN(at, line->match_start), size = out->len - begun;
    size_t end = start + (line->match_end - line->match_start);
    if (end > size || size > window->size || memcmp(out->data + begun, window->data, size) != 0)
        return (struct shown_match){0, 0};
    return (struct shown_match){begun + start, begun + end};
}

int show_text(struct buf *out, const nacre_recall_line *line, size_t max,
              struct shown_match *ret_match)
{
    struct line_window window = choose_window(line, max);
    struct render_options options = {.first_line = 1, .line_max = max};
    int r = left_out(out, window.before);
    size_t begun = out->len;
    if (r == 0)
        r = render_text(out, window.data, window.size, &options);
    if (r < 0)
        return r;
    /* Cursor movements may have made several rows of it. */
    for (size_t i = begun; i < out->len; i++)
        if (out->data[i] == '\n')
            out->data[i] = ' ';
    *ret_match = locate_match(out, begun, &window, line);
    if (out->len > begun)
        utf8_upright(out->data + begun, out->len - begun);
    return left_out(out, window.after);
}

int show_origin(struct buf *out, const nacre_recall_line *line)
{
    char mark = line->is_match ? ':' : '-';
    return buf_printf(out, "%s %s%c%llu%c ", nacre_id_short(&line->record->id).s,
                      line->stream == NACRE_STDOUT ? "stdout" : "stderr", mark,
                      (unsigned long long)line->line, mark);
}
