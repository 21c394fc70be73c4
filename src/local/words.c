/*
 * Words to the command of a running shell: bytes for its stdin and the end of that, signals,
 * another size of its terminal; and to its keeper, what it is from now on. A pipe that is full
 * takes its time.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "local/ask.h"
#include "local/local.h"
#include "run/inside.h"

#define STEP_MAX 16 /* messages in one step: others want their turn */

struct word_op {
    struct ask ask;
    const char *what; /* the stage of an error */
    bool said;
    const char *data; /* of an input, borrowed */
    size_t size;
    bool eof;
    size_t taken;
    union {
        struct wire_signal signal;
        struct wire_resize resize;
    } request;
    size_t request_size; /* 0 = it is no such request */
    struct wire_change change;
};

/* Nobody is there any more to hear it. */
static int is_closed(const struct word_op *w, nacre_error *err)
{
    return err_set(err, NACRE_ECLOSED,
                   w->request_size > 0
                       ? "the command of shell %s has ended"
                       : "shell %s takes no input: it has ended, closed its stdin, or was started "
                         "without one",
                   nacre_id_short(&w->ask.run.id).s);
}

static int is_deaf(const struct word_op *w, int e, nacre_error *err)
{
    return err_sys(err, e == -EMFILE ? NACRE_ELIMIT : NACRE_EBACKEND, -e, w->what,
                   "the keeper of shell %s does not answer", nacre_id_short(&w->ask.run.id).s);
}

/* Looks at the run: 1 = its keeper can be asked, 0 = not yet. over is what is said of one that has
 * ended. */
static int reach(struct word_op *w, int (*over)(const struct word_op *, nacre_error *),
                 nacre_error *err)
{
    int r = ask_look(&w->ask, err);
    if (r > 0 && ask_check_reach(&w->ask, err) < 0)
        return NACRE_EUNSUPPORTED;
    return r > 0 && state_is_final(&w->ask.state) ? over(w, err) : r;
}

/* A keeper that has too many visitors hangs up, as one that is gone does. */
static bool is_turned_away(struct word_op *w)
{
    w->said = !ask_is_shut(&w->ask, -ECONNREFUSED);
    return !w->said;
}

static int word_new(struct local *l, const nacre_id *id, const nacre_op *op, const char *what,
                    struct word_op **ret, nacre_error *err)
{
    struct ask *a;
    int r = ask_new(l->home, id, sizeof(struct word_op), op, &a, err);
    if (r < 0)
        return r;
    *ret = (struct word_op *)a;
    (*ret)->what = what;
    return 0;
}

/* -- Input ------------------------------------------------------------------------------------ */

/* The next message's worth of bytes. The pipe takes all of them or none. */
static int send_bytes(struct word_op *w)
{
    struct wire_input request = {.head = keeper_line_head(WIRE_INPUT)};
    size_t size = MIN(w->size - w->taken, (size_t)WIRE_INPUT_MAX);
    request.size = (uint32_t)size;
    request.eof = w->eof && w->taken + size == w->size;
    if (size > 0)
        memcpy(request.data, w->data + w->taken, size);
    int r = ask_send(&w->ask, &request, offsetof(struct wire_input, data) + size);
    ask_expect(&w->ask, -1);
    return r;
}

static int say_bytes(struct word_op *w, nacre_error *err)
{
    int e = send_bytes(w);
    w->said = !ask_is_shut(&w->ask, e);
    return !w->said ? 0 : e == -ECONNREFUSED ? is_closed(w, err) : e < 0 ? is_deaf(w, e, err) : 0;
}

static int take_input_done(struct word_op *w, const struct wire_input_done *done, nacre_error *err)
{
    w->taken += MIN((size_t)done->taken, w->size - w->taken);
    if (done->error)
        return is_closed(w, err);
    return w->taken == w->size ? 1 : say_bytes(w, err);
}

/* What the keeper said: its size, 0 = nothing yet, or the code. */
static ssize_t hear_done(struct word_op *w, struct wire_input_done *done, nacre_error *err)
{
    ssize_t n = ask_hear(&w->ask, done, sizeof *done);
    if (n == 0 && is_turned_away(w))
        return 0;
    if (n == -EAGAIN)
        return 0;
    if (n == 0 || (n > 0 && (n != sizeof *done || done->head.type != WIRE_INPUT_DONE)))
        return is_closed(w, err);
    return n < 0 ? is_deaf(w, (int)n, err) : n;
}

static int step_input(nacre_op *op, nacre_error *err)
{
    struct word_op *w = (struct word_op *)op;
    struct wire_input_done done;
    int r = w->said ? 1 : reach(w, is_closed, err);
    if (r > 0)
        r = w->said ? 0 : say_bytes(w, err);
    for (int i = 0; r == 0 && w->said && i < STEP_MAX; i++) {
        ssize_t n = hear_done(w, &done, err);
        if (n <= 0)
            return (int)n;
        r = take_input_done(w, &done, err);
    }
    if (r == 0 && w->said)
        op->wake_ns = 0;
    return r;
}

int local_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                nacre_op **ret_op, nacre_error *err)
{
    static const nacre_op input_op = OP_INIT(step_input, ask_end);
    struct word_op *w;
    int r = word_new(self, id, &input_op, "input", &w, err);
    if (r < 0)
        return r;
    w->data = data;
    w->size = size;
    w->eof = eof != 0;
    w->ask.op.result = &w->taken;
    *ret_op = &w->ask.op;
    return 0;
}

/* -- Signals and sizes ------------------------------------------------------------------------ */

static int take_request_done(const struct word_op *w, const struct wire_input_done *done,
                             nacre_error *err)
{
    const char *id = nacre_id_short(&w->ask.run.id).s;
    switch (done->error) {
    case 0:
        return 1;
    case ESRCH:
        return is_closed(w, err);
    case ENOTTY:
        return err_set(err, NACRE_EUNSUPPORTED, "shell %s has no terminal", id);
    default:
        return err_sys(err, NACRE_EPERM, done->error, w->what, "cannot %s shell %s", w->what, id);
    }
}

static int step_request(nacre_op *op, nacre_error *err)
{
    struct word_op *w = (struct word_op *)op;
    struct wire_input_done done;
    int r = w->said ? 1 : reach(w, is_closed, err);
    if (r <= 0)
        return r;
    if (!w->said) {
        int e = ask_send(&w->ask, &w->request, w->request_size);
        if (ask_is_shut(&w->ask, e))
            return 0;
        if (e < 0)
            return e == -ECONNREFUSED ? is_closed(w, err) : is_deaf(w, e, err);
    }
    w->said = true;
    ssize_t n = hear_done(w, &done, err);
    return n <= 0 ? (int)n : take_request_done(w, &done, err);
}

static const nacre_op request_op = OP_INIT(step_request, ask_end);

int local_signal(void *self, const nacre_id *id, int signal, nacre_op **ret_op, nacre_error *err)
{
    struct word_op *w;
    if (signal <= 0 || signal >= NSIG)
        return err_set(err, NACRE_EINVAL, "there is no signal %d", signal);
    int r = word_new(self, id, &request_op, "signal", &w, err);
    if (r < 0)
        return r;
    w->request.signal =
        (struct wire_signal){.head = keeper_line_head(WIRE_SIGNAL), .signal = signal};
    w->request_size = sizeof w->request.signal;
    *ret_op = &w->ask.op;
    return 0;
}

int local_resize(void *self, const nacre_id *id, int columns, int rows, nacre_op **ret_op,
                 nacre_error *err)
{
    struct word_op *w;
    int r = word_new(self, id, &request_op, "resize", &w, err);
    if (r < 0)
        return r;
    w->request.resize = (struct wire_resize){.head = keeper_line_head(WIRE_RESIZE),
                                             .columns = (uint32_t)columns,
                                             .rows = (uint32_t)rows};
    w->request_size = sizeof w->request.resize;
    *ret_op = &w->ask.op;
    return 0;
}

/* -- Changes ---------------------------------------------------------------------------------- */

/* Nobody is there to note it, and nobody has to. */
static int is_noted(const struct word_op *w UNUSED, nacre_error *err UNUSED)
{
    return 2;
}

/* Its keeper would say the same. */
static bool asks_for_itself(const struct word_op *w)
{
    const struct run_state *state = &w->ask.state;
    return w->change.kept && !state->kept && sweep_is_here(state) &&
           inside_of(&state->id, state->keeper_pid, getpid());
}

static int is_refused(const struct word_op *w, nacre_error *err)
{
    return err_set(err, NACRE_EFORBIDDEN,
                   "forbidden: a command cannot decide to outlive its session; ask from outside of "
                   "shell %s",
                   nacre_id_short(&w->ask.run.id).s);
}

static int step_change(nacre_op *op, nacre_error *err)
{
    struct word_op *w = (struct word_op *)op;
    struct wire_ack ack;
    int r = w->said ? 1 : reach(w, is_noted, err);
    if (r != 1)
        return MIN(r, 1);
    if (!w->said && asks_for_itself(w))
        return is_refused(w, err);
    int e = w->said ? 0 : ask_send(&w->ask, &w->change, sizeof w->change);
    if (ask_is_shut(&w->ask, e))
        return 0;
    w->said = true;
    ssize_t n = e == 0 ? ask_hear(&w->ask, &ack, sizeof ack) : e;
    if (n == 0 && is_turned_away(w))
        return 0;
    e = (int)MIN(n, (ssize_t)0);
    if (e == -EAGAIN && w->ask.sock >= 0)
        return 0;
    if (n == sizeof ack && ack.wait_ms < 0)
        return is_refused(w, err);
    return e == 0 || e == -ECONNREFUSED ? 1 : is_deaf(w, e, err);
}

int local_change(void *self, const nacre_id *id, int background, int keep, nacre_op **ret_op,
                 nacre_error *err)
{
    static const nacre_op change_op = OP_INIT(step_change, ask_end);
    struct word_op *w;
    int r = word_new(self, id, &change_op, "change", &w, err);
    if (r < 0)
        return r;
    w->change = (struct wire_change){
        .head = keeper_line_head(WIRE_CHANGE), .background = background, .kept = keep};
    *ret_op = &w->ask.op;
    return 0;
}
