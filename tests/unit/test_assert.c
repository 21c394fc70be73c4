/* must(): stops where somebody looks, is nothing in a release, and is never in the way. */
#include "unit.h"

#include "base/assert.h"

static int evaluated;

static int is_even(int n)
{
    evaluated++;
    return n % 2 == 0;
}

/* How a child ends that says of a number that it is even: 0, or the signal of a trap. */
static int say_even(int n)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGILL, SIG_DFL); /* a sanitizer's handler would make an exit of it */
        signal(SIGTRAP, SIG_DFL);
        must(is_even(n));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void what_holds_goes_on(void **state)
{
    (void)state;
    assert_int_equal(say_even(2), 0);
}

static void what_does_not_hold_traps(void **state)
{
    (void)state;
#ifdef NACRE_ASSERT
    int sig = say_even(3);
    assert_true(sig == SIGILL || sig == SIGTRAP);
#else
    assert_int_equal(say_even(3), 0);
#endif
}

static void a_release_does_not_look(void **state)
{
    (void)state;
    evaluated = 0;
    must(is_even(2));
#ifdef NACRE_ASSERT
    assert_int_equal(evaluated, 1);
#else
    assert_int_equal(evaluated, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_goes_on),
        cmocka_unit_test(what_does_not_hold_traps),
        cmocka_unit_test(a_release_does_not_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
