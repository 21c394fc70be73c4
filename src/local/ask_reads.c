/* Who reads the input of a shell, as its keeper sees it. */
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "local/ask.h"
#include "local/local.h"

#define HELD_MOST (INT64_C(3600) * 1000)

struct reads_op {
    struct ask ask;
    struct wire_look look;
    nacre_reading reading;
    bool said;
};

/* What the wire calls a set of them. */
static uint32_t wire_set(unsigned set)
{
    return set >> 1;
}

static nacre_reads reads_of(uint32_t wire)
{
    for (int i = NACRE_READS_PASSWORD; i > NACRE_READS_NO; i--)
        if (wire_set(NACRE_READS_BIT(i)) == wire)
            return (nacre_reads)i;
    return NACRE_READS_NO;
}

_Static_assert(READS_UNKNOWN == NACRE_READS_BIT(NACRE_READS_UNKNOWN) >> 1 &&
                   READS_PASSWORD == NACRE_READS_BIT(NACRE_READS_PASSWORD) >> 1,
               "the wire has them in the same order");

static int nobody_is_left(const struct reads_op *o, nacre_error *err)
{
    return err_set(err, NACRE_ECLOSED, "shell %s has ended, and nobody reads",
                   nacre_id_short(&o->ask.run.id).s);
}

static int take_looked(struct reads_op *o, const struct wire_looked *looked)
{
    o->reading = (nacre_reading){
        .size = sizeof o->reading,
        .reads = reads_of(looked->reads),
        .pid = looked->pid,
        .terminal = looked->terminal != 0,
        .echo = looked->echo != 0,
        .since_ms = looked->since_ms,
    };
    memcpy(o->reading.name, looked->name, sizeof o->reading.name - 1);
    return 1;
}

static int look_at_run(struct reads_op *o, nacre_error *err)
{
    int r = ask_look(&o->ask, err);
    if (r > 0 && ask_check_reach(&o->ask, err) < 0)
        return NACRE_EUNSUPPORTED;
    if (r > 0 && state_is_final(&o->ask.state))
        return nobody_is_left(o, err);
    return r;
}

/* A keeper of before there was the question hangs up, as one does whose run is over. */
static int hung_up(struct reads_op *o, nacre_error *err)
{
    ask_hang_up(&o->ask);
    o->said = false;
    int r = look_at_run(o, err);
    if (r > 0)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "the keeper of shell %s is of an earlier version, and cannot tell who reads",
                       nacre_id_short(&o->ask.run.id).s);
    return r;
}

static int step_reads(nacre_op *op, nacre_error *err)
{
    struct reads_op *o = (struct reads_op *)op;
    struct wire_looked looked;
    int e = 0;
    if (!o->said) {
        int r = look_at_run(o, err);
        if (r <= 0)
            return r;
        e = ask_send(&o->ask, &o->look, sizeof o->look);
        if (ask_is_shut(&o->ask, e))
            return 0;
        o->said = e == 0;
        ask_expect(&o->ask, -1);
    }
    ssize_t n = e == 0 ? ask_hear(&o->ask, &looked, sizeof looked) : e;
    if (n == -EAGAIN)
        return 0;
    if (n == sizeof looked && looked.head.type == WIRE_LOOKED)
        return take_looked(o, &looked);
    if (n == 0 || n == -ECONNREFUSED)
        return hung_up(o, err);
    return err_set(err, NACRE_EBACKEND, "the keeper of shell %s does not answer",
                   nacre_id_short(&o->ask.run.id).s);
}

int local_reads(void *self, const nacre_id *id, unsigned set, int64_t held_ms, nacre_op **ret_op,
                nacre_error *err)
{
    static const nacre_op reads_op = OP_INIT(step_reads, ask_end);
    struct local *l = self;
    struct ask *a;
    int r = ask_new(l->home, id, sizeof(struct reads_op), &reads_op, &a, err);
    if (r < 0)
        return r;
    struct reads_op *o = (struct reads_op *)a;
    o->look = (struct wire_look){.head = keeper_line_head(WIRE_LOOK),
                                 .wanted = wire_set(set),
                                 .held_ms = (uint32_t)MIN(MAX(held_ms, INT64_C(0)), HELD_MOST)};
    o->reading = (nacre_reading)NACRE_READING_INIT;
    a->op.result = &o->reading;
    *ret_op = &a->op;
    return 0;
}
