/* Where the home is, and whose it must be. */
#include "unit.h"

#include "base/defs.h"
#include "home/locate.h"
#include "sys/fd.h"

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void surroundings(const char *xdg, const char *home)
{
    set("XDG_STATE_HOME", xdg);
    set("HOME", home);
}

static void assert_home(const char *configured, const char *want)
{
    struct home_location home;
    nacre_error err = NACRE_ERROR_INIT;
    memset(&home, 0x5a, sizeof home);
    assert_int_equal(home_locate(configured, &home, &err), 0);
    assert_string_equal(home.path, want);
    assert_string_equal(home.note, "");
}

static void who_is_asked_first(void **state)
{
    (void)state;
    surroundings("/b/state", "/c/home");
    assert_home("/configured", "/configured");
    assert_home("/a b/nacre", "/a b/nacre");
    assert_home(NULL, "/b/state/nacre");
    surroundings(NULL, "/c/home");
    assert_home(NULL, "/c/home/.local/state/nacre");
    /* Empty is not set. */
    surroundings("", "/c/home");
    assert_home(NULL, "/c/home/.local/state/nacre");
}

static void without_any_variable(void **state)
{
    (void)state;
    struct home_location home;
    surroundings(NULL, NULL);
    int r = home_locate(NULL, &home, NULL);
    if (r < 0)
        SKIP("a home from the user database: uid %u is not in it", geteuid());
    assert_int_equal(home.path[0], '/');
    assert_non_null(strstr(home.path, "/.local/state/nacre"));
}

static void relative_is_refused(void **state)
{
    (void)state;
    static const char *const relative[] = {"nacre", "./nacre", "../nacre", "~/nacre", "~"};
    for (size_t i = 0; i < ARRAY_SIZE(relative); i++) {
        struct home_location home;
        nacre_error err = NACRE_ERROR_INIT;
        surroundings("/b", "/c");
        assert_int_equal(home_locate(relative[i], &home, &err), NACRE_EINVAL);
        assert_non_null(strstr(err.msg, relative[i]));
        surroundings(relative[i], "/c");
        assert_int_equal(home_locate(NULL, &home, &err), NACRE_EINVAL);
        surroundings(NULL, relative[i]);
        assert_int_equal(home_locate(NULL, &home, &err), NACRE_EINVAL);
    }
}

static void too_long_is_refused(void **state)
{
    (void)state;
    char path[PATH_MAX + 64];
    struct home_location home;
    nacre_error err = NACRE_ERROR_INIT;
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[PATH_MAX] = '\0';
    assert_int_equal(home_locate(path, &home, &err), NACRE_EIO);
    assert_int_equal(err.sys_errno, ENAMETOOLONG);
    /* With what is put behind it. */
    path[PATH_MAX - 5] = '\0';
    surroundings(path, NULL);
    assert_int_equal(home_locate(NULL, &home, &err), NACRE_EIO);
    surroundings(NULL, path);
    assert_int_equal(home_locate(NULL, &home, &err), NACRE_EIO);
}

static struct home_location home_at(const char *path)
{
    struct home_location home = {0};
    assert_true(strlen(path) < sizeof home.path);
    memcpy(home.path, path, strlen(path) + 1);
    return home;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void made_when_needed_and_private(void **state)
{
    (void)state;
    char place[PATH_MAX], path[PATH_MAX + 32], inner[PATH_MAX + 64];
    close(unit_dir(place));
    snprintf(path, sizeof path, "%s/deep/below/nacre", place);
    struct home_location home = home_at(path);
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(home_open_runs(&home, 0, &err), NACRE_ENOTFOUND);
    assert_int_equal(access(path, F_OK), -1);
    umask(0);
    int fd = home_open_runs(&home, 1, &err);
    umask(022);
    assert_true(fd > 2);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(mode_of(path), 0700);
    snprintf(inner, sizeof inner, "%s/runs", path);
    assert_int_equal(mode_of(inner), 0700);
    close(unit_file(fd, "x"));
    close(fd);
    snprintf(inner, sizeof inner, "%s/runs/x", path);
    assert_int_equal(access(inner, F_OK), 0);
    fd = home_open_runs(&home, 0, &err);
    assert_true(fd >= 0);
    close(fd);
    fd = home_open_runs(&home, 1, &err);
    assert_true(fd >= 0);
    close(fd);
}

static void in_the_way(void **state)
{
    (void)state;
    char place[PATH_MAX], path[PATH_MAX + 32];
    int dir = unit_dir(place);
    nacre_error err = NACRE_ERROR_INIT;
    close(unit_file(dir, "file"));
    snprintf(path, sizeof path, "%s/file/nacre", place);
    struct home_location home = home_at(path);
    assert_int_equal(home_open_runs(&home, 1, &err), NACRE_EIO);
    assert_int_equal(err.sys_errno, ENOTDIR);
    snprintf(path, sizeof path, "%s/file", place);
    home = home_at(path);
    assert_int_equal(home_open_runs(&home, 1, &err), NACRE_EIO);
    assert_int_equal(home_open_runs(&home, 0, &err), NACRE_EIO);
    /* A home whose directory of runs is a file. */
    home = home_at(place);
    close(unit_file(dir, "runs"));
    assert_int_equal(home_open_runs(&home, 1, &err), NACRE_EIO);
    assert_true(strlen(err.msg) > 0);
    close(dir);
}

static void of_another_owner(void **state)
{
    (void)state;
    char place[PATH_MAX], path[PATH_MAX + 32];
    nacre_error err = NACRE_ERROR_INIT;
    if (geteuid() != 0) {
        struct home_location root = home_at("/");
        assert_int_equal(home_open_runs(&root, 0, &err), NACRE_EPERM);
        assert_non_null(strstr(err.msg, "uid 0"));
        return;
    }
    close(unit_dir(place));
    snprintf(path, sizeof path, "%s/theirs", place);
    struct home_location home = home_at(path);
    int fd = home_open_runs(&home, 1, &err);
    assert_true(fd >= 0);
    close(fd);
    int before = unit_count_fds();
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(home_open_runs(&home, 0, &err), NACRE_EPERM);
    assert_int_equal(home_open_runs(&home, 1, &err), NACRE_EPERM);
    assert_non_null(strstr(err.msg, "65534"));
    /* Ours, but with runs of somebody else's. */
    assert_int_equal(chown(path, 0, 0), 0);
    snprintf(path, sizeof path, "%s/theirs/runs", place);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(home_open_runs(&home, 0, &err), NACRE_EPERM);
    assert_int_equal(unit_count_fds(), before);
}

static void as_somebody_else(void *data)
{
    const struct home_location *home = data;
    nacre_error err = NACRE_ERROR_INIT;
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    EXPECT(home_open_runs(home, 1, &err) < 0);
    EXPECT(err.code == NACRE_EPERM || err.code == NACRE_EIO);
}

static uint32_t number_of(const char *path)
{
    struct home_location home;
    assert_int_equal(home_locate(path, &home, NULL), 0);
    return home.number;
}

/* A home has the same number by whatever links, and before it is made and after it is gone. */
static void numbers(void **state)
{
    (void)state;
    char place[PATH_MAX], real[PATH_MAX + 16], link[PATH_MAX + 16], by_link[PATH_MAX + 32];
    int dir = unit_dir(place);
    snprintf(link, sizeof link, "%s/link", place);
    snprintf(real, sizeof real, "%s/real/a/b", place);
    snprintf(by_link, sizeof by_link, "%s/a/b", link);
    assert_int_equal(mkdirat(dir, "real", 0700), 0);
    assert_int_equal(symlinkat("real", dir, "link"), 0);
    uint32_t number = number_of(real);
    assert_int_equal(number_of(by_link), number);
    assert_int_equal(fd_make_dirs(real), 0);
    assert_int_equal(number_of(real), number);
    assert_int_equal(number_of(by_link), number);
    assert_int_not_equal(number_of(link), number);
    assert_int_not_equal(number_of("/"), number_of("/no such place"));
    close(dir);
}

static void from_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("a home seen by another uid: this is not root");
    char place[PATH_MAX];
    close(unit_dir(place));
    struct home_location home = home_at(place);
    assert_int_equal(chmod(place, 0755), 0);
    close(home_open_runs(&home, 1, NULL));
    unit_in_child(as_somebody_else, &home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_asked_first),
        cmocka_unit_test(without_any_variable),
        cmocka_unit_test(relative_is_refused),
        cmocka_unit_test(too_long_is_refused),
        cmocka_unit_test(made_when_needed_and_private),
        cmocka_unit_test(in_the_way),
        cmocka_unit_test(of_another_owner),
        cmocka_unit_test(numbers),
        cmocka_unit_test(from_another_user),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
