/* Recorded output on a terminal: what passes, what is written out, and that pieces do not matter.
 */
#include "unit.h"

#include "screen/harmless.h"
#include "text/utf8.h"

static void feed_in_two(struct buf *out, const char *text, size_t size, size_t cut, bool colours)
{
    struct harmless h = {.colours = colours};
    assert_int_equal(buf_str(out, ""), 0);
    assert_int_equal(harmless_feed(&h, out, text, cut), 0);
    assert_int_equal(harmless_feed(&h, out, text + cut, size - cut), 0);
    assert_int_equal(harmless_end(&h, out), 0);
}

/* Cut at every byte. */
static void expect_shown(const char *text, const char *want)
{
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct buf out cleanup_buf = BUF_UP_TO(1 << 20);
        feed_in_two(&out, text, strlen(text), cut, true);
        assert_string_equal(out.data, want);
    }
}

static void text_passes(void **state)
{
    (void)state;
    expect_shown("", "");
    expect_shown("a\tb\r\nc\b \xc3\xa9\xe2\x82\xac\n", "a\tb\r\nc\b \xc3\xa9\xe2\x82\xac\n");
}

static void colours_pass(void **state)
{
    (void)state;
    expect_shown("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m");
    expect_shown("\x1b[mx\x1b[1;38;5;9my\x1b[m", "\x1b[mx\x1b[1;38;5;9my\x1b[m");
    expect_shown("\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m");
    /* and are reset at the end */
    expect_shown("\x1b[7mx", "\x1b[7mx\x1b[0m");
    expect_shown("\x1b[0m\x1b[7;1mx\n", "\x1b[0m\x1b[7;1mx\n\x1b[0m");
}

static void unwanted_colours_are_left_out(void **state)
{
    (void)state;
    struct buf out cleanup_buf = BUF_UP_TO(256);
    feed_in_two(&out, "\x1b[31mred\x1b[6n", 12, 3, false);
    assert_string_equal(out.data, "red^[[6n");
}

static void all_else_is_written_out(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\x1b]52;c;ZXZpbA==\a.", "^[]52;c;ZXZpbA==^G."},
        {"\x1b]0;title\x1b\\.", "^[]0;title^[\\."},
        {"\x1b[?1049h\x1b[?25l.", "^[[?1049h^[[?25l."},
        {"\x1b[6n\x1b[c\x1b[>c\x1b[2J\x1b[1A.", "^[[6n^[[c^[[>c^[[2J^[[1A."},
        {"\x1bPq\x1b\\\x1b_a\x1b\\\x1b^b\x1b\\\x1bXc\x1b\\.", "^[Pq^[\\^[_a^[\\^[^b^[\\^[Xc^[\\."},
        {"\x1b(0\x1b)B\x0e\x0f\x1b"
         "c\x1b#8.",
         "^[(0^[)B^N^O^[c^[#8."},
        /* what only looks like a colour */
        {"\x1b[>4;2m\x1b[?4m\x1b[4$m\x1b[=1m.", "^[[>4;2m^[[?4m^[[4$m^[[=1m."},
        {"\x1b[3\a1m.", "^[[3^G1m."},
        {"\x1b[3\x18"
         "1m.",
         "^[[3^X1m."},
        /* one within another, or broken off */
        {"\x1b[3\x1b[31mx\x1b[m", "^[[3\x1b[31mx\x1b[m"},
        {"\x1b]0;a\x1b[31mx\x1b[m", "^[]0;a\x1b[31mx\x1b[m"},
        {"\x1b[3\nx", "^[[3\nx"},
        {"\x1b", "^["},
        {"\x1b[31", "^[[31"},
        {"\x1b[3\xc3\xa9", "^[[3\xc3\xa9"},
        /* the same in eight bits, and what is no text */
        {"\xc2\x9b"
         "31m\xc2\x9d"
         "52;c;x\xc2\x9c",
         "\xef\xbf\xbd"
         "31m\xef\xbf\xbd"
         "52;c;x\xef\xbf\xbd"},
        {"\x9b"
         "31m\xff\xe2\x82"
         "x\xe2",
         "\xef\xbf\xbd"
         "31m\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd"},
        {"\xe2\x82\x1b[1mx\x1b[m", "\xef\xbf\xbd\x1b[1mx\x1b[m"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"},
        {"\x7f\x05\v\f", "^?^E^K^L"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect_shown(cases[i][0], cases[i][1]);
}

static void long_sequences(void **state)
{
    (void)state;
    static char text[70000], want[70010];
    memset(text, '1', sizeof text - 1);
    memcpy(text, "\x1b[", 2);
    text[200] = 'm';
    memcpy(want, "^[", 2);
    memcpy(want + 2, text + 1, sizeof text - 1);
    struct buf out cleanup_buf = BUF_UP_TO(1 << 20);
    feed_in_two(&out, text, strlen(text), 50, true);
    assert_string_equal(out.data, want);
}

/* Whether nothing is in it that a terminal would obey, but for colours. */
static void assert_harmless(const struct buf *out)
{
    for (size_t at = 0, n; at < out->len; at += n) {
        uint32_t point;
        if (out->data[at] == 0x1b) {
            n = 2 + strspn(out->data + at + 2, "0123456789;:");
            assert_true(out->data[at + 1] == '[' && out->data[at + n] == 'm');
            n++;
            continue;
        }
        n = utf8_next(out->data + at, out->len - at, &point);
        assert_true(n > 0 && point != UTF8_INVALID && !utf8_reorders(point));
        assert_true(point >= 0x20 || point == '\n' || point == '\t' || point == '\r' ||
                    point == '\b');
        assert_true(point < 0x7f || point >= 0xa0);
    }
}

/* Bytes that mean something, in any order, cut anywhere. */
static void any_bytes(void **state)
{
    (void)state;
    static const char bytes[] =
        "\x1b\x1b\x1b[[]mm;:?0139PX^_k\\\a\n\r\b\t\x18\x7f\x9b\x9d\xc2\xe2\x80\xae\x81\xa6\xc3\xa9 "
        "a$>c";
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        char text[48];
        struct buf whole cleanup_buf = BUF_UP_TO(4096);
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = bytes[(seed >> 33) % (sizeof bytes - 1)];
        }
        feed_in_two(&whole, text, sizeof text, 0, true);
        assert_harmless(&whole);
        for (size_t cut = 1; cut < sizeof text; cut++) {
            struct buf out cleanup_buf = BUF_UP_TO(4096);
            feed_in_two(&out, text, sizeof text, cut, true);
            assert_string_equal(out.data, whole.data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_passes),
        cmocka_unit_test(colours_pass),
        cmocka_unit_test(unwanted_colours_are_left_out),
        cmocka_unit_test(all_else_is_written_out),
        cmocka_unit_test(long_sequences),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
