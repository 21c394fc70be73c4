#include "base/clock.h"

#include <limits.h>
#include <time.h>

static int64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return now(CLOCK_MONOTONIC);
}

int64_t clock_real_ns(void)
{
    return now(CLOCK_REALTIME);
}

int64_t clock_deadline(int64_t ms)
{
    int64_t start = clock_mono_ns();
    if (ms < 0 || ms > (INT64_MAX - start) / NS_PER_MS)
        return INT64_MAX;
    return start + ms * NS_PER_MS;
}

int clock_left_ms(int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX)
        return -1;
    int64_t left = deadline_ns - clock_mono_ns();
    if (left <= 0)
        return 0;
    left = (left + NS_PER_MS - 1) / NS_PER_MS;
    return left > INT_MAX ? INT_MAX : (int)left;
}
