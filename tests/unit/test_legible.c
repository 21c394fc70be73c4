/* Sentences that quote what somebody sent: one line in which everything can be seen. */
#include "unit.h"

#include <utf8proc.h>

#include "text/legible.h"
#include "text/utf8.h"

static void expect(const char *text, size_t size, const char *want)
{
    struct buf out cleanup_buf = BUF_UP_TO(4096);
    assert_int_equal(buf_str(&out, ""), 0);
    assert_int_equal(legible_write(&out, text, size), 0);
    assert_string_equal(out.data, want);
}

#define EXPECT_LEGIBLE(text, want) expect(text, sizeof(text) - 1, want)

static void what_is_plain_stays(void **state)
{
    (void)state;
    EXPECT_LEGIBLE("", "");
    EXPECT_LEGIBLE("no shell with the id \"x\"", "no shell with the id \"x\"");
    EXPECT_LEGIBLE("gr\xc3\xbc\xc3\x9f dich \xe2\x80\x94 \xe4\xbd\xa0",
                   "gr\xc3\xbc\xc3\x9f dich \xe2\x80\x94 \xe4\xbd\xa0");
    EXPECT_LEGIBLE("a\\n", "a\\n");
}

static void what_is_not_seen_is_shown(void **state)
{
    (void)state;
    EXPECT_LEGIBLE("a\nExit code: 0\r\t", "a\\nExit code: 0\\r\\t");
    EXPECT_LEGIBLE("\x1b]52;c;eA==\a\x7f", "\\x1b]52;c;eA==\\x07\\x7f");
    EXPECT_LEGIBLE("\xc2\x9b"
                   "31m\xc2\x85",
                   "\\u009b31m\\u0085");
    EXPECT_LEGIBLE("\xe2\x80\xae\xe2\x80\xa8\xe2\x80\x8b\xf3\xa0\x81\x81",
                   "\\u202e\\u2028\\u200b\\ue0041");
    expect("a\0b", 3, "a\\x00b");
}

static void what_is_no_text(void **state)
{
    (void)state;
    EXPECT_LEGIBLE("a\xff"
                   "b",
                   "a\xef\xbf\xbd"
                   "b");
    EXPECT_LEGIBLE("cut \xe2\x80", "cut ");
}

/* All characters there are: nothing that moves a cursor, ends a line or hides comes out. */
static void every_character(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 0x110000; point++) {
        struct buf out cleanup_buf = BUF_UP_TO(64);
        char text[4];
        if (point == 0xd800)
            point = 0xe000;
        size_t n = (size_t)utf8proc_encode_char((utf8proc_int32_t)point, (utf8proc_uint8_t *)text);
        assert_int_equal(legible_write(&out, text, n), 0);
        for (size_t at = 0; at < out.len; at += n) {
            uint32_t shown;
            n = utf8_next(out.data + at, out.len - at, &shown);
            assert_true(n > 0 && (shown == ' ' || shown == 0xa0 || shown == 0x3000 ||
                                  !utf8_is_invisible(shown)));
        }
    }
}

static void long_ones_lose_their_middle(void **state)
{
    (void)state;
    struct buf out cleanup_buf = BUF_UP_TO(4096);
    static char text[100000];
    memset(text, '\n', sizeof text);
    memcpy(text, "begin", 5);
    memcpy(text + sizeof text - 3, "end", 3);
    assert_int_equal(legible_write(&out, text, sizeof text), 0);
    assert_true(out.len <= LEGIBLE_MAX);
    assert_memory_equal(out.data, "begin\\n", 7);
    assert_string_equal(out.data + out.len - 5, "\\nend");
    assert_non_null(strstr(out.data, " bytes left out ...]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_plain_stays),
        cmocka_unit_test(what_is_not_seen_is_shown),
        cmocka_unit_test(what_is_no_text),
        cmocka_unit_test(every_character),
        cmocka_unit_test(long_ones_lose_their_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
