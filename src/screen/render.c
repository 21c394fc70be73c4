#include "screen/render.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "screen/escape.h"
#include "screen/row.h"
#include "text/brief.h"
#include "text/utf8.h"

#define SCRATCH_MAX ((size_t)ROW_CELLS_MAX * sizeof(struct cell))

/* A line that waits for another one that is not equal to it. */
struct held {
    struct render_line line; /* its text is NULL: there is none */
    char *own;               /* room for line_max bytes */
};

/* The window: the last rows, of which the cursor is in one. `gone` rows under the last one were
 * erased: they are there for the cursor, but nobody sees them. */
struct render {
    struct render_options options;
    render_line_fn *fn;
    void *self;

    struct escape escape;
    char torn[4]; /* the beginning of a character that was not all there */
    size_t torn_size;

    struct row rows[RENDER_ROWS];
    size_t top;
    size_t count; /* >= 1 */
    size_t gone;
    size_t at;       /* the cursor's row, < count, */
    uint64_t column; /* and its column, or ROW_END */
    uint64_t line;   /* the raw number of the line that is being read */
    uint64_t offset; /* raw bytes up to and with what is being read */

    struct held held;
    char *cut; /* room for line_max bytes */
    struct buf scratch;
};

static struct row *row_at(struct render *r, size_t i)
{
    return &r->rows[(r->top + i) % RENDER_ROWS];
}

/* -- Lines on their way out ------------------------------------------------------------------- */

static int give_held(struct render *r)
{
    struct render_line line = r->held.line;
    r->held.line.text = NULL;
    return line.text ? r->fn(r->self, &line) : 0;
}

/* The text that is held stays where it is until own_held(). */
static int give_or_hold(struct render *r, const struct render_line *line)
{
    struct render_line *held = &r->held.line;
    if (!r->options.fold)
        return r->fn(r->self, line);
    if (held->text && held->size == line->size && memcmp(held->text, line->text, line->size) == 0) {
        held->count++;
        return 0;
    }
    int e = give_held(r);
    *held = *line;
    return e;
}

static void own_held(struct render *r)
{
    struct held *h = &r->held;
    if (h->line.text && h->line.text != h->own) {
        memcpy(h->own, h->line.text, h->line.size);
        h->line.text = h->own;
    }
}

/* A line with this text, cut if it is too long. */
static struct render_line make_line(struct render *r, const struct row_view *view, uint64_t number,
                                    uint64_t offset)
{
    struct render_line line = {
        .text = view->size > 0 ? view->text : "",
        .size = view->size,
        .line = number,
        .count = 1,
        .complete = true,
        .offset = offset,
    };
    if (view->lost > 0 || view->size > r->options.line_max) {
        struct cut cut = {view->text, view->size, view->head, 0, view->lost};
        line.size = cut_middle(r->cut, r->options.line_max, &cut, &line.lost);
        line.text = r->cut;
    }
    return line;
}

static int give_row(struct render *r, struct row *row)
{
    struct row_view view;
    int e = row_show(row, &r->scratch, &view);
    if (e == 0) {
        struct render_line line = make_line(r, &view, row->line, row->offset);
        e = give_or_hold(r, &line);
    }
    own_held(r);
    return e;
}

/* -- Rows ------------------------------------------------------------------------------------- */

static void fresh_row(struct render *r, size_t i)
{
    struct row *row = row_at(r, i);
    row_clear(row);
    row->line = r->line;
    row->offset = r->offset;
}

/* One more row at the bottom; the top one leaves if there are too many. */
static int add_bottom_row(struct render *r)
{
    int e = 0;
    if (r->gone > 0) {
        r->gone--;
    } else if (r->count == RENDER_ROWS) {
        e = give_row(r, row_at(r, 0));
        r->top = (r->top + 1) % RENDER_ROWS;
        r->count--;
        r->at--;
    }
    fresh_row(r, r->count++);
    return e;
}

/* One row down, if need be to a new one. The last row, as long as it is empty, is begun by
 * whatever line comes to it. */
static int next_row(struct render *r)
{
    int e = 0;
    if (r->at + 1 == r->count)
        e = add_bottom_row(r);
    r->at++;
    if (r->at + 1 == r->count && row_empty(row_at(r, r->at)))
        row_at(r, r->at)->line = r->line;
    return e;
}

static int newline(struct render *r)
{
    r->line++;
    r->column = 0;
    return next_row(r);
}

/* The cursor goes no further beyond the text than a terminal is wide. */
static int limit_column(struct render *r)
{
    uint64_t width;
    if (r->column < RENDER_COLUMNS)
        return 0;
    int e = row_width(row_at(r, r->at), &width);
    if (e == 0)
        r->column = MIN(r->column, MAX(width, (uint64_t)RENDER_COLUMNS - 1));
    return e;
}

static int put_at_cursor(struct render *r, const char *s, size_t size)
{
    return row_put(row_at(r, r->at), &r->column, s, size);
}

/* -- Commands --------------------------------------------------------------------------------- */

static int go_up(struct render *r, uint32_t n)
{
    r->at -= MIN((size_t)n, r->at);
    return limit_column(r);
}

static int go_down(struct render *r, uint32_t n)
{
    int e = 0;
    for (; e == 0 && n > 0 && r->at + 1 < r->count + r->gone; n--)
        e = next_row(r);
    return e == 0 ? limit_column(r) : e;
}

static int go_to_column(struct render *r, uint64_t column)
{
    r->column = column;
    return limit_column(r);
}

/* 0: from the cursor on, 1: up to the cursor, 2: all. */
static int erase_line(struct render *r, uint32_t what)
{
    struct row *row = row_at(r, r->at);
    uint64_t all = 0;
    int e = 0;
    if (what == 0)
        e = row_erase_after(row, &r->column);
    else if (what == 1)
        e = row_erase_before(row, &r->column);
    else if (what == 2)
        e = row_locate(row, &r->column);
    if (e == 0 && what == 2)
        e = row_erase_after(row, &all);
    return e == 0 && r->column != ROW_END ? limit_column(r) : e;
}

static int erase_below(struct render *r)
{
    r->gone += r->count - (r->at + 1);
    r->count = r->at + 1;
    return erase_line(r, 0);
}

/* Where the cursor goes. */
static int move_cursor(struct render *r, char command, uint32_t n)
{
    int e = row_locate(row_at(r, r->at), &r->column);
    if (e < 0)
        return e;
    switch (command) {
    case 'A':
        return go_up(r, n);
    case 'B':
        return go_down(r, n);
    case 'C':
        return go_to_column(r, r->column + n);
    default:
        return go_to_column(r, r->column - MIN((uint64_t)n, r->column));
    }
}

/* What is not here has no effect. */
static int obey_escape(struct render *r)
{
    uint32_t given = escape_number(&r->escape, 0), n = MAX(given, 1u);
    switch (r->escape.command) {
    case 'A':
    case 'B':
    case 'C':
    case 'D':
        return move_cursor(r, r->escape.command, n);
    case 'E':
        r->column = 0;
        return go_down(r, n);
    case 'F':
        r->column = 0;
        return go_up(r, n);
    case 'G':
        return go_to_column(r, n - 1);
    case 'J':
        return given == 0 ? erase_below(r) : 0;
    case 'K':
        return erase_line(r, given);
    default:
        return 0;
    }
}

static int backspace(struct render *r)
{
    int e = row_locate(row_at(r, r->at), &r->column);
    if (e == 0 && r->column > 0)
        r->column--;
    return e;
}

/* Those without a meaning here are shown as ^A. */
static int control(struct render *r, uint8_t byte)
{
    switch (byte) {
    case '\n':
        return newline(r);
    case '\r':
        r->column = 0;
        return 0;
    case '\b':
        return backspace(r);
    case '\t':
        return put_at_cursor(r, "\t", 1);
    default:
        return put_at_cursor(r, (const char[]){'^', (char)(byte ^ 0x40)}, 2);
    }
}

/* -- Clean text ------------------------------------------------------------------------------- */

/* Whether whole lines can be taken as they are: the cursor is in an empty last row. */
static bool at_fresh_row(struct render *r)
{
    return r->at + 1 == r->count && r->gone == 0 && row_empty(row_at(r, r->at)) &&
           (r->column == 0 || r->column == ROW_END) && !row_at(r, r->at)->redrawn;
}

/* Where the last RENDER_ROWS - 1 lines begin, of text that ends with a newline; NULL if it has no
 * more than those. */
static const char *last_rows(const char *s, const char *end)
{
    for (int i = 0; i < RENDER_ROWS; i++) {
        end = memrchr(s, '\n', (size_t)(end - s));
        if (!end)
            return NULL;
    }
    return end + 1;
}

/* Gives out all rows but the last one, which is empty. */
static int flush_rows(struct render *r)
{
    int e = 0;
    for (; e == 0 && r->count > 1; r->count--) {
        e = give_row(r, row_at(r, 0));
        r->top = (r->top + 1) % RENDER_ROWS;
    }
    r->at = 0;
    return e;
}

/* Whether the first of some whole lines goes on with the line that is held. */
static bool continues_held(const struct render *r, const char *s, const char *end)
{
    const struct render_line *held = &r->held.line;
    return held->text && held->size < (size_t)(end - s) && s[held->size] == '\n' &&
           memcmp(s, held->text, held->size) == 0;
}

/* Lets the receiver take lines as they are. Moves *s behind what it took. */
static int offer_lines(struct render *r, const char **s, const char *end)
{
    struct render_lines lines = {*s, (size_t)(end - *s), r->line, r->offset, r->options.line_max};
    uint64_t count = 0;
    int e = give_held(r);
    size_t taken = e == 0 ? r->options.pass(r->self, &lines, &count) : 0;
    r->line += count;
    r->offset += taken;
    *s += taken;
    return e;
}

/* Whole lines that are beyond the window as soon as what follows them is read. */
static int pass_lines(struct render *r, const char *s, const char *end)
{
    int e = flush_rows(r);
    bool offers = r->options.pass != NULL;
    while (e == 0 && s < end) {
        if (offers && !continues_held(r, s, end)) {
            offers = false;
            e = offer_lines(r, &s, end);
            continue;
        }
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        struct row_view view = {.text = s, .size = (size_t)(stop - s)};
        struct render_line line = make_line(r, &view, r->line++, r->offset);
        e = give_or_hold(r, &line);
        if (line.text == r->cut)
            own_held(r);
        r->offset += view.size + 1;
        s = stop + 1;
    }
    own_held(r);
    row_at(r, 0)->line = r->line;
    row_at(r, 0)->offset = r->offset;
    return e;
}

/* The next line, or what there is of it. */
static int feed_line(struct render *r, const char **s, const char *end)
{
    const char *stop = memchr(*s, '\n', (size_t)(end - *s));
    int e = put_at_cursor(r, *s, (size_t)((stop ? stop : end) - *s));
    r->offset += (size_t)((stop ? stop + 1 : end) - *s);
    *s = stop ? stop + 1 : end;
    return e == 0 && stop ? newline(r) : e;
}

static int feed_clean(struct render *r, const char *s, size_t size)
{
    const char *end = s + size;
    int e = 0;
    if (!at_fresh_row(r))
        e = feed_line(r, &s, end);
    if (e == 0 && end - s >= RENDER_ROWS && at_fresh_row(r)) {
        const char *last = memrchr(s, '\n', (size_t)(end - s));
        const char *rest = last ? last_rows(s, last + 1) : NULL;
        if (rest) {
            e = pass_lines(r, s, rest);
            s = rest;
        }
    }
    while (e == 0 && s < end)
        e = feed_line(r, &s, end);
    return e;
}

/* -- Bytes ------------------------------------------------------------------------------------ */

/* One character that is not clean, or the beginning of one. Sets how many bytes it took. */
static int feed_odd(struct render *r, const char *s, size_t size, size_t *ret_taken)
{
    uint32_t point;
    *ret_taken = utf8_next(s, size, &point);
    if (*ret_taken == 0) {
        memcpy(r->torn, s, size);
        r->torn_size = *ret_taken = size;
        return 0;
    }
    r->offset += *ret_taken;
    if (point == UTF8_INVALID)
        return put_at_cursor(r, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
    if (point < ' ' || point == 0x7f)
        return control(r, (uint8_t)point);
    /* A character that had been torn; or a control beyond ASCII, which is dropped. */
    return point >= 0xa0 ? put_at_cursor(r, s, *ret_taken) : 0;
}

/* Bytes of a sequence, as many as belong to it. */
static int feed_escape(struct render *r, const char *s, size_t size, size_t *ret_taken)
{
    int e = 0;
    size_t n = 0;
    while (e == 0 && n < size) {
        enum escape_answer answer = escape_feed(&r->escape, (uint8_t)s[n]);
        if (answer == ESCAPE_TEXT)
            break;
        r->offset++;
        if (answer == ESCAPE_COMMAND)
            e = obey_escape(r);
        else if (answer == ESCAPE_CONTROL)
            e = control(r, (uint8_t)s[n]);
        n++;
        if (!escape_inside(&r->escape))
            break;
    }
    *ret_taken = n;
    return e;
}

static int feed_some(struct render *r, const char *s, size_t size, size_t *ret_taken)
{
    if (escape_inside(&r->escape))
        return feed_escape(r, s, size, ret_taken);
    if (*s == 0x1b) {
        *ret_taken = escape_colours(s, size);
        r->offset += *ret_taken;
        return *ret_taken > 0 ? 0 : feed_escape(r, s, size, ret_taken);
    }
    *ret_taken = scan_clean(s, size);
    if (*ret_taken > 0)
        return feed_clean(r, s, *ret_taken);
    return feed_odd(r, s, size, ret_taken);
}

/* Completes a character that was torn, or finds that it cannot be. */
static int feed_torn(struct render *r, const char **s, size_t *size)
{
    int e = 0;
    while (e == 0 && r->torn_size > 0 && *size > 0) {
        size_t had = r->torn_size, taken;
        r->torn[had] = **s;
        r->torn_size = 0;
        e = feed_odd(r, r->torn, had + 1, &taken);
        if (taken > had) {
            ++*s;
            --*size;
        }
    }
    return e;
}

int render_feed(struct render *r, const void *bytes, size_t size)
{
    const char *s = bytes;
    int e = feed_torn(r, &s, &size);
    while (e == 0 && size > 0) {
        size_t taken;
        e = feed_some(r, s, size, &taken);
        s += taken;
        size -= taken;
    }
    return e;
}

/* -- The interface ---------------------------------------------------------------------------- */

/* The last row is unfinished: no newline was read in it. */
static int give_last_row(struct render *r)
{
    struct row *row = row_at(r, 0);
    struct row_view view;
    int e = row_show(row, &r->scratch, &view);
    if (e < 0 || (view.size == 0 && view.lost == 0))
        return e;
    struct render_line line = make_line(r, &view, row->line, row->offset);
    line.complete = false;
    return r->fn(r->self, &line);
}

static void begin_screen(struct render *r)
{
    r->escape = (struct escape){0};
    r->torn_size = 0;
    r->top = 0;
    r->count = 1;
    r->gone = 0;
    r->at = 0;
    r->column = 0;
    r->line = r->options.first_line;
    r->offset = 0;
    fresh_row(r, 0);
}

int render_finish(struct render *r)
{
    int e = 0;
    if (r->torn_size > 0)
        e = put_at_cursor(r, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
    if (e == 0)
        e = flush_rows(r);
    if (e == 0)
        e = give_held(r);
    if (e == 0)
        e = give_last_row(r);
    begin_screen(r);
    return e;
}

int render_new(const struct render_options *options, render_line_fn *fn, void *self,
               struct render **ret)
{
    struct render *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->options = *options;
    r->options.line_max =
        MIN(MAX(options->line_max, (size_t)RENDER_LINE_LEAST), (size_t)RENDER_LINE_MOST);
    r->fn = fn;
    r->self = self;
    for (size_t i = 0; i < RENDER_ROWS; i++)
        row_init(&r->rows[i], r->options.line_max);
    r->scratch = BUF_UP_TO(SCRATCH_MAX);
    r->cut = malloc(r->options.line_max);
    r->held.own = malloc(r->options.line_max);
    if (!r->cut || !r->held.own) {
        render_free(r);
        return -ENOMEM;
    }
    begin_screen(r);
    *ret = r;
    return 0;
}

void render_free(struct render *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < RENDER_ROWS; i++)
        row_done(&r->rows[i]);
    buf_done(&r->scratch);
    free(r->cut);
    free(r->held.own);
    free(r);
}

#define REPEATED "[repeated %llu more times]\n"
#define FOLDED   3 /* equal lines, at least */

/* The notice, or 0 if the lines themselves are to be written. */
static size_t notice_size(size_t size, uint64_t count)
{
    size_t notice = (size_t)snprintf(NULL, 0, REPEATED, (unsigned long long)(count - 1));
    return count >= FOLDED && size >= notice / (count - 1) + 1 ? notice : 0;
}

size_t render_repeated_size(size_t size, uint64_t count)
{
    size_t notice = notice_size(size, count);
    return notice > 0 ? notice : size * (size_t)(count - 1);
}

int render_repeat(struct buf *out, size_t size, uint64_t count)
{
    if (notice_size(size, count) > 0)
        return buf_printf(out, REPEATED, (unsigned long long)(count - 1));
    cleanup_free char *line = count > 1 ? malloc(size) : NULL;
    if (count > 1 && !line)
        return -ENOMEM;
    if (line)
        memcpy(line, out->data + out->len - size, size);
    int e = 0;
    for (; e == 0 && count > 1; count--)
        e = buf_append(out, line, size);
    return e;
}

static int append_line(void *self, const struct render_line *line)
{
    struct buf *out = self;
    size_t before = out->len;
    int e = buf_append(out, line->text, line->size);
    if (e == 0 && line->complete)
        e = buf_str(out, "\n");
    return e == 0 ? render_repeat(out, out->len - before, line->count) : e;
}

int render_text(struct buf *out, const void *bytes, size_t size,
                const struct render_options *options)
{
    struct render *r cleanup_render = NULL;
    int e = render_new(options, append_line, out, &r);
    if (e == 0)
        e = render_feed(r, bytes, size);
    return e == 0 ? render_finish(r) : e;
}
