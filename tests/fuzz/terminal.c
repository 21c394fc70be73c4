/*
 * Arbitrary bytes on a terminal: the cursor stays on it, its text is valid UTF-8 without controls,
 * answers are short; and the same in whatever pieces the bytes come, and without cells.
 *
 * The input: columns, rows, a seed for the pieces, another size for the second half, the rest.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "screen/grid.h"
#include "text/utf8.h"

static void check_text(const struct buf *text)
{
    size_t at = 0;
    while (at < text->len) {
        uint32_t point;
        size_t n = utf8_next(text->data + at, text->len - at, &point);
        MUST(n > 0 && point != UTF8_INVALID);
        MUST(point >= ' ' || point == '\n');
        at += n;
    }
}

static void check_terminal(const struct terminal *t)
{
    MUST(t->at.row < t->rows && t->at.column < t->columns);
    MUST(t->top < t->bottom && t->bottom <= t->rows);
    MUST(t->left < t->right && t->right <= t->columns);
}

static void check_alike(const struct terminal *a, const struct terminal *b)
{
    MUST(a->at.row == b->at.row && a->at.column == b->at.column && a->modes == b->modes);
}

static void feed_pieces(struct grid *g, const uint8_t *s, size_t size, uint32_t seed)
{
    while (size > 0) {
        seed = seed * 1664525 + 1013904223;
        size_t n = 1 + (seed >> 16) % 7;
        n = n < size ? n : size;
        grid_feed(g, s, n);
        s += n;
        size -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct grid *a cleanup_grid = NULL, *b cleanup_grid = NULL;
    struct terminal bare;
    struct buf one = BUF_UP_TO(1 << 24), other = BUF_UP_TO(1 << 24);
    unsigned columns = take8(&in), rows = take8(&in);
    uint32_t seed = take16(&in);
    unsigned later_columns = take8(&in), later_rows = take8(&in);
    size_t half = in.left / 2;

    MUST(grid_new(columns, rows, &a) == 0 && grid_new(columns, rows, &b) == 0);
    terminal_init(&bare, columns, rows);
    grid_feed(a, in.at, half);
    feed_pieces(b, in.at, half, seed);
    terminal_feed(&bare, in.at, half);
    MUST(grid_resize(a, later_columns, later_rows) == 0);
    MUST(grid_resize(b, later_columns, later_rows) == 0);
    terminal_resize(&bare, later_columns, later_rows);
    grid_feed(a, in.at + half, in.left - half);
    feed_pieces(b, in.at + half, in.left - half, seed);
    terminal_feed(&bare, in.at + half, in.left - half);

    check_terminal(&bare);
    check_alike(grid_terminal(a), &bare);
    check_alike(grid_terminal(b), &bare);
    MUST(grid_text(a, &one) == 0 && grid_text(b, &other) == 0);
    MUST(one.len == other.len);
    MUST(one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
    check_text(&one);
    buf_done(&one);
    buf_done(&other);
    return 0;
}
