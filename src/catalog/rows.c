#include "catalog/rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"

int rows_add_consume(struct rows *rows, void *row)
{
    cleanup_free void *mine = row;
    if (!mine)
        return SQLITE_NOMEM;
    if (rows->count == rows->room) {
        size_t room = MAX(rows->room * 2, (size_t)16);
        void **items = reallocarray(rows->items, room, sizeof *items);
        if (!items)
            return SQLITE_NOMEM;
        rows->items = items;
        rows->room = room;
    }
    rows->items[rows->count++] = TAKE_PTR(mine);
    return 0;
}

void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i]);
    free(rows->items);
    *rows = (struct rows){0};
}

struct row rows_new(size_t size, const char *const *strings, size_t count)
{
    size_t room = size;
    for (size_t i = 0; i < count; i++)
        room += strlen(strings[i]) + 1;
    char *block = malloc(room);
    return (struct row){.block = block, .next = block ? block + size : NULL};
}

const char *rows_copy(struct row *row, const char *string)
{
    char *copy = row->next;
    size_t size = strlen(string) + 1;
    memcpy(copy, string, size);
    row->next += size;
    return copy;
}
