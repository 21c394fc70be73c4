#include "screen/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"

/* What lies behind the used ones is blank, as on a screen that was just cleared. */
struct grid_row {
    struct drawn *cells;
    unsigned used;
};

struct sheet {
    struct drawn *memory;
    struct grid_row rows[TERMINAL_ROWS_MAX];
};

struct grid {
    struct terminal terminal;
    struct sheet sheets[2]; /* the usual one, and that of programs that fill it */
    struct sheet *sheet;    /* of both */
};

static const struct drawn blank_drawn = {.cell = {.point = ' '}};

static struct drawn blank_of(const struct pen *pen)
{
    struct drawn d = blank_drawn;
    d.pen.back = pen->back;
    return d;
}

static void swap_rows(struct grid_row *a, struct grid_row *b)
{
    struct grid_row row = *a;
    *a = *b;
    *b = row;
}

/* -- In a row ---------------------------------------------------------------------------------- */

static void use_up_to(struct grid_row *row, unsigned column)
{
    while (row->used < column)
        row->cells[row->used++] = blank_drawn;
}

static bool is_second_half(const struct grid_row *row, unsigned column)
{
    return column < row->used && row->cells[column].cell.point == CELL_REST;
}

/* No half of a character is left where a stretch begins or ends that is about to change. */
static void split_character(struct grid_row *row, unsigned column)
{
    if (!is_second_half(row, column))
        return;
    row->cells[column].cell = blank_drawn.cell;
    if (column > 0)
        row->cells[column - 1].cell = blank_drawn.cell;
}

static void open_stretch(struct grid_row *row, unsigned from, unsigned to)
{
    use_up_to(row, from);
    split_character(row, from);
    split_character(row, to);
    row->used = MAX(row->used, to);
}

static void draw_run(void *self, unsigned at, unsigned column, const char *s, size_t size,
                     const struct pen *pen)
{
    const struct grid *g = self;
    struct grid_row *row = &g->sheet->rows[at];
    open_stretch(row, column, column + (unsigned)size);
    struct drawn *to = row->cells + column;
    for (size_t i = 0; i < size; i++)
        to[i] = (struct drawn){{.point = (uint8_t)s[i]}, *pen};
}

static void draw_one(void *self, unsigned at, unsigned column, uint32_t point, unsigned width,
                     const struct pen *pen)
{
    const struct grid *g = self;
    struct grid_row *row = &g->sheet->rows[at];
    open_stretch(row, column, column + width);
    for (unsigned i = 0; i < width; i++)
        row->cells[column + i] = (struct drawn){{.point = i == 0 ? point : CELL_REST}, *pen};
}

static void mark(void *self, unsigned at, unsigned column, uint32_t point)
{
    const struct grid *g = self;
    struct grid_row *row = &g->sheet->rows[at];
    use_up_to(row, column + 1);
    if (is_second_half(row, column) && column > 0)
        column--;
    cell_add_mark(&row->cells[column].cell, point);
}

static void erase_row(struct grid_row *row, unsigned from, unsigned to, const struct pen *pen)
{
    if (pen->back == 0 && to >= row->used) {
        split_character(row, from);
        row->used = MIN(row->used, from);
        return;
    }
    open_stretch(row, from, to);
    for (unsigned i = from; i < to; i++)
        row->cells[i] = blank_of(pen);
}

static void erase(void *self, unsigned row, unsigned from, unsigned to, const struct pen *pen)
{
    const struct grid *g = self;
    erase_row(&g->sheet->rows[row], from, to, pen);
}

static void shift(void *self, unsigned at, unsigned from, unsigned to, int by,
                  const struct pen *pen)
{
    const struct grid *g = self;
    struct grid_row *row = &g->sheet->rows[at];
    unsigned count = MIN((unsigned)(by < 0 ? -by : by), to - from), left = to - from - count;
    use_up_to(row, to);
    split_character(row, from);
    split_character(row, to);
    struct drawn *cells = row->cells + from;
    if (by > 0) {
        split_character(row, from + left);
        memmove(cells + count, cells, left * sizeof *cells);
        erase_row(row, from, from + count, pen);
    } else {
        split_character(row, from + count);
        memmove(cells, cells + count, left * sizeof *cells);
        erase_row(row, to - count, to, pen);
    }
}

/* -- Of rows ----------------------------------------------------------------------------------- */

/* By one, up or down: the row that leaves is the one that comes. */
static void rotate(struct grid_row *rows, unsigned top, unsigned bottom, bool up)
{
    for (unsigned i = top; up && i + 1 < bottom; i++)
        swap_rows(&rows[i], &rows[i + 1]);
    for (unsigned i = bottom - 1; !up && i > top; i--)
        swap_rows(&rows[i], &rows[i - 1]);
}

static void scroll_whole(struct grid_row *rows, unsigned top, unsigned bottom, unsigned columns,
                         int by, const struct pen *pen)
{
    unsigned count = MIN((unsigned)(by < 0 ? -by : by), bottom - top);
    for (unsigned i = 0; i < count; i++) {
        rotate(rows, top, bottom, by > 0);
        erase_row(&rows[by > 0 ? bottom - 1 : top], 0, columns, pen);
    }
}

static void copy_part(struct grid_row *to, struct grid_row *from, unsigned left, unsigned right)
{
    use_up_to(from, right);
    use_up_to(to, right);
    split_character(from, left);
    split_character(from, right);
    split_character(to, left);
    split_character(to, right);
    memcpy(to->cells + left, from->cells + left, (right - left) * sizeof *to->cells);
}

static void scroll_part(struct grid_row *rows, unsigned top, unsigned bottom, unsigned left,
                        unsigned right, int by, const struct pen *pen)
{
    unsigned count = MIN((unsigned)(by < 0 ? -by : by), bottom - top), stay = bottom - top - count;
    for (unsigned i = 0; i < stay; i++) {
        unsigned to = by > 0 ? top + i : bottom - 1 - i;
        copy_part(&rows[to], &rows[by > 0 ? to + count : to - count], left, right);
    }
    for (unsigned i = 0; i < count; i++)
        erase_row(&rows[by > 0 ? bottom - 1 - i : top + i], left, right, pen);
}

static void scroll(void *self, unsigned top, unsigned bottom, unsigned left, unsigned right, int by,
                   const struct pen *pen)
{
    const struct grid *g = self;
    if (left == 0 && right == g->terminal.columns)
        scroll_whole(g->sheet->rows, top, bottom, right, by, pen);
    else
        scroll_part(g->sheet->rows, top, bottom, left, right, by, pen);
}

static void choose(void *self, bool alternate)
{
    struct grid *g = self;
    g->sheet = &g->sheets[alternate];
}

static const struct paper_ops grid_ops = {draw_run, draw_one, mark, erase, scroll, shift, choose};

/* -- Memory ------------------------------------------------------------------------------------ */

static int sheet_open(struct sheet *sheet, unsigned columns, unsigned rows)
{
    sheet->memory = calloc((size_t)columns * rows, sizeof *sheet->memory);
    if (!sheet->memory)
        return -ENOMEM;
    for (unsigned i = 0; i < rows; i++)
        sheet->rows[i] = (struct grid_row){.cells = sheet->memory + (size_t)i * columns};
    return 0;
}

int grid_new(unsigned columns, unsigned rows, struct grid **ret)
{
    struct grid *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    terminal_init(&g->terminal, columns, rows);
    g->terminal.paper = &grid_ops;
    g->terminal.paper_self = g;
    g->sheet = &g->sheets[0];
    for (int i = 0; i < 2; i++)
        if (sheet_open(&g->sheets[i], g->terminal.columns, g->terminal.rows) < 0) {
            grid_free(g);
            return -ENOMEM;
        }
    *ret = g;
    return 0;
}

void grid_free(struct grid *g)
{
    for (int i = 0; g && i < 2; i++)
        free(g->sheets[i].memory);
    free(g);
}

/* Those rows of the old one from `skip` on that have room in the new one. */
static void copy_sheet(struct sheet *to, const struct terminal *size, const struct sheet *from,
                       unsigned rows, unsigned skip)
{
    for (unsigned i = 0; i < size->rows && i + skip < rows; i++) {
        const struct grid_row *old = &from->rows[i + skip];
        struct grid_row *row = &to->rows[i];
        row->used = MIN(old->used, (unsigned)size->columns);
        memcpy(row->cells, old->cells, row->used * sizeof *row->cells);
        /* Of a wide character that is cut the first half is no character. */
        if (is_second_half(old, row->used) && row->used > 0)
            row->cells[row->used - 1].cell = blank_drawn.cell;
    }
}

int grid_resize(struct grid *g, unsigned columns, unsigned rows)
{
    struct terminal size;
    struct sheet sheets[2] = {0};
    unsigned old_rows = g->terminal.rows;
    terminal_init(&size, columns, rows);
    if (sheet_open(&sheets[0], size.columns, size.rows) < 0 ||
        sheet_open(&sheets[1], size.columns, size.rows) < 0) {
        free(sheets[0].memory);
        return -ENOMEM;
    }
    unsigned gone = terminal_resize(&g->terminal, columns, rows);
    for (int i = 0; i < 2; i++) {
        bool is_shown = g->sheet == &g->sheets[i];
        copy_sheet(&sheets[i], &size, &g->sheets[i], old_rows, is_shown ? gone : 0);
        free(g->sheets[i].memory);
        g->sheets[i] = sheets[i];
    }
    return 0;
}

const struct terminal *grid_terminal(const struct grid *g)
{
    return &g->terminal;
}

void grid_feed(struct grid *g, const void *bytes, size_t size)
{
    terminal_feed(&g->terminal, bytes, size);
}

const struct drawn *grid_cells(const struct grid *g, unsigned at, unsigned *ret_count)
{
    *ret_count = g->sheet->rows[at].used;
    return g->sheet->rows[at].cells;
}

/* -- As text ----------------------------------------------------------------------------------- */

static bool is_empty_cell(const struct drawn *d)
{
    return d->cell.point == ' ' && d->cell.marks[0] == 0;
}

/* Columns up to the last that is not blank_drawn. */
static unsigned row_extent(const struct grid_row *row)
{
    unsigned n = row->used;
    while (n > 0 && is_empty_cell(&row->cells[n - 1]))
        n--;
    return n;
}

unsigned grid_height(const struct grid *g)
{
    unsigned n = g->terminal.rows;
    while (n > 0 && row_extent(&g->sheet->rows[n - 1]) == 0)
        n--;
    return n;
}

int grid_row(const struct grid *g, unsigned at, struct buf *out)
{
    const struct grid_row *row = &g->sheet->rows[at];
    unsigned end = row_extent(row);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < end; i++) {
        char bytes[CELL_BYTES];
        r = buf_append(out, bytes, cell_write(&row->cells[i].cell, bytes));
    }
    return r;
}

/* Blanks that can be seen count here. */
static unsigned drawn_extent(const struct grid_row *row)
{
    unsigned n = row->used;
    while (n > 0 && is_empty_cell(&row->cells[n - 1]) && row->cells[n - 1].pen.back == 0 &&
           !(row->cells[n - 1].pen.attributes & (PEN_REVERSE | PEN_UNDERLINE | PEN_STRUCK)))
        n--;
    return n;
}

int grid_stretches(const struct grid *g, unsigned at, grid_stretch_fn *fn, void *self)
{
    const struct grid_row *row = &g->sheet->rows[at];
    struct buf text cleanup_buf = BUF_UP_TO(CELL_BYTES * TERMINAL_COLUMNS_MAX + 1);
    unsigned end = drawn_extent(row);
    int r = 0;
    for (unsigned i = 0, next; r == 0 && i < end; i = next) {
        const struct pen *pen = &row->cells[i].pen;
        text.len = 0;
        for (next = i; r == 0 && next < end; next++) {
            char bytes[CELL_BYTES];
            if (memcmp(&row->cells[next].pen, pen, sizeof *pen) != 0)
                break;
            r = buf_append(&text, bytes, cell_write(&row->cells[next].cell, bytes));
        }
        if (r == 0 && text.len > 0)
            r = fn(self, text.data, text.len, pen);
    }
    return r;
}

int grid_text(const struct grid *g, struct buf *out)
{
    int r = 0;
    for (unsigned i = 0, n = grid_height(g); r == 0 && i < n; i++) {
        r = grid_row(g, i, out);
        if (r == 0)
            r = buf_str(out, "\n");
    }
    return r;
}

static bool is_raised(const struct drawn *d)
{
    return d->pen.back != 0 || (d->pen.attributes & PEN_REVERSE);
}

static bool row_is_raised(const struct grid *g, unsigned at)
{
    const struct grid_row *row = &g->sheet->rows[at];
    unsigned end = row_extent(row), seen = 0;
    for (unsigned i = 0; i < end; i++) {
        if (is_empty_cell(&row->cells[i]))
            continue;
        if (!is_raised(&row->cells[i]))
            return false;
        seen++;
    }
    return seen > 0;
}

bool grid_row_stands_out(const struct grid *g, unsigned at)
{
    return row_is_raised(g, at) && (at == 0 || !row_is_raised(g, at - 1)) &&
           (at + 1u >= g->terminal.rows || !row_is_raised(g, at + 1));
}
