/* Where a user's files belong. */
#include "unit.h"

#include <pwd.h>

#include "sys/user.h"

static void assert_path(const char *want)
{
    char path[PATH_MAX];
    assert_int_equal(user_path("NACRE_TEST_DIR", ".some/place", "nacre/file", path), 0);
    assert_string_equal(path, want);
}

static void in_order(void **state)
{
    (void)state;
    setenv("HOME", "/h", 1);
    setenv("NACRE_TEST_DIR", "/d", 1);
    assert_path("/d/nacre/file");
    setenv("NACRE_TEST_DIR", "", 1);
    assert_path("/h/.some/place/nacre/file");
    unsetenv("NACRE_TEST_DIR");
    assert_path("/h/.some/place/nacre/file");
}

static void without_a_home(void **state)
{
    (void)state;
    char want[PATH_MAX], path[PATH_MAX];
    const struct passwd *entry = getpwuid(geteuid());
    unsetenv("NACRE_TEST_DIR");
    unsetenv("HOME");
    if (!entry) {
        assert_int_equal(user_path("NACRE_TEST_DIR", "a", "b", path), -ENOENT);
        return;
    }
    snprintf(want, sizeof want, "%s/.some/place/nacre/file", entry->pw_dir);
    assert_path(want);
}

static void too_long(void **state)
{
    (void)state;
    static char name[PATH_MAX];
    char path[PATH_MAX];
    memset(name, 'x', sizeof name - 1);
    setenv("NACRE_TEST_DIR", name, 1);
    assert_int_equal(user_path("NACRE_TEST_DIR", "a", "b", path), -ENAMETOOLONG);
}

static void variables(void **state)
{
    (void)state;
    setenv("NACRE_TEST_DIR", "x", 1);
    assert_string_equal(user_variable("NACRE_TEST_DIR"), "x");
    setenv("NACRE_TEST_DIR", "", 1);
    assert_null(user_variable("NACRE_TEST_DIR"));
    unsetenv("NACRE_TEST_DIR");
    assert_null(user_variable("NACRE_TEST_DIR"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(without_a_home),
        cmocka_unit_test(too_long),
        cmocka_unit_test(variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
