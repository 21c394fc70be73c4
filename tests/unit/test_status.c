/* The words for records: statuses, signals, tiers; and the release of a record. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nacre/record.h>

static const char *status(nacre_outcome outcome, nacre_tree tree, int exit_code, int signal)
{
    static char buf[64];
    nacre_record record = {.size = sizeof record,
                           .outcome = outcome,
                           .tree = tree,
                           .exit_code = exit_code,
                           .signal = signal};
    return nacre_status(&record, buf, sizeof buf);
}

static void outcomes_have_names(void **state)
{
    (void)state;
    assert_string_equal(status(NACRE_RUNNING, NACRE_TREE_ALIVE, -1, 0), "running");
    assert_string_equal(status(NACRE_EXITED, NACRE_TREE_EMPTY, 0, 0), "exited(0)");
    assert_string_equal(status(NACRE_EXITED, NACRE_TREE_EMPTY, 143, 0), "exited(143)");
    assert_string_equal(status(NACRE_SIGNALED, NACRE_TREE_EMPTY, -1, SIGSEGV), "signaled(SIGSEGV)");
    assert_string_equal(status(NACRE_SIGNALED, NACRE_TREE_EMPTY, -1, 40), "signaled(SIG40)");
    assert_string_equal(status(NACRE_KILLED, NACRE_TREE_EMPTY, -1, SIGTERM), "killed");
    assert_string_equal(status(NACRE_TIMED_OUT, NACRE_TREE_EMPTY, -1, SIGTERM), "timed_out");
    assert_string_equal(status(NACRE_CANCELLED, NACRE_TREE_EMPTY, -1, SIGTERM), "cancelled");
    assert_string_equal(status(NACRE_LOST, NACRE_TREE_EMPTY, -1, 0), "lost");
}

static void lingering_is_said_only_after_an_outcome(void **state)
{
    (void)state;
    assert_string_equal(status(NACRE_EXITED, NACRE_TREE_ALIVE, 7, 0), "exited(7), lingering");
    assert_string_equal(status(NACRE_SIGNALED, NACRE_TREE_ALIVE, -1, SIGVTALRM),
                        "signaled(SIGVTALRM), lingering");
    assert_string_equal(status(NACRE_LOST, NACRE_TREE_ALIVE, -1, 0), "lost, lingering");
}

static void short_buffers_are_cut_and_terminated(void **state)
{
    (void)state;
    char buf[8];
    memset(buf, 'x', sizeof buf);
    nacre_record record = {.outcome = NACRE_TIMED_OUT, .tree = NACRE_TREE_EMPTY};
    assert_ptr_equal(nacre_status(&record, buf, 5), buf);
    assert_string_equal(buf, "time");
    assert_int_equal(buf[5], 'x');
}

static void signals_have_names(void **state)
{
    (void)state;
    char buf[16];
    assert_string_equal(nacre_signal_name(SIGTERM, buf, sizeof buf), "SIGTERM");
    assert_string_equal(nacre_signal_name(SIGKILL, buf, sizeof buf), "SIGKILL");
    assert_string_equal(nacre_signal_name(SIGSTKFLT, buf, sizeof buf), "SIGSTKFLT");
    assert_string_equal(nacre_signal_name(34, buf, sizeof buf), "SIG34");
    assert_string_equal(nacre_signal_name(64, buf, sizeof buf), "SIG64");
    assert_string_equal(nacre_signal_name(0, buf, sizeof buf), "SIG0");
    assert_string_equal(nacre_signal_name(-1, buf, sizeof buf), "SIG-1");
}

static void every_signal_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 1; i <= 64; i++) {
        char name[16], digits[16];
        snprintf(digits, sizeof digits, "%d", i);
        assert_int_equal(nacre_signal_number(digits), i);
        assert_int_equal(nacre_signal_number(nacre_signal_name(i, name, sizeof name)), i);
        assert_int_equal(nacre_signal_number(name + 3), i);
    }
    assert_int_equal(nacre_signal_number("term"), SIGTERM);
    assert_int_equal(nacre_signal_number("sigterm"), SIGTERM);
}

static void what_is_no_signal_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",       "0",  "-1",    "65",  "999999999999", "15 ",
                                        " 15",    "+9", "TERM ", "SIG", "SIGSIGTERM",   "TERMINATE",
                                        "SIGFOO", "9x", "0x9",   "1e1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(nacre_signal_number(wrong[i]), -1);
    assert_int_equal(nacre_signal_number(NULL), -1);
}

static void tiers_have_names(void **state)
{
    (void)state;
    assert_string_equal(nacre_tier_name(NACRE_TIER_CGROUP), "cgroup");
    assert_string_equal(nacre_tier_name(NACRE_TIER_SUBREAPER), "subreaper");
    assert_string_equal(nacre_tier_name(NACRE_TIER_GROUP), "group");
}

static void a_record_can_be_released_twice(void **state)
{
    (void)state;
    nacre_record record = NACRE_RECORD_INIT;
    record.command = strdup("make");
    record.cwd = strdup("/");
    record.name = strdup("");
    record.description = strdup("");
    record.outcome = NACRE_EXITED;
    nacre_record_done(&record);
    assert_null(record.command);
    assert_null(record.cwd);
    assert_null(record.name);
    assert_null(record.description);
    assert_int_equal(record.outcome, NACRE_RUNNING);
    assert_int_equal(record.size, sizeof record);
    nacre_record_done(&record);
    nacre_record_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes_have_names),
        cmocka_unit_test(lingering_is_said_only_after_an_outcome),
        cmocka_unit_test(short_buffers_are_cut_and_terminated),
        cmocka_unit_test(signals_have_names),
        cmocka_unit_test(every_signal_is_found_by_its_name),
        cmocka_unit_test(what_is_no_signal_is_refused),
        cmocka_unit_test(tiers_have_names),
        cmocka_unit_test(a_record_can_be_released_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
