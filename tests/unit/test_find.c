/* Finding bytes: against the plainest search there is, at every place and size around a vector. */
#include "unit.h"

#include "base/find.h"

static bool same(char a, char b, bool fold)
{
    if (fold && a >= 'A' && a <= 'Z')
        a = (char)(a | 0x20);
    return a == b;
}

static size_t plain_find(const char *needle, size_t length, bool fold, const char *hay, size_t from,
                         size_t size)
{
    for (size_t i = from; i + length <= size; i++) {
        size_t n = 0;
        while (n < length && same(hay[i + n], needle[n], fold))
            n++;
        if (n == length)
            return i;
    }
    return size;
}

static void check(const char *text, size_t length, bool fold, const char *hay, size_t size)
{
    struct needle needle;
    needle_init(&needle, text, length, fold);
    for (size_t from = 0; from <= size; from += 1 + from / 3)
        assert_int_equal(needle_find(&needle, hay, from, size),
                         plain_find(text, length, fold, hay, from, size));
}

/* The needle at every place of a text of every length up to some vectors. */
static void test_every_place(void **state)
{
    (void)state;
    static const char *const needles[] = {"e", "xy", "error", "  a", "0123456789abcdefghij"};
    for (size_t k = 0; k < sizeof needles / sizeof needles[0]; k++) {
        size_t length = strlen(needles[k]);
        for (size_t size = length; size < 200; size += 1 + size / 40) {
            /* Of exactly that size, so that a read beyond it is seen. */
            char *hay = malloc(size);
            for (size_t at = 0; at + length <= size; at++) {
                memset(hay, ' ', size);
                memcpy(hay + at, needles[k], length);
                check(needles[k], length, false, hay, size);
            }
            free(hay);
        }
    }
}

static void test_few_letters(void **state)
{
    (void)state;
    struct unit_random random = {42};
    for (int round = 0; round < 4000; round++) {
        char hay[300], text[6];
        size_t size = unit_below(&random, sizeof hay),
               length = 1 + unit_below(&random, sizeof text);
        bool fold = round % 2;
        for (size_t i = 0; i < size; i++)
            hay[i] = "abAB[{\xe1"[unit_below(&random, 7)];
        for (size_t i = 0; i < length; i++)
            text[i] = "ab[{\xe1"[unit_below(&random, 5)];
        check(text, length, fold, hay, size);
    }
}

static void test_longer_than_the_text(void **state)
{
    (void)state;
    struct needle needle;
    needle_init(&needle, "abc", 3, false);
    assert_int_equal(needle_find(&needle, "ab", 0, 2), 2);
    assert_int_equal(needle_find(&needle, "", 0, 0), 0);
    assert_int_equal(needle_find(&needle, "abc", 1, 3), 3);
}

static size_t plain_run(const struct byte_run *run, const char *hay, size_t from, size_t size)
{
    for (size_t i = from; i + run->least <= size; i++) {
        size_t n = 0;
        while (n < run->least && run->set[(unsigned char)hay[i + n]])
            n++;
        if (n == run->least)
            return i;
    }
    return size;
}

static void test_runs(void **state)
{
    (void)state;
    struct unit_random random = {7};
    for (int round = 0; round < 4000; round++) {
        struct byte_run run = {.least = 1 + unit_below(&random, 7)};
        run.set['a'] = run.set[0xe1] = true;
        size_t size = unit_below(&random, 80);
        char *hay = malloc(size + 1);
        for (size_t i = 0; i < size; i++)
            hay[i] = "aaaa\xe1 "[unit_below(&random, 6)];
        hay = realloc(hay, size ? size : 1);
        for (size_t from = 0; from <= size; from++)
            assert_int_equal(byte_run_find(&run, hay, from, size),
                             plain_run(&run, hay, from, size));
        free(hay);
    }
}

static void test_ascii(void **state)
{
    (void)state;
    char data[150];
    memset(data, 0x7f, sizeof data);
    for (size_t size = 0; size <= sizeof data; size++) {
        assert_true(bytes_are_ascii(data, size));
        for (size_t at = 0; at < size; at++) {
            data[at] = (char)0x80;
            assert_false(bytes_are_ascii(data, size));
            data[at] = 0x7f;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_few_letters),
        cmocka_unit_test(test_longer_than_the_text),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
