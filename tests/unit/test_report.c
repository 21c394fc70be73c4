/* From state and spec to the record that a caller gets. */
#include "runs.h"

#include "base/clock.h"
#include "base/defs.h"
#include "home/report.h"
#include "sys/host.h"

static struct run_state finished(void)
{
    struct run_state st;
    state_init(&st, &runs_id, &runs_session);
    st.phase = PHASE_RUN;
    st.outcome = NACRE_EXITED;
    st.tree = NACRE_TREE_EMPTY;
    st.tier = NACRE_TIER_SUBREAPER;
    st.exit_code = 3;
    st.started_ns = 5000 * NS_PER_MS;
    st.exited_ns = 7500 * NS_PER_MS;
    st.elapsed_ns = 2499 * NS_PER_MS;
    st.cpu_us = 1234567;
    st.max_rss_kb = 4242;
    st.main_pid = 99;
    return st;
}

struct in_memory {
    struct spec spec;
    char *data;
};

static struct in_memory a_spec(void)
{
    struct in_memory m;
    m.data = runs_spec(&m.spec.size);
    m.spec.head = (const void *)m.data;
    return m;
}

static void everything_is_carried_over(void **state)
{
    (void)state;
    struct run_state st = finished();
    struct in_memory m = a_spec();
    nacre_record record = NACRE_RECORD_INIT;
    st.log.bytes[0] = 100;
    st.log.bytes[1] = 50;
    st.log.newlines[0] = 7;
    st.log.newlines[1] = 2;
    st.log.unfinished[1] = 1;
    st.log.dropped_bytes[1] = 20;
    st.log.dropped_newlines[1] = 1;
    st.log.dropped_errno = ENOSPC;
    st.signalled = 4;
    st.force_killed = 2;
    st.survivors = 1;
    assert_int_equal(report_fill(&st, &m.spec, &record, NULL), 0);
    assert_true(nacre_id_equal(&record.id, &runs_id));
    assert_true(nacre_id_equal(&record.session, &runs_session));
    assert_int_equal(record.outcome, NACRE_EXITED);
    assert_int_equal(record.tree, NACRE_TREE_EMPTY);
    assert_int_equal(record.tier, NACRE_TIER_SUBREAPER);
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.started_ms, 5000);
    assert_int_equal(record.exited_ms, 7500);
    assert_int_equal(record.elapsed_ms, 2499);
    assert_int_equal(record.timeout_ms, 1500);
    assert_int_equal(record.cpu_ms, 1234);
    assert_int_equal(record.max_rss_kb, 4242);
    assert_int_equal(record.bytes[0], 100);
    assert_int_equal(record.lines[0], 7);
    assert_int_equal(record.lines[1], 3);
    assert_int_equal(record.dropped_bytes[1], 20);
    assert_int_equal(record.dropped_lines[1], 1);
    assert_int_equal(record.dropped_errno, ENOSPC);
    assert_int_equal(record.signalled, 4);
    assert_int_equal(record.force_killed, 2);
    assert_int_equal(record.survivors, 1);
    assert_int_equal(record.pid, 99);
    assert_int_equal(record.pipestatus_count, -1);
    assert_int_equal(record.leftover_count, 0);
    assert_string_equal(record.command, "echo hello | cat");
    assert_string_equal(record.cwd, "/tmp");
    assert_string_equal(record.name, "a name");
    assert_string_equal(record.description, "");
    nacre_record_done(&record);
    free(m.data);
}

static void lifetimes_and_reasons(void **state)
{
    (void)state;
    nacre_record record = NACRE_RECORD_INIT;
    struct run_state st = finished();
    st.kept = 1;
    st.reason = NACRE_REASON_DEADLINE;
    st.outcome = NACRE_TIMED_OUT;
    st.signal = SIGTERM;
    st.core_dumped = 1;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.lifetime, NACRE_LIFE_KEEP);
    assert_int_equal(record.reason, NACRE_REASON_DEADLINE);
    assert_int_equal(record.signal, SIGTERM);
    assert_int_equal(record.core_dumped, 1);
    st.kept = 0;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.lifetime, NACRE_LIFE_SESSION);
    nacre_record_done(&record);
}

static void arguments_are_joined(void **state)
{
    (void)state;
    struct run_state st = finished();
    struct in_memory m = a_spec();
    struct spec_head *head = (void *)m.data;
    nacre_record record = NACRE_RECORD_INIT;
    head->kind = SPEC_ARGV;
    head->argv = head->env;
    head->argc = 3;
    assert_int_equal(report_fill(&st, &m.spec, &record, NULL), 0);
    assert_string_equal(record.command, "HOME=/root EMPTY= PATH=/bin");
    nacre_record_done(&record);
    free(m.data);
}

static void without_a_spec(void **state)
{
    (void)state;
    struct run_state st = finished();
    nacre_record record = NACRE_RECORD_INIT;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_string_equal(record.command, "");
    assert_string_equal(record.cwd, "");
    assert_string_equal(record.name, "");
    assert_string_equal(record.description, "");
    nacre_record_done(&record);
    assert_null(record.command);
    nacre_record_done(&record);
    nacre_record_done(NULL);
    record.size--;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), NACRE_EINVAL);
}

/* A record may be filled again: what it owned is freed, what it knew is forgotten. */
static void filled_again(void **state)
{
    (void)state;
    struct run_state st = finished();
    struct in_memory m = a_spec();
    nacre_record record = NACRE_RECORD_INIT;
    st.pipestatus_count = 3;
    st.pipestatus[1] = 200;
    assert_int_equal(report_fill(&st, &m.spec, &record, NULL), 0);
    assert_int_equal(record.pipestatus_count, 3);
    assert_int_equal(record.pipestatus[1], 200);
    st = finished();
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.pipestatus_count, -1);
    assert_int_equal(record.timeout_ms, 0);
    assert_string_equal(record.command, "");
    /* More than a record can hold. */
    st.pipestatus_count = 1000;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.pipestatus_count, NACRE_PIPESTATUS_MAX);
    nacre_record_done(&record);
    free(m.data);
}

static void times(void **state)
{
    (void)state;
    nacre_record record = NACRE_RECORD_INIT;
    struct run_state st = finished();
    /* Still running: until now. */
    st.outcome = NACRE_RUNNING;
    st.exited_ns = st.elapsed_ns = 0;
    st.started_ns = clock_real_ns() - 3000 * NS_PER_MS;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_in_range(record.elapsed_ms, 3000, 4000);
    /* The calendar was set back. */
    st.started_ns = clock_real_ns() + 3600 * NS_PER_S;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.elapsed_ms, 0);
    /* Lost: nobody measured, but both ends are known. */
    st.outcome = NACRE_LOST;
    st.started_ns = 1000 * NS_PER_MS;
    st.exited_ns = 4500 * NS_PER_MS;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.elapsed_ms, 3500);
    /* So fast that it took no time. */
    st = finished();
    st.elapsed_ns = 0;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.elapsed_ms, 0);
    nacre_record_done(&record);
}

static void sleep_for_ever(void *data)
{
    (void)data;
    for (;;)
        pause();
}

/* This program plays the keeper: its children are what the command left. */
static void leftovers(void **state)
{
    (void)state;
    nacre_record record = NACRE_RECORD_INIT;
    struct run_state st = finished();
    struct host host;
    pid_t pids[NACRE_LEFTOVER_MAX + 4];
    assert_int_equal(host_identify(&host), 0);
    memcpy(st.boot, host.boot, sizeof host.boot);
    st.pid_ns = host.pid_ns;
    st.keeper_pid = getpid();
    st.tree = NACRE_TREE_ALIVE;
    for (int i = 0; i < 3; i++)
        pids[i] = unit_fork(sleep_for_ever, NULL);
    st.main_pid = pids[1];
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.leftover_count, 2);
    assert_int_equal(record.leftover[0].pid, pids[0]);
    assert_int_equal(record.leftover[1].pid, pids[2]);
    assert_non_null(strstr(record.leftover[0].command, "test_report"));
    assert_int_equal(record.leftover[0].ports[0], 0);
    for (size_t i = 3; i < ARRAY_SIZE(pids); i++)
        pids[i] = unit_fork(sleep_for_ever, NULL);
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.leftover_count, NACRE_LEFTOVER_MAX);
    /* These pids mean nothing in another namespace, on another boot, or after the proof. */
    st.pid_ns++;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.leftover_count, 0);
    st.pid_ns--;
    st.boot[0] ^= 1;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.leftover_count, 0);
    st.boot[0] ^= 1;
    st.tree = NACRE_TREE_EMPTY;
    assert_int_equal(report_fill(&st, NULL, &record, NULL), 0);
    assert_int_equal(record.leftover_count, 0);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    nacre_record_done(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_carried_over),
        cmocka_unit_test(lifetimes_and_reasons),
        cmocka_unit_test(arguments_are_joined),
        cmocka_unit_test(without_a_spec),
        cmocka_unit_test(filled_again),
        cmocka_unit_test(times),
        cmocka_unit_test(leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
