#include "backend/change.h"

#include "backend/client.h"
#include "backend/kill.h"
#include "backend/sweep.h"
#include "base/defs.h"
#include "base/err.h"

/* What an exchange with the keeper came to. */
static int conclude(const struct change *c, int e, nacre_error *err)
{
    return e == 0 || e == -ECONNREFUSED
               ? 1
               : err_sys(err, NACRE_EBACKEND, -e, "change",
                         "the keeper of shell %s does not answer", nacre_id_short(&c->run.id).s);
}

int change_begin(struct change *c, int background, int keep, nacre_error *err)
{
    struct wire_change request = {
        .head = client_head(WIRE_CHANGE), .background = background, .kept = keep};
    int r = sweep_state(&c->run, &c->state, err);
    if (r == 0)
        r = kill_check_reach(&c->state, err);
    if (r < 0 || state_is_final(&c->state))
        return r < 0 ? r : 1;
    int e = ask_begin(&c->ask, &c->run, &c->state, &request, sizeof request);
    return e < 0 ? conclude(c, e, err) : 0;
}

int change_step(struct change *c, nacre_error *err)
{
    struct wire_ack ack;
    ssize_t n = ask_step(&c->ask, &c->state, &ack, sizeof ack);
    return n == -EAGAIN ? 0 : conclude(c, (int)MIN(n, 0), err);
}

void change_end(struct change *c)
{
    ask_end(&c->ask);
    run_close(&c->run);
}
