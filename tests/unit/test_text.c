/* Words: cases, distances, patterns with stars, and where a text may be cut. */
#include "unit.h"

#include "base/defs.h"
#include "base/text.h"
#include "text/brief.h"

static void cases(void **state)
{
    (void)state;
    assert_true(text_same("", ""));
    assert_true(text_same("MiB", "mib"));
    assert_false(text_same("MiB", "mi"));
    assert_false(text_same("mi", "MiB"));
    assert_false(text_same("a[", "a{"));
    assert_int_equal(text_upper('z'), 'Z');
    assert_int_equal(text_upper('{'), '{');
    assert_int_equal(text_upper((char)0xe4), (char)0xe4);
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(text_distance("", ""), 0);
    assert_int_equal(text_distance("abc", ""), 3);
    assert_int_equal(text_distance("timeout", "timeout"), 0);
    assert_int_equal(text_distance("tiemout", "timeout"), 1);
    assert_int_equal(text_distance("timout", "timeout"), 1);
    assert_int_equal(text_distance("timeouts", "timeout"), 1);
    assert_int_equal(text_distance("kitten", "sitting"), 3);
    assert_int_equal(text_distance("a", "0123456789012345678901234567890123456789"), 31);
}

static void nearness(void **state)
{
    (void)state;
    assert_true(text_is_near("lsit", "list"));
    assert_true(text_is_near("ti", "timeout"));
    assert_true(text_is_near("timeuot_max", "timeout_max"));
    assert_false(text_is_near("t", "timeout"));
    assert_false(text_is_near("frobnicate", "timeout"));
}

static bool matches(const char *pattern, const char *text)
{
    return text_matches(pattern, text, strlen(text));
}

static void patterns(void **state)
{
    (void)state;
    assert_true(matches("", ""));
    assert_true(matches("*", ""));
    assert_true(matches("*", "ANY"));
    assert_true(matches("A*", "A"));
    assert_true(matches("AWS_*", "AWS_REGION"));
    assert_true(matches("*_TOKEN", "GITHUB_TOKEN"));
    assert_true(matches("*KEY*", "MY_KEY_ID"));
    assert_true(matches("A*B*C", "AxxBBxBxC"));
    assert_true(matches("*a*a", "aaba"));
    assert_true(matches("**", "x"));
    assert_false(matches("", "A"));
    assert_false(matches("A", ""));
    assert_false(matches("A", "AB"));
    assert_false(matches("AB", "A"));
    assert_false(matches("AWS_*", "aws_region"));
    assert_false(matches("*_TOKEN", "TOKEN"));
    assert_false(matches("A*B*C", "ABxD"));
    assert_false(matches("?", "A"));
    /* Only the first bytes count. */
    assert_true(text_matches("NAME", "NAME=value", 4));
    assert_true(text_matches("N*", "NAME=value", 4));
    assert_false(text_matches("*value", "NAME=value", 4));
}

/* Many stars must not cost more than pattern times text. */
static void a_hostile_pattern(void **state)
{
    (void)state;
    static char pattern[512], text[100001];
    for (size_t i = 0; i + 2 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + sizeof pattern - 3, "*b", 3);
    memset(text, 'a', sizeof text - 1);
    assert_false(matches(pattern, text));
    text[sizeof text - 2] = 'b';
    assert_true(matches(pattern, text));
}

static void whole_text_stays(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a";
    assert_int_equal(text_whole(text, 0), 0);
    assert_int_equal(text_whole(text, sizeof text - 1), sizeof text - 1);
}

static void every_cut(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(text_whole(text, i), expected[i]);
}

/* Bytes that are no text are not taken for a cut. */
static void no_text(void **state)
{
    (void)state;
    assert_int_equal(text_whole("\x80\x80\x80", 3), 3);
    assert_int_equal(text_whole("a\x80\x80\x80\x80\x80", 6), 6);
}

static void durations(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } known[] = {{-5, "0.0s"},       {0, "0.0s"},         {449, "0.4s"},    {9949, "9.9s"},
                 {9950, "9s"},       {59999, "59s"},      {60000, "1m00s"}, {3599999, "59m59s"},
                 {3600000, "1h00m"}, {11100000, "3h05m"}, {86400000, "1d"}};
    char buf[AGE_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(brief_duration(known[i].ms, buf), known[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),        cmocka_unit_test(cases),
        cmocka_unit_test(distances),        cmocka_unit_test(nearness),
        cmocka_unit_test(patterns),         cmocka_unit_test(a_hostile_pattern),
        cmocka_unit_test(whole_text_stays), cmocka_unit_test(every_cut),
        cmocka_unit_test(no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
