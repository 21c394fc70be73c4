/* The environment of a command: the host's, without what asks or pages, under the call's. */
#include "unit.h"

#include "base/clock.h"
#include "base/defs.h"
#include "home/compose.h"

static const nacre_id id = {{0x12, 0x34}};

struct built {
    struct buf buf;
    uint32_t count;
};

static struct built build_with(const char *const *extra, const struct secret_rules *rules)
{
    struct built b;
    b.buf = BUF_UP_TO(4 << 20);
    assert_int_equal(environment_build(&id, "/a dir", false, NULL, extra, rules, &b.buf, &b.count),
                     0);
    /* As many strings as it says, and nothing behind them. */
    const char *p = b.buf.data;
    for (uint32_t i = 0; i < b.count; i++)
        p += strlen(p) + 1;
    assert_ptr_equal(p, b.buf.data + b.buf.len);
    return b;
}

static struct built build(const char *const *extra)
{
    return build_with(extra, NULL);
}

/* The value of a name; NULL if it is not there, and a failure if it is there twice. */
static const char *value(const struct built *b, const char *name)
{
    const char *found = NULL;
    const char *p = b->buf.data;
    size_t n = strlen(name);
    for (uint32_t i = 0; i < b->count; i++, p += strlen(p) + 1) {
        if (strncmp(p, name, n) != 0 || p[n] != '=')
            continue;
        assert_null(found);
        found = p + n + 1;
    }
    return found;
}

static void assert_value(const struct built *b, const char *name, const char *want)
{
    const char *got = value(b, name);
    if (!want)
        assert_null(got);
    else if (!got)
        fail_msg("%s is missing", name);
    else
        assert_string_equal(got, want);
}

static int clean(void **state)
{
    (void)state;
    clearenv();
    setenv("PATH", "/bin", 1);
    return 0;
}

static void inherited_and_quiet(void **state)
{
    (void)state;
    setenv("HOST", "value=with=signs", 1);
    setenv("EMPTY", "", 1);
    setenv("PAGER", "less", 1);
    setenv("GIT_EDITOR", "true", 1);
    setenv("TERM", "xterm", 1);
    setenv("PWD", "/elsewhere", 1);
    struct built b = build(NULL);
    assert_value(&b, "PATH", "/bin");
    assert_value(&b, "HOST", "value=with=signs");
    assert_value(&b, "EMPTY", "");
    assert_value(&b, "NACRE_ID", "12340000000000000000000000000000");
    assert_value(&b, "PWD", "/a dir");
    assert_value(&b, "PAGER", "cat");
    assert_value(&b, "GIT_PAGER", "cat");
    assert_value(&b, "GIT_TERMINAL_PROMPT", "0");
    assert_value(&b, "GIT_EDITOR", "false");
    assert_value(&b, "GIT_SEQUENCE_EDITOR", "false");
    assert_value(&b, "GCM_INTERACTIVE", "never");
    assert_value(&b, "DEBIAN_FRONTEND", "noninteractive");
    assert_value(&b, "TERM", "dumb");
    assert_value(&b, "NO_COLOR", "1");
    buf_done(&b.buf);
}

static void the_call_has_the_last_word(void **state)
{
    (void)state;
    setenv("HOST", "old", 1);
    setenv("GONE", "here", 1);
    const char *const extra[] = {"HOST=new", "GONE",      "ADDED=1", "PAGER=more",
                                 "TERM",     "PWD=/mine", "EMPTY=",  NULL};
    struct built b = build(extra);
    assert_value(&b, "HOST", "new");
    assert_value(&b, "GONE", NULL);
    assert_value(&b, "ADDED", "1");
    assert_value(&b, "PAGER", "more");
    assert_value(&b, "TERM", NULL);
    assert_value(&b, "PWD", "/mine");
    assert_value(&b, "EMPTY", "");
    assert_value(&b, "GIT_PAGER", "cat");
    buf_done(&b.buf);
    const char *const no_pwd[] = {"PWD", NULL};
    b = build(no_pwd);
    assert_value(&b, "PWD", NULL);
    buf_done(&b.buf);
}

static void the_last_of_several_counts(void **state)
{
    (void)state;
    const char *const extra[] = {"A=1", "B=1", "A=2", "B", "C", "C=3", "A=3", NULL};
    struct built b = build(extra);
    assert_value(&b, "A", "3");
    assert_value(&b, "B", NULL);
    assert_value(&b, "C", "3");
    buf_done(&b.buf);
}

static int64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The processor time that it takes to make the environment of a call with this many names. */
static int64_t time_of(size_t names)
{
    static char text[40000][24];
    static const char *extra[40001];
    for (size_t i = 0; i < names; i++) {
        /* Each name twice, the second time with the value that counts. */
        snprintf(text[i], sizeof text[i], "NAME_%zu=%zu", i % (names / 2), i);
        extra[i] = text[i];
    }
    extra[names] = NULL;
    int64_t began = processor_ns();
    struct built b = build(extra);
    int64_t took = processor_ns() - began;
    char last[24];
    snprintf(last, sizeof last, "%zu", names - 1);
    snprintf(text[0], sizeof text[0], "NAME_%zu", names / 2 - 1);
    assert_value(&b, text[0], last);
    assert_true(b.count < names / 2 + 20);
    buf_done(&b.buf);
    return took;
}

/* Sixteen times the names take about sixteen times as long, not 256 times. */
static void many_names(void **state)
{
    (void)state;
    int64_t few = INT64_MAX, many = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        few = MIN(few, time_of(2500));
        many = MIN(many, time_of(40000));
    }
    assert_true(many < 80 * few);
}

static void our_names_are_ours(void **state)
{
    (void)state;
    static const char *const names[] = {"NACRE_COMMAND", "NACRE_COMMAND_FD", "NACRE_RUN"};
    setenv("NACRE_ID", "of the shell around this one", 1);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        setenv(names[i], "stale", 1);
    const char *const extra[] = {"NACRE_ID=forged", "NACRE_COMMAND=forged", "NACRE_RUN=forged",
                                 "NACRE_COMMAND_FD=3", NULL};
    for (int round = 0; round < 2; round++) {
        struct built b = build(round ? extra : NULL);
        assert_value(&b, "NACRE_ID", "12340000000000000000000000000000");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
            assert_value(&b, names[i], NULL);
        buf_done(&b.buf);
    }
    const char *const removed[] = {"NACRE_ID", NULL};
    struct built b = build(removed);
    assert_value(&b, "NACRE_ID", "12340000000000000000000000000000");
    buf_done(&b.buf);
}

static void secrets_stay_with_the_host(void **state)
{
    (void)state;
    setenv("OPENAI_API_KEY", "s3cret", 1);
    setenv("MY_SECRET", "s3cret", 1);
    setenv("GITHUB_TOKEN", "s3cret", 1);
    setenv("SSH_AUTH_SOCK", "/sock", 1);
    setenv("INTERNAL", "s3cret", 1);
    struct built b = build(NULL);
    assert_value(&b, "OPENAI_API_KEY", NULL);
    assert_value(&b, "MY_SECRET", NULL);
    assert_value(&b, "GITHUB_TOKEN", NULL);
    assert_value(&b, "SSH_AUTH_SOCK", "/sock");
    assert_value(&b, "INTERNAL", "s3cret");
    buf_done(&b.buf);
    const char *const allow[] = {"GITHUB_*", NULL}, *const deny[] = {"INTERNAL", NULL};
    const char *const extra[] = {"MY_SECRET=given", "OPENAI_API_KEY", "INTERNAL=given", NULL};
    const struct secret_rules rules = {allow, deny};
    b = build_with(extra, &rules);
    assert_value(&b, "OPENAI_API_KEY", NULL);
    assert_value(&b, "MY_SECRET", "given");
    assert_value(&b, "GITHUB_TOKEN", "s3cret");
    assert_value(&b, "INTERNAL", "given");
    buf_done(&b.buf);
}

/* Names that only begin alike are other names. */
static void similar_names(void **state)
{
    (void)state;
    setenv("A", "1", 1);
    setenv("AB", "2", 1);
    setenv("PAGER_X", "kept", 1);
    setenv("NACRE_IDLE", "kept", 1);
    setenv("PWDX", "kept", 1);
    const char *const extra[] = {"A=9", "ABC", NULL};
    struct built b = build(extra);
    assert_value(&b, "A", "9");
    assert_value(&b, "AB", "2");
    assert_value(&b, "PAGER_X", "kept");
    assert_value(&b, "NACRE_IDLE", "kept");
    assert_value(&b, "PWDX", "kept");
    buf_done(&b.buf);
}

static void an_environment_of_nothing(void **state)
{
    (void)state;
    clearenv();
    struct built b = build(NULL);
    assert_value(&b, "NACRE_ID", "12340000000000000000000000000000");
    assert_value(&b, "PATH", NULL);
    buf_done(&b.buf);
    /* Entries that are no entries are left out. */
    static char odd[] = "NO_SIGN", fine[] = "FINE=1";
    char *entries[] = {odd, fine, NULL};
    char **before = environ;
    environ = entries;
    b = build(NULL);
    environ = before;
    assert_value(&b, "FINE", "1");
    for (const char *p = b.buf.data; p < b.buf.data + b.buf.len; p += strlen(p) + 1)
        assert_non_null(strchr(p, '='));
    buf_done(&b.buf);
}

static void the_ceiling_is_told(void **state)
{
    (void)state;
    struct buf out;
    uint32_t count;
    out = BUF_UP_TO(50);
    assert_int_equal(environment_build(&id, "/", false, NULL, NULL, NULL, &out, &count), -E2BIG);
    buf_done(&out);
}

static void looking_up(void **state)
{
    (void)state;
    setenv("HOST", "host", 1);
    const char *const extra[] = {"NEW=1", "PATH", "EMPTY=", "TWICE=1", "TWICE=2", NULL};
    assert_string_equal(environment_lookup(extra, NULL, "HOST"), "host");
    assert_string_equal(environment_lookup(extra, NULL, "NEW"), "1");
    assert_string_equal(environment_lookup(extra, NULL, "EMPTY"), "");
    assert_string_equal(environment_lookup(extra, NULL, "TWICE"), "2");
    assert_null(environment_lookup(extra, NULL, "PATH"));
    assert_string_equal(environment_lookup(NULL, NULL, "PATH"), "/bin");
    assert_null(environment_lookup(NULL, NULL, "NONE"));
    const char *const deny[] = {"PATH", NULL};
    const struct secret_rules rules = {.deny = deny};
    assert_null(environment_lookup(NULL, &rules, "PATH"));
}

#define TEST(name) cmocka_unit_test_setup(name, clean)

static void elsewhere(void **state)
{
    (void)state;
    static const char *const extra[] = {"PAGER=less", "WHO=me", "NACRE_ID=x", NULL};
    struct buf out cleanup_buf = BUF_UP_TO(4096);
    uint32_t count;
    setenv("HOST_ONLY", "1", 1);
    assert_int_equal(environment_own(extra, &out, &count), 0);
    assert_int_equal(unsetenv("HOST_ONLY"), 0);
    bool quiet = false, pager = false, who = false;
    const char *entry = out.data;
    for (uint32_t i = 0; i < count; i++, entry += strlen(entry) + 1) {
        assert_true(strncmp(entry, "NACRE_", 6) != 0 && strncmp(entry, "PWD=", 4) != 0 &&
                    strncmp(entry, "HOST_", 5) != 0 && strcmp(entry, "PAGER=cat") != 0);
        quiet = quiet || strcmp(entry, "GIT_TERMINAL_PROMPT=0") == 0;
        pager = pager || strcmp(entry, "PAGER=less") == 0;
        who = who || strcmp(entry, "WHO=me") == 0;
    }
    assert_ptr_equal(entry, out.data + out.len);
    assert_true(quiet && pager && who);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inherited_and_quiet),
        TEST(the_call_has_the_last_word),
        TEST(the_last_of_several_counts),
        TEST(many_names),
        TEST(our_names_are_ours),
        TEST(secrets_stay_with_the_host),
        TEST(similar_names),
        TEST(an_environment_of_nothing),
        TEST(the_ceiling_is_told),
        TEST(looking_up),
        TEST(elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
