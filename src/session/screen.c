/* The screen of a shell: its log drawn again, with the sizes that the terminal had. */
#include <nacre/view.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "session/replay.h"
#include "session/session.h"

#define CHUNK    ((size_t)64 * 1024)
#define TEXT_MAX ((size_t)8 * 1024 * 1024)

static int draw_log(struct replay *r, nacre_error *err)
{
    cleanup_free char *chunk = malloc(CHUNK);
    uint64_t cursor = 0;
    int e = chunk ? 0 : -ENOMEM;
    while (e == 0) {
        nacre_piece piece = {0};
        int64_t n = output_read(r->session, &r->id, &cursor, NACRE_BOTH, chunk, CHUNK, &piece, err);
        if (n < 0)
            return (int)n;
        r->partial = r->partial || piece.gap_bytes > 0;
        if (n == 0)
            break;
        replay_refresh(r);
        e = replay_draw(r, piece.offset, chunk, (size_t)n);
    }
    if (e == 0) {
        replay_refresh(r);
        e = replay_finish(r);
    }
    return e < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static int fill_screen(const struct replay *r, nacre_screen *screen, nacre_error *err)
{
    const struct terminal *t = grid_terminal(r->grid);
    struct buf text cleanup_buf = BUF_UP_TO(TEXT_MAX);
    int marked = 0;
    if (grid_text(r->grid, &text) < 0 || !(screen->text = buf_take(&text)))
        return err_set(err, NACRE_ENOMEM, "out of memory");
    screen->terminal = r->is_terminal;
    screen->columns = t->columns;
    screen->rows = t->rows;
    screen->row = t->at.row + 1;
    screen->column = t->at.column + 1;
    screen->shown = terminal_has(t, MODE_CURSOR);
    screen->alternate = terminal_has(t, MODE_ALTERNATE);
    screen->cursor_keys = terminal_has(t, MODE_KEYS);
    screen->paste = terminal_has(t, MODE_PASTE);
    screen->partial = r->partial;
    for (unsigned row = 0; row < t->rows && marked < NACRE_SCREEN_MARKED; row++)
        if (grid_row_stands_out(r->grid, row))
            screen->marked[marked++] = (int)row + 1;
    return 0;
}

int session_screen(nacre_session *s, const nacre_id *id, nacre_screen *ret_screen, nacre_error *err)
{
    __attribute__((cleanup(replay_done))) struct replay replay = REPLAY_NONE;
    nacre_screen screen = NACRE_SCREEN_INIT;
    int r = session_check_id(s, id, false, err);
    if (r == 0)
        r = replay_begin(s, id, &replay, err);
    if (r == 0)
        r = draw_log(&replay, err);
    if (r == 0)
        r = fill_screen(&replay, &screen, err);
    if (r < 0)
        return r;
    nacre_screen_done(ret_screen);
    *ret_screen = screen;
    return 0;
}

int nacre_get_screen(nacre_session *session, const nacre_id *id, nacre_screen *ret_screen,
                     nacre_error *reterr)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (!ret_screen || ret_screen->size != sizeof *ret_screen)
        return err_set(reterr, NACRE_EINVAL, "the screen must start from NACRE_SCREEN_INIT");
    int r = nacre_get(session, id, &record, reterr);
    return r < 0 ? r : session_screen(session, id, ret_screen, reterr);
}

void nacre_screen_done(nacre_screen *screen)
{
    if (!screen)
        return;
    free(screen->text);
    *screen = (nacre_screen)NACRE_SCREEN_INIT;
}
