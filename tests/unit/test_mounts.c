#include "sys/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* A link on the way was put there by somebody else than who named the path. */
static void links_are_not_followed(void **state)
{
    (void)state;
    char top[] = "/tmp/nacre-mounts-XXXXXX", path[128];
    assert_non_null(mkdtemp(top));
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_equal(mkdirat(dir, "real", 0700), 0);
    assert_int_equal(mkdirat(dir, "real/below", 0700), 0);
    assert_int_equal(symlinkat("real", dir, "link"), 0);
    assert_int_equal(mounts_copy(dir, "link", 1), -ELOOP);
    assert_int_equal(mounts_copy(dir, "link/below", 1), -ELOOP);
    assert_int_equal(mounts_put(dir, dir, "link"), -ELOOP);
    assert_int_equal(mounts_put(dir, dir, "link/below"), -ELOOP);
    assert_int_equal(mounts_copy(dir, "missing", 1), -ENOENT);
    const char *const names[] = {"link", "real/below", "real", ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", top, names[i]);
        assert_int_equal(remove(path), 0);
    }
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_are_not_followed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
