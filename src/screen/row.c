#include "screen/row.h"

#include <string.h>

#include "base/defs.h"
#include "text/utf8.h"

#define TAB 8

static const struct cell blank_cell = {.point = ' '};

void row_init(struct row *row, size_t line_max)
{
    *row = (struct row){.max = 2 * line_max};
}

void row_done(struct row *row)
{
    free(row->text);
    free(row->cells);
}

static void close_gap(struct row *row)
{
    row->head = 0;
    row->tail_column = 0;
    row->lost = 0;
}

void row_clear(struct row *row)
{
    row->kind = ROW_TEXT;
    row->redrawn = false;
    row->len = 0;
    close_gap(row);
}

static bool has_gap(const struct row *row)
{
    return row->lost > 0;
}

bool row_empty(const struct row *row)
{
    return row->len == 0 && !has_gap(row);
}

/* -- Units and columns: bytes or cells, the same in a plain row and in one of cells ------------ */

static size_t units_max(const struct row *row)
{
    return row->kind == ROW_TEXT ? row->max : MIN(row->max, (size_t)ROW_CELLS_MAX);
}

static uint64_t width(const struct row *row)
{
    return row->tail_column + (row->len - row->head);
}

static bool in_gap(const struct row *row, uint64_t column)
{
    return column >= row->head && column < row->tail_column;
}

static size_t unit_at(const struct row *row, uint64_t column)
{
    return (size_t)(column < row->head ? column : row->head + (column - row->tail_column));
}

/* Where the stretch of units ends that unit is in: at the gap, or at the end. */
static size_t stretch_end(const struct row *row, size_t unit)
{
    return unit < row->head ? row->head : row->len;
}

/* The column behind text that begins at a column. */
static uint64_t columns_after(uint64_t column, const char *s, size_t size)
{
    while (size > 0) {
        uint32_t point;
        size_t n = scan_plain(s, size);
        if (n > 0) {
            column += n;
        } else {
            n = utf8_next(s, size, &point);
            column += point == '\t' ? TAB - column % TAB : utf8_width(point);
        }
        s += n;
        size -= n;
    }
    return column;
}

static uint64_t bytes_between(const struct row *row, size_t from, size_t to)
{
    char bytes[CELL_BYTES];
    uint64_t sum = 0;
    if (row->kind != ROW_CELLS)
        return to - from;
    for (size_t i = from; i < to; i++)
        sum += cell_write(&row->cells[i], bytes);
    return sum;
}

/* Whether a character goes on at this unit. */
static bool is_inside_character(const struct row *row, size_t unit)
{
    if (unit >= row->len)
        return false;
    if (row->kind == ROW_CELLS)
        return row->cells[unit].point == CELL_REST;
    return ((uint8_t)row->text[unit] & 0xc0) == 0x80;
}

static size_t unit_size(const struct row *row)
{
    return row->kind == ROW_CELLS ? sizeof(struct cell) : 1;
}

static char *units(const struct row *row)
{
    return row->kind == ROW_CELLS ? (char *)row->cells : row->text;
}

/*
 * Forgets the middle, so that a quarter of the room is used before it and a quarter after it. The
 * column of what follows is known before and after.
 */
static void forget_middle(struct row *row)
{
    size_t max = units_max(row), size = unit_size(row);
    size_t head = has_gap(row) ? MIN(row->head, max / 4) : max / 4;
    size_t tail = row->len - max / 4;
    while (is_inside_character(row, head))
        head--;
    while (is_inside_character(row, tail))
        tail++;

    if (row->kind == ROW_TEXT)
        row->tail_column =
            columns_after(has_gap(row) ? row->tail_column : columns_after(0, row->text, head),
                          row->text + head, tail - head);
    else
        row->tail_column = width(row) - (row->len - tail);
    row->lost += bytes_between(row, head, tail);
    memmove(units(row) + head * size, units(row) + tail * size, (row->len - tail) * size);
    row->len -= tail - head;
    row->head = head;
}

/* Memory for so many more units, which are within the ceiling. */
static int grow_row(struct row *row, size_t more)
{
    size_t need = row->len + more;
    size_t *cap = row->kind == ROW_CELLS ? &row->cells_cap : &row->text_cap;
    if (need <= *cap)
        return 0;
    size_t grown = MIN(MAX(MAX(need, 2 * *cap), (size_t)128), units_max(row));
    void *data = realloc(units(row), grown * unit_size(row));
    if (!data)
        return -ENOMEM;
    if (row->kind == ROW_CELLS)
        row->cells = data;
    else
        row->text = data;
    *cap = grown;
    return 0;
}

/* -- Text ------------------------------------------------------------------------------------- */

/* The ceiling is met at the same byte in whatever pieces the text comes. */
static int append_bytes(struct row *row, const char *s, size_t size)
{
    while (size > 0) {
        if (row->len == units_max(row))
            forget_middle(row);
        size_t n = MIN(size, units_max(row) - row->len);
        int r = grow_row(row, n);
        if (r < 0)
            return r;
        memcpy(row->text + row->len, s, n);
        row->len += n;
        s += n;
        size -= n;
    }
    return 0;
}

/* -- Cells ------------------------------------------------------------------------------------ */

static int append_point(struct row *row, uint32_t point, size_t columns)
{
    if (row->len + columns > units_max(row))
        forget_middle(row);
    int r = grow_row(row, columns);
    if (r < 0)
        return r;
    row->cells[row->len++] = (struct cell){.point = point};
    for (size_t i = 1; i < columns; i++)
        row->cells[row->len++] = (struct cell){.point = CELL_REST};
    return 0;
}

/* Spaces up to a column, for a row that is not that wide. */
static int pad(struct row *row, uint64_t column)
{
    static const char spaces[] = "                                ";
    int r = 0;
    while (r == 0 && width(row) < column) {
        if (row->kind == ROW_PLAIN)
            r = append_bytes(row, spaces, (size_t)MIN(column - width(row), sizeof spaces - 1));
        else
            r = append_point(row, ' ', 1);
    }
    return r;
}

/* A character of which one column is drawn over or erased becomes spaces. */
static void break_up(struct row *row, size_t unit)
{
    size_t end = stretch_end(row, unit);
    while (unit > 0 && is_inside_character(row, unit))
        unit--;
    do
        row->cells[unit++] = blank_cell;
    while (unit < end && is_inside_character(row, unit));
}

/* The mark belongs to the character before the column; before the first one there is none. */
static void put_mark(struct row *row, uint64_t column, uint32_t point)
{
    if (column == 0 || column > width(row) || in_gap(row, column - 1))
        return;
    size_t unit = unit_at(row, column - 1);
    while (unit > 0 && is_inside_character(row, unit))
        unit--;
    cell_add_mark(&row->cells[unit], point);
}

/* Draws over what is there; a part of it may lie behind the end. */
static int overwrite(struct row *row, uint64_t column, uint32_t point, size_t columns)
{
    for (size_t i = 0; i < columns; i++)
        if (in_gap(row, column + i))
            return 0;
    size_t unit = unit_at(row, column);
    for (size_t i = 0; i < columns && unit + i < row->len; i++)
        break_up(row, unit + i);
    row->redrawn = true;
    if (unit + columns > row->len) {
        row->len = unit;
        return append_point(row, point, columns);
    }
    row->cells[unit] = (struct cell){.point = point};
    for (size_t i = 1; i < columns; i++)
        row->cells[unit + i] = (struct cell){.point = CELL_REST};
    return 0;
}

static int put_point(struct row *row, uint64_t *column, uint32_t point)
{
    uint64_t at = *column;
    size_t columns = point == '\t' ? TAB - at % TAB : utf8_width(point);
    *column += columns;
    if (columns == 0) {
        put_mark(row, at, point);
        return 0;
    }
    if (at >= width(row)) {
        int r = pad(row, at);
        return r < 0 ? r : append_point(row, point, columns);
    }
    /* Over what is there a tab only moves. */
    return point == '\t' ? 0 : overwrite(row, at, point, columns);
}

static int put_points(struct row *row, uint64_t *column, const char *s, size_t size)
{
    int r = 0;
    while (size > 0 && r == 0) {
        uint32_t point;
        size_t n = utf8_next(s, size, &point);
        r = put_point(row, column, point);
        s += n;
        size -= n;
    }
    return r;
}

/* What follows stands behind a gap, whatever was forgotten while the text before it was read. */
static void reopen_gap(struct row *row, uint64_t tail_column, uint64_t lost)
{
    if (has_gap(row)) {
        row->lost += bytes_between(row, row->head, row->len);
        row->len = row->head;
    }
    row->head = row->len;
    row->tail_column = tail_column;
    row->lost += lost;
}

/* Text, plain or not, as cells. */
static int become_cells(struct row *row)
{
    struct row old = *row;
    uint64_t column = 0;
    size_t before = has_gap(row) ? row->head : row->len;
    row->kind = ROW_CELLS;
    row->len = 0;
    close_gap(row);

    int r = put_points(row, &column, old.text, before);
    if (r == 0 && has_gap(&old)) {
        reopen_gap(row, old.tail_column, old.lost);
        column = old.tail_column;
        r = put_points(row, &column, old.text + before, old.len - before);
    }
    return r;
}

/* Columns are needed. */
static int settle_columns(struct row *row)
{
    if (row->kind != ROW_TEXT)
        return 0;
    if (scan_plain(row->text, row->len) < row->len)
        return become_cells(row);
    row->kind = ROW_PLAIN;
    if (row->len > units_max(row))
        forget_middle(row);
    return 0;
}

/* -- Plain rows ------------------------------------------------------------------------------- */

/* In the gap it is lost. */
static int put_plain(struct row *row, uint64_t *column, const char *s, size_t size)
{
    while (size > 0) {
        size_t n;
        if (*column >= width(row)) {
            int r = pad(row, *column);
            *column += size;
            return r < 0 ? r : append_bytes(row, s, size);
        }
        if (in_gap(row, *column)) {
            n = (size_t)MIN((uint64_t)size, row->tail_column - *column);
        } else {
            size_t unit = unit_at(row, *column);
            n = MIN(size, stretch_end(row, unit) - unit);
            memcpy(row->text + unit, s, n);
            row->redrawn = true;
        }
        *column += n;
        s += n;
        size -= n;
    }
    return 0;
}

/* -- The interface ---------------------------------------------------------------------------- */

int row_width(struct row *row, uint64_t *ret_width)
{
    int r = settle_columns(row);
    if (r == 0)
        *ret_width = width(row);
    return r;
}

int row_locate(struct row *row, uint64_t *column)
{
    if (*column != ROW_END)
        return 0;
    if (!row_empty(row))
        return row_width(row, column);
    *column = 0;
    return 0;
}

int row_put(struct row *row, uint64_t *column, const char *s, size_t size)
{
    if (row->kind == ROW_TEXT && (*column == ROW_END || (*column == 0 && row_empty(row)))) {
        *column = ROW_END;
        return append_bytes(row, s, size);
    }
    int r = row_locate(row, column);
    if (r == 0)
        r = settle_columns(row);
    while (r == 0 && size > 0) {
        if (row->kind == ROW_CELLS)
            return put_points(row, column, s, size);
        size_t n = scan_plain(s, size);
        r = n > 0 ? put_plain(row, column, s, n) : become_cells(row);
        s += n;
        size -= n;
    }
    return r;
}

int row_erase_after(struct row *row, uint64_t *column)
{
    if (*column == ROW_END || row_empty(row))
        return 0;
    if (*column == 0) {
        row_clear(row);
        row->redrawn = true;
        return 0;
    }
    int r = settle_columns(row);
    if (r < 0 || *column >= width(row))
        return r;
    row->redrawn = true;
    if (in_gap(row, *column)) {
        /* A column is a byte at least; something stays forgotten. */
        row->lost -= MIN(row->lost - 1, row->tail_column - *column);
        row->len = row->head;
        row->tail_column = *column;
        return 0;
    }
    size_t unit = unit_at(row, *column);
    if (row->kind == ROW_CELLS && is_inside_character(row, unit))
        break_up(row, unit);
    row->len = unit;
    if (unit < row->head)
        close_gap(row);
    return 0;
}

static void blank(struct row *row, size_t from, size_t to)
{
    if (row->kind == ROW_PLAIN && to > from)
        memset(row->text + from, ' ', to - from);
    for (size_t i = from; row->kind == ROW_CELLS && i < to; i++)
        row->cells[i] = blank_cell;
}

int row_erase_before(struct row *row, uint64_t *column)
{
    int r = row_locate(row, column);
    if (r == 0)
        r = settle_columns(row);
    if (r < 0)
        return r;
    if (*column + 1 >= width(row)) {
        row_clear(row);
        row->redrawn = true;
        return 0;
    }
    row->redrawn = true;
    size_t end = in_gap(row, *column) ? row->head : unit_at(row, *column) + 1;
    if (row->kind == ROW_CELLS && is_inside_character(row, end))
        break_up(row, end);
    blank(row, 0, end);
    return 0;
}

static int show_cells(const struct row *row, struct buf *scratch, struct row_view *ret)
{
    scratch->len = 0;
    for (size_t i = 0; i < row->len; i++) {
        char bytes[CELL_BYTES];
        if (i == row->head)
            ret->head = scratch->len;
        int r = buf_append(scratch, bytes, cell_write(&row->cells[i], bytes));
        if (r < 0)
            return r;
    }
    if (row->head == row->len)
        ret->head = scratch->len;
    ret->text = scratch->data;
    ret->size = scratch->len;
    return 0;
}

int row_show(const struct row *row, struct buf *scratch, struct row_view *ret)
{
    *ret = (struct row_view){row->text, row->len, row->head, row->lost};
    int r = row->kind == ROW_CELLS ? show_cells(row, scratch, ret) : 0;
    while (row->redrawn && ret->size > ret->head && ret->text[ret->size - 1] == ' ')
        ret->size--;
    return r;
}
