#include "tool/feeding.h"

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "session/session.h"
#include "tool/tool.h"

#define PATIENCE_MS 2000 /* a shell that does not read has a pipe of 64 KiB to fill first */

static int go_on_feeding(struct feeding *f, nacre_call *c, int r, nacre_error *err)
{
    f->patient_ns = clock_deadline(PATIENCE_MS);
    return r < 0 ? r : feeding_step(f, c, err);
}

int feeding_write(struct feeding *f, nacre_call *c, const nacre_id *id, const void *data,
                  size_t size, bool eof, nacre_error *err)
{
    *f = (struct feeding){.id = *id, .size = size};
    return go_on_feeding(f, c, session_input(c->session, id, data, size, eof, &f->op, err), err);
}

int feeding_signal(struct feeding *f, nacre_call *c, const nacre_id *id, int signal,
                   nacre_error *err)
{
    *f = (struct feeding){.id = *id, .signals = true};
    return go_on_feeding(f, c, session_signal(c->session, id, signal, &f->op, err), err);
}

int feeding_resize(struct feeding *f, nacre_call *c, const nacre_id *id, int columns, int rows,
                   nacre_error *err)
{
    *f = (struct feeding){.id = *id, .signals = true};
    return go_on_feeding(f, c, session_resize(c->session, id, columns, rows, &f->op, err), err);
}

static int give_up_feeding(const struct feeding *f, nacre_error *err)
{
    nacre_id_text id = nacre_id_short(&f->id);
    return f->signals ? err_set(err, NACRE_ETIMEOUT, "the keeper of shell %s does not answer", id.s)
                      : err_set(err, NACRE_ETIMEOUT,
                                "wrote only %zu of %zu bytes: shell %s does not read its stdin",
                                f->taken, f->size, id.s);
}

/* Nobody took the rest; how much was taken is a part of what is said. */
static int cut_off(const struct feeding *f, int r, nacre_error *err)
{
    nacre_error cause = *err;
    if (f->size > 0)
        err_set(err, r, "wrote only %zu of %zu bytes: %.300s", f->taken, f->size, cause.msg);
    return r;
}

static void note_taken(struct feeding *f)
{
    size_t taken = f->signals ? 0 : *(const size_t *)f->op->result;
    if (taken > f->taken)
        f->patient_ns = clock_deadline(PATIENCE_MS);
    f->taken = taken;
}

int feeding_step(struct feeding *f, nacre_call *c, nacre_error *err)
{
    int r = call_step_op(c, f->op, err);
    note_taken(f);
    if (r == TOOL_WAIT && clock_left_ms(f->patient_ns) != 0) {
        c->wake_ns = MIN(c->wake_ns, f->patient_ns);
        return TOOL_WAIT;
    }
    feeding_done(f);
    return r < 0 ? cut_off(f, r, err) : r == TOOL_WAIT ? give_up_feeding(f, err) : TOOL_DONE;
}
