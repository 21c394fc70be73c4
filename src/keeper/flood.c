/*
 * The manners of a keeper that drains very much. A flood is a stream that fills its pipe as fast as
 * it is emptied, of a run whose head is full; a command that prints little never meets this.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "keeper/keeper.h"
#include "sys/host.h"

#define ASIDE_NICE "10"
#define BUSY_READ  ((ssize_t)16 * 1024)
#define BUSY_TRIES 16
#define FLOOD_NS   (INT64_C(200) * 1000)
#define REST_NS    (INT64_C(20) * 1000)

/*
 * Who drowns a machine in output is not waited for by anybody; who looks at it is. The scheduler
 * weighs sessions against each other, and each keeper is one, as each command is. With eight floods
 * on two processors, a list of the shells takes 1.2 to 1.8 ms at p99 this way, and 4 ms without.
 */
void flood_step_aside(struct keeper *k, bool aside)
{
    /* Refused now and then to whoever is not root: tried again. */
    if (k->aside != aside && host_set_session_nice(aside ? ASIDE_NICE : "0") >= 0)
        k->aside = aside;
}

/*
 * An empty pipe is asked again a few times after a large read, before we go to sleep: the wake-ups
 * would cost more than the reading. 2.3 to 2.7 GB/s are drained this way, and 1.5 without.
 */
bool flood_reads_on(ssize_t n, int *patience)
{
    if (n > 0) {
        *patience = n >= BUSY_READ ? BUSY_TRIES : 0;
        return true;
    }
    if (n != -EAGAIN || *patience == 0)
        return false;
    --*patience;
    sched_yield();
    return true;
}

bool flood_needs_rest(const struct keeper *k, int patience)
{
    return k->log.ring && patience > 0 && clock_mono_ns() - k->rested >= FLOOD_NS;
}

/*
 * A writer whose pipe is emptied from another processor never blocks. Whoever waits for its own
 * processor would wait until the kernel's next tick (4 ms at 250 Hz; up to 5 ms were seen): so a
 * flood is left to itself for a moment, its pipe runs full, and the processor is free. Only if
 * somebody may be waiting: on a machine with room it would cost a third of the throughput, for
 * nothing.
 */
void flood_rest(struct keeper *k)
{
    struct timespec pause = {.tv_nsec = REST_NS};
    int runnable = host_count_runnable();
    if (runnable < 0 || runnable > host_count_processors())
        nanosleep(&pause, NULL);
    k->rested = clock_mono_ns();
}
