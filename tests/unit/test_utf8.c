/* Decoding and cleaning UTF-8, at every border where it can go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/utf8.h"

#define FFFD UTF8_REPLACEMENT

static size_t encode(uint32_t point, char *s)
{
    if (point < 0x80) {
        s[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        s[i] = (char)(0x80 | (point & 0x3f));
    s[0] = (char)(marks[length] | point);
    return length;
}

static void every_code_point_is_read(void **state)
{
    (void)state;
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        char s[4];
        uint32_t got = 0;
        size_t length = encode(point, s);
        size_t n = utf8_next(s, length, &got);
        if (point >= 0xd800 && point <= 0xdfff) {
            assert_int_equal(n, 1);
            assert_int_equal(got, UTF8_INVALID);
            continue;
        }
        assert_int_equal(n, length);
        assert_int_equal(got, point);
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(utf8_next(s, cut, &got), 0);
    }
}

static void every_pair_of_bytes_makes_progress(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char s[2] = {(char)a, (char)b};
            uint32_t point;
            size_t n = utf8_next(s, 2, &point);
            assert_true(n <= 2);
            assert_true(n > 0 || a >= 0xe0);
        }
    }
}

static void check(const char *text, size_t size, const char *expected)
{
    struct buf b cleanup_buf = BUF_UP_TO(4096);
    assert_int_equal(utf8_clean(&b, text, size), 0);
    assert_int_equal(b.len, strlen(expected));
    if (b.len > 0)
        assert_memory_equal(b.data, expected, b.len);
}

#define CHECK(text, expected) check(text, sizeof(text) - 1, expected)

static void invalid_parts_are_replaced(void **state)
{
    (void)state;
    CHECK("", "");
    CHECK("plain\ttext\n", "plain\ttext\n");
    CHECK("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80",
          "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK("\xef\xbf\xbd", FFFD);
    CHECK("a\xff"
          "b",
          "a" FFFD "b");
    CHECK("\x80\x80", FFFD FFFD);
    CHECK("\xc0\xaf", FFFD FFFD);
    CHECK("\xe0\x80\x80", FFFD FFFD FFFD);
    CHECK("\xed\xa0\x80", FFFD FFFD FFFD);
    CHECK("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD);
    CHECK("\xf5", FFFD);
    CHECK("\xe2\x82x", FFFD "x");
    CHECK("\xf0\x9f\x98x", FFFD "x");
    CHECK("\xf0\x9f\x98\xf0\x9f\x98\x80", FFFD "\xf0\x9f\x98\x80");
    CHECK("end \xf0\x9f\x98", "end " FFFD);
    CHECK("end \xe2", "end " FFFD);
}

static void nul_is_a_character(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(16);
    assert_int_equal(utf8_clean(&b, "a\0b", 3), 0);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 3);
}

static void a_ceiling_is_respected(void **state)
{
    (void)state;
    struct buf b cleanup_buf = BUF_UP_TO(4);
    assert_int_equal(utf8_clean(&b, "ab\xff", 3), -E2BIG);
    assert_true(b.len <= 4);
}

static void torn_beginnings_are_measured(void **state)
{
    (void)state;
    const char *face = "\xf0\x9f\x98\x80x";
    assert_int_equal(utf8_torn(face, 5), 0);
    assert_int_equal(utf8_torn(face + 1, 4), 3);
    assert_int_equal(utf8_torn(face + 2, 3), 2);
    assert_int_equal(utf8_torn(face + 3, 2), 1);
    assert_int_equal(utf8_torn(face + 4, 1), 0);
    assert_int_equal(utf8_torn(face, 0), 0);
    assert_int_equal(utf8_torn("\x80\x80\x80\x80", 4), 3);
}

static void characters_have_columns(void **state)
{
    (void)state;
    assert_int_equal(utf8_width('a'), 1);
    assert_int_equal(utf8_width(0xe9), 1);
    assert_int_equal(utf8_width(0x2588), 1);
    assert_int_equal(utf8_width(0x301), 0);
    assert_int_equal(utf8_width(0x200d), 0);
    assert_int_equal(utf8_width(0xfe0f), 0);
    assert_int_equal(utf8_width(0x4f60), 2);
    assert_int_equal(utf8_width(0xff21), 2);
    assert_int_equal(utf8_width(0x1f600), 2);
    assert_int_equal(utf8_width(0xfffd), 1);
    assert_int_equal(utf8_width(UTF8_INVALID), 1);
    for (uint32_t point = 0; point <= 0x10ffff; point++)
        assert_true(utf8_width(point) <= 2);
}

static void test_valid(void **state)
{
    (void)state;
    static const char text[] = "plain text, \xc3\xa4 and \xf0\x9f\x98\x80 and some more text";
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid(text, sizeof text - 1));
    /* Cut inside a character, or with one wrong byte anywhere. */
    assert_false(utf8_is_valid(text, 13));
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        copy[i] = (char)0xff;
        assert_false(utf8_is_valid(copy, sizeof text - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(every_code_point_is_read),
        cmocka_unit_test(every_pair_of_bytes_makes_progress),
        cmocka_unit_test(invalid_parts_are_replaced),
        cmocka_unit_test(nul_is_a_character),
        cmocka_unit_test(a_ceiling_is_respected),
        cmocka_unit_test(torn_beginnings_are_measured),
        cmocka_unit_test(characters_have_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
