/* Spares: where they are, whose they have to be, and that nothing is left of an empty one. */
#include "unit.h"

#include <sys/stat.h>

#include "run/spare.h"
#include "sys/fd.h"

/* A home that nobody else has. */
static const char *some_home(void)
{
    static char home[64];
    snprintf(home, sizeof home, "/nowhere/%d", getpid());
    return home;
}

static void two_homes_have_two_spares(void **state)
{
    (void)state;
    char one[PATH_MAX], same[PATH_MAX], other[PATH_MAX];
    for (int i = 0; i < RUN_SPARES; i++) {
        assert_int_equal(run_spare_path("/a", i, one, sizeof one), 0);
        assert_int_equal(run_spare_path("/a", i, same, sizeof same), 0);
        assert_int_equal(run_spare_path("/b", i, other, sizeof other), 0);
        assert_string_equal(one, same);
        assert_string_not_equal(one, other);
        assert_true(run_path_is_spare(one));
    }
    assert_false(run_path_is_spare("/home/somebody/.local/state/nacre/runs/x"));
    assert_int_equal(run_spare_path("/a", 0, one, 8), -ENAMETOOLONG);
}

static int count_spare(int runs_fd, void *userdata)
{
    assert_true(runs_fd > 2);
    ++*(int *)userdata;
    return 0;
}

static void made_and_removed(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct stat st;
    int count = 0;
    assert_int_equal(run_open_spare(some_home(), 0, false), -ENOENT);
    int fd = run_open_spare(some_home(), 0, true);
    assert_true(fd > 2);
    assert_int_equal(run_spare_path(some_home(), 0, path, sizeof path), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(run_each_spare(some_home(), count_spare, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(mkdirat(fd, "a-run", 0700), 0);
    run_remove_spares(some_home());
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlinkat(fd, "a-run", AT_REMOVEDIR), 0);
    run_remove_spares(some_home());
    assert_int_equal(access(path, F_OK), -1);
    close(fd);
}

/* What somebody has put there is not used: others could look into it, or have it lead elsewhere. */
static void only_our_own(void **state)
{
    (void)state;
    char path[PATH_MAX];
    assert_int_equal(run_spare_path(some_home(), 0, path, sizeof path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(run_open_spare(some_home(), 0, true), -EPERM);
    if (geteuid() == 0) {
        assert_int_equal(chmod(path, 0700), 0);
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(run_open_spare(some_home(), 0, true), -EPERM);
    }
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/tmp", path), 0);
    assert_true(run_open_spare(some_home(), 0, true) < 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(run_open_spare(some_home(), 0, true) < 0);
    assert_int_equal(unlink(path), 0);
}

static void what_is_no_room(void **state)
{
    (void)state;
    assert_true(run_has_no_room(ENOSPC) && run_has_no_room(EDQUOT) && run_has_no_room(EROFS));
    assert_false(run_has_no_room(0) || run_has_no_room(EACCES) || run_has_no_room(ENOENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_homes_have_two_spares),
        cmocka_unit_test(made_and_removed),
        cmocka_unit_test(only_our_own),
        cmocka_unit_test(what_is_no_room),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
