#include "session/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "session/session.h"

void replay_done(struct replay *r)
{
    grid_free(r->grid);
    r->grid = NULL;
    free(r->marks);
    r->marks = NULL;
    run_close(&r->run);
}

/* Sizes that come at or before an offset. */
static int take_sizes(struct replay *r, uint64_t offset)
{
    int e = 0;
    for (; e == 0 && r->next < r->count && r->marks[r->next].offset <= offset; r->next++) {
        const struct run_mark *mark = &r->marks[r->next];
        if (mark->kind == MARK_SIZE && r->is_terminal)
            e = grid_resize(r->grid, mark->columns, mark->rows);
    }
    return e;
}

int replay_draw(struct replay *r, uint64_t offset, const char *data, size_t size)
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

int replay_finish(struct replay *r)
{
    return take_sizes(r, UINT64_MAX);
}

void replay_refresh(struct replay *r)
{
    if (run_is_gone(&r->run)) {
        run_close(&r->run);
        if (home_open_run(r->session->home, &r->id, &r->run, NULL) < 0)
            return;
    }
    r->count += marks_read(r->run.dir, r->count, r->marks + r->count);
}

/* The size at the beginning stands in the spec, the others in the marks. */
static int begin_size(struct replay *r, unsigned *ret_columns, unsigned *ret_rows, nacre_error *err)
{
    struct run_state state;
    struct spec spec = {0};
    int e = home_open_run(r->session->home, &r->id, &r->run, err);
    if (e == 0)
        e = run_read_state(&r->run, &state, err);
    if (e == 0 && state.columns > 0)
        e = run_load_spec(&r->run, &spec, err);
    if (e < 0)
        return e;
    r->is_terminal = spec.head != NULL && spec.head->columns > 0;
    *ret_columns = r->is_terminal ? spec.head->columns : TERMINAL_COLUMNS;
    *ret_rows = r->is_terminal ? spec.head->rows : TERMINAL_ROWS;
    free((void *)spec.head);
    return 0;
}

int replay_begin(nacre_session *s, const nacre_id *id, struct replay *r, nacre_error *err)
{
    unsigned columns = 0, rows = 0;
    *r = (struct replay){.session = s, .id = *id, .run = RUN_NONE};
    int e = begin_size(r, &columns, &rows, err);
    if (e < 0)
        return e;
    r->marks = calloc(MARKS_MAX, sizeof *r->marks);
    if (!r->marks || grid_new(columns, rows, &r->grid) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    /* Pipes have no line discipline that returns the carriage. */
    if (!r->is_terminal)
        grid_feed(r->grid, "\x1b[20h", strlen("\x1b[20h"));
    return 0;
}
