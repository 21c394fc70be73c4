/* Time: monotonic for durations, the calendar's for records. */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static inline int64_t clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_real_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

/* A moment on the monotonic clock, ms from now; INT64_MAX for ms < 0, our "never". */
static inline int64_t clock_deadline(int64_t ms)
{
    int64_t start = clock_mono_ns();
    return ms < 0 || ms > (INT64_MAX - start) / NS_PER_MS ? INT64_MAX : start + ms * NS_PER_MS;
}

/* Milliseconds left until a deadline, rounded up, for poll(): -1 = never, 0 = over. */
static inline int clock_left_ms(int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX)
        return -1;
    int64_t left = (deadline_ns - clock_mono_ns() + NS_PER_MS - 1) / NS_PER_MS;
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}
