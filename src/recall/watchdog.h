/* What ends a search early: its time is over, or its caller no longer wants it. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct watchdog {
    int64_t deadline_ns;              /* on the monotonic clock; INT64_MAX = never */
    int (*cancelled)(void *userdata); /* may be NULL */
    void *userdata;
    int verdict; /* 0 = go on; stays once it is something else */
    int timed_out;
};

/* 0, or what the search has to end with: WATCHDOG_TIMEOUT, or what cancelled() returned. */
#define WATCHDOG_TIMEOUT (-1)

static inline int watchdog_look(struct watchdog *dog)
{
    if (dog->verdict == 0 && clock_mono_ns() >= dog->deadline_ns) {
        dog->timed_out = 1;
        dog->verdict = WATCHDOG_TIMEOUT;
    }
    if (dog->verdict == 0 && dog->cancelled)
        dog->verdict = dog->cancelled(dog->userdata);
    return dog->verdict;
}
