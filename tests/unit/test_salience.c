/* Salience: lines as real tools print them, those that matter and those that only look so. */
#include "unit.h"

#include "base/defs.h"
#include "view/causes.h"
#include "view/salience.h"

static enum salience judge(const char *line)
{
    size_t n = strlen(line);
    enum salience salience = salience_of(salience_filter(), line, n);
    if (salience != SALIENCE_NONE && !salience_possible(salience_filter(), line, n))
        fail_msg("the prefilter rejects: %s", line);
    return salience;
}

struct example {
    const char *line;
    enum salience salience;
};

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum salience got = judge(examples[i].line);
        if (got != examples[i].salience)
            fail_msg("%d, expected %d: %s", (int)got, (int)examples[i].salience, examples[i].line);
    }
}

static void errors_and_causes(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"src/a.c:3:4: error: expected ';' before '}' token", SALIENCE_ERROR},
        {"a.c:1:10: fatal error: missing.h: No such file or directory", SALIENCE_ERROR},
        {"/usr/bin/ld: a.o: undefined reference to `f'", SALIENCE_CAUSE},
        {"/usr/bin/ld: cannot find -lfrob: No such file or directory", SALIENCE_ERROR},
        {"collect2: error: ld returned 1 exit status", SALIENCE_ERROR},
        {"error[E0425]: cannot find value `x` in this scope", SALIENCE_ERROR},
        {"src/a.ts(3,4): error TS2304: Cannot find name 'x'.", SALIENCE_ERROR},
        {"./main.go:5:2: undefined: foo", SALIENCE_ERROR},
        {"./main.go:4:2: \"os\" imported and not used", SALIENCE_ERROR},
        {"Main.java:3: error: cannot find symbol", SALIENCE_ERROR},
        {"make: *** [Makefile:3: all] Error 2", SALIENCE_ERROR},
        {"make[2]: *** No rule to make target 'x', needed by 'y'.  Stop.", SALIENCE_ERROR},
        {"ninja: build stopped: subcommand failed.", SALIENCE_MENTION},
        {"FAILED: src/a.o", SALIENCE_CAUSE},
        {"CMake Error at CMakeLists.txt:8 (message):", SALIENCE_CAUSE},
        {"E   assert 1 == 2", SALIENCE_CAUSE},
        {"FAILED tests/test_a.py::test_b - assert 1 == 2", SALIENCE_CAUSE},
        {"FAIL: test_a (tests.A)", SALIENCE_CAUSE},
        {"AssertionError: 1 != 2", SALIENCE_CAUSE},
        {"not ok 3 - adds", SALIENCE_CAUSE},
        {"--- FAIL: TestX (0.00s)", SALIENCE_CAUSE},
        {"    a_test.go:93: got 12 bytes, want 13", SALIENCE_ERROR},
        {"  \xe2\x9c\x95 adds (3 ms)", SALIENCE_CAUSE},
        {"  \xe2\x97\x8f sum \xe2\x80\xba adds", SALIENCE_CAUSE},
        {"test tests::adds ... FAILED", SALIENCE_ERROR},
        {"test result: FAILED. 1 passed; 2 failed; 0 ignored", SALIENCE_ERROR},
        {"  3/20 Test  #3: parser ........***Failed    0.01 sec", SALIENCE_MENTION},
        {"thread 'main' panicked at src/main.rs:2:5:", SALIENCE_CAUSE},
        {"panic: runtime error: index out of range [3]", SALIENCE_CAUSE},
        {"ValueError: could not convert string to float: 'x'", SALIENCE_CAUSE},
        {"json.decoder.JSONDecodeError: Expecting value", SALIENCE_CAUSE},
        {"TypeError [ERR_INVALID_ARG]: x", SALIENCE_CAUSE},
        {"java.lang.NullPointerException", SALIENCE_CAUSE},
        {"Exception in thread \"main\" java.lang.IllegalStateException: x", SALIENCE_CAUSE},
        {"Caused by: java.io.IOException: x", SALIENCE_CAUSE},
        {"Traceback (most recent call last):", SALIENCE_ERROR},
        {"npm ERR! code ELIFECYCLE", SALIENCE_ERROR},
        {"npm error Missing script: \"x\"", SALIENCE_ERROR},
        {"E: Unable to locate package x", SALIENCE_CAUSE},
        {"ERROR: No matching distribution found for x", SALIENCE_CAUSE},
        {"fatal: not a git repository", SALIENCE_ERROR},
        {"CONFLICT (content): Merge conflict in a.txt", SALIENCE_ERROR},
        {" ! [rejected]        main -> main (fetch first)", SALIENCE_ERROR},
        {"bash: line 1: frob: command not found", SALIENCE_ERROR},
        {"sh: 1: frob: not found", SALIENCE_ERROR},
        {"bash: ./x: Permission denied", SALIENCE_ERROR},
        {"run.sh: line 3:  3231 Segmentation fault      ./worker", SALIENCE_CAUSE},
        {"Killed", SALIENCE_CAUSE},
        {"FATAL ERROR: Reached heap limit: JavaScript heap out of memory", SALIENCE_CAUSE},
        {"write: No space left on device", SALIENCE_CAUSE},
        {"2024-05-01 10:00:00 ERROR [main] x", SALIENCE_ERROR},
        {"[ERROR] COMPILATION FAILURE", SALIENCE_ERROR},
        {"a.out: a.c:3: main: Assertion `x' failed.", SALIENCE_ERROR},
        {"  12:5  error  'x' is not defined  no-undef", SALIENCE_ERROR},
        {"3 errors generated.", SALIENCE_MENTION},
    };
    check(examples, ARRAY_SIZE(examples));
}

static void warnings_are_less(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"a.c:3:4: warning: unused variable 'x' [-Wunused-variable]", SALIENCE_WARNING},
        {"npm WARN deprecated x@1.0.0: use y", SALIENCE_WARNING},
        {"a.py:1:1: F401 'os' imported but unused", SALIENCE_WARNING},
        {"DeprecationWarning: x is deprecated", SALIENCE_WARNING},
    };
    check(examples, ARRAY_SIZE(examples));
}

static void innocent_lines_are_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "   ",
        "0 errors",
        "no errors found",
        "Found 0 errors, 0 warnings",
        "errors: 0",
        "failures=0, errors=0",
        "build completed without errors",
        "5 passed, 0 failed",
        "test result: ok. 5 passed; 0 failed; 0 ignored",
        "    0 Error(s)",
        "gcc -Wall -Werror -c error_handler.c -o error_handler.o",
        "[ 50%] Building C object CMakeFiles/x.dir/src/error.c.o",
        "cc -c src/failed.c",
        "Compiling thiserror v1.0.30",
        "Compiling failure v0.1.8",
        "Downloading errors-2.0.tar.gz (error handling)",
        "test tests::error_is_reported ... ok",
        "tests/test_a.py::test_failed_login PASSED                [ 55%]",
        "test_failed_login (tests.A) ... ok",
        "ok 3 - handles error: x",
        "  \xe2\x9c\x93 throws an error (3 ms)",
        "--- PASS: TestError (0.00s)",
        "=== RUN   TestError",
        "  1/20 Test  #1: error_test ......   Passed    0.01 sec",
        "    raise ValueError(\"x\")",
        "    at com.example.Error.run(Error.java:3)",
        "  File \"errors.py\", line 3, in fail_fast",
        "terror and mirrors",
        "src/errors.c:33: note: declared here",
        "-- Looking for error_at_line - found",
        "on error resume next",
        "gofmt -l pkg/a_test.go pkg/a.go",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        if (judge(lines[i]) != SALIENCE_NONE)
            fail_msg("%d, expected nothing: %s", (int)judge(lines[i]), lines[i]);
}

/* The prefilter finds every word at every place of a line, in any case. */
static void no_word_escapes_the_prefilter(void **state)
{
    (void)state;
    for (size_t i = 0; salience_word(i); i++)
        for (size_t lead = 0; lead < 9; lead++)
            for (int upper = 0; upper < 2; upper++) {
                char line[128];
                int n =
                    snprintf(line, sizeof line, "%.*s%s", (int)lead, "........ ", salience_word(i));
                for (int k = 0; upper && k < n; k++)
                    line[k] = (char)(line[k] >= 'a' && line[k] <= 'z' ? line[k] - 32 : line[k]);
                assert_true(salience_possible(salience_filter(), line, (size_t)n));
            }
}

static void most_lines_do_not_pass_the_prefilter(void **state)
{
    (void)state;
    struct unit_random random = {1};
    size_t passed = 0;
    for (int i = 0; i < 10000; i++) {
        char line[64];
        for (size_t k = 0; k < sizeof line; k++)
            line[k] = "etaoin shrdlucmfwypvbgkqjxz0123456789-/.:"[unit_below(&random, 41)];
        passed += salience_possible(salience_filter(), line, sizeof line);
    }
    assert_true(passed < 100);
}

static void only_the_beginning_of_a_long_line_counts(void **state)
{
    (void)state;
    static char line[SALIENCE_LOOK + 64];
    memset(line, ' ', sizeof line);
    memcpy(line + SALIENCE_LOOK - 8, "error: x", 8);
    assert_int_equal(salience_of(salience_filter(), line, sizeof line), SALIENCE_ERROR);
    memset(line, ' ', sizeof line);
    memcpy(line + SALIENCE_LOOK, "error: x", 8);
    assert_int_equal(salience_of(salience_filter(), line, sizeof line), SALIENCE_NONE);
}

/* -- What is kept of many ------------------------------------------------------------------------
 */

static void add(struct causes *causes, struct lines *lines, const char *text)
{
    size_t i = lines->count;
    struct render_line line = {.text = text,
                               .size = strlen(text),
                               .line = i + 1,
                               .count = 1,
                               .complete = true,
                               .offset = 10 * i};
    assert_int_equal(lines_add(lines, &line, false), 0);
    causes_look(causes, salience_filter(), lines, i, i + 2, 10 * i + 10);
}

static void the_first_and_the_last_are_kept(void **state)
{
    (void)state;
    static struct causes causes;
    struct lines lines = {0};
    causes_clear(&causes);
    for (int i = 1; i <= 1000; i++)
        add(&causes, &lines, i % 2 ? "error: x" : "fine");
    assert_int_equal(causes.count[SALIENCE_ERROR], 500);
    for (size_t k = 0; k < 2 * CAUSES_KEPT; k++) {
        const struct cause *c = causes_get(&causes, SALIENCE_ERROR, k);
        uint64_t nth = k < CAUSES_KEPT ? k : 500 - 2 * CAUSES_KEPT + k;
        assert_non_null(c);
        assert_int_equal(c->number, 2 * nth + 1);
        assert_int_equal(c->end, c->number + 1);
        assert_int_equal(c->end_offset - c->offset, 10);
    }
    assert_null(causes_get(&causes, SALIENCE_ERROR, 2 * CAUSES_KEPT));
    assert_null(causes_get(&causes, SALIENCE_CAUSE, 0));
    lines_done(&lines);
}

static void a_colon_announces_the_next_line(void **state)
{
    (void)state;
    static struct causes causes;
    struct lines lines = {0};
    causes_clear(&causes);
    add(&causes, &lines, "CMake Error at CMakeLists.txt:8 (message):");
    add(&causes, &lines, "");
    add(&causes, &lines, "  the reason");
    add(&causes, &lines, "  something else");
    assert_int_equal(causes.count[SALIENCE_CAUSE], 2);
    assert_int_equal(causes_get(&causes, SALIENCE_CAUSE, 1)->number, 3);
    lines_done(&lines);
}

/* Where one is in many lines: no line before it is possible, and none is missed. */
static void test_next(void **state)
{
    (void)state;
    static const char *const others[] = {"E: apt",     "  E   pytest",   "not ok 3", "! [rejected",
                                         "\xc3\x97 x", "\xe2\x97\x8f y", "E: "};
    struct unit_random random = {5};
    size_t words = 0;
    while (salience_word(words))
        words++;
    for (int round = 0; round < 4000; round++) {
        char text[1024];
        size_t n = 0;
        while (n < 800 && unit_below(&random, 20) > 0) {
            uint64_t kind = unit_below(&random, 30), which = unit_below(&random, words + 7);
            for (uint64_t i = unit_below(&random, 40); i > 0; i--)
                text[n++] = "aeF: \t.1xE"[unit_below(&random, 10)];
            if (kind == 0)
                n += (size_t)sprintf(text + n, "%s",
                                     which < words ? salience_word(which) : others[which - words]);
            text[n++] = '\n';
        }
        /* Of exactly that size, so that a read beyond it is seen. */
        char *data = malloc(n ? n : 1);
        memcpy(data, text, n);
        for (size_t at = 0; at < n;) {
            size_t end = (size_t)((char *)memchr(data + at, '\n', n - at) - data);
            size_t next = at + salience_next(salience_filter(), data + at, n - at);
            bool possible = salience_possible(salience_filter(), data + at, end - at);
            assert_int_equal(next < end, possible);
            at = end + 1;
        }
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
        cmocka_unit_test(errors_and_causes),
        cmocka_unit_test(warnings_are_less),
        cmocka_unit_test(innocent_lines_are_nothing),
        cmocka_unit_test(no_word_escapes_the_prefilter),
        cmocka_unit_test(most_lines_do_not_pass_the_prefilter),
        cmocka_unit_test(only_the_beginning_of_a_long_line_counts),
        cmocka_unit_test(the_first_and_the_last_are_kept),
        cmocka_unit_test(a_colon_announces_the_next_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
