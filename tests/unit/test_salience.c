/* Salience: lines as real tools print them, those that matter and those that only look so. */
#include "unit.h"

#include "base/defs.h"
#include "text/template.h"
#include "view/causes.h"
#include "view/salience.h"

static enum salience judge(const char *line)
{
    size_t n = strlen(line);
    size_t at;
    enum salience salience = salience_of(salience_filter(), line, n, &at);
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
        {"a.c:3:4: warning: inlining failed in call to 'f'", SALIENCE_WARNING},
        {"a.c:3:4: attention: la mise en ligne a échoué", SALIENCE_WARNING},
        {"[warn] could not read the cache", SALIENCE_WARNING},
        {"saving terminated with success", SALIENCE_WARNING},
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
    size_t at;
    memset(line, ' ', sizeof line);
    memcpy(line + SALIENCE_LOOK - 8, "error: x", 8);
    assert_int_equal(salience_of(salience_filter(), line, sizeof line, &at), SALIENCE_ERROR);
    assert_int_equal(at, SALIENCE_LOOK - 8);
    memset(line, ' ', sizeof line);
    memcpy(line + SALIENCE_LOOK, "error: x", 8);
    assert_int_equal(salience_of(salience_filter(), line, sizeof line, &at), SALIENCE_NONE);
}

/* What says that there is nothing is nothing, and what is worse than a warning is more than one. */
static void nothing_is_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "request completed error none",
        "{\"level\":30,\"error\":null,\"msg\":\"done\"}",
        "error rate 0.0",
        "errors: []",
        "error=<nil> retries=0",
        "errors: {} (all of them)",
        "failures: none",
        "panic: false",
        "job 3 handled, failed=false",
        "    a_test.go:93: opened the log",
        "not ok 3 # TODO is not done yet",
        "expected three of them",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        if (judge(lines[i]) != SALIENCE_NONE)
            fail_msg("%d, expected nothing: %s", (int)judge(lines[i]), lines[i]);
}

/* The words of the catalogues, and what tools say that have no word for it. */
static void other_languages_and_wordings(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"a.c:3:4: erreur: « x » non déclaré", SALIENCE_ERROR},
        {"a.c:3:4: Fehler: »x« nicht deklariert", SALIENCE_ERROR},
        {"a.c:1:10: 致命的エラー: x.h: そのようなファイルやディレクトリはありません",
         SALIENCE_CAUSE},
        {"a.c:3:4: ошибка: «x» не описан", SALIENCE_ERROR},
        {"a.c:3:4: attention: variable inutilisée", SALIENCE_WARNING},
        {"make: *** [Makefile:3: all] Erreur 2", SALIENCE_ERROR},
        {"deploy.sh: Zeile 3: frob: Kommando nicht gefunden.", SALIENCE_ERROR},
        {"deploy.sh: ligne 3: frob : commande introuvable", SALIENCE_ERROR},
        {"FEHLER:  Relation »t« existiert nicht", SALIENCE_ERROR},
        {"ERROR:  リレーション\"t\"は存在しません", SALIENCE_CAUSE},
        {"KONFLIKT (Inhalt): Merge-Konflikt in a.txt", SALIENCE_ERROR},
        {"! Undefined control sequence.", SALIENCE_CAUSE},
        {"lua: a.lua:3: attempt to call a nil value (global 'f')", SALIENCE_ERROR},
        {"The value \"three\" is not of type NUMBER", SALIENCE_CAUSE},
        {"     Failure/Error: expect(x).to eq(8)", SALIENCE_CAUSE},
        {"nginx: [emerg] unknown directive \"proxy_pas\"", SALIENCE_CAUSE},
        {"Error: connect ECONNREFUSED 127.0.0.1:9", SALIENCE_CAUSE},
        {"     Error: Timeout of 2000ms exceeded", SALIENCE_CAUSE},
        {"epoch 31 loss nan", SALIENCE_MENTION},
        {"==12== Invalid read of size 1", SALIENCE_CAUSE},
        {"WARNING: DATA RACE", SALIENCE_CAUSE},
        {"relocation R_X86_64_32 against `.data': recompile with -fPIC", SALIENCE_CAUSE},
        {"{\"level\":50,\"msg\":\"no such user\"}", SALIENCE_ERROR},
        {"got 12 bytes, want 13", SALIENCE_ERROR},
        {"expected 3 but found 4", SALIENCE_ERROR},
    };
    check(examples, ARRAY_SIZE(examples));
}

/* -- What is kept of many ---------------------------------------------------------------------- */

static enum salience take(struct causes *causes, uint64_t number, const char *text)
{
    size_t at;
    struct cause_line line = {
        text, strlen(text), 0, {number, number + 1, 10 * number, 10 * number + 10}};
    enum salience salience = causes_judge(causes, salience_filter(), text, line.size, &at);
    causes_take(causes, salience, at, &line);
    return salience;
}

static const struct cause_kind *kind_of(const struct causes *causes, const char *text)
{
    uint64_t template = template_hash(text, strlen(text));
    for (size_t i = 0; i < causes->kind_count; i++)
        if (causes->templates[i] == template)
            return &causes->kinds[i];
    return NULL;
}

static void lines_of_one_template_are_one_kind(void **state)
{
    (void)state;
    static struct causes causes;
    char text[64];
    memset(&causes, 0, sizeof causes);
    for (unsigned i = 1; i <= 1000; i++) {
        snprintf(text, sizeof text, "error: job %u at 0x%08xf failed", i, i * 2654435761u);
        take(&causes, i, i == 500 ? "error: the disk is full" : text);
    }
    const struct cause_kind *many = kind_of(&causes, text),
                            *rare = kind_of(&causes, "error: the disk is full");
    assert_int_equal(causes.kind_count, 2);
    assert_int_equal(causes.count[SALIENCE_ERROR], 1000);
    assert_int_equal(many->count, 999);
    assert_int_equal(causes_kept(many), CAUSE_FIRST + 1);
    assert_int_equal(many->kept[0].raw.number, 1);
    assert_int_equal(many->kept[1].raw.number, 2);
    assert_int_equal(many->kept[CAUSE_FIRST].raw.number, 1000);
    assert_int_equal(causes_kept(rare), 1);
    assert_int_equal(rare->kept[0].raw.number, 500);
}

/* The i-th of many words that differ in letters. */
static const char *letters(unsigned i)
{
    static char text[64];
    snprintf(text, sizeof text, "error: %c%c%c is gone", 'g' + i % 19, 'g' + i / 19 % 19,
             'g' + i / 361);
    return text;
}

static void of_too_many_kinds_the_first_and_the_latest_stay(void **state)
{
    (void)state;
    static struct causes causes;
    unsigned many = 40 * CAUSE_KINDS;
    memset(&causes, 0, sizeof causes);
    for (unsigned i = 0; i < many; i++) {
        take(&causes, i + 1, letters(i));
        if (i == many / 2)
            take(&causes, i + 1, "panic: the cause");
    }
    assert_int_equal(causes.kind_count, CAUSE_KINDS);
    assert_non_null(kind_of(&causes, letters(0)));
    assert_non_null(kind_of(&causes, letters(many - 1)));
    assert_null(kind_of(&causes, letters(many / 2)));
    assert_non_null(kind_of(&causes, "panic: the cause"));
}

static void a_colon_announces_the_next_line(void **state)
{
    (void)state;
    static struct causes causes;
    memset(&causes, 0, sizeof causes);
    assert_int_equal(take(&causes, 1, "CMake Error at CMakeLists.txt:8 (message):"),
                     SALIENCE_CAUSE);
    assert_int_equal(take(&causes, 2, ""), SALIENCE_NONE);
    assert_int_equal(take(&causes, 3, "  the reason"), SALIENCE_CAUSE);
    assert_int_equal(take(&causes, 4, "  something else"), SALIENCE_NONE);
}

static void a_traceback_ends_with_its_cause(void **state)
{
    (void)state;
    static struct causes causes;
    memset(&causes, 0, sizeof causes);
    take(&causes, 1, "Traceback (most recent call last):");
    take(&causes, 2, "  File \"a.py\", line 3, in <module>");
    assert_int_equal(take(&causes, 3, "    raise Gone(3)"), SALIENCE_NONE);
    assert_int_equal(take(&causes, 4, "shop.Gone: 3 of them"), SALIENCE_CAUSE);
    assert_int_equal(take(&causes, 5, "shop.Gone: 3 of them"), SALIENCE_NONE);
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
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(other_languages_and_wordings),
        cmocka_unit_test(lines_of_one_template_are_one_kind),
        cmocka_unit_test(of_too_many_kinds_the_first_and_the_latest_stay),
        cmocka_unit_test(a_traceback_ends_with_its_cause),
        cmocka_unit_test(a_colon_announces_the_next_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
