/* cgroup leaves: found, made, killed, proven empty and removed. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/syscalls.h"

struct leaf {
    char parent[CGROUP_PATH_MAX];
    char name[32];
    char path[CGROUP_PATH_MAX + 64];
    int fd;
};

/* A leaf of this process's own, or the reason why there is none. */
static void make_leaf(struct leaf *leaf)
{
    static int number;
    int r = cgroup_own(leaf->parent, sizeof leaf->parent);
    if (r < 0)
        SKIP("cgroups: there is no cgroup v2 tree (%s)", strerror(-r));
    snprintf(leaf->name, sizeof leaf->name, "nacre-unit-%d-%d", getpid(), ++number);
    snprintf(leaf->path, sizeof leaf->path, "%s/%s", leaf->parent, leaf->name);
    leaf->fd = cgroup_create(leaf->parent, leaf->name);
    if (leaf->fd < 0)
        SKIP("cgroups: no leaf can be made here (%s)", strerror(-leaf->fd));
}

static void drop_leaf(struct leaf *leaf)
{
    close(leaf->fd);
    assert_int_equal(cgroup_remove(leaf->path), 0);
    assert_int_equal(access(leaf->path, F_OK), -1);
}

static pid_t sleeper_in(int fd)
{
    fflush(NULL);
    pid_t pid = sys_fork_into(fd);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static bool empty_soon(int fd)
{
    for (int i = 0; i < 1000; i++) {
        if (cgroup_populated(fd) == 0)
            return true;
        unit_pause(1);
    }
    return false;
}

static void own_path_is_where_we_are(void **state)
{
    (void)state;
    char path[CGROUP_PATH_MAX], pid[16];
    int r = cgroup_own(path, sizeof path);
    if (r < 0)
        SKIP("cgroups: there is no cgroup v2 tree (%s)", strerror(-r));
    assert_int_not_equal(path[strlen(path) - 1], '/');
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    cleanup_close int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *procs = fdopen(TAKE_FD(fd), "r");
    assert_non_null(procs);
    char line[32];
    bool found = false;
    snprintf(pid, sizeof pid, "%d\n", getpid());
    while (fgets(line, sizeof line, procs))
        found = found || strcmp(line, pid) == 0;
    fclose(procs);
    assert_true(found);
    assert_int_equal(cgroup_own(path, strlen(path)), -ENAMETOOLONG);
}

static void born_in_killed_and_proven(void **state)
{
    (void)state;
    struct leaf leaf;
    int status;
    make_leaf(&leaf);
    assert_true(leaf.fd > 2);
    assert_int_equal(fcntl(leaf.fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(cgroup_populated(leaf.fd), 0);
    pid_t pid = sleeper_in(leaf.fd);
    assert_int_equal(cgroup_populated(leaf.fd), 1);
    /* Not before it is empty. */
    assert_int_equal(cgroup_remove(leaf.path), -EBUSY);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(cgroup_kill(leaf.fd), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(empty_soon(leaf.fd));
    drop_leaf(&leaf);
}

static void fork_for_ever(void *data)
{
    const int *fd = data;
    char text[16];
    snprintf(text, sizeof text, "%d", getpid());
    EXPECT(fd_poke_at(*fd, "cgroup.procs", text) == 0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 30; i++)
        if (fork() == 0)
            break;
    for (;;)
        pause();
}

static void a_kill_reaches_all(void **state)
{
    (void)state;
    struct leaf leaf;
    make_leaf(&leaf);
    pid_t pid = unit_fork(fork_for_ever, &leaf.fd);
    for (int i = 0; i < 1000 && cgroup_populated(leaf.fd) == 0; i++)
        unit_pause(1);
    assert_int_equal(cgroup_populated(leaf.fd), 1);
    assert_int_equal(cgroup_kill(leaf.fd), 0);
    assert_true(WIFSIGNALED(unit_join(pid)));
    assert_true(empty_soon(leaf.fd));
    drop_leaf(&leaf);
}

static void nested_leaves_go_with_it(void **state)
{
    (void)state;
    struct leaf leaf;
    make_leaf(&leaf);
    int inner[6], status;
    char path[CGROUP_PATH_MAX + 256];
    snprintf(path, sizeof path, "%s", leaf.path);
    for (size_t i = 0; i < ARRAY_SIZE(inner); i++) {
        inner[i] = cgroup_create(path, "in");
        assert_true(inner[i] >= 0);
        int beside = cgroup_create(path, "beside");
        assert_true(beside >= 0);
        close(beside);
        strncat(path, "/in", sizeof path - strlen(path) - 1);
    }
    pid_t pid = sleeper_in(inner[5]);
    assert_int_equal(cgroup_populated(leaf.fd), 1);
    assert_int_equal(cgroup_remove(leaf.path), -EBUSY);
    assert_int_equal(cgroup_kill(leaf.fd), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(empty_soon(leaf.fd));
    for (size_t i = 0; i < ARRAY_SIZE(inner); i++)
        close(inner[i]);
    int before = unit_count_fds();
    drop_leaf(&leaf);
    assert_int_equal(unit_count_fds(), before - 1);
    /* A second time there is nothing to do. */
    assert_int_equal(cgroup_remove(leaf.path), 0);
}

static void names_are_not_shared(void **state)
{
    (void)state;
    struct leaf leaf;
    make_leaf(&leaf);
    assert_int_equal(cgroup_create(leaf.parent, leaf.name), -EEXIST);
    char name[CGROUP_PATH_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(cgroup_create(leaf.parent, name), -ENAMETOOLONG);
    drop_leaf(&leaf);
}

static pid_t counter_in(int fd, volatile unsigned *count)
{
    fflush(NULL);
    pid_t pid = sys_fork_into(fd);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            ++*count;
    }
    assert_true(pid > 0);
    return pid;
}

static void frozen_members_stand_still(void **state)
{
    (void)state;
    struct leaf leaf;
    int status;
    make_leaf(&leaf);
    volatile unsigned *count =
        mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(count != MAP_FAILED);
    pid_t pid = counter_in(leaf.fd, count);
    while (*count == 0)
        unit_pause(1);
    assert_int_equal(cgroup_freeze(leaf.fd, 5000), 0);
    unsigned then = *count;
    unit_pause(20);
    assert_int_equal(*count, then);
    assert_int_equal(cgroup_thaw(leaf.fd), 0);
    while (*count == then)
        unit_pause(1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    munmap((void *)count, sizeof *count);

    /* SIGKILL does not wait. */
    pid = sleeper_in(leaf.fd);
    assert_int_equal(cgroup_freeze(leaf.fd, 5000), 0);
    assert_int_equal(cgroup_kill(leaf.fd), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(cgroup_thaw(leaf.fd), 0);
    drop_leaf(&leaf);
}

/* Who is not frozen in time is not waited for; the others are held until the thaw. */
static void a_freeze_is_bounded(void **state)
{
    (void)state;
    char text[8] = "";
    int dir = unit_dir(NULL);
    int fd = unit_file(dir, "cgroup.events");
    assert_int_equal(fd_write_all(fd, "populated 1\nfrozen 0\n", 21), 0);
    close(fd);
    assert_int_equal(cgroup_freeze(dir, 1), -ENOENT);
    close(unit_file(dir, "cgroup.freeze"));
    assert_int_equal(cgroup_freeze(dir, 1), -ETIMEDOUT);
    assert_true(fd_slurp_at(dir, "cgroup.freeze", text, sizeof text) > 0);
    assert_string_equal(text, "1");
    assert_int_equal(cgroup_thaw(dir), 0);
    assert_true(fd_slurp_at(dir, "cgroup.freeze", text, sizeof text) > 0);
    assert_string_equal(text, "0");
    close(dir);
}

/* Before Linux 5.14 there is no cgroup.kill: its members are killed one by one. */
static void without_cgroup_kill(void **state)
{
    (void)state;
    int dir = unit_dir(NULL), status;
    char text[64];
    pid_t pids[3];
    FILE *procs = fdopen(unit_file(dir, "cgroup.procs"), "w");
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
        pids[i] = sleeper_in(-1);
        fprintf(procs, "%d\n", pids[i]);
    }
    fclose(procs);
    snprintf(text, sizeof text, "populated %d\nfrozen 0\n", 1);
    int fd = unit_file(dir, "cgroup.events");
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
    assert_int_equal(cgroup_populated(dir), 1);
    assert_int_equal(cgroup_kill(dir), 0);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    /* Those that are gone by now are no failure. */
    assert_int_equal(cgroup_kill(dir), 0);
    close(dir);
}

/* An ordinary directory is no cgroup: nothing is left in it. */
static void elsewhere_is_refused(void **state)
{
    (void)state;
    char path[PATH_MAX], inside[PATH_MAX + 8];
    int dir = unit_dir(path);
    int before = unit_count_fds();
    assert_true(strlen(path) < 200);
    assert_int_equal(cgroup_create(path, "leaf"), -ENOENT);
    snprintf(inside, sizeof inside, "%s/leaf", path);
    assert_int_equal(access(inside, F_OK), -1);
    assert_int_equal(cgroup_create("/nowhere/at/all", "leaf"), -ENOENT);
    assert_int_equal(cgroup_kill(dir), -ENOENT);
    assert_int_equal(cgroup_populated(dir), -ENOENT);
    /* Files are not for cgroup_remove() to delete. */
    close(unit_file(dir, "file"));
    assert_int_equal(cgroup_remove(path), -ENOTEMPTY);
    assert_int_equal(faccessat(dir, "file", F_OK, 0), 0);
    assert_int_equal(unit_count_fds(), before);
    close(dir);
}

static pid_t computer_in(int fd)
{
    fflush(NULL);
    pid_t pid = sys_fork_into(fd);
    if (pid == 0) {
        struct rusage usage = {0};
        while (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 200000)
            getrusage(RUSAGE_SELF, &usage);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Also of what has ended. */
static void time_of_all_members(void **state)
{
    (void)state;
    struct leaf leaf;
    make_leaf(&leaf);
    assert_in_range(cgroup_cpu_ms(leaf.path), 0, 10);
    pid_t first = computer_in(leaf.fd), second = computer_in(leaf.fd);
    unit_join(first);
    unit_join(second);
    assert_in_range(cgroup_cpu_ms(leaf.path), 390, 5000);
    drop_leaf(&leaf);
    assert_int_equal(cgroup_cpu_ms(leaf.path), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_path_is_where_we_are), cmocka_unit_test(born_in_killed_and_proven),
        cmocka_unit_test(a_kill_reaches_all),       cmocka_unit_test(nested_leaves_go_with_it),
        cmocka_unit_test(names_are_not_shared),     cmocka_unit_test(without_cgroup_kill),
        cmocka_unit_test(elsewhere_is_refused),     cmocka_unit_test(frozen_members_stand_still),
        cmocka_unit_test(a_freeze_is_bounded),      cmocka_unit_test(time_of_all_members),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
