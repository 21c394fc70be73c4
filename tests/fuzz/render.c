/*
 * Arbitrary bytes as the output of a command: the lines are valid UTF-8 without controls but tab,
 * within their ceiling, numbered upwards; and the same in whatever pieces the bytes come.
 *
 * The input: a byte of flags, the ceiling of a line, a seed for the pieces, how often the rest is
 * repeated, the rest.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "screen/render.h"
#include "text/utf8.h"

#define REPEATED_MAX 20000

struct noted {
    struct render_options options;
    struct buf lines;
    uint64_t line;
    bool last; /* nothing may follow */
};

static void check_text(const char *s, size_t size)
{
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(s, size, &point);
        MUST(n > 0 && point != UTF8_INVALID);
        MUST(point >= ' ' || point == '\t');
        MUST(point < 0x7f || point >= 0xa0);
        s += n;
        size -= n;
    }
}

static int note_line(void *self, const struct render_line *line)
{
    struct noted *noted = self;
    size_t max = noted->options.line_max;
    MUST(!noted->last);
    MUST(line->size <= (max < RENDER_LINE_LEAST ? RENDER_LINE_LEAST : max));
    MUST(line->line >= noted->line && line->count >= 1);
    MUST(noted->options.fold || line->count == 1);
    MUST(line->complete || line->count == 1);
    check_text(line->text, line->size);
    noted->line = line->line;
    noted->last = !line->complete;
    MUST(buf_append(&noted->lines, &line->line, sizeof line->line) == 0);
    MUST(buf_append(&noted->lines, &line->count, sizeof line->count) == 0);
    MUST(buf_append(&noted->lines, line->text, line->size) == 0);
    return buf_str(&noted->lines, line->complete ? "\n" : "\r");
}

static void begin(struct noted *noted, const struct render_options *options, struct render **ret)
{
    *noted = (struct noted){.options = *options};
    noted->lines = BUF_UP_TO(1 << 24);
    MUST(render_new(options, note_line, noted, ret) == 0);
}

static void feed_pieces(struct render *r, const char *s, size_t size, uint32_t seed)
{
    while (size > 0) {
        seed = seed * 1664525 + 1013904223;
        size_t n = 1 + (seed >> 16) % ((seed >> 8) % 4 ? 7 : 900);
        n = n < size ? n : size;
        MUST(render_feed(r, s, n) == 0);
        s += n;
        size -= n;
    }
}

/* A copy of exactly the size, so that a step too far is seen. */
static char *repeated(const struct input *in, size_t times, size_t *ret_size)
{
    *ret_size = in->left * times;
    char *text = malloc(*ret_size);
    for (size_t i = 0; i < times && in->left > 0; i++)
        memcpy(text + i * in->left, in->at, in->left);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct noted whole, pieces;
    struct render *a cleanup_render = NULL, *b cleanup_render = NULL;
    uint8_t flags = take8(&in);
    struct render_options options = {
        .first_line = 1, .line_max = take16(&in) % 1000, .fold = flags & 1};
    uint32_t seed = take16(&in);
    size_t times = 1 + take8(&in), length;
    times = in.left * times < REPEATED_MAX ? times : 1;

    char *text = repeated(&in, times, &length);
    begin(&whole, &options, &a);
    begin(&pieces, &options, &b);
    MUST(render_feed(a, text, length) == 0);
    feed_pieces(b, text, length, seed);
    MUST(render_finish(a) == 0 && render_finish(b) == 0);
    MUST(whole.lines.len == pieces.lines.len);
    MUST(whole.lines.len == 0 || memcmp(whole.lines.data, pieces.lines.data, whole.lines.len) == 0);

    buf_done(&whole.lines);
    buf_done(&pieces.lines);
    free(text);
    return 0;
}
