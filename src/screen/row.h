/*
 * One row of a terminal without a right border.
 *
 * A row is text for as long as it only grows at its end. When somebody moves inside it, it becomes
 * plain (only printable ASCII: a byte is a column) or an array of cells. Its size has a ceiling:
 * when that is reached, the middle is forgotten and only counted, and what is drawn there later is
 * not kept. Beginning and end stay, each half of what a line may show.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "screen/cell.h"

#define ROW_END       UINT64_MAX /* the column after the last one, not counted yet */
#define ROW_CELLS_MAX 4096       /* of a row in which somebody has moved */

enum row_kind { ROW_TEXT, ROW_PLAIN, ROW_CELLS };

struct row {
    enum row_kind kind;
    bool redrawn;    /* something that had been there is gone: trailing spaces are nothing then */
    uint64_t line;   /* for the owner of the row, */
    uint64_t offset; /* like this */
    size_t max;      /* bytes of text; a row in which somebody moved has less if this is a lot */
    size_t len;      /* bytes, or cells */

    /* The forgotten middle lies before unit `head`; 0 if there is none. */
    size_t head;
    uint64_t tail_column; /* the column of unit `head` */
    uint64_t lost;        /* forgotten bytes */

    char *text;
    size_t text_cap;
    struct cell *cells;
    size_t cells_cap;
};

/* What a row shows: `lost` bytes are missing before text[head] if lost > 0. */
struct row_view {
    const char *text;
    size_t size;
    size_t head;
    uint64_t lost;
};

/* A line may show line_max bytes. */
void row_init(struct row *row, size_t line_max);
void row_done(struct row *row);

/* Empties it; the memory stays for the next content. */
void row_clear(struct row *row);

bool row_empty(const struct row *row);

/* The column as a number, and how many columns there are. 0 or -ENOMEM. */
int row_locate(struct row *row, uint64_t *column);
int row_width(struct row *row, uint64_t *ret_width);

/*
 * Writes clean text without newlines (text/utf8.h) from a column on, and moves the column behind
 * it. Columns between the end of the row and the first one written become spaces. 0 or -ENOMEM.
 */
int row_put(struct row *row, uint64_t *column, const char *s, size_t size);

/* Erases from the column to the end; from the beginning up to the column and including it. The
 * column becomes a number, if it has to. 0 or -ENOMEM. */
int row_erase_after(struct row *row, uint64_t *column);
int row_erase_before(struct row *row, uint64_t *column);

/* What it shows, in the row's own memory or in the buffer, until either changes. 0 or -ENOMEM. */
int row_show(const struct row *row, struct buf *scratch, struct row_view *ret);
