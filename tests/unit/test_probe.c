/* Probes tell what the machine can do, and leave nothing behind. */
#include "unit.h"

#include <dirent.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/probe.h"

#define PROBES 32

static const struct probe_result *find(const struct probe_result *results, size_t count,
                                       const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].name, name) == 0)
            return &results[i];
    fail_msg("there is no probe \"%s\"", name);
    return NULL;
}

/* Entries of our own cgroup that a probe could have left. */
static int count_leaves(void)
{
    char path[CGROUP_PATH_MAX], ours[64];
    int count = 0;
    if (cgroup_own(path, sizeof path) < 0)
        return 0;
    snprintf(ours, sizeof ours, "nacre-probe-%d", getpid());
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += strcmp(entry->d_name, ours) == 0;
    if (dir)
        closedir(dir);
    return count;
}

static void every_probe_says_something(void **state)
{
    (void)state;
    struct probe_result results[PROBES];
    int fds = unit_count_fds();
    size_t count = probe_all(results, PROBES);
    assert_in_range(count, 5, PROBES - 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(results[i].name) > 0);
        assert_true(strlen(results[i].meaning) > 0);
        assert_true(memchr(results[i].detail, 0, sizeof results[i].detail) != NULL);
        assert_int_equal(results[i].ok, results[i].err == 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(results[i].name, results[j].name);
    }
    /* This program could not have come this far without these. */
    assert_true(find(results, count, "kernel")->ok);
    assert_true(find(results, count, "proc")->ok);
    assert_true(find(results, count, "locks")->ok);
    assert_int_equal(unit_count_fds(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(count_leaves(), 0);
}

static void no_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct probe_result results[3];
    memset(results, 0x5a, sizeof results);
    assert_int_equal(probe_all(results, 2), 2);
    assert_int_equal(results[2].ok, 0x5a5a5a5a);
    assert_int_equal(probe_all(results, 0), 0);
}

struct denied {
    int call;
    const char *name;
};

static void look_without(void *data)
{
    const struct denied *denied = data;
    struct probe_result results[PROBES];
    EXPECT(unit_deny(denied->call, EPERM));
    size_t count = probe_all(results, PROBES);
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].name, denied->name) == 0)
            EXPECT(!results[i].ok && results[i].err == EPERM);
}

static void what_is_refused_is_told(void **state)
{
    (void)state;
    static struct denied denied[] = {{SYS_pidfd_open, "pidfd"}, {SYS_close_range, "close_range"}};
    for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
        unit_in_child(look_without, &denied[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_probe_says_something),
        cmocka_unit_test(no_more_than_there_is_room_for),
        cmocka_unit_test(what_is_refused_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
