/* Limits as text: read, narrowed, and said in the very words; and what controllers count, from
 * files like theirs, since not every machine gives us some. */
#include "unit.h"

#include <nacre/record.h>

#include "config/limits.h"
#include "config/settings.h"
#include "sys/controller.h"
#include "sys/fd.h"
#include "view/limit_words.h"

#define GIB ((uint64_t)1 << 30)

/* -- Reading and narrowing --------------------------------------------------------------------- */

static void names_and_values(void **state)
{
    (void)state;
    nacre_limits limits = {0};
    nacre_error err;
    assert_int_equal(limits_parse("", "memory", "2G", &limits, &err), 0);
    assert_int_equal(limits_parse("", "cpu", "1.5", &limits, &err), 0);
    assert_int_equal(limits_parse("", "cpu_time", "10m", &limits, &err), 0);
    assert_int_equal(limits.memory, 2 * GIB);
    assert_int_equal(limits.cpu, 150);
    assert_int_equal(limits.cpu_time_ms, 600000);
    assert_int_equal(limits_parse("x.", "disk", "0", &limits, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "x.disk must be above 0"));
    assert_int_equal(limits_parse("x.", "nothing", "1", &limits, &err), NACRE_EINVAL);
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++)
        assert_int_equal(limit_find(nacre_limit_name(i)), i);
    assert_string_equal(nacre_limit_name(NACRE_LIMIT_COUNT), "none");
}

static void narrowing(void **state)
{
    (void)state;
    nacre_settings *settings cleanup_settings = settings_new();
    nacre_limits limits = {.files = 10};
    nacre_error err;
    nacre_settings_set(settings, "limit_memory", "1GiB", NULL, NULL);
    nacre_settings_set(settings, "limits_strict", "on", NULL, NULL);
    assert_int_equal(limits_narrow(settings, &limits, &limits, &err), 0);
    assert_int_equal(limits.memory, GIB);
    assert_int_equal(limits.files, 10);
    assert_int_equal(limits.strict, 1);
    limits.memory = GIB + 1;
    assert_int_equal(limits_narrow(settings, &limits, &limits, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "limits.memory can only be narrowed"));
    limits = (nacre_limits){.cpu = UINT64_MAX};
    assert_int_equal(limits_narrow(settings, &limits, &limits, &err), NACRE_EINVAL);
    assert_non_null(strstr(err.msg, "limits.cpu must be within 0 to 4096"));
}

/* -- The words --------------------------------------------------------------------------------- */

struct said {
    nacre_reason reason;
    nacre_limits_report report;
    const char *words;
};

static const nacre_limits all = {2 * GIB, 256, 150, 600000, 1024, GIB, 10 * GIB, 0};

#define HELD                                                                           \
    {                                                                                  \
        NACRE_HELD_NOT, NACRE_HELD_CGROUP1, NACRE_HELD_CGROUP1, NACRE_HELD_CGROUP1,    \
            NACRE_HELD_KEEPER, NACRE_HELD_RLIMIT, NACRE_HELD_RLIMIT, NACRE_HELD_KEEPER \
    }

static const struct said sayings[] = {
    {NACRE_REASON_LIMIT,
     {.held = HELD,
      .ended = NACRE_LIMIT_MEMORY,
      .peak = 2 * GIB - 1,
      .largest_bytes = 1825361100,
      .largest = "node",
      .killed = 1},
     "killed by the memory limit 2 GiB (peak 2.0 GiB; largest: node 1.7 GiB)\n"},
    {NACRE_REASON_NONE,
     {.held = HELD, .killed = 1},
     "1 process was killed by the memory limit; the command went on\n"},
    {NACRE_REASON_NONE,
     {.held = HELD, .refused = 12},
     "12 forks refused by the process limit 256\n"},
    {NACRE_REASON_NONE,
     {.held = HELD, .throttled_ms = 41000},
     "throttled for 41 s of 60 s by the cpu limit 1.5\n"},
    {NACRE_REASON_LIMIT,
     {.held = HELD, .ended = NACRE_LIMIT_CPU_TIME},
     "killed by the cpu time limit 10 min\n"},
    {NACRE_REASON_NONE, {.held = HELD, .files_refused = 1}, "open files limit 1024 in force\n"},
    {NACRE_REASON_LIMIT,
     {.held = HELD, .ended = NACRE_LIMIT_DISK, .peak = 10 * GIB},
     "stopped by the disk limit 10 GiB: 10.0 GiB written\n"},
    {NACRE_REASON_LIMIT,
     {.held = HELD, .ended = NACRE_LIMIT_PROCESSES, .peak = 300},
     "killed by the process limit 256 (peak 300)\n"},
    {NACRE_REASON_NONE,
     {.held = HELD, .ended = NACRE_LIMIT_MEMORY, .peak = 3 * GIB},
     "what it left running was killed by the memory limit 2 GiB (peak 3.0 GiB)\n"},
    {NACRE_REASON_NONE, {.held = HELD}, ""},
};

static void the_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sayings); i++) {
        nacre_record record = NACRE_RECORD_INIT;
        struct buf text cleanup_buf = BUF_UP_TO(4096);
        record.elapsed_ms = 60000;
        record.reason = sayings[i].reason;
        record.limits = sayings[i].report;
        record.limits.in_force = all;
        assert_int_equal(limit_words(&text, &record, LIMIT_WORDS_MAX), 0);
        assert_string_equal(text.data ? text.data : "", sayings[i].words);
    }
}

/* A name is a stranger's, and a room may be small. */
static void strange_names_and_small_rooms(void **state)
{
    (void)state;
    nacre_record record = NACRE_RECORD_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(4096);
    record.reason = NACRE_REASON_LIMIT;
    record.limits = sayings[0].report;
    record.limits.in_force = all;
    record.limits.refused = 3;
    memcpy(record.limits.largest, "a\nb\033[31m", 9);
    assert_int_equal(limit_words(&text, &record, LIMIT_WORDS_MAX), 0);
    assert_null(memchr(text.data, '\033', text.len));
    assert_non_null(strstr(text.data, "largest: a b"));
    text.len = 0;
    assert_int_equal(limit_words(&text, &record, 44), 0);
    assert_string_equal(text.data, "3 forks refused by the process limit 256\n");
    text.len = 0;
    assert_int_equal(limit_words(&text, &record, 0), 0);
    assert_int_equal(text.len, 0);
}

/* -- Controllers ------------------------------------------------------------------------------- */

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static const char *get_file(int dir, const char *name)
{
    static char text[128];
    assert_true(fd_slurp_at(dir, name, text, sizeof text) >= 0);
    return text;
}

static void version_two(void **state)
{
    (void)state;
    char dir[] = "/tmp/nacre-unit-group-XXXXXX";
    assert_non_null(mkdtemp(dir));
    static const char *const files[] = {"memory.max", "memory.swap.max", "memory.oom.group",
                                        "pids.max", "cpu.max"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put_file(dir, files[i], "");
    put_file(dir, "memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n");
    put_file(dir, "memory.current", "1000\n");
    put_file(dir, "memory.peak", "2000\n");
    put_file(dir, "pids.events", "max 7\n");
    put_file(dir, "cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 41000\n");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(controller_limit(fd, CONTROLLER_MEMORY, false, 4096), 0);
    assert_int_equal(controller_limit(fd, CONTROLLER_PIDS, false, 12), 0);
    assert_int_equal(controller_limit(fd, CONTROLLER_CPU, false, 150), 0);
    assert_string_equal(get_file(fd, "memory.max"), "4096");
    assert_string_equal(get_file(fd, "memory.swap.max"), "0");
    assert_string_equal(get_file(fd, "memory.oom.group"), "1");
    assert_string_equal(get_file(fd, "pids.max"), "12");
    assert_string_equal(get_file(fd, "cpu.max"), "150000 100000");
    struct controller_counts counts = {0};
    for (int i = 0; i < CONTROLLER_COUNT; i++)
        controller_read(fd, (enum controller)i, false, &counts);
    assert_int_equal(counts.used, 1000);
    assert_int_equal(counts.peak, 2000);
    assert_int_equal(counts.killed, 3);
    assert_int_equal(counts.refused, 7);
    assert_int_equal(counts.waited_ms, 41);
    /* Killed for want of memory of the machine: its own limit was not met. */
    put_file(dir, "memory.events", "oom 0\noom_kill 3\n");
    counts = (struct controller_counts){0};
    controller_read(fd, CONTROLLER_MEMORY, false, &counts);
    assert_int_equal(counts.killed, 0);
    assert_true(controller_limit(fd, CONTROLLER_MEMORY, true, 4096) < 0);
    close(fd);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", dir);
    assert_int_equal(system(remove), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values), cmocka_unit_test(narrowing),
        cmocka_unit_test(the_words),        cmocka_unit_test(strange_names_and_small_rooms),
        cmocka_unit_test(version_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
