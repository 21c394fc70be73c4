/* Time: monotonic for durations, the calendar's for records. */
#ifndef NACRE_BASE_CLOCK_H
#define NACRE_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

int64_t clock_mono_ns(void);
int64_t clock_real_ns(void);

/* A moment on the monotonic clock, ms from now; INT64_MAX for ms < 0, our "never". */
int64_t clock_deadline(int64_t ms);

/* Milliseconds left until a deadline, rounded up, for poll(): -1 = never, 0 = over. */
int clock_left_ms(int64_t deadline_ns);

#endif
