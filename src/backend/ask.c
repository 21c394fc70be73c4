#include "backend/ask.h"

#include <sys/socket.h>

#include "backend/client.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "sys/sock.h"

#define ACK_MS 1000 /* a keeper that lives answers at once */

int ask_begin(struct ask *a, const struct run *run, const struct run_state *state,
              const void *message, size_t size)
{
    sweep_wake_stopped(state);
    a->sock = client_connect(run);
    int r = a->sock < 0 ? a->sock : client_send(a->sock, message, size);
    ask_expect(a, ACK_MS);
    return r;
}

void ask_expect(struct ask *a, int64_t wait_ms)
{
    a->wait_ms = wait_ms;
    a->deadline_ns = clock_deadline(wait_ms);
    a->woken = false;
}

static ssize_t keep_waiting(struct ask *a, const struct run_state *state)
{
    if (clock_left_ms(a->deadline_ns) > 0)
        return -EAGAIN;
    if (a->woken)
        return -ETIMEDOUT;
    sweep_wake(state);
    a->woken = true;
    a->deadline_ns = clock_deadline(a->wait_ms);
    return -EAGAIN;
}

ssize_t ask_step(struct ask *a, const struct run_state *state, void *buf, size_t size)
{
    ssize_t n = sock_recv(a->sock, buf, size, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return keep_waiting(a, state);
    if (n == -ECONNRESET)
        return 0;
    return n > 0 && n < (ssize_t)sizeof(struct wire_head) ? -EBADMSG : n;
}

void ask_end(struct ask *a)
{
    close_fd(&a->sock);
}
