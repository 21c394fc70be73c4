/* The screen of a shell: its log drawn again, with the sizes that the terminal had. */
#include <nacre/view.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "run/marks.h"
#include "screen/grid.h"
#include "session/session.h"

#define CHUNK    ((size_t)64 * 1024)
#define TEXT_MAX ((size_t)8 * 1024 * 1024)

struct replay {
    struct grid *grid;
    struct run_mark *marks; /* that are not reached yet from `next` on */
    size_t count, next;
    bool partial;
};

static void replay_done(struct replay *r)
{
    grid_free(r->grid);
    free(r->marks);
}

/* Sizes that come at or before an offset. */
static int take_sizes(struct replay *r, uint64_t offset)
{
    int e = 0;
    for (; e == 0 && r->next < r->count && r->marks[r->next].offset <= offset; r->next++)
        e = grid_resize(r->grid, r->marks[r->next].columns, r->marks[r->next].rows);
    return e;
}

static int draw(struct replay *r, uint64_t offset, const char *data, size_t size)
{
    int e = take_sizes(r, offset);
    while (e == 0 && size > 0) {
        size_t n = size;
        if (r->next < r->count)
            n = (size_t)MIN((uint64_t)size, r->marks[r->next].offset - offset);
        grid_feed(r->grid, data, n);
        data += n;
        size -= n;
        offset += n;
        e = take_sizes(r, offset);
    }
    return e;
}

/* The size at the beginning stands in the spec, the others in the marks. */
static int begin_replay(nacre_session *s, const nacre_id *id, struct replay *r,
                        nacre_screen *screen, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct spec spec = {0};
    unsigned columns = 0, rows = 0;
    int e = home_open_run(s->home, id, &run, err);
    if (e == 0)
        e = run_read_state(&run, &state, err);
    if (e == 0 && state.columns > 0)
        e = run_load_spec(&run, &spec, err);
    if (e < 0)
        return e;
    if (spec.head) {
        columns = spec.head->columns;
        rows = spec.head->rows;
        free((void *)spec.head);
    }
    screen->terminal = columns > 0;
    r->marks = calloc(MARKS_MAX, sizeof *r->marks);
    if (!r->marks ||
        grid_new(columns ? columns : TERMINAL_COLUMNS, rows ? rows : TERMINAL_ROWS, &r->grid) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    r->count = marks_read(run.dir, columns > 0 ? state.marks : 0, r->marks);
    /* Pipes have no line discipline that returns the carriage. */
    if (columns == 0)
        grid_feed(r->grid, "\x1b[20h", strlen("\x1b[20h"));
    return 0;
}

static int draw_log(nacre_session *s, const nacre_id *id, struct replay *r, nacre_error *err)
{
    cleanup_free char *chunk = malloc(CHUNK);
    uint64_t cursor = 0;
    int e = chunk ? 0 : -ENOMEM;
    while (e == 0) {
        nacre_piece piece = {0};
        int64_t n = output_read(s, id, &cursor, NACRE_BOTH, chunk, CHUNK, &piece, err);
        if (n < 0)
            return (int)n;
        r->partial = r->partial || piece.gap_bytes > 0;
        if (n == 0)
            break;
        e = draw(r, piece.offset, chunk, (size_t)n);
    }
    if (e == 0)
        e = take_sizes(r, UINT64_MAX);
    return e < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static int fill_screen(const struct replay *r, nacre_screen *screen, nacre_error *err)
{
    const struct terminal *t = grid_terminal(r->grid);
    struct buf text cleanup_buf = BUF_UP_TO(TEXT_MAX);
    int marked = 0;
    if (grid_text(r->grid, &text) < 0 || !(screen->text = buf_take(&text)))
        return err_set(err, NACRE_ENOMEM, "out of memory");
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
    __attribute__((cleanup(replay_done))) struct replay replay = {0};
    nacre_screen screen = NACRE_SCREEN_INIT;
    int r = session_check_id(s, id, false, err);
    if (r == 0)
        r = begin_replay(s, id, &replay, &screen, err);
    if (r == 0)
        r = draw_log(s, id, &replay, err);
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
