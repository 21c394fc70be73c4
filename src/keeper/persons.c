/*
 * Persons beside the command. Each is a connection, and ends with it: what one may do, whether one
 * types, and whose window the terminal has the size of. What is typed goes to the command and
 * nowhere else.
 */
#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "run/inside.h"
#include "run/marks.h"
#include "sys/sock.h"

#define TYPED_NS (INT64_C(60) * 1000000000) /* to type in it again is not noted */

void mark_note(struct keeper *k, enum mark_kind kind)
{
    struct run_mark mark = {
        .offset = k->st.log.end,
        .when_us = (uint64_t)(clock_mono_ns() - k->st.started_mono_ns) / 1000,
        .columns = k->st.columns,
        .rows = k->st.rows,
        .kind = kind,
    };
    if (kind != MARK_SIZE && k->st.marks >= MARKS_PERSONS)
        return;
    if (marks_add(k->fd[FD_DIR], k->st.marks, &mark) == 0)
        k->st.marks++;
}

static void count_persons(struct keeper *k)
{
    k->st.viewers = k->st.typists = 0;
    for (int i = 0; i < CONN_MAX; i++) {
        const struct conn *c = &k->conns[i];
        if (c->fd < 0 || !c->person.is_here)
            continue;
        k->st.viewers++;
        k->st.typists += c->person.types;
    }
}

/* Whoever brought a window last has the terminal in its size; when all are gone it has its own. */
static int fit(struct keeper *k)
{
    const struct conn *last = NULL;
    for (int i = 0; i < CONN_MAX; i++) {
        const struct conn *c = &k->conns[i];
        if (c->fd >= 0 && c->person.columns > 0 && (!last || c->person.turn > last->person.turn))
            last = c;
    }
    unsigned columns = last ? last->person.columns : k->own_columns;
    unsigned rows = last ? last->person.rows : k->own_rows;
    return columns == k->st.columns && rows == k->st.rows ? 0 : tty_resize(k, columns, rows);
}

static int bring_window(struct keeper *k, struct conn *c, uint32_t columns, uint32_t rows)
{
    if (!k->is_terminal || k->state == ST_DONE)
        return ENOTTY;
    c->person.columns = (uint16_t)MIN(MAX(columns, TERMINAL_COLUMNS_MIN), TERMINAL_COLUMNS_MAX);
    c->person.rows = (uint16_t)MIN(MAX(rows, TERMINAL_ROWS_MIN), TERMINAL_ROWS_MAX);
    c->person.turn = k->turns++;
    return -fit(k);
}

/* Who looks from inside would draw what he draws. */
int person_begin(struct keeper *k, struct conn *c, const struct wire_attach *wish)
{
    if (c->person.is_here)
        return EBUSY;
    if (inside_of(&k->st.id, getpid(), sock_peer_pid(c->fd)))
        return EDEADLK;
    if (wish->types && k->fd[FD_IN] < 0)
        return EPIPE;
    int r = wish->columns > 0 ? bring_window(k, c, wish->columns, wish->rows) : 0;
    if (r != 0 || c->fd < 0)
        return r;
    c->person.is_here = true;
    c->person.types = wish->types;
    count_persons(k);
    mark_note(k, MARK_ATTACHED);
    publish(k);
    return 0;
}

void person_end(struct keeper *k, struct conn *c)
{
    bool was_here = c->person.is_here;
    c->person = (struct person){0};
    if (!was_here || k->state == ST_DONE)
        return;
    count_persons(k);
    mark_note(k, MARK_DETACHED);
    fit(k);
    publish(k);
}

bool person_may_type(struct keeper *k, struct conn *c)
{
    int64_t now = clock_mono_ns();
    if (!c->person.is_here)
        return true;
    if (!c->person.types)
        return false;
    if (c->person.typed_ns == 0 || now - c->person.typed_ns > TYPED_NS) {
        c->person.typed_ns = now;
        mark_note(k, MARK_TYPED);
    }
    return true;
}

int person_resize(struct keeper *k, struct conn *c, unsigned columns, unsigned rows)
{
    if (!c->person.is_here) {
        int r = -tty_resize(k, columns, rows);
        if (r == 0) {
            k->own_columns = k->st.columns;
            k->own_rows = k->st.rows;
        }
        return r;
    }
    return c->person.columns > 0 ? bring_window(k, c, columns, rows) : EPERM;
}
