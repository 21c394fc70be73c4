/* Deadlines: rounded up, never wrapped, and "never" stays never. */
#include "unit.h"

#include <sys/time.h>

#include "base/clock.h"

static void monotonic_goes_forward(void **state)
{
    (void)state;
    int64_t last = clock_mono_ns();
    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_mono_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void calendar_is_the_calendars(void **state)
{
    (void)state;
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    int64_t now = clock_real_ns();
    clock_gettime(CLOCK_REALTIME, &after);
    assert_true(now >= before.tv_sec * NS_PER_S + before.tv_nsec);
    assert_true(now <= after.tv_sec * NS_PER_S + after.tv_nsec);
}

static void deadlines_lie_ahead(void **state)
{
    (void)state;
    static const int64_t spans[] = {0, 1, 999, 60000, INT64_C(31536000000)};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        int64_t before = clock_mono_ns();
        int64_t at = clock_deadline(spans[i]);
        int64_t after = clock_mono_ns();
        assert_true(at >= before + spans[i] * NS_PER_MS);
        assert_true(at <= after + spans[i] * NS_PER_MS);
    }
}

static void never_stays_never(void **state)
{
    (void)state;
    assert_int_equal(clock_deadline(-1), INT64_MAX);
    assert_int_equal(clock_deadline(INT64_MIN), INT64_MAX);
    assert_int_equal(clock_deadline(INT64_MAX), INT64_MAX);
    assert_int_equal(clock_deadline(INT64_MAX / NS_PER_MS), INT64_MAX);
    assert_int_equal(clock_left_ms(INT64_MAX), -1);
    /* The longest that is not never stays a number that poll() understands. */
    assert_int_equal(clock_left_ms(INT64_MAX - 1), INT_MAX);
}

static void what_is_left_is_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(clock_left_ms(0), 0);
    assert_int_equal(clock_left_ms(-5), 0);
    assert_int_equal(clock_left_ms(INT64_MIN / 2), 0);
    assert_int_equal(clock_left_ms(clock_mono_ns() - 1), 0);
    /* Up to 100 s ahead in odd nanoseconds: never less than what is left, at most 1 ms more. */
    for (int64_t ahead = 1; ahead < 100 * NS_PER_S; ahead = ahead * 3 + 1) {
        int64_t at = clock_mono_ns() + ahead;
        int64_t left = (int64_t)clock_left_ms(at) * NS_PER_MS;
        int64_t truth = at - clock_mono_ns();
        assert_true(left >= truth);
        assert_true(left < ahead + NS_PER_MS);
    }
    /* A moment that is not over is never 0: a loop would spin through its last millisecond. */
    assert_true(clock_left_ms(clock_mono_ns() + 50 * NS_PER_MS) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_goes_forward),     cmocka_unit_test(calendar_is_the_calendars),
        cmocka_unit_test(deadlines_lie_ahead),        cmocka_unit_test(never_stays_never),
        cmocka_unit_test(what_is_left_is_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
