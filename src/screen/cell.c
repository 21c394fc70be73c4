#include "screen/cell.h"

#include "text/utf8.h"

size_t cell_write(const struct cell *cell, char *to)
{
    if (cell->point == CELL_REST)
        return 0;
    size_t n = utf8_write(cell->point, to);
    for (int i = 0; i < CELL_MARKS && cell->marks[i] != 0; i++)
        n += utf8_write(cell->marks[i], to + n);
    return n;
}

void cell_add_mark(struct cell *cell, uint32_t point)
{
    for (int i = 0; i < CELL_MARKS; i++)
        if (cell->marks[i] == 0) {
            cell->marks[i] = point;
            return;
        }
}
