/* Letters of ASCII: every byte, and nothing beyond. */
#include "unit.h"

#include "base/ascii.h"

static void only_letters_of_ascii_have_a_case(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool upper = c >= 'A' && c <= 'Z', letter = upper || (c >= 'a' && c <= 'z');
        assert_int_equal((unsigned char)ascii_lower((char)c), upper ? c + 32 : c);
        assert_int_equal(ascii_is_alnum((char)c), letter || (c >= '0' && c <= '9'));
    }
}

static void case_does_not_make_a_difference(void **state)
{
    (void)state;
    assert_true(ascii_is_same("Exit Code", "EXIT cODE", 9));
    assert_false(ascii_is_same("exit", "exiT_", 5));
    assert_false(ascii_is_same("\xc4\xb0", "i\xcc", 2));
    assert_true(ascii_is_same("a", "b", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_letters_of_ascii_have_a_case),
        cmocka_unit_test(case_does_not_make_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
