#include "tool/feeding.h"

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "tool/tool.h"

#define PATIENCE_MS 2000 /* a shell that does not read has a pipe of 64 KiB to fill first */

static int open_feed(struct feeding *f, nacre_call *c, const nacre_id *id, nacre_error *err)
{
    int r = f->open ? 0 : session_feed(c->session, id, &f->feed, err);
    f->open = f->open || r == 0;
    return r;
}

static int begin(struct feeding *f, nacre_call *c, nacre_error *err)
{
    f->waits = true;
    f->patient_ns = clock_deadline(PATIENCE_MS);
    return feeding_step(f, c, err);
}

/* A backend of somebody else's takes what it can at once. */
static int write_elsewhere(struct feeding *f, nacre_call *c, const nacre_id *id, const void *data,
                           bool eof, nacre_error *err)
{
    int64_t n = nacre_input(c->session, id, data, f->size, eof, 0, err);
    f->taken = (size_t)MAX(n, INT64_C(0));
    return n < 0 ? (int)n : TOOL_DONE;
}

int feeding_write(struct feeding *f, nacre_call *c, const nacre_id *id, const void *data,
                  size_t size, bool eof, nacre_error *err)
{
    f->size = size;
    f->taken = 0;
    int r = open_feed(f, c, id, err);
    if (r == NACRE_EUNSUPPORTED)
        return write_elsewhere(f, c, id, data, eof, err);
    if (r == 0)
        r = feed_write(&f->feed, data, size, eof, err);
    return r < 0 ? r : begin(f, c, err);
}

int feeding_signal(struct feeding *f, nacre_call *c, const nacre_id *id, int signal,
                   nacre_error *err)
{
    f->size = f->taken = 0;
    int r = open_feed(f, c, id, err);
    if (r == NACRE_EUNSUPPORTED) {
        r = nacre_signal(c->session, id, signal, err);
        return r < 0 ? r : TOOL_DONE;
    }
    if (r == 0)
        r = feed_signal(&f->feed, signal, err);
    return r < 0 ? r : begin(f, c, err);
}

/* The connection ends, so that nothing of the rest is written later. */
static int give_up(struct feeding *f, nacre_error *err)
{
    nacre_id_text id = nacre_id_short(&f->feed.id);
    bool deaf = f->feed.signal != 0;
    feeding_done(f);
    return deaf ? err_set(err, NACRE_ETIMEOUT, "the keeper of shell %s does not answer", id.s)
                : err_set(err, NACRE_ETIMEOUT,
                          "wrote only %zu of %zu bytes: shell %s does not read its stdin", f->taken,
                          f->size, id.s);
}

/* Nobody took the rest; how much was taken is a part of what is said. */
static int cut_off(const struct feeding *f, int r, nacre_error *err)
{
    nacre_error cause = *err;
    if (f->size > 0)
        err_set(err, r, "wrote only %zu of %zu bytes: %.300s", f->taken, f->size, cause.msg);
    return r;
}

int feeding_step(struct feeding *f, nacre_call *c, nacre_error *err)
{
    int r = feed_step(&f->feed, err);
    if (f->feed.taken > f->taken)
        f->patient_ns = clock_deadline(PATIENCE_MS);
    f->taken = f->feed.taken;
    if (r == 0 && clock_left_ms(f->patient_ns) == 0)
        return give_up(f, err);
    f->waits = r == 0;
    if (!f->waits)
        return r < 0 ? cut_off(f, r, err) : TOOL_DONE;
    c->fd = f->feed.sock;
    c->wake_ns = MIN(f->patient_ns, clock_deadline(FEED_LOOK_MS));
    return TOOL_WAIT;
}

void feeding_done(struct feeding *f)
{
    if (f->open)
        feed_close(&f->feed);
    f->open = f->waits = false;
}
