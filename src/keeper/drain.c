/* The command's streams into the log, and the log's state to its readers. */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"

#define READS_PER_TURN 64

static struct keeper *guarded; /* a signal's handler is told of nobody */

/*
 * The ring's file was cut, or the disk gave out, under the mapping. The bytes go to anonymous
 * memory until the reader of this flag has taken the ring out of use; the command never notices.
 */
static void on_sigbus(int signal UNUSED, siginfo_t *info, void *context UNUSED)
{
    char *ring = guarded->log.ring;
    size_t size = logw_ring_size(&guarded->log);
    char *at = info->si_addr;
    if (info->si_code <= 0)
        return; /* sent by somebody, not by the memory */
    if (!ring || at < ring || at >= ring + size)
        _exit(70);
    (void)mmap(ring, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    guarded->ring_lost = 1;
}

static int publish_log(void *userdata)
{
    struct keeper *k = userdata;
    return state_write(k->fd[FD_STATE], &k->st);
}

void drain_guard(struct keeper *k)
{
    guarded = k;
    k->log.publish = publish_log;
    k->log.userdata = k;
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

void publish(struct keeper *k)
{
    k->at[AT_PUBLISH] = NEVER;
    k->published = clock_mono_ns();
    restore_look(k);
    state_write(k->fd[FD_STATE], &k->st);
    ctl_tell_watchers(k);
    if (k->must_ring)
        ctl_ring(k);
}

/* New output: readers learn of it at once, but during a flood only every now and then. */
static void publish_output(struct keeper *k)
{
    if (k->log.ring)
        flood_step_aside(k, true);
    if (k->at[AT_READS] != NEVER)
        reads_hear(k);
    if (clock_mono_ns() - k->published >= PUBLISH_NS)
        publish(k);
    else if (k->at[AT_PUBLISH] == NEVER)
        k->at[AT_PUBLISH] = k->published + PUBLISH_NS;
}

bool drain_at_eof(const struct keeper *k)
{
    if (k->is_terminal)
        return k->hung_up || k->fd[FD_OUT] < 0;
    return k->fd[FD_OUT] < 0 && k->fd[FD_ERR] < 0;
}

static ssize_t pull(struct keeper *k, nacre_stream stream)
{
    int64_t since_start_us = (clock_mono_ns() - k->st.started_mono_ns) / 1000;
    ssize_t n = logw_pull(&k->log, k->fd[FD_OUT + stream], stream, since_start_us);
    if (k->ring_lost) {
        k->ring_lost = 0;
        logw_lose_ring(&k->log, EIO);
    }
    if (k->is_terminal) {
        k->hung_up = k->hung_up && n <= 0;
        if (n == 0 || n == -EIO)
            tty_hang_up(k);
        return n;
    }
    /* Closed when nobody waits for an answer any more. */
    if (n == 0 || (n < 0 && n != -EAGAIN))
        k->fd[FD_OUT_ENDED + stream] = TAKE_FD(k->fd[FD_OUT + stream]);
    return n;
}

void drain_close_ended(struct keeper *k)
{
    loop_close(k, FD_OUT_ENDED);
    loop_close(k, FD_ERR_ENDED);
}

/* Further ahead of its pacer than is surely kept. */
static bool is_ahead(const struct keeper *k)
{
    return k->pacer && k->st.log.end > k->seen && k->st.log.end - k->seen >= k->log.half / 2;
}

static void hold_streams(struct keeper *k)
{
    k->held = true;
    loop_ignore(k, FD_OUT);
    loop_ignore(k, FD_ERR);
}

void drain_seen(struct keeper *k, uint64_t offset)
{
    k->seen = MAX(k->seen, offset);
    if (offset == UINT64_MAX)
        k->pacer = NULL;
    if (!k->held || is_ahead(k))
        return;
    k->held = false;
    loop_watch(k, FD_OUT);
    loop_watch(k, FD_ERR);
}

void drain_stream(struct keeper *k, nacre_stream stream)
{
    uint64_t before = k->st.log.end;
    int patience = 0;
    for (int i = 0; i < READS_PER_TURN && k->fd[FD_OUT + stream] >= 0 && !is_ahead(k); i++)
        if (!flood_reads_on(pull(k, stream), &patience) || flood_needs_rest(k, patience))
            break;
    if (k->st.log.end > before)
        publish_output(k);
    if (k->fd[FD_OUT + stream] >= 0 && flood_needs_rest(k, patience))
        flood_rest(k);
    if (is_ahead(k))
        hold_streams(k);
    if (drain_at_eof(k) && k->state == ST_LINGERING && !k->st.settled)
        k->at[AT_SETTLE] = clock_mono_ns();
}

void drain_now(struct keeper *k)
{
    if (k->is_terminal) {
        if (k->fd[FD_OUT] >= 0)
            tty_drain(k, pull);
        return;
    }
    for (int stream = 0; stream < 2; stream++) {
        int pending = 0;
        if (k->fd[FD_OUT + stream] < 0 || pull(k, stream) <= 0)
            continue;
        if (ioctl(k->fd[FD_OUT + stream], FIONREAD, &pending) < 0)
            pending = 0;
        int64_t left = pending;
        /* One read more than is pending finds the end of file, if it is there. */
        for (bool again = true; again && k->fd[FD_OUT + stream] >= 0;) {
            ssize_t n = pull(k, stream);
            again = n > 0 && left > 0;
            left -= n > 0 ? n : 0;
        }
    }
}
