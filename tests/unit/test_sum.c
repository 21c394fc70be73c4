/* The checksum notices what can happen to a record on disk. */
#include "unit.h"

#include "base/sum.h"

#define SIZE 512

static void fill(unsigned char *data, size_t size)
{
    struct unit_random random = {1};
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)unit_next(&random);
}

static void the_same_bytes_give_the_same_sum(void **state)
{
    (void)state;
    unsigned char data[SIZE + 8];
    for (size_t shift = 0; shift < 8; shift++) {
        unsigned char plain[SIZE];
        fill(plain, SIZE);
        memcpy(data + shift, plain, SIZE);
        assert_int_equal(sum64(data + shift, SIZE), sum64(plain, SIZE));
    }
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    unsigned char data[SIZE];
    fill(data, SIZE);
    uint64_t sum = sum64(data, SIZE);
    for (size_t bit = 0; bit < SIZE * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(sum64(data, SIZE), sum);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(sum64(data, SIZE), sum);
}

static void every_torn_write_is_noticed(void **state)
{
    (void)state;
    unsigned char old[SIZE], new[SIZE], torn[SIZE];
    fill(old, SIZE);
    fill(new, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        new[i] ^= 0x55;
    uint64_t sum = sum64(new, SIZE);
    for (size_t cut = 0; cut < SIZE; cut++) {
        memcpy(torn, new, cut);
        memcpy(torn + cut, old + cut, SIZE - cut);
        assert_int_not_equal(sum64(torn, SIZE), sum);
        memset(torn + cut, 0, SIZE - cut);
        assert_int_not_equal(sum64(torn, SIZE), sum);
    }
}

static void length_and_order_count(void **state)
{
    (void)state;
    unsigned char zeros[64] = {0};
    for (size_t size = 8; size <= 64; size += 8)
        assert_int_not_equal(sum64(zeros, size), sum64(zeros, size - 8));
    uint64_t there[2] = {1, 2}, back[2] = {2, 1};
    assert_int_not_equal(sum64(there, sizeof there), sum64(back, sizeof back));
}

static void odd_bytes_at_the_end_do_not_count(void **state)
{
    (void)state;
    unsigned char data[24];
    fill(data, sizeof data);
    for (size_t extra = 1; extra < 8; extra++)
        assert_int_equal(sum64(data, 16 + extra), sum64(data, 16));
    assert_int_equal(sum64(data, 7), sum64(data, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_give_the_same_sum),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_torn_write_is_noticed),
        cmocka_unit_test(length_and_order_count),
        cmocka_unit_test(odd_bytes_at_the_end_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
