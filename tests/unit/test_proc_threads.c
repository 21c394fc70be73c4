/* Processes whose first thread has ended: /proc shows less of them. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sys/fd.h"
#include "sys/proc.h"

static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void end_first_thread(void *data)
{
    pthread_t thread;
    (void)data;
    EXPECT(pthread_create(&thread, NULL, stay, NULL) == 0);
    syscall(SYS_exit, 0);
}

/* Who ends its first thread does not hide. */
static void environment_without_a_first_thread(void **state)
{
    (void)state;
    char first[4096];
    assert_true(fd_slurp_at(AT_FDCWD, "/proc/self/environ", first, sizeof first) > 0);
    pid_t pid = unit_fork(end_first_thread, NULL);
    struct proc_stat stat;
    while (proc_stat(pid, &stat) == 0 && stat.state != 'Z')
        unit_pause(1);
    int has = proc_has_env(pid, first), has_not = proc_has_env(pid, "NO=SUCH");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(has, 1);
    assert_int_equal(has_not, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_without_a_first_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
