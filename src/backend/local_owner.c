/* What runs are to their sessions: whose they are, and the line on which their ends are heard. */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "backend/change.h"
#include "backend/local.h"
#include "backend/local_parts.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/lock.h"
#include "sys/sock.h"

static int line_of(struct local *l)
{
    pthread_mutex_lock(&l->lock);
    int line = l->launcher ? launcher_line(l->launcher) : -EBADF;
    pthread_mutex_unlock(&l->lock);
    return line;
}

int local_bell(void *self)
{
    return line_of(self);
}

int local_rung(void *self, nacre_id *ret_id)
{
    int line = line_of(self);
    return line >= 0 && sock_recv(line, ret_id, sizeof *ret_id, NULL, 0, MSG_DONTWAIT) ==
                            (ssize_t)sizeof *ret_id;
}

int local_change_begin(void *self, const nacre_id *id, int background, int keep, struct change *ret,
                       nacre_error *err)
{
    *ret = CHANGE_NONE;
    int r = local_open_run(self, id, &ret->run, err);
    return r < 0 ? r : change_begin(ret, background, keep, err);
}

int local_change(void *self, const nacre_id *id, int background, int keep, nacre_error *err)
{
    struct change change;
    int r = local_change_begin(self, id, background, keep, &change, err);
    while (r == 0 && (r = change_step(&change, err)) == 0) {
        struct pollfd poller = {.fd = change.ask.sock, .events = POLLIN};
        poll(&poller, 1, clock_left_ms(change.ask.deadline_ns));
    }
    change_end(&change);
    return MIN(r, 0);
}

/* In another pid namespace nobody can tell: as long as a keeper holds the run, its owner may be
 * there too. */
static bool owner_lives(const struct run *run, const struct run_state *state,
                        const struct spec_head *spec)
{
    struct proc_ref owner = {.pid = spec->owner_pid, .start = spec->owner_start};
    if (sweep_is_here(state))
        return proc_alive(&owner);
    return !state_is_final(state) && lock_held(run->state_fd) > 0;
}

int local_owner(void *self, const nacre_id *id, nacre_id *ret_session, int *ret_alive,
                nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    struct spec spec;
    int r = local_open_run(self, id, &run, err);
    if (r == 0)
        r = run_read_state(&run, &state, err);
    if (r < 0)
        return r;
    *ret_session = state.session;
    *ret_alive = 0;
    if (run_load_spec(&run, &spec, NULL) == 0) {
        *ret_alive = owner_lives(&run, &state, spec.head);
        free((void *)spec.head);
    }
    return 0;
}

int local_told(void *self, const nacre_id *id, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    int r = local_open_run(self, id, &run, err);
    if (r < 0)
        return r;
    int e = run_set_told(&run);
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "told", "cannot note that shell %s was told",
                           nacre_id_short(id).s)
                 : 0;
}
