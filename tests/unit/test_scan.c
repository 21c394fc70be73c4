/* How far bytes are clean, at every length and place of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/utf8.h"

#define LONG 200

static bool is_plain(unsigned byte)
{
    return byte >= ' ' && byte <= '~';
}

/* Memory of just that size, so that a sanitizer sees a read too far. */
static char *letters(size_t size)
{
    char *s = malloc(size ? size : 1);
    assert_non_null(s);
    memset(s, 'a', size);
    return s;
}

static void every_byte_at_every_place(void **state)
{
    (void)state;
    for (size_t size = 1; size <= LONG; size += size < 20 ? 1 : 9) {
        char *s = letters(size);
        assert_int_equal(scan_plain(s, size), size);
        assert_int_equal(scan_clean(s, size), size);
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bool clean = is_plain(byte) || byte == '\t' || byte == '\n';
                s[at] = (char)byte;
                assert_int_equal(scan_plain(s, size), is_plain(byte) ? size : at);
                assert_int_equal(scan_clean(s, size), clean ? size : at);
            }
            s[at] = 'a';
        }
        free(s);
    }
}

static void check_character(const char *character, bool clean)
{
    size_t length = strlen(character);
    for (size_t at = 0; at < 80; at++) {
        char *s = letters(at + length + 40);
        memcpy(s + at, character, length);
        assert_int_equal(scan_clean(s, at + length + 40), clean ? at + length + 40 : at);
        assert_int_equal(scan_plain(s, at + length + 40), at);
        for (size_t cut = 1; cut < length; cut++)
            assert_int_equal(scan_clean(s, at + cut), at);
        free(s);
    }
}

static void characters_are_clean_when_they_are_whole(void **state)
{
    (void)state;
    check_character("\u00e9", true);
    check_character("\u00a0", true);
    check_character("\u4f60", true);
    check_character("\U0001f600", true);
    check_character("\u0301", true);
    check_character("\xc2\x80", false);
    check_character("\xc2\x9f", false);
    check_character("\xed\xa0\x80", false);
    check_character("\xc0\x80", false);
}

static void nothing_is_clean(void **state)
{
    (void)state;
    assert_int_equal(scan_plain("", 0), 0);
    assert_int_equal(scan_clean("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_at_every_place),
        cmocka_unit_test(characters_are_clean_when_they_are_whole),
        cmocka_unit_test(nothing_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
