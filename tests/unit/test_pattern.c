/*
 * Patterns: a search in a buffer of lines finds what a search line by line finds, hostile ones
 * end, and the text may be anything.
 */
#include "unit.h"

#include <nacre/error.h>

#include "base/defs.h"
#include "recall/pattern.h"
#include "recall/translate.h"

static struct watchdog no_limit = {.deadline_ns = INT64_MAX};

static struct pattern *compiled(const char *text, bool literal, bool fold)
{
    struct pattern *p = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    if (pattern_new(text, literal, fold, &no_limit, &p, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return p;
}

/* The lines that match, as a string of digits: "02" = the first and the third of them. */
static const char *lines_of(struct pattern *p, const char *data, size_t size)
{
    static char result[4096];
    size_t n = 0, line = 0, counted = 0;
    /* Of exactly that size, so that a read beyond it is seen. */
    char *copy = malloc(MAX(size, (size_t)1));
    memcpy(copy, data, size);
    struct text text = {.data = copy, .size = size};
    pattern_begin(p, &text);
    for (size_t from = 0; from < size;) {
        struct hit hit;
        nacre_error err = NACRE_ERROR_INIT;
        int r = pattern_find(p, &text, from, &hit, &err);
        if (r < 0)
            fail_msg("%s", err.msg);
        if (r == 0)
            break;
        assert_true(hit.start >= from && hit.end >= hit.start && hit.end <= size);
        assert_null(memchr(copy + hit.start, '\n', hit.end - hit.start));
        for (; counted < hit.start; counted++)
            line += copy[counted] == '\n';
        result[n++] = (char)('0' + line);
        while (from <= hit.start || copy[from - 1] != '\n')
            if (++from >= size)
                break;
    }
    free(copy);
    result[n] = '\0';
    return result;
}

static void check(const char *pattern, bool fold, const char *text, size_t size, const char *want)
{
    for (int by_line = 0; by_line < 2; by_line++) {
        struct pattern *p = compiled(pattern, false, fold);
        if (by_line)
            pattern_force_lines(p);
        const char *got = lines_of(p, text, size);
        if (strcmp(got, want) != 0)
            fail_msg("%s in \"%s\"%s: lines %s, wanted %s", pattern, text,
                     by_line ? ", line by line" : "", got, want);
        pattern_free(p);
    }
}

#define CHECK(pattern, text, want)      check(pattern, false, text, sizeof(text) - 1, want)
#define CHECK_FOLD(pattern, text, want) check(pattern, true, text, sizeof(text) - 1, want)

static void test_lines(void **state)
{
    (void)state;
    CHECK("b", "abc\nxyz\nb\n", "02");
    CHECK("^b", "abc\nbcd\nb", "12");
    CHECK("c$", "abc\nbcd\nc", "02");
    CHECK("^$", "a\n\nb\n\n", "13");
}

/* What could match a newline must not. */
static void test_newlines(void **state)
{
    (void)state;
    CHECK("a\\sb", "a b\na\nb\n", "0");
    CHECK("a[^x]b", "a b\na\nb\na.b\n", "03");
    CHECK("a[^]x]b", "a b\na\nb\na]b\n", "0");
    CHECK("a[\\s,]b", "a,b\na\nb\na b\n", "03");
    CHECK("a\\Wb", "a.b\na\nb\n", "0");
    CHECK("a\\Db", "a.b\na\nb\n", "0");
    CHECK("a\\Hb", "a.b\na\nb\n", "0");
    CHECK("a[[:space:]]b", "a\tb\na\nb\n", "0");
    CHECK("a[\\x00-\\xff]b", "a\tb\na\nb\n", "0");
    CHECK("a\\P{L}b", "a.b\na\nb\n", "0");
    CHECK("a(?s:.)b", "a.b\na\nb\n", "0");
    CHECK("a\\nb", "a\nb\n", "");
    CHECK("a\\x0ab", "a\nb\n", "");
    CHECK("a\\Rb", "a\rb\na\nb\n", "0");
    CHECK("a\\vb",
          "a\x0b"
          "b\na\nb\n",
          "0");
    CHECK("\\Ab", "ab\nb\n", "1");
    CHECK("b\\z", "ba\nb\n", "1");
    CHECK("b\\Z", "ba\nb\n", "1");
    CHECK("a(?!\\n)", "a\n", "0");
    CHECK("(?<!\\n)b", "a\nb\n", "1");
    CHECK("(?<=\\W)b", "b\n.b\n", "1");
    CHECK("a(?=\\W)", "a\na.\n", "1");
    CHECK("\\bcat\\b", "cat\nconcat\ncat.\n", "02");
    CHECK("x*", "a\n\nb\n", "012");
    CHECK("(a|b)\\1", "ab\nbb\naa\n", "12");
    CHECK("a{2}", "a\naa\n", "1");
    CHECK("a{,2}b", "a{,2}b\nx\n", "0");
    CHECK("{\"k\":", "{\"k\":1}\n{}\n", "0");
    CHECK("\\Qa.b\\E+", "a.b\nacb\na.bb\n", "02");
    CHECK("(?i)ERR(?-i)", "err\nx\n", "0");
    CHECK("(?i:ERR)or", "error\nERRor\nERROR\n", "01");
    CHECK("(?x) a b # comment", "ab\na b\n", "0");
}

static void test_carriage_returns(void **state)
{
    (void)state;
    CHECK("end$", "the end\r\nend \r\nend\n", "02");
    CHECK("^$", "\r\na\r\n\n", "02");
    CHECK("d\\r$", "end\r\nend\n", "0");
    CHECK("a.*c", "a\rb\rc\n", "0");
}

static void test_unicode(void **state)
{
    (void)state;
    CHECK("caf.$", "caf\xc3\xa9\ncafe\n", "01");
    CHECK("^.{3}$", "\xc3\xa4\xc3\xb6\xc3\xbc\nabc\nab\n", "01");
    CHECK("\\b\xc3\x9c"
          "ber\\b",
          "an \xc3\x9c"
          "ber x\nx\n",
          "0");
    CHECK("\xc3\xa9?x", "x\n\xc3\xa9x\n\xa9y\n", "01");
    CHECK("[\xc3\xa4\xc3\xb6]", "\xc3\xa4\n\xc3\xbc\n", "0");
    CHECK_FOLD("\xc3\x84rger", "\xc3\xa4rger\n\xc3\x84RGER\narger\n", "01");
    CHECK_FOLD("stra\xc3\x9f"
               "e",
               "STRA\xc3\x9f"
               "E\nx\n",
               "0");
    CHECK_FOLD("kelvin",
               "\xe2\x84\xaa"
               "elvin\nKELVIN\n",
               "01");
    CHECK_FOLD("error|fatal", "ERROR\nfine\nFatal\n", "02");
    CHECK_FOLD("\xd0\xbf\xd1\x80\xd0\xb8", "\xd0\x9f\xd0\xa0\xd0\x98\nx\n", "0");
}

static void test_invalid(void **state)
{
    (void)state;
    CHECK("^.*foo",
          "a\xff foo\nfoo\n\xff"
          "fo\n",
          "01");
    CHECK("\xc3\xa9", "\xff \xc3\xa9\n\xc3\n\xa9\n", "0");
    CHECK_FOLD("\xc3\x89", "\xff \xc3\xa9\nx\n", "0");
    CHECK("[^ ]x", "\xffx\n x\n", "0");
    CHECK("caf\\x{e9}", "caf\xc3\xa9\nx\n", "0");
    /* A pattern that is not UTF-8 is bytes. */
    CHECK("\xff", "a\xff\n\xc3\xbf\n", "0");
    struct pattern *p = compiled("\xff(", true, false);
    assert_string_equal(lines_of(p, "\xff(\n\xff\n", 6), "0");
    pattern_free(p);
}

static void test_literal(void **state)
{
    (void)state;
    struct pattern *p = compiled("a.b(", true, false);
    assert_string_equal(lines_of(p, "acb(\na.b(\n", 10), "1");
    pattern_free(p);
    p = compiled("A.B(", true, true);
    assert_string_equal(lines_of(p,
                                 "acb(\na.b(\n\xc3\xa9"
                                 "A.b(",
                                 16),
                        "12");
    pattern_free(p);
    char longer[200];
    memset(longer, 'y', sizeof longer);
    longer[150] = '\0';
    p = compiled(longer, true, false);
    assert_string_equal(lines_of(p, longer, 149), "");
    assert_string_equal(lines_of(p, longer, 150), "0");
    pattern_free(p);
    p = compiled(longer, false, true);
    assert_string_equal(lines_of(p, longer, 149), "");
    assert_string_equal(lines_of(p, longer, 150), "0");
    pattern_free(p);
}

/* Pieces put together at random: the buffer and the lines agree. */
static void test_agreement(void **state)
{
    (void)state;
    static const char *const atoms[] = {
        "a",        "b",          "ab",         ".",           "\\s",    "[^a]",     "[ab]",
        "\\W",      "^",          "$",          "(a|b)",       "(?:ab)", "x?",       "\\b",
        " ",        "[\\sa]",     "\\w",        "b{2}",        "(?=b)",  "(?<=a)",   "(?!a b)",
        "[ab]{6,}", "[a-b]{7}x?", "([ab]{6})+", "([ab]{6}|x)", "a+",     "\\S+",     ".*",
        "a*?",      "(ab|ba)+",   "\\D",        "[^]b]",       "|",      "\xc3\xa9", "[\xc3\xa9x]",
        "\\x61",    "(?<!b)",     "\\Qa\\E"};
    struct unit_random random = {2026};
    int compared = 0;
    for (int round = 0; round < 3000; round++) {
        char pattern[128] = "", text[80];
        int parts = 1 + (int)unit_below(&random, 5);
        for (int i = 0; i < parts; i++)
            strcat(pattern, atoms[unit_below(&random, ARRAY_SIZE(atoms))]);
        size_t size = unit_below(&random, sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = "aabb \n\nx\xc3\xa9"[unit_below(&random, 9)];
        struct pattern *whole = NULL, *single = NULL;
        bool fold = round % 2;
        /* Of "(?=b)^b" PCRE2 10.42 believes that it needs two of them. */
        if (strstr(pattern, ")^") || pattern_new(pattern, false, fold, &no_limit, &whole, NULL) < 0)
            continue;
        single = compiled(pattern, false, fold);
        pattern_force_lines(single);
        char got[4096];
        strcpy(got, lines_of(whole, text, size));
        const char *want = lines_of(single, text, size);
        if (strcmp(got, want) != 0)
            fail_msg("round %d: %s: lines %s, line by line %s", round, pattern, got, want);
        pattern_free(whole);
        pattern_free(single);
        compared++;
    }
    assert_true(compared > 2000);
}

static void test_errors(void **state)
{
    (void)state;
    struct pattern *p = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(pattern_new("a(b", false, false, &no_limit, &p, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "parenthesis, at offset 3"));
    assert_int_equal(pattern_new("", false, false, &no_limit, &p, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "empty"));
    assert_int_equal(pattern_new("a\nb", true, false, &no_limit, &p, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "newline"));
    char *longer = calloc(1, PATTERN_MAX + 2);
    memset(longer, 'a', PATTERN_MAX + 1);
    assert_int_equal(pattern_new(longer, true, false, &no_limit, &p, &err), NACRE_EINVAL);
    free(longer);
    assert_int_equal(pattern_new("a\\Cb", false, false, &no_limit, &p, &err), NACRE_EINVAL);
}

static int find_once(const char *pattern, struct watchdog *dog, char *data, size_t size,
                     nacre_error *err)
{
    struct pattern *p = NULL;
    struct hit hit;
    struct text text = {.data = data, .size = size};
    assert_int_equal(pattern_new(pattern, false, false, dog, &p, err), 0);
    pattern_begin(p, &text);
    int r = pattern_find(p, &text, 0, &hit, err);
    pattern_free(p);
    return r;
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(a+)+$", "(a*)*c", "(a|a)*$", "(.*)*[x]",
                                           "(a?){40}a{40}[b]c"};
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
        nacre_error err = NACRE_ERROR_INIT;
        char data[64];
        memset(data, 'a', sizeof data);
        memcpy(data + 61, "b\nb", 3);
        int r = find_once(patterns[i], &no_limit, data, sizeof data, &err);
        assert_true(r == NACRE_ELIMIT || r == 0);
        if (i == 0)
            assert_int_equal(r, NACRE_ELIMIT);
        if (r < 0)
            assert_non_null(strstr(err.msg, "too many steps"));
    }
}

/* Steps that stay below the limit everywhere: only the watchdog ends them. */
static bool spans(const char *pattern, const char *data, size_t size)
{
    struct pattern *p = NULL;
    struct hit hit;
    nacre_error err = NACRE_ERROR_INIT;
    struct text text = {.data = data, .size = size};
    assert_int_equal(pattern_new_spanning(pattern, &no_limit, &p, &err), 0);
    pattern_begin(p, &text);
    int r = pattern_find(p, &text, 0, &hit, &err);
    pattern_free(p);
    assert_true(r >= 0);
    return r > 0;
}

#define SPANS(pattern, text) spans(pattern, text, sizeof(text) - 1)

static void test_spanning(void **state)
{
    (void)state;
    struct pattern *p = NULL;
    nacre_error err = NACRE_ERROR_INIT;
    assert_true(SPANS("foo\\nbar", "x foo\nbar y\n"));
    assert_true(SPANS("foo\nbar", "x foo\nbar"));
    assert_true(SPANS("^b$\\n^c$", "a\nb\nc\n"));
    assert_true(SPANS("gr\xc3\xbc.\\n\\w", "\xff\xfe gr\xc3\xbc\xc3\x9f\n\xc3\xa9"));
    assert_true(SPANS("a.\\nb", "a\xff\nb"));
    assert_false(SPANS("a.b\\n", "a\nb\n"));
    assert_false(SPANS("foo\\nbar", "foo\n\nbar"));
    assert_int_equal(pattern_new_spanning("a\n(b", &no_limit, &p, &err), NACRE_EINVAL);
}

static void test_watchdog(void **state)
{
    (void)state;
    nacre_error err = NACRE_ERROR_INIT;
    size_t size = (size_t)256 * 1024;
    char *data = malloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = i % 1500 == 1499 ? '\n' : 'a';
    struct watchdog dog = {.deadline_ns = clock_deadline(100)};
    int64_t start = clock_mono_ns();
    assert_int_equal(find_once("x?.*.*(?:b|c)", &dog, data, size, &err), NACRE_EBUSY);
    assert_true(dog.timed_out);
    assert_true(clock_mono_ns() - start < 20 * NS_PER_S);
    free(data);
}

/* What a pattern needs that stands after one. */
static void check_literals(const char *pattern, const char *want)
{
    struct translation t;
    char got[512] = "";
    assert_int_equal(translate(pattern, strlen(pattern), &t), 0);
    for (size_t i = 0; i < t.literals.count; i++) {
        strcat(got, i ? "," : "");
        strncat(got, t.literals.items[i].text, t.literals.items[i].size);
    }
    translation_done(&t);
    if (strcmp(got, want) != 0)
        fail_msg("%s needs \"%s\", wanted \"%s\"", pattern, got, want);
}

static void test_literals(void **state)
{
    (void)state;
    check_literals("error", "error");
    check_literals("error|warning", "error,warning");
    check_literals("errors?", "error");
    check_literals("erro(r|rs)", "erro");
    check_literals("[0-9]+ms timeout", "ms timeout");
    check_literals("(foo|barb)+x", "foo,barb");
    check_literals("(foo|barb)*xyz", "xyz");
    check_literals("(foo|)xyz", "xyz");
    check_literals("foob{0}", "foo");
    check_literals("foob{2,3}ar", "foob");
    check_literals("(?!never)x", "");
    check_literals("(?i)case", "");
    check_literals("a.b", "");
    check_literals("foo|b", "foo,b");
    check_literals("foo.|b", "");
    check_literals("\\Qa.b\\Ec", "a.bc");
    check_literals("a\\.b\\/c", "a.b/c");
    check_literals("abc\\d*\xc3\xa9\xc3\xa9?", "abc");
}

static size_t run_of(const char *pattern)
{
    struct translation t;
    assert_int_equal(translate(pattern, strlen(pattern), &t), 0);
    size_t least = t.run.least;
    if (least > 0)
        assert_true(t.run.set['7'] && t.run.set[0xc3] && !t.run.set['\n'] && !t.run.set['x']);
    translation_done(&t);
    return least;
}

static void test_runs(void **state)
{
    (void)state;
    assert_int_equal(run_of("\\b[0-9]{9,}\\b"), 9);
    assert_int_equal(run_of("\\d{12}"), 12);
    assert_int_equal(run_of("[0-9]{6}|\\d{12}"), 0);
    assert_int_equal(run_of("x([\\da-f]{8,16}|y)"), 0);
    assert_int_equal(run_of("x([\\da-f]{8,16})+y"), 8);
    assert_int_equal(run_of("x([0-9]{8})?y"), 0);
    assert_int_equal(run_of("x(?=[0-9]{8})y"), 0);
    assert_int_equal(run_of("[0-9]{8}error"), 0); /* the literal is better */
    assert_int_equal(run_of("[0-9]{0,8}"), 0);
    assert_int_equal(run_of("[0-9]+"), 0);
    assert_int_equal(run_of("[^0-9]{8}"), 0);
    assert_int_equal(run_of("[a-z0-9]{8}"), 0); /* most words are such runs */
    assert_int_equal(run_of("[0-9-]{8}"), 0);
    assert_int_equal(run_of("(?i)[0-9]{8}"), 0);
    CHECK("\\d{6}", "12345\n123456\nx1234567\n12345 6\n", "12");
    CHECK("\\d{6}", "12345\n1234\xd9\xa1\xd9\xa2\n", "1"); /* two Arabic digits */
    CHECK_FOLD("[a-f]{6}", "abcDEF\nABCDE\n", "0");
    CHECK_FOLD("[kx]{6}", "kxkxk\xe2\x84\xaa\n", "0"); /* the Kelvin sign */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_newlines),
        cmocka_unit_test(test_carriage_returns),
        cmocka_unit_test(test_unicode),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_literal),
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_spanning),
        cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
