/* Limits: each is hit by one large process and by many small ones, and told by its name; what was
 * not hit is not told, and nothing of it is left. */
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* What a limited command came to. */
struct meal {
    nacre_session *session;
    nacre_id id;
    nacre_record record;
    char *summary;
};

/* -- Groups ----------------------------------------------------------------------------------- */

/* Whether a group of version 1 is there that belongs to a run. */
static bool has_group(const nacre_id *id)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || path == names + 1)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = found || access(format("/sys/fs/cgroup/%s%s/nacre-%s", names + 1,
                                       strcmp(path, "/") == 0 ? "" : path, nacre_id_format(id).s),
                                F_OK) == 0;
    }
    fclose(file);
    return found;
}

/* -- One command ------------------------------------------------------------------------------ */

static struct meal begin_meal(nacre_limits limits, const char *text)
{
    struct meal m = {.session = open_session(), .record = NACRE_RECORD_INIT};
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    command.limits = limits;
    m.id = start_command(m.session, &command);
    return m;
}

/* What is known of it now, in place of what was known before. */
static const nacre_record *look_at(struct meal *m)
{
    nacre_record_done(&m->record);
    m->record = record_of(m->session, &m->id);
    return &m->record;
}

static void finish_meal(struct meal *m)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    wait_outcome(m->session, &m->id, 40000);
    CHECK(AWAIT(tree_empty(m->session, &m->id), 15000));
    look_at(m);
    CHECK_OK(nacre_summary(m->session, &m->id, &options, &m->summary, NULL, ERR));
    CHECK(AWAIT(!has_group(&m->id), 5000)); /* what is published comes before it */
}

static void clear_meal(struct meal *m)
{
    nacre_record_done(&m->record);
    free(m->summary);
    close_session(m->session);
}

static struct meal eat(nacre_limits limits, const char *text)
{
    struct meal m = begin_meal(limits, text);
    finish_meal(&m);
    return m;
}

static void check_killed(const struct meal *m, nacre_limit limit, const char *words)
{
    char status[64];
    CHECK_STR(m->summary, words);
    CHECK_EQ_INT(NACRE_KILLED, m->record.outcome);
    CHECK_EQ_INT(NACRE_REASON_LIMIT, m->record.reason);
    CHECK_EQ_INT(limit, m->record.limits.ended);
    CHECK_TEXT(nacre_status(&m->record, status, sizeof status),
               format("killed(limit %s)", nacre_limit_name(limit)));
}

/* Nothing is said of a limit that did nothing. */
static void check_unharmed(const struct meal *m)
{
    CHECK_EQ_INT(NACRE_EXITED, m->record.outcome);
    CHECK_EQ_INT(0, m->record.exit_code);
    CHECK_EQ_INT(NACRE_LIMIT_NONE, m->record.limits.ended);
    CHECK(strstr(m->summary, "limit") == NULL);
}

static bool is_controlled(const struct meal *m, nacre_limit limit)
{
    nacre_holder held = m->record.limits.held[limit];
    return held == NACRE_HELD_CGROUP1 || held == NACRE_HELD_CGROUP2;
}

static const char *glutton(const char *what, int amount, int processes, const char *mark)
{
    return format("%s %s %d %d %s", program("glutton"), what, amount, processes, mark);
}

/* -- Memory ----------------------------------------------------------------------------------- */

TEST_LIMIT(memory_of_one, 60)
{
    const char *mark = marker();
    struct meal m =
        eat((nacre_limits){.memory = 64 * MIB}, format("exec %s", glutton("memory", 400, 0, mark)));
    check_killed(&m, NACRE_LIMIT_MEMORY, "\nkilled by the memory limit 64 MiB (peak ");
    CHECK_STR(m.summary, "; largest: glutton ");
    CHECK_RANGE(60 * MIB, m.record.limits.peak, 400 * MIB);
    CHECK_EQ_INT(0, count_marked(mark));
    clear_meal(&m);
}

/* The kernel ends as many as it has to, and the others go on; it ends all of a leaf of version 2,
 * and a keeper ends all of them. */
TEST_LIMIT(memory_of_many, 60)
{
    need_tree();
    const char *mark = marker();
    struct meal m = begin_meal((nacre_limits){.memory = 96 * MIB}, glutton("memory", 24, 8, mark));
    CHECK(AWAIT(look_at(&m)->outcome != NACRE_RUNNING || m.record.limits.killed > 0, 20000));
    bool others_go_on = m.record.limits.held[NACRE_LIMIT_MEMORY] == NACRE_HELD_CGROUP1;
    if (m.record.outcome == NACRE_RUNNING && others_go_on)
        kill_shell(m.session, &m.id, 0);
    finish_meal(&m);
    if (others_go_on) {
        CHECK_STR(m.summary, "killed by the memory limit; the command went on\n");
        CHECK_EQ_INT(NACRE_REASON_KILL, m.record.reason);
    } else {
        check_killed(&m, NACRE_LIMIT_MEMORY, "killed by the memory limit 96 MiB (peak ");
    }
    CHECK_EQ_INT(0, count_marked(mark));
    clear_meal(&m);
}

/* Of what it left running, too: how it ended stays as it was. */
TEST_LIMIT(memory_of_what_is_left, 60)
{
    need_tree();
    const char *mark = marker();
    struct meal m = begin_meal(
        (nacre_limits){.memory = 64 * MIB},
        format("%s </dev/null >/dev/null 2>&1 & exit 3", glutton("memory", 300, 0, mark)));
    finish_meal(&m);
    CHECK_EQ_INT(NACRE_EXITED, m.record.outcome);
    CHECK_EQ_INT(3, m.record.exit_code);
    CHECK_STR(m.summary, is_controlled(&m, NACRE_LIMIT_MEMORY)
                             ? " killed by the memory limit; the command went on"
                             : "what it left running was killed by the memory limit 64 MiB (peak ");
    CHECK_EQ_INT(0, count_marked(mark));
    clear_meal(&m);
}

/* -- Processes -------------------------------------------------------------------------------- */

TEST_LIMIT(processes, 60)
{
    need_tree();
    const char *mark = marker();
    struct meal m = begin_meal((nacre_limits){.processes = 20}, glutton("nothing", 0, 40, mark));
    CHECK(AWAIT(look_at(&m)->outcome != NACRE_RUNNING || m.record.limits.refused > 0, 20000));
    if (m.record.outcome == NACRE_RUNNING)
        kill_shell(m.session, &m.id, 0);
    finish_meal(&m);
    if (is_controlled(&m, NACRE_LIMIT_PROCESSES)) {
        CHECK_STR(m.summary, "refused by the process limit 20\n");
        CHECK_RANGE(1, m.record.limits.refused, 40);
    } else {
        check_killed(&m, NACRE_LIMIT_PROCESSES, "killed by the process limit 20 (peak ");
        CHECK_RANGE(21, m.record.limits.peak, 42);
    }
    CHECK_EQ_INT(0, count_marked(mark));
    clear_meal(&m);
}

/* -- The processor ---------------------------------------------------------------------------- */

TEST_LIMIT(cpu_time_of_one, 60)
{
    struct meal m = eat((nacre_limits){.cpu_time_ms = 1000},
                        format("exec %s", glutton("cpu", 40, 0, marker())));
    check_killed(&m, NACRE_LIMIT_CPU_TIME, "\nkilled by the cpu time limit 1 s\n");
    clear_meal(&m);
}

/* None of them alone would use that much. */
TEST_LIMIT(cpu_time_of_many, 60)
{
    need_tree();
    struct meal m = eat((nacre_limits){.cpu_time_ms = 1500},
                        "while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done");
    check_killed(&m, NACRE_LIMIT_CPU_TIME, "\nkilled by the cpu time limit 1.5 s\n");
    clear_meal(&m);
}

TEST_LIMIT(share_of_processors, 60)
{
    struct meal m =
        eat((nacre_limits){.cpu = 20}, "timeout 2 sh -c 'while :; do :; done'; nice; exit 0");
    if (is_controlled(&m, NACRE_LIMIT_CPU)) {
        CHECK_STR(m.summary, "\nthrottled for ");
        CHECK_STR(m.summary, " by the cpu limit 0.2\n");
        CHECK(m.record.cpu_ms < m.record.elapsed_ms * 6 / 10);
    } else {
        CHECK_EQ_INT(NACRE_HELD_NICE, m.record.limits.held[NACRE_LIMIT_CPU]);
        CHECK_STR(m.summary, "\nthe cpu limit 0.2 cannot be held here: it runs at a lower priority "
                             "instead\n");
        CHECK(output_has(m.session, &m.id, NACRE_OUT,
                         format("%d\n", nice(0) < 9 ? nice(0) + 10 : 19)));
    }
    clear_meal(&m);
}

/* -- Files and the disk ----------------------------------------------------------------------- */

TEST(open_files)
{
    struct meal m = eat((nacre_limits){.files = 32}, glutton("files", 40, 3, marker()));
    CHECK_EQ_INT(NACRE_EXITED, m.record.outcome);
    CHECK_STR(m.summary, "\nopen files limit 32 in force\n");
    clear_meal(&m);
}

TEST(file_size_of_one)
{
    struct meal m =
        eat((nacre_limits){.file_size = MIB}, format("exec %s", glutton("write", 4, 0, marker())));
    check_killed(&m, NACRE_LIMIT_FILE_SIZE, "\nkilled by the file size limit 1 MiB\n");
    CHECK_EQ_INT(SIGXFSZ, m.record.signal);
    clear_meal(&m);
}

TEST(file_size_of_many)
{
    struct meal m = eat((nacre_limits){.file_size = MIB},
                        format("trap '' XFSZ; %s", glutton("write", 4, 3, marker())));
    CHECK_EQ_INT(NACRE_EXITED, m.record.outcome);
    CHECK_STR(m.summary, "\nfile size limit 1 MiB in force\n");
    clear_meal(&m);
}

/* Its output is not a file that it writes. */
TEST(output_is_no_file_of_its_own)
{
    struct meal m = eat((nacre_limits){.file_size = 4096}, "head -c 300000 /dev/zero");
    CHECK_EQ_INT(300000, m.record.bytes[NACRE_STDOUT]);
    CHECK_EQ_INT(0, m.record.dropped_bytes[NACRE_STDOUT]);
    CHECK_EQ_INT(NACRE_EXITED, m.record.outcome);
    clear_meal(&m);
}

TEST_LIMIT(disk_of_one, 60)
{
    struct meal m = eat((nacre_limits){.disk = 32 * MIB},
                        format("exec %s", glutton("write", 200, 0, marker())));
    check_killed(&m, NACRE_LIMIT_DISK, "\nstopped by the disk limit 32 MiB: ");
    CHECK_STR(m.summary, " written\n");
    clear_meal(&m);
}

TEST_LIMIT(disk_of_many, 60)
{
    need_tree();
    struct meal m = eat((nacre_limits){.disk = 32 * MIB}, glutton("write", 12, 6, marker()));
    check_killed(&m, NACRE_LIMIT_DISK, "\nstopped by the disk limit 32 MiB: ");
    clear_meal(&m);
}

/* -- What is not hit -------------------------------------------------------------------------- */

TEST_LIMIT(what_is_not_hit_is_not_told, 60)
{
    const nacre_limits each[] = {{.memory = 512 * MIB},   {.processes = 100},
                                 {.cpu_time_ms = 60000},  {.files = 512},
                                 {.file_size = 64 * MIB}, {.disk = 512 * MIB}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        struct meal m = eat(each[i], "for i in 1 2 3; do (sleep 0.1) & done; wait; "
                                     "head -c 2000000 /dev/zero >some; echo File too small");
        check_unharmed(&m);
        clear_meal(&m);
    }
}

/* Somebody else's limit, or none, is not ours to name. */
TEST(what_others_do_is_not_told)
{
    struct meal m = eat((nacre_limits){.memory = 512 * MIB, .cpu_time_ms = 3600000},
                        "echo Too many open files >&2; echo File too large >&2; kill -KILL $$");
    CHECK_EQ_INT(NACRE_SIGNALED, m.record.outcome);
    CHECK_EQ_INT(NACRE_REASON_NONE, m.record.reason);
    CHECK(strstr(m.summary, "limit") == NULL);
    clear_meal(&m);
    m = eat((nacre_limits){.file_size = 512 * MIB}, "ulimit -f 1; exec head -c 9999 /dev/zero >x");
    CHECK_EQ_INT(SIGXFSZ, m.record.signal);
    clear_meal(&m);
}

/* -- What may be asked for -------------------------------------------------------------------- */

TEST(limits_are_only_narrowed)
{
    static const char *const settings[] = {"limit_memory=128MiB", "limit_files=64", NULL};
    nacre_session *s = open_tool(settings);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;
    command.text = "ulimit -n";
    command.limits.memory = 256 * MIB;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "limits.memory can only be narrowed: 256MiB is more than the "
                                 "128MiB of the setting limit_memory");
    command.limits.memory = 64 * MIB;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "64\n");
    CHECK_EQ_INT(64 * MIB, run.record.limits.in_force.memory);
    run_done(&run);
    close_session(s);
}

TEST(what_cannot_be_held_is_refused_if_it_has_to_be)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;
    command.text = "exit 5";
    command.limits = (nacre_limits){.cpu = 150, .strict = 1};
    int r = nacre_start(s, &command, &id, NULL, ERR);
    if (r < 0) {
        CHECK_EQ_INT(NACRE_ESTART, r);
        CHECK_TEXT(harness_error.stage, "limits");
        CHECK_STR(harness_error.msg, "the limit cpu cannot be held here");
        CHECK_EQ_INT(0, counts_of(s).running);
    } else {
        wait_outcome(s, &id, 10000);
        nacre_record record = record_of(s, &id);
        CHECK(record.limits.held[NACRE_LIMIT_CPU] != NACRE_HELD_NICE);
        nacre_record_done(&record);
    }
    close_session(s);
}

/* -- Nothing is left -------------------------------------------------------------------------- */

TEST(a_start_that_fails_leaves_no_group)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *const argv[] = {"/nowhere/nothing", NULL};
    nacre_id id = {{0}};
    command.argv = argv;
    command.limits = (nacre_limits){.memory = 64 * MIB, .processes = 9, .cpu = 100};
    CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &id, NULL, ERR));
    close_session(s);
    /* Its id is nobody's to know: a group with nobody in it stays for a moment at most. */
    CHECK(AWAIT(system("for g in $(find /sys/fs/cgroup/memory /sys/fs/cgroup/pids -type d "
                       "-regex '.*/nacre-[0-9a-f]*' 2>/dev/null); do "
                       "grep -q . $g/cgroup.procs || exit 1; done") == 0,
                10000));
}

TEST_LIMIT(a_lost_keeper_leaves_no_group, 60)
{
    const char *mark = marker();
    struct meal m = begin_meal((nacre_limits){.memory = 512 * MIB, .processes = 64, .cpu = 150},
                               format("sleep 300.%s & sleep 300.%s", mark, mark));
    await_marked(mark, 2);
    bool had = has_group(&m.id);
    CHECK(had == (look_at(&m)->limits.held[NACRE_LIMIT_MEMORY] == NACRE_HELD_CGROUP1));
    kill(keeper_of(m.session, &m.id).pid, SIGKILL);
    wait_outcome(m.session, &m.id, 15000);
    CHECK_EQ_INT(NACRE_LOST, look_at(&m)->outcome);
    CHECK(AWAIT(!has_group(&m.id), 5000));
    CHECK_EQ_INT(0, count_marked(mark));
    clear_meal(&m);
}
