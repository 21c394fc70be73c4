/* What runs are to their sessions: whose they are, and the line on which their ends are heard. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/client.h"
#include "backend/kill.h"
#include "backend/local.h"
#include "backend/local_parts.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/lock.h"
#include "sys/sock.h"

#define CHANGE_MS 1000

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

/* A keeper that was stopped is woken once on the way. */
static int ask_to_change(const struct run *run, const struct run_state *state, int background,
                         int keep)
{
    struct wire_change request = {
        .head = client_head(WIRE_CHANGE), .background = background, .kept = keep};
    struct wire_ack ack;
    cleanup_close int sock = client_connect(run);
    int r = sock < 0 ? sock : client_send(sock, &request, sizeof request);
    if (r < 0)
        return r;
    ssize_t n = client_recv(sock, &ack, sizeof ack, clock_deadline(CHANGE_MS));
    if (n == -ETIMEDOUT) {
        sweep_wake(state);
        n = client_recv(sock, &ack, sizeof ack, clock_deadline(CHANGE_MS));
    }
    return n < 0 ? (int)n : n == 0 ? -ECONNREFUSED : 0;
}

int local_change(void *self, const nacre_id *id, int background, int keep, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    int r = local_open_run(self, id, &run, err);
    if (r == 0)
        r = sweep_state(&run, &state, err);
    if (r == 0)
        r = kill_check_reach(&state, err);
    if (r < 0 || state_is_final(&state))
        return r;
    int e = ask_to_change(&run, &state, background, keep);
    if (e < 0 && e != -ECONNREFUSED)
        return err_sys(err, NACRE_EBACKEND, -e, "change", "the keeper of shell %s does not answer",
                       nacre_id_short(id).s);
    return 0;
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
