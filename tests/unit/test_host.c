/* Which boot, which pid namespace, which kernel. */
#include "unit.h"

#include <sched.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "sys/fd.h"
#include "sys/host.h"

static void identity_is_stable_and_true(void **state)
{
    (void)state;
    struct host first, second;
    memset(&first, 0x11, sizeof first);
    memset(&second, 0x22, sizeof second);
    assert_int_equal(host_identify(&first), 0);
    assert_int_equal(host_identify(&second), 0);
    assert_memory_equal(&first, &second, sizeof first);
    struct stat st;
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    assert_int_equal(first.pid_ns, st.st_ino);
}

static void boot_is_the_kernels(void **state)
{
    (void)state;
    struct host host;
    char text[64], digits[33] = "";
    assert_int_equal(host_identify(&host), 0);
    assert_true(fd_slurp_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text) > 0);
    for (size_t i = 0; i < sizeof host.boot; i++)
        snprintf(digits + 2 * i, 3, "%02x", host.boot[i]);
    size_t n = 0;
    for (const char *p = text; *p && *p != '\n'; p++)
        if (*p != '-')
            assert_int_equal(*p, digits[n++]);
    assert_int_equal(n, 32);
}

static void look_from_elsewhere(void *data)
{
    const struct host *outside = data;
    struct host inside;
    EXPECT(host_identify(&inside) == 0);
    EXPECT(memcmp(inside.boot, outside->boot, sizeof inside.boot) == 0);
    EXPECT(inside.pid_ns != outside->pid_ns);
}

static void enter_and_look(void *data)
{
    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        _exit(77);
    int status;
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        look_from_elsewhere(data);
        _exit(0);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void another_namespace_is_another(void **state)
{
    (void)state;
    struct host host;
    assert_int_equal(host_identify(&host), 0);
    int status = unit_join(unit_fork(enter_and_look, &host));
    if (status == 77 << 8)
        SKIP("pid namespaces: the kernel does not let us make one");
    assert_int_equal(status, 0);
}

static void kernel_is_new_enough(void **state)
{
    (void)state;
    struct utsname names;
    char release[72], cut[4];
    assert_int_equal(uname(&names), 0);
    assert_int_equal(host_check_kernel(release, sizeof release), 0);
    assert_string_equal(release, names.release);
    host_check_kernel(cut, sizeof cut);
    assert_memory_equal(cut, names.release, 3);
    assert_int_equal(cut[3], '\0');
}

static void random_bytes(void **state)
{
    (void)state;
    unsigned char a[1000] = {0}, b[1000] = {0};
    assert_int_equal(host_random(a, sizeof a), 0);
    assert_int_equal(host_random(b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    /* No stretch is left as it was, up to the last byte asked for and not beyond. */
    unsigned char guarded[40];
    int changed = 0;
    for (int round = 0; round < 20; round++) {
        memset(guarded, 0, sizeof guarded);
        assert_int_equal(host_random(guarded, 32), 0);
        changed += guarded[31] != 0;
        for (int i = 32; i < 40; i++)
            assert_int_equal(guarded[i], 0);
    }
    assert_true(changed > 10);
    assert_int_equal(host_random(NULL, 0), 0);
}

#define BUSY 3

static void spin(void *data)
{
    (void)data;
    alarm(20);
    for (volatile bool forever = true; forever;)
        ;
}

static int runnable_now(void)
{
    char text[128];
    int count = -1;
    assert_true(fd_slurp_at(AT_FDCWD, "/proc/loadavg", text, sizeof text) > 0);
    assert_int_equal(sscanf(text, "%*f %*f %*f %d/", &count), 1);
    return count;
}

/* The number changes under us, so two looks agree only now and then. */
static void runnable_tasks_are_counted(void **state)
{
    (void)state;
    pid_t busy[BUSY];
    for (int i = 0; i < BUSY; i++)
        busy[i] = unit_fork(spin, NULL);
    int64_t deadline = clock_deadline(10000);
    bool counted = false, agreed = false;
    while ((!counted || !agreed) && clock_left_ms(deadline) > 0) {
        int count = host_count_runnable();
        assert_true(count > 0);
        counted |= count > BUSY;
        agreed |= count == runnable_now();
    }
    for (int i = 0; i < BUSY; i++) {
        kill(busy[i], SIGKILL);
        unit_join(busy[i]);
    }
    assert_true(counted);
    assert_true(agreed);
}

static void run_on_one(void *data)
{
    cpu_set_t set;
    (void)data;
    EXPECT(sched_getaffinity(0, sizeof set, &set) == 0);
    EXPECT(host_count_processors() == CPU_COUNT(&set));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    EXPECT(sched_setaffinity(0, sizeof set, &set) == 0);
    EXPECT(host_count_processors() == 1);
}

static void processors_are_those_that_may_be_used(void **state)
{
    (void)state;
    unit_in_child(run_on_one, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_stable_and_true),
        cmocka_unit_test(boot_is_the_kernels),
        cmocka_unit_test(another_namespace_is_another),
        cmocka_unit_test(kernel_is_new_enough),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(runnable_tasks_are_counted),
        cmocka_unit_test(processors_are_those_that_may_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
