#include "screen/canvas.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"

/* The other screen, and no line breaks of its own; and back to what everybody begins with. */
#define ENTER "\x1b[?1049h\x1b[?7l"
#define LEAVE "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

static const struct drawn no_cell = {.cell = {.point = ' '}};

static const struct key_mode {
    uint32_t mode;
    const char *on, *off;
} key_modes[] = {
    {MODE_KEYS, "\x1b[?1h", "\x1b[?1l"},
    {MODE_KEYPAD, "\x1b=", "\x1b>"},
    {MODE_PASTE, "\x1b[?2004h", "\x1b[?2004l"},
    {MODE_FOCUS, "\x1b[?1004h", "\x1b[?1004l"},
    {MODE_MOUSE, "\x1b[?1000h", "\x1b[?1000l"},
    {MODE_MOUSE_DRAG, "\x1b[?1002h", "\x1b[?1002l"},
    {MODE_MOUSE_MOVE, "\x1b[?1003h", "\x1b[?1003l"},
    {MODE_MOUSE_SGR, "\x1b[?1006h", "\x1b[?1006l"},
};

int canvas_size(struct canvas *c, unsigned columns, unsigned rows)
{
    struct drawn *shown = calloc((size_t)columns * rows, sizeof *shown);
    struct drawn *next = calloc(columns, sizeof *next);
    if (!shown || !next) {
        free(shown);
        free(next);
        return -ENOMEM;
    }
    canvas_done(c);
    c->shown = shown;
    c->next = next;
    c->columns = columns;
    c->rows = rows;
    c->known = false;
    return 0;
}

void canvas_done(struct canvas *c)
{
    free(c->shown);
    free(c->next);
    c->shown = c->next = NULL;
}

static int set_modes(struct canvas *c, uint32_t modes, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(key_modes); i++)
        if ((c->modes ^ modes) & key_modes[i].mode)
            r = buf_str(out, modes & key_modes[i].mode ? key_modes[i].on : key_modes[i].off);
    c->modes = modes & CANVAS_KEYS;
    return r;
}

int canvas_keys_off(struct canvas *c, struct buf *out)
{
    return set_modes(c, 0, out);
}

int canvas_enter(struct canvas *c, struct buf *out)
{
    c->known = false;
    return buf_str(out, ENTER);
}

int canvas_leave(struct canvas *c, struct buf *out)
{
    int r = set_modes(c, 0, out);
    c->known = false;
    return r < 0 ? r : buf_str(out, LEAVE);
}

/* -- Pens -------------------------------------------------------------------------------------- */

static bool same_pen(const struct pen *a, const struct pen *b)
{
    return a->front == b->front && a->back == b->back && a->attributes == b->attributes;
}

static int put_colour(uint32_t colour, unsigned plain, unsigned bright, unsigned other,
                      struct buf *out)
{
    unsigned number = colour & 0xffffff;
    if (colour & COLOUR_RGB)
        return buf_printf(out, ";%u;2;%u;%u;%u", other, number >> 16, number >> 8 & 0xff,
                          number & 0xff);
    if (!(colour & COLOUR_INDEX))
        return 0;
    if (number < 16)
        return buf_printf(out, ";%u", number < 8 ? plain + number : bright + number - 8);
    return buf_printf(out, ";%u;5;%u", other, number);
}

static int take_pen(struct canvas *c, const struct pen *pen, struct buf *out)
{
    static const uint8_t codes[] = {1, 2, 3, 4, 5, 7, 8, 9}; /* by enum pen_attribute */
    if (same_pen(pen, &c->pen))
        return 0;
    int r = buf_str(out, "\x1b[0");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(codes); i++)
        if (pen->attributes >> i & 1)
            r = buf_printf(out, ";%u", codes[i]);
    if (r == 0)
        r = put_colour(pen->front, 30, 90, 38, out);
    if (r == 0)
        r = put_colour(pen->back, 40, 100, 48, out);
    c->pen = *pen;
    return r < 0 ? r : buf_str(out, "m");
}

/* -- Rows -------------------------------------------------------------------------------------- */

static bool same_cell(const struct drawn *a, const struct drawn *b)
{
    return a->cell.point == b->cell.point && a->cell.marks[0] == b->cell.marks[0] &&
           memcmp(a->cell.marks, b->cell.marks, sizeof a->cell.marks) == 0 &&
           same_pen(&a->pen, &b->pen);
}

/* No half of a wide character at an edge. */
static void trim_halves(struct drawn *row, unsigned columns, bool is_cut)
{
    for (unsigned i = 0; i < columns && row[i].cell.point == CELL_REST; i++)
        row[i].cell = no_cell.cell;
    if (!is_cut)
        return;
    unsigned last = columns - 1;
    while (last > 0 && row[last].cell.point == CELL_REST)
        last--;
    for (unsigned i = last; i < columns; i++)
        row[i].cell = no_cell.cell;
}

static void compose_row(const struct canvas *c, const struct scene *scene, unsigned at)
{
    const struct terminal *t = grid_terminal(scene->grid);
    unsigned row = scene->top + at, count = 0;
    const struct drawn *cells = NULL;
    if (at < scene->rows && row < t->rows)
        cells = grid_cells(scene->grid, row, &count);
    for (unsigned i = 0; i < c->columns; i++)
        c->next[i] = cells && scene->left + i < count ? cells[scene->left + i] : no_cell;
    unsigned end = scene->left + c->columns;
    trim_halves(c->next, c->columns, cells && end < count && cells[end].cell.point == CELL_REST);
    for (unsigned i = 0; terminal_has(t, MODE_REVERSE) && i < c->columns; i++)
        c->next[i].pen.attributes ^= cells && scene->left + i < t->columns ? PEN_REVERSE : 0;
}

static void compose_line(const struct canvas *c, const char *line)
{
    size_t size = strlen(line);
    for (unsigned i = 0; i < c->columns; i++)
        c->next[i] = (struct drawn){.cell = {.point = i < size ? (uint8_t)line[i] : ' '},
                                    .pen = {.attributes = PEN_REVERSE}};
}

static int move_to(struct canvas *c, unsigned row, unsigned column, struct buf *out)
{
    if (c->placed && c->row == row && c->column == column)
        return 0;
    c->row = row;
    c->column = column;
    c->placed = true;
    return buf_printf(out, "\x1b[%u;%uH", row + 1, column + 1);
}

static int put_cell(struct canvas *c, unsigned row, unsigned column, struct buf *out)
{
    const struct drawn *d = &c->next[column];
    char bytes[CELL_BYTES];
    int r = move_to(c, row, column, out);
    if (r == 0)
        r = take_pen(c, &d->pen, out);
    if (r == 0)
        r = buf_append(out, bytes, cell_write(&d->cell, bytes));
    c->column++;
    /* Where this terminal takes it to be wider, or less so, is not ours to know. */
    c->placed = d->cell.point < 0x80 && d->cell.marks[0] == 0;
    return r;
}

/* Blank in the plain pen from a column on. */
static unsigned plain_from(const struct canvas *c)
{
    unsigned end = c->columns;
    while (end > 0 && same_cell(&c->next[end - 1], &no_cell))
        end--;
    return end;
}

static int paint_row(struct canvas *c, unsigned at, struct buf *out)
{
    struct drawn *shown = c->shown + (size_t)at * c->columns;
    unsigned end = plain_from(c);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < end; i++) {
        bool wide = i + 1 < c->columns && c->next[i + 1].cell.point == CELL_REST;
        bool changed = !same_cell(&c->next[i], &shown[i]) ||
                       (wide && !same_cell(&c->next[i + 1], &shown[i + 1]));
        if (changed && c->next[i].cell.point != CELL_REST)
            r = put_cell(c, at, i, out);
    }
    bool rest = false;
    for (unsigned i = end; i < c->columns; i++)
        rest |= !same_cell(&shown[i], &no_cell);
    if (r == 0 && rest) {
        r = move_to(c, at, end, out);
        if (r == 0)
            r = take_pen(c, &no_cell.pen, out);
        if (r == 0)
            r = buf_str(out, "\x1b[K");
    }
    memcpy(shown, c->next, c->columns * sizeof *shown);
    return r;
}

/* -- The whole --------------------------------------------------------------------------------- */

static int clear(struct canvas *c, struct buf *out)
{
    for (size_t i = 0; i < (size_t)c->columns * c->rows; i++)
        c->shown[i] = no_cell;
    c->known = c->cursor = true;
    c->placed = false;
    c->pen = no_cell.pen;
    return buf_str(out, "\x1b[0m\x1b[2J");
}

/* Where it is in the part that is shown, if it is. */
static int put_cursor(struct canvas *c, const struct scene *scene, struct buf *out)
{
    const struct terminal *t = grid_terminal(scene->grid);
    unsigned row = t->at.row - scene->top, column = t->at.column - scene->left;
    bool inside = t->at.row >= scene->top && t->at.column >= scene->left && row < scene->rows &&
                  column < c->columns;
    bool shown = inside && terminal_has(t, MODE_CURSOR);
    int r = shown ? move_to(c, row, column, out) : 0;
    if (r == 0 && shown != c->cursor)
        r = buf_str(out, shown ? "\x1b[?25h" : "\x1b[?25l");
    c->cursor = shown;
    return r;
}

int canvas_draw(struct canvas *c, const struct scene *scene, struct buf *out)
{
    int r = c->known ? 0 : clear(c, out);
    if (r == 0)
        r = set_modes(c, scene->modes & CANVAS_KEYS, out);
    for (unsigned at = 0; r == 0 && at < c->rows; at++) {
        if (scene->line && at + 1 == c->rows)
            compose_line(c, scene->line);
        else
            compose_row(c, scene, at);
        r = paint_row(c, at, out);
    }
    return r < 0 ? r : put_cursor(c, scene, out);
}
