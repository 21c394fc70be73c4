/* The command's streams into the log, and the log's state to its readers. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/host.h"

#define READS_PER_TURN 64
#define BUSY_READ      ((size_t)16 * 1024)
#define BUSY_TRIES     16
#define ASIDE_NICE     "10"
#define FLOOD_NS       ((int64_t)200 * 1000)
#define REST_NS        ((int64_t)20 * 1000)

static struct keeper *guarded;
static volatile sig_atomic_t ring_lost;

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
    ring_lost = 1;
}

static int publish_log(void *userdata)
{
    struct keeper *k = userdata;
    return state_write(k->state_fd, &k->st);
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
    k->publish_at = NEVER;
    k->published = clock_mono_ns();
    state_write(k->state_fd, &k->st);
    ctl_tell_watchers(k);
    if (k->bell_due)
        ctl_ring(k);
}

/* New output: readers learn of it at once, but during a flood only every now and then. */
static void publish_output(struct keeper *k)
{
    if (k->log.ring)
        drain_step(k, true);
    if (clock_mono_ns() - k->published >= PUBLISH_NS)
        publish(k);
    else if (k->publish_at == NEVER)
        k->publish_at = k->published + PUBLISH_NS;
}

bool drain_at_eof(const struct keeper *k)
{
    return k->out_fd[0] < 0 && k->out_fd[1] < 0;
}

static int64_t since_start_us(const struct keeper *k)
{
    return (clock_mono_ns() - k->st.started_mono_ns) / 1000;
}

static ssize_t pull(struct keeper *k, nacre_stream stream)
{
    ssize_t n = logw_pull(&k->log, k->out_fd[stream], stream, since_start_us(k));
    if (ring_lost) {
        ring_lost = 0;
        logw_lose_ring(&k->log, EIO);
    }
    /* Closed when nobody waits for an answer any more. */
    if (n == 0 || (n < 0 && n != -EAGAIN))
        k->ended_fd[stream] = TAKE_FD(k->out_fd[stream]);
    return n;
}

/*
 * Who drowns a machine in output is not waited for by anybody; who looks at it is. The scheduler
 * weighs sessions against each other, and each keeper is one, as each command is.
 */
void drain_step(struct keeper *k, bool aside)
{
    /* Refused now and then to whoever is not root: tried again. */
    if (k->aside != aside &&
        fd_poke_at(AT_FDCWD, "/proc/self/autogroup", aside ? ASIDE_NICE : "0") >= 0)
        k->aside = aside;
}

void drain_close_ended(struct keeper *k)
{
    for (int i = 0; i < 2; i++)
        loop_close(k, &k->ended_fd[i]);
}

/* Further ahead of its pacer than is surely kept. */
static bool is_ahead(const struct keeper *k)
{
    return k->pacer && k->st.log.end > k->seen && k->st.log.end - k->seen >= k->log.half / 2;
}

static const enum tag stream_tags[] = {TAG_OUT, TAG_ERR};

static void hold(struct keeper *k)
{
    k->held = true;
    for (int i = 0; i < 2; i++)
        loop_remove(k, k->out_fd[i]);
}

void drain_seen(struct keeper *k, uint64_t offset)
{
    k->seen = MAX(k->seen, offset);
    if (offset == UINT64_MAX)
        k->pacer = NULL;
    if (!k->held || is_ahead(k))
        return;
    k->held = false;
    for (int i = 0; i < 2; i++)
        if (k->out_fd[i] >= 0)
            loop_add(k, k->out_fd[i], EPOLLIN, stream_tags[i], 0);
}

/*
 * A stream that fills the pipe as fast as it is emptied is asked again a few times before we go
 * to sleep: the wake-ups would cost more than the reading.
 */
static bool keep_reading(struct keeper *k, nacre_stream stream, int *patience)
{
    ssize_t n = pull(k, stream);
    if (n > 0) {
        *patience = (size_t)n >= BUSY_READ ? BUSY_TRIES : 0;
        return true;
    }
    if (n != -EAGAIN || *patience == 0)
        return false;
    --*patience;
    sched_yield();
    return true;
}

static bool is_rest_due(const struct keeper *k, nacre_stream stream, int patience)
{
    return k->log.ring && patience > 0 && k->out_fd[stream] >= 0 &&
           clock_mono_ns() - k->rested >= FLOOD_NS;
}

/*
 * A writer whose pipe is emptied from another processor never blocks. Whoever waits for its own
 * processor would wait until the kernel's next tick, milliseconds away: so a flood is left to
 * itself for a moment, its pipe runs full, and the processor is free. Only if somebody may be
 * waiting: on a machine with room it would cost a third of the throughput, for nothing.
 */
static void rest(struct keeper *k)
{
    struct timespec pause = {.tv_nsec = REST_NS};
    int runnable = host_count_runnable();
    if (runnable < 0 || runnable > host_count_processors())
        nanosleep(&pause, NULL);
    k->rested = clock_mono_ns();
}

void drain_stream(struct keeper *k, nacre_stream stream)
{
    uint64_t before = k->st.log.end;
    int patience = 0;
    for (int i = 0; i < READS_PER_TURN && k->out_fd[stream] >= 0 && !is_ahead(k); i++)
        if (!keep_reading(k, stream, &patience) || is_rest_due(k, stream, patience))
            break;
    if (k->st.log.end > before)
        publish_output(k);
    if (is_rest_due(k, stream, patience))
        rest(k);
    if (is_ahead(k))
        hold(k);
    if (drain_at_eof(k) && k->state == ST_LINGERING && !k->st.settled)
        k->settle_at = clock_mono_ns();
}

void drain_now(struct keeper *k)
{
    for (int stream = 0; stream < 2; stream++) {
        int pending = 0;
        if (k->out_fd[stream] < 0 || pull(k, stream) <= 0)
            continue;
        if (ioctl(k->out_fd[stream], FIONREAD, &pending) < 0)
            pending = 0;
        int64_t left = pending;
        /* One read more than is pending finds the end of file, if it is there. */
        for (bool again = true; again && k->out_fd[stream] >= 0;) {
            ssize_t n = pull(k, stream);
            again = n > 0 && left > 0;
            left -= n > 0 ? n : 0;
        }
    }
}
