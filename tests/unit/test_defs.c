/* The small helpers that every file uses. */
#include "unit.h"

#include "base/defs.h"

static int calls;

/* A different answer each time, as from something that another thread changes. */
static int next_answer(void)
{
    return ++calls;
}

static void min_and_max_ask_once(void **state)
{
    (void)state;
    calls = 0;
    assert_int_equal(MIN(next_answer(), 5), 1);
    assert_int_equal(calls, 1);
    assert_int_equal(MAX(next_answer(), 0), 2);
    assert_int_equal(calls, 2);
    assert_int_equal(MAX(MIN(next_answer(), 9), MIN(4, next_answer())), 4);
    assert_int_equal(calls, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(min_and_max_ask_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
