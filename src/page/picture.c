#include "page/picture.h"

#include <string.h>

#include "base/clock.h"
#include "base/sum.h"
#include "page/page.h"
#include "rpc/message.h"
#include "screen/grid.h"
#include "session/replay.h"
#include "session/session.h"

#define CHUNK         ((size_t)64 << 10)
#define DRAWN_AT_ONCE ((uint64_t)1 << 20) /* bytes of a long log; then others have their turn */
#define PAUSE_MS      40                  /* between two pictures */

struct picture {
    struct replay replay;
    uint64_t cursor; /* as far as its log was drawn */
    bool behind;     /* there is more to be drawn, or to be told of */
    int64_t next_ns; /* when it may be told of next */
    unsigned columns, rows;
    uint64_t told[TERMINAL_ROWS_MAX]; /* sums of rows that were told */
};

struct picture *picture_new(struct live_page *p, const nacre_id *id)
{
    struct picture *pic = calloc(1, sizeof *pic);
    if (!pic)
        return NULL;
    pic->behind = true;
    if (replay_begin(p->session, id, &pic->replay, NULL) == 0)
        return pic;
    picture_free(pic);
    return NULL;
}

void picture_free(struct picture *pic)
{
    if (!pic)
        return;
    replay_done(&pic->replay);
    free(pic);
}

void picture_doubt(struct picture *pic)
{
    pic->behind = true;
}

/* Whether all that is there is drawn. */
static bool draw_on(struct picture *pic)
{
    cleanup_free char *chunk = malloc(CHUNK);
    int64_t n = 1;
    for (uint64_t drawn = 0; chunk && n > 0 && drawn < DRAWN_AT_ONCE; drawn += (uint64_t)n) {
        nacre_piece piece = {0};
        n = output_read(pic->replay.session, &pic->replay.id, &pic->cursor, NACRE_BOTH, chunk,
                        CHUNK, &piece, NULL);
        replay_refresh(&pic->replay);
        if (n > 0 && replay_draw(&pic->replay, piece.offset, chunk, (size_t)n) < 0)
            n = -1;
        if (n < 0)
            break;
    }
    return n <= 0 && replay_finish(&pic->replay) == 0;
}

bool picture_step(struct picture *pic, int64_t now_ns)
{
    if (!pic->behind || now_ns < pic->next_ns)
        return false;
    if (!draw_on(pic))
        return false;
    pic->behind = false;
    pic->next_ns = now_ns + PAUSE_MS * NS_PER_MS;
    return true;
}

int64_t picture_deadline(const struct picture *pic)
{
    return pic->behind ? pic->next_ns : INT64_MAX;
}

/* -- As text ---------------------------------------------------------------------------------- */

/* ["text", attributes, front, back], with colours as the terminal has them. */
static int write_stretch(void *self, const char *text, size_t size, const struct pen *pen)
{
    struct buf *out = self;
    int r = buf_str(out, out->data[out->len - 1] == '[' ? "[" : ",[");
    if (r == 0)
        r = rpc_append_string(out, text, size);
    return r < 0 ? r : buf_printf(out, ",%u,%u,%u]", pen->attributes, pen->front, pen->back);
}

/* The sum is of whole groups of eight bytes. */
static uint64_t row_sum(struct buf *text)
{
    static const char nothing[8];
    buf_append(text, nothing, sizeof nothing);
    return sum64(text->data, text->len) | 1;
}

static int write_picture_rows(struct picture *pic, bool all, struct buf *out)
{
    const struct grid *grid = pic->replay.grid;
    int r = 0;
    for (unsigned i = 0, n = 0; r == 0 && i < pic->rows; i++) {
        struct buf row cleanup_buf = BUF_UP_TO((size_t)1 << 20);
        r = buf_str(&row, "[");
        if (r == 0)
            r = grid_stretches(grid, i, write_stretch, &row);
        if (r == 0)
            r = buf_str(&row, "]");
        size_t size = row.len;
        uint64_t sum = r == 0 ? row_sum(&row) : 0;
        if (r < 0 || (!all && sum == pic->told[i]))
            continue;
        if (!all)
            pic->told[i] = sum;
        r = buf_printf(out, "%s\"%u\":", n++ > 0 ? "," : "", i);
        if (r == 0)
            r = buf_append(out, row.data, size);
    }
    return r;
}

/* Who hears all of it hears what changes from then on, too, as everybody does: so what was told to
 * all stays as it is. */
int picture_write(struct picture *pic, bool all, struct buf *out)
{
    const struct terminal *t = grid_terminal(pic->replay.grid);
    if (t->columns != pic->columns || t->rows != pic->rows) {
        memset(pic->told, 0, sizeof pic->told);
        pic->columns = t->columns;
        pic->rows = t->rows;
    }
    int r = buf_printf(out,
                       "event: screen\ndata: {\"id\":\"%s\",\"columns\":%u,\"rows\":%u,"
                       "\"row\":%d,\"column\":%d,\"alternate\":%s,\"cursor_keys\":%s,"
                       "\"paste\":%s,\"all\":%s,\"lines\":{",
                       nacre_id_format(&pic->replay.id).s, t->columns, t->rows,
                       terminal_has(t, MODE_CURSOR) ? (int)t->at.row : -1, (int)t->at.column,
                       terminal_has(t, MODE_ALTERNATE) ? "true" : "false",
                       terminal_has(t, MODE_KEYS) ? "true" : "false",
                       terminal_has(t, MODE_PASTE) ? "true" : "false", all ? "true" : "false");
    if (r == 0)
        r = write_picture_rows(pic, all, out);
    return r < 0 ? r : buf_str(out, "}}\n\n");
}
