/* Growing arrays: items stay what they were, and where there is no memory so does the array. */
#include "unit.h"

#include "base/defs.h"
#include "base/grow.h"

static void test_items_stay(void **state)
{
    cleanup_free size_t *items = NULL;
    size_t count = 0, cap = 0;
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(GROW(items, count, cap), 0);
        assert_true(count < cap);
        items[count++] = i;
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    assert_int_equal(cap, 1024);
}

static void test_room_is_left_alone(void **state)
{
    cleanup_free int *items = NULL;
    size_t cap = 0;
    (void)state;
    assert_int_equal(GROW(items, 0, cap), 0);
    int *before = items;
    size_t room = cap;
    assert_int_equal(GROW(items, room - 1, cap), 0);
    assert_ptr_equal(items, before);
    assert_int_equal(cap, room);
}

static void test_too_much(void **state)
{
    char one = 'x', *items = &one;
    size_t cap = SIZE_MAX / 2 + 1;
    (void)state;
    assert_int_equal(GROW(items, cap, cap), -ENOMEM);
    assert_ptr_equal(items, &one);
    assert_int_equal(cap, SIZE_MAX / 2 + 1);

    struct big {
        char bytes[4096];
    } *bigs = (void *)&one;
    cap = SIZE_MAX / 4096;
    assert_int_equal(GROW(bigs, cap, cap), -ENOMEM);
    assert_ptr_equal(bigs, &one);
    assert_int_equal(cap, SIZE_MAX / 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_stay),
        cmocka_unit_test(test_room_is_left_alone),
        cmocka_unit_test(test_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
