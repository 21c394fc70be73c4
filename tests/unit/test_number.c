/* Numbers as people write them: exact, rounded up, and refused where they do not fit. */
#include "unit.h"

#include "base/defs.h"
#include "base/number.h"

static void whole_numbers(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_true(number_parse("0", &n));
    assert_int_equal(n, 0);
    assert_true(number_parse("0042", &n));
    assert_int_equal(n, 42);
    assert_true(number_parse("18446744073709551615", &n));
    assert_true(n == UINT64_MAX);
    static const char *const wrong[] = {
        "", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "1,0", "inf", "18446744073709551616"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(number_parse(wrong[i], &n));
    assert_true(n == UINT64_MAX);
}

static void assert_scaled(const char *text, uint64_t scale, uint64_t want)
{
    uint64_t got = want + 1;
    assert_true(number_parse_scaled(text, strlen(text), scale, UINT64_MAX, &got));
    if (got != want)
        fail_msg("%s times %llu is %llu", text, (unsigned long long)scale, (unsigned long long)got);
}

static void decimals(void **state)
{
    (void)state;
    assert_scaled("0", 1000, 0);
    assert_scaled("5", 1000, 5000);
    assert_scaled("5.", 1000, 5000);
    assert_scaled(".5", 1000, 500);
    assert_scaled("1.5", 1000, 1500);
    assert_scaled("0.001", 1000, 1);
    assert_scaled("0.0010", 1000, 1);
    assert_scaled("0.3", 10, 3);
    assert_scaled("1.1", 60000, 66000);
    assert_scaled("0.999999", 1048576, 1048575);
    assert_scaled("18446744073709551615", 1, UINT64_MAX);
}

static void what_is_left_over_counts_as_one(void **state)
{
    (void)state;
    assert_scaled("0.0001", 1000, 1);
    assert_scaled("0.0000000000000000000000000000000001", 1000, 1);
    assert_scaled("1.0001", 1000, 1001);
    assert_scaled("0.25", 1, 1);
    assert_scaled("0.9999", 1000, 1000);
}

static void only_what_was_given(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(number_parse_scaled("30s", 2, 1000, UINT64_MAX, &n));
    assert_int_equal(n, 30000);
    static const char *const wrong[] = {"",  ".",  "-1",   "+1",  "1.2.3", "1e3", " 1", "1 ",
                                        "s", "5s", "1..2", "0x1", "1,5",   "inf", "nan"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (number_parse_scaled(wrong[i], strlen(wrong[i]), 1000, UINT64_MAX, &n))
            fail_msg("\"%s\" was taken", wrong[i]);
    assert_int_equal(n, 30000);
}

static void ceilings(void **state)
{
    (void)state;
    uint64_t n = 3;
    assert_true(number_parse_scaled("10", 2, 1000, 10000, &n));
    assert_false(number_parse_scaled("10.0001", 7, 1000, 10000, &n));
    assert_false(number_parse_scaled("11", 2, 1000, 10000, &n));
    assert_false(number_parse_scaled("18446744073709551616", 20, 1, UINT64_MAX, &n));
    assert_false(number_parse_scaled("18446744073709551615", 20, 2, UINT64_MAX, &n));
    assert_false(number_parse_scaled("18446744073709551615.5", 22, 1, UINT64_MAX, &n));
    assert_int_equal(n, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimals),
        cmocka_unit_test(what_is_left_over_counts_as_one),
        cmocka_unit_test(only_what_was_given),
        cmocka_unit_test(ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
