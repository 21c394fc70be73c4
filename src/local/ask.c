#include "local/ask.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "home/overdue.h"
#include "sys/sock.h"

#define ACK_MS  1000 /* a keeper that lives answers at once */
#define LOOK_MS 300  /* it is looked at this often */
#define HELD    3    /* found stopped more often than that, it is being held */

int ask_new(nacre_home *h, const nacre_id *id, size_t size, const nacre_op *op, struct ask **ret,
            nacre_error *err)
{
    struct ask *a = calloc(1, size);
    if (!a)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *a = (struct ask){.op = *op, .run = RUN_NONE, .sweeping = SWEEPING_NONE, .sock = -EBADF};
    a->run.id = *id;
    a->door = (struct door)DOOR_OF(h, &a->run, &a->sweeping, &a->state);
    a->door_ns = clock_deadline(ASK_DOOR_MS);
    int r = door_begin(&a->door, err);
    if (r < 0)
        ask_end(&a->op);
    else
        *ret = a;
    return r;
}

void ask_end(nacre_op *op)
{
    struct ask *a = (struct ask *)op;
    sweep_end(&a->sweeping);
    close_fd(&a->sock);
    door_close(&a->door);
    run_close(&a->run);
    free(a);
}

int ask_look(struct ask *a, nacre_error *err)
{
    int r = door_look(&a->door, err);
    a->op.fd = a->door.sock;
    a->swept = a->sweeping.first_ns != 0;
    a->op.wake_ns = clock_deadline(SWEEP_ROUND_MS);
    return r;
}

/* It is swept like any other, once there are files. */
static int force_without_files(struct ask *a)
{
    struct proc_ref keeper = {.pid = a->state.keeper_pid, .start = a->state.keeper_start};
    if (sweep_is_here(&a->state)) {
        overdue_end_tree(&a->state, NULL, 0);
        proc_kill(&keeper, SIGKILL);
    }
    home_rewrite_run(a->door.home, &a->state);
    return 0;
}

/* It is swept in one go: a keeper that is about to die still holds the lock. */
int ask_force(struct ask *a, nacre_error *err)
{
    ask_hang_up(a);
    if (a->run.dir < 0)
        return force_without_files(a);
    return sweep_by_force(&a->run, &a->sweeping, NACRE_REASON_NONE, &a->state, err);
}

int ask_check_reach(const struct ask *a, nacre_error *err)
{
    if (a->state.tier != NACRE_TIER_CLIENT || state_is_final(&a->state))
        return 0;
    return err_set(err, NACRE_EUNSUPPORTED,
                   "shell %s runs in a terminal of an ACP client; only its own session reaches it",
                   nacre_id_short(&a->run.id).s);
}

int ask_send(struct ask *a, const void *message, size_t size)
{
    if (a->sock < 0) {
        sweep_wake_stopped(&a->state);
        a->sock = keeper_line_connect(&a->run);
    }
    int r = a->sock < 0 ? a->sock : keeper_line_send(a->sock, message, size);
    a->op.fd = a->sock;
    ask_expect(a, ACK_MS);
    return r;
}

bool ask_is_shut(struct ask *a, int e)
{
    if ((e != -EAGAIN && e != -ECONNREFUSED) || clock_left_ms(a->door_ns) == 0)
        return false;
    ask_hang_up(a);
    a->op.wake_ns = clock_deadline(ASK_KNOCK_MS);
    return true;
}

void ask_expect(struct ask *a, int64_t wait_ms)
{
    a->wait_ms = wait_ms;
    a->until_ns = clock_deadline(wait_ms);
    a->look_ns = clock_deadline(LOOK_MS);
    a->op.wake_ns = MIN(a->until_ns, a->look_ns);
    a->woken = false;
}

static void look_whether_held(struct ask *a)
{
    if (clock_left_ms(a->look_ns) != 0)
        return;
    a->look_ns = clock_deadline(LOOK_MS);
    a->held += sweep_wake_stopped(&a->state);
}

/* Whoever has time waits as long as it takes. */
static ssize_t keep_waiting(struct ask *a)
{
    look_whether_held(a);
    bool late = clock_left_ms(a->until_ns) == 0;
    if (a->wait_ms >= 0 && (a->held > HELD || (late && a->woken)))
        return -ETIMEDOUT;
    if (late) {
        sweep_wake(&a->state);
        a->woken = true;
        a->until_ns = clock_deadline(a->wait_ms);
    }
    a->op.wake_ns = MIN(a->until_ns, a->look_ns);
    return -EAGAIN;
}

ssize_t ask_hear(struct ask *a, void *buf, size_t size)
{
    ssize_t n = sock_recv(a->sock, buf, size, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return keep_waiting(a);
    if (n == -ECONNRESET)
        return 0;
    return n > 0 && n < (ssize_t)sizeof(struct wire_head) ? -EBADMSG : n;
}

void ask_hang_up(struct ask *a)
{
    close_fd(&a->sock);
    a->op.fd = -1;
}
