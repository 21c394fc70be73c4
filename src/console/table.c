#include "console/table.h"

#include <string.h>

#include "base/grow.h"

#define GAP      2
#define LAST_MIN 12 /* columns that the last one shall have at least, before others leave */
#define LAST_LOW 8  /* and in any case */

void table_init(struct table *t, const struct table_column *columns, size_t count)
{
    *t = (struct table){.columns = columns, .count = MIN(count, (size_t)TABLE_COLUMNS_MAX)};
}

static void free_row(struct table_row *row)
{
    for (size_t i = 0; i < TABLE_COLUMNS_MAX; i++)
        free(row->cells[i]);
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->row_count; i++)
        free_row(&t->rows[i]);
    free(t->rows);
    *t = (struct table){0};
}

/* One line without controls; plain ASCII, which nearly all cells are, is that already. */
static char *harmless(const char *cell)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    cell = cell && *cell ? cell : "-";
    const char *p = cell;
    while (*p >= ' ' && *p < 0x7f)
        p++;
    if (*p == '\0')
        return strdup(cell);
    return brief_line(&text, cell, COLUMNS_UNLIMITED) < 0 ? NULL : buf_take(&text);
}

int table_add(struct table *t, const char *const *cells, const char *colour)
{
    if (GROW(t->rows, t->row_count, t->cap) < 0)
        return -ENOMEM;
    struct table_row row = {.colour = colour};
    for (size_t i = 0; i < t->count; i++)
        if (!(row.cells[i] = harmless(cells[i]))) {
            free_row(&row);
            return -ENOMEM;
        } else {
            row.widths[i] = brief_columns(row.cells[i]);
        }
    t->rows[t->row_count++] = row;
    return 0;
}

/* How wide each column is, and which of them are shown. */
struct table_layout {
    size_t widths[TABLE_COLUMNS_MAX];
    bool hidden[TABLE_COLUMNS_MAX];
    size_t last; /* columns for the last one */
};

static size_t used_by(const struct table *t, const struct table_layout *l)
{
    size_t used = 0;
    for (size_t i = 0; i + 1 < t->count; i++)
        used += l->hidden[i] ? 0 : l->widths[i] + GAP;
    return used;
}

/* False if none can leave any more. */
static bool hide_one(const struct table *t, struct table_layout *l)
{
    size_t found = t->count;
    for (size_t i = 0; i < t->count; i++)
        if (!l->hidden[i] && t->columns[i].rank > 0 &&
            (found == t->count || t->columns[i].rank > t->columns[found].rank))
            found = i;
    if (found == t->count)
        return false;
    l->hidden[found] = true;
    return true;
}

static struct table_layout measure_table(const struct table *t, size_t columns, size_t rows)
{
    struct table_layout l = {.last = COLUMNS_UNLIMITED};
    memcpy(l.hidden, t->hidden, sizeof l.hidden);
    for (size_t i = 0; i < t->count; i++) {
        l.widths[i] = brief_columns(t->columns[i].title);
        for (size_t j = 0; j < rows; j++)
            l.widths[i] = MAX(l.widths[i], t->rows[j].widths[i]);
    }
    if (columns == COLUMNS_UNLIMITED)
        return l;
    while (used_by(t, &l) + MIN(l.widths[t->count - 1], (size_t)LAST_MIN) > columns &&
           hide_one(t, &l))
        ;
    size_t used = used_by(t, &l);
    l.last = columns > used + LAST_LOW ? columns - used : LAST_LOW;
    return l;
}

static int append_blanks(struct buf *out, size_t count)
{
    static const char blanks[] = "                                ";
    int r = 0;
    for (; r == 0 && count > 0; count -= MIN(count, sizeof blanks - 1))
        r = buf_append(out, blanks, MIN(count, sizeof blanks - 1));
    return r;
}

static int pad_cell(struct buf *out, const char *cell, size_t have, size_t width, bool right)
{
    size_t room = width - MIN(width, have);
    int r = right ? append_blanks(out, room) : 0;
    if (r == 0)
        r = buf_str(out, cell);
    return r < 0 ? r : append_blanks(out, (right ? 0 : room) + GAP);
}

static int append_row(const struct table *t, const struct table_layout *l,
                      const struct table_row *row, const char *off, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i + 1 < t->count; i++) {
        if (l->hidden[i])
            continue;
        if (i == 0)
            r = buf_str(out, row->colour);
        if (r == 0)
            r = pad_cell(out, row->cells[i], row->widths[i], l->widths[i], t->columns[i].right);
        if (r == 0 && i == 0)
            r = buf_str(out, off);
    }
    if (r == 0)
        r = brief_line(out, row->cells[t->count - 1], l->last);
    return r < 0 ? r : buf_str(out, "\n");
}

int table_format_plain(const struct table *t, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < t->row_count; i++)
        for (size_t j = 0; r == 0 && j < t->count; j++)
            r = buf_printf(out, "%s%s", t->rows[i].cells[j], j + 1 < t->count ? "\t" : "\n");
    return r;
}

int table_format(const struct table *t, const struct paint *paint, size_t columns, size_t max_rows,
                 struct buf *out)
{
    size_t rows = MIN(t->row_count, max_rows);
    struct table_layout l = measure_table(t, columns, rows);
    struct table_row titles = {.colour = ""};
    int r = 0;
    for (size_t i = 0; i < t->count; i++) {
        titles.cells[i] = (char *)t->columns[i].title;
        titles.widths[i] = brief_columns(t->columns[i].title);
    }
    r = buf_str(out, paint->dim);
    if (r == 0)
        r = append_row(t, &l, &titles, "", out);
    if (r == 0)
        r = buf_str(out, paint->off);
    for (size_t i = 0; r == 0 && i < rows; i++)
        r = append_row(t, &l, &t->rows[i], paint->off, out);
    return r;
}
