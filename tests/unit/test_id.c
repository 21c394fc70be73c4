/* Ids: 32 lowercase hex digits and nothing else. */
#include "unit.h"

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/version.h>

static const char sample[] = "00112233445566778899aabbccddeeff";

static void formats_every_byte(void **state)
{
    (void)state;
    nacre_id id;
    for (unsigned i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(i * 0x11);
    assert_string_equal(nacre_id_format(&id).s, sample);
    assert_string_equal(nacre_id_short(&id).s, "00112233");
}

static void parses_what_it_formats(void **state)
{
    (void)state;
    struct unit_random random = {7};
    for (int round = 0; round < 1000; round++) {
        nacre_id id, back;
        for (size_t i = 0; i < sizeof id.bytes; i++)
            id.bytes[i] = (uint8_t)unit_next(&random);
        memset(&back, 0x5a, sizeof back);
        nacre_id_text text = nacre_id_format(&id);
        assert_int_equal(strlen(text.s), NACRE_ID_DIGITS);
        assert_int_equal(nacre_id_parse(text.s, &back), NACRE_OK);
        assert_memory_equal(&id, &back, sizeof id);
        assert_true(nacre_id_equal(&id, &back));
        back.bytes[round % 16] ^= 1;
        assert_false(nacre_id_equal(&id, &back));
    }
}

static void every_wrong_character_is_refused(void **state)
{
    (void)state;
    for (int at = 0; at < NACRE_ID_DIGITS; at++) {
        for (int c = 0; c < 256; c++) {
            char text[sizeof sample];
            memcpy(text, sample, sizeof text);
            text[at] = (char)c;
            bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            nacre_id id;
            memset(&id, 0x5a, sizeof id);
            nacre_id before = id;
            assert_int_equal(nacre_id_parse(text, &id), digit ? NACRE_OK : NACRE_EINVAL);
            if (!digit)
                assert_memory_equal(&id, &before, sizeof id);
        }
    }
}

static void every_wrong_length_is_refused(void **state)
{
    (void)state;
    nacre_id id;
    char text[80];
    for (size_t length = 0; length < sizeof text; length++) {
        memset(text, 'a', length);
        text[length] = '\0';
        assert_int_equal(nacre_id_parse(text, &id), length == 32 ? NACRE_OK : NACRE_EINVAL);
    }
    assert_int_equal(nacre_id_parse(NULL, &id), NACRE_EINVAL);
    assert_int_equal(nacre_id_parse(" 00112233445566778899aabbccddeef", &id), NACRE_EINVAL);
    assert_int_equal(nacre_id_parse("0x112233445566778899aabbccddeeff", &id), NACRE_EINVAL);
    assert_int_equal(nacre_id_parse("00112233445566778899aabbccddeeff\n", &id), NACRE_EINVAL);
}

static void version_is_the_headers(void **state)
{
    (void)state;
    assert_string_equal(nacre_version(), NACRE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_every_byte),
        cmocka_unit_test(parses_what_it_formats),
        cmocka_unit_test(every_wrong_character_is_refused),
        cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(version_is_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
