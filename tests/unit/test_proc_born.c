/* Looks at all processes while some of them fork and end. */
#include "unit.h"

#include "base/defs.h"
#include "sys/host.h"
#include "sys/proc.h"

static void stay(void *data)
{
    (void)data;
    for (;;)
        pause();
}

static int stop_at_pid(pid_t pid, void *userdata)
{
    return pid == *(const pid_t *)userdata ? 42 : 0;
}

/* Who is looked at forks and ends, until nobody looks any more; the walk has to follow. */
struct heirs {
    pid_t latest;
    int left;
    int met;
};

static void run_on(struct heirs *heirs)
{
    int status;
    if (heirs->latest > 0) {
        kill(heirs->latest, SIGKILL);
        EXPECT(waitpid(heirs->latest, &status, 0) == heirs->latest);
    }
    heirs->latest = heirs->left-- > 0 ? unit_fork(stay, NULL) : 0;
}

static int meet_heir(pid_t pid, void *userdata)
{
    struct heirs *heirs = userdata;
    if (pid == heirs->latest) {
        heirs->met++;
        run_on(heirs);
    }
    return 0;
}

static void each_born_meets_whoever_is_born_meanwhile(void **state)
{
    (void)state;
    struct heirs heirs = {.left = 20};
    run_on(&heirs);
    assert_int_equal(proc_each_born(meet_heir, &heirs), 0);
    assert_int_equal(heirs.met, 20);
    assert_int_equal(heirs.latest, 0);
    pid_t self = getpid();
    assert_int_equal(proc_each_born(stop_at_pid, &self), 42);
    heirs = (struct heirs){.left = 3};
    pid_t before = host_last_pid();
    run_on(&heirs);
    int r = proc_each_later(before, 5000, meet_heir, &heirs);
    assert_true(r == 0 || r == -EAGAIN); /* pids may begin anew just now */
    assert_true(r < 0 || heirs.met == 3);
    while (heirs.latest > 0)
        run_on(&heirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_born_meets_whoever_is_born_meanwhile),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
