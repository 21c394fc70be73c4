/*
 * Front ends and keepers that are killed at any moment of a start. Afterwards the list tells the
 * truth, nothing is alive that is not listed, and what ended is told once.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { IDS_MAX = 4096, ROUNDS = 200, LONGEST_US = 5000, CALIBRATIONS = 3 };

/* What the host has said before it was killed, and what later ones were told. */
struct host {
    atomic_int count;
    nacre_id ids[IDS_MAX];
    int told_count;
    nacre_id told[IDS_MAX];
};

/* -- Chance, repeatable ---------------------------------------------------------------------- */

static uint64_t seed;

/* $NACRE_TEST_SEED repeats a run that failed. */
static void begin_chance(void)
{
    const char *given = getenv("NACRE_TEST_SEED");

    if (given)
        seed = strtoull(given, NULL, 10);
    else
        CHECK_EQ_INT(sizeof seed, getrandom(&seed, sizeof seed, 0));
    fprintf(stderr, "NACRE_TEST_SEED=%llu\n", (unsigned long long)seed);
}

static uint64_t chance(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static void pause_us(uint64_t us)
{
    struct timespec ts = {0, (long)us * 1000};

    nanosleep(&ts, NULL);
}

/* -- Hosts ----------------------------------------------------------------------------------- */

static void start_in_a_loop(void *arg)
{
    static const char *const argv[][3] = {{"/bin/true", NULL}, {"/bin/sleep", "300", NULL}};
    struct host *host = arg;
    nacre_session *s = open_tool((const char *[]){"shells=1000", "grace=100ms", NULL});
    nacre_command command = NACRE_COMMAND_INIT;

    command.background = 1;
    for (int i = 0; atomic_load(&host->count) < IDS_MAX; i++) {
        command.argv = argv[i % 2];
        host->ids[atomic_load(&host->count)] = start_command(s, &command);
        atomic_fetch_add(&host->count, 1);
    }
}

/* -- The truth ------------------------------------------------------------------------------- */

struct seen {
    nacre_session *session;
    nacre_id ids[IDS_MAX];
    int count;
    int alive;
};

static int note_listed(const nacre_listed *listed, void *arg)
{
    const nacre_record *record = listed->record;
    struct seen *seen = arg;

    CHECK(seen->count < IDS_MAX);
    seen->ids[seen->count++] = record->id;
    if (access(run_path(&record->id, "state"), F_OK) < 0)
        FAIL("run %s is listed and has no directory", nacre_id_format(&record->id).s);
    seen->alive += record->outcome == NACRE_RUNNING;
    /* What ended since then is found ended now. */
    if (record->outcome == NACRE_RUNNING && process_state(record->pid) == 0 &&
        !AWAIT(strcmp(status_of(seen->session, &record->id), "running") != 0, 3000))
        FAIL("run %s is running without a process", nacre_id_format(&record->id).s);
    return 0;
}

static bool is_among(const nacre_id *ids, int count, const nacre_id *id)
{
    for (int i = 0; i < count; i++) {
        if (nacre_id_equal(&ids[i], id))
            return true;
    }
    return false;
}

/* Polled until everything is over: keepers end what their owner left. */
static bool all_over(nacre_session *s, struct seen *seen)
{
    *seen = (struct seen){.session = s};
    CHECK_OK(list_home(s, false, note_listed, seen));
    return seen->alive == 0;
}

/* All that is listed and was not told before, and each once. */
static bool all_told(nacre_session *s, struct host *host, const struct seen *seen)
{
    nacre_offer *offer;

    CHECK_OK(nacre_offer_take(s, 0, &offer, ERR));
    for (size_t i = 0; i < nacre_offer_count(offer); i++) {
        nacre_id id = nacre_offer_id(offer, i);
        if (is_among(host->told, host->told_count, &id))
            FAIL("run %s was told twice", nacre_id_format(&id).s);
        if (!is_among(seen->ids, seen->count, &id))
            FAIL("run %s was told and is not listed", nacre_id_format(&id).s);
        host->told[host->told_count++] = id;
    }
    CHECK_OK(nacre_offer_acknowledge(offer, ERR));
    return host->told_count == seen->count;
}

/* A look while keepers are still at work. */
static void glance(void *arg)
{
    struct seen *seen = calloc(1, sizeof *seen);
    nacre_session *s = open_session();

    (void)arg;
    CHECK(seen);
    seen->session = s;
    CHECK_OK(list_home(s, false, note_listed, seen));
    close_session(s);
    free(seen);
}

/* A later front end. */
static void check_truth(void *arg)
{
    struct host *host = arg;
    struct seen *seen = calloc(1, sizeof *seen);
    nacre_session *s = open_tool(NULL);

    CHECK(seen);
    CHECK(AWAIT(all_over(s, seen), 15000));
    for (int i = 0; i < atomic_load(&host->count); i++) {
        if (!is_among(seen->ids, seen->count, &host->ids[i]))
            FAIL("run %s was started and is not listed", nacre_id_format(&host->ids[i]).s);
    }
    if (!AWAIT(all_told(s, host, seen), 5000))
        FAIL("%d of %d ends were told", host->told_count, seen->count);
    close_session(s);
    free(seen);
}

/* Each in a process of its own. What was on its way to its keeper becomes a run even now, so the
 * count is right when the last keeper has left. */
static void look_afterwards(struct host *host)
{
    host_join(host_fork(glance, NULL));
    CHECK(AWAIT(count_keepers() == 0, 15000));
    host_join(host_fork(check_truth, host));
}

/* -- Cases ----------------------------------------------------------------------------------- */

/* How long a front end takes from its birth to its first start, where the home is there already:
 * the shortest of a few. That many starts are told afterwards for sure. */
static uint64_t first_start_us(struct host *host)
{
    int64_t best = INT64_MAX;

    for (int round = 0; round < CALIBRATIONS; round++) {
        int before = atomic_load(&host->count);
        int64_t began = now_ms();
        pid_t pid = host_fork(start_in_a_loop, host);
        CHECK(AWAIT(atomic_load(&host->count) > before, 10000));
        int64_t took = now_ms() - began;
        host_kill(pid);
        best = took < best ? took : best;
    }
    return (uint64_t)best * 1000;
}

/* The front end is killed anywhere between its first instruction and the middle of a start. */
TEST_LIMIT(the_front_end_is_killed_at_any_moment, 180)
{
    struct host *host = shared_memory(sizeof *host);
    uint64_t first = first_start_us(host);

    begin_chance();
    for (int round = 0; round < rounds(ROUNDS); round++) {
        uint64_t us = chance(first + LONGEST_US);
        pid_t pid = host_fork(start_in_a_loop, host);
        pause_us(us);
        host_kill(pid);
    }
    look_afterwards(host);
    CHECK(host->told_count >= CALIBRATIONS);
}

/* The same where starts are under way for sure. */
TEST_LIMIT(the_front_end_is_killed_between_starts, 120)
{
    struct host *host = shared_memory(sizeof *host);

    begin_chance();
    for (int round = 0; round < ROUNDS / 20; round++) {
        int before = atomic_load(&host->count);
        pid_t pid = host_fork(start_in_a_loop, host);
        CHECK(AWAIT(atomic_load(&host->count) > before + 2, 10000));
        pause_us(chance(LONGEST_US));
        host_kill(pid);
        look_afterwards(host);
    }
}

static size_t find_keepers(pid_t *ret_pids, size_t max)
{
    char path[64], name[32];
    size_t count = 0;
    DIR *dir = opendir("/proc");

    CHECK(dir);
    for (struct dirent *e; count < max && (e = readdir(dir));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid <= 0 || process_parent(pid) != getppid() || pid == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof name, f) && strncmp(name, "nacre-keeper", 12) == 0)
            ret_pids[count++] = pid;
        if (f)
            fclose(f);
    }
    closedir(dir);
    return count;
}

/* A start may fail then, but says so; what it reports as started is listed. */
static void start_whatever_happens(void *arg)
{
    static const char *const argv[][3] = {{"/bin/true", NULL}, {"/bin/sleep", "300", NULL}};
    struct host *host = arg;
    nacre_session *s = open_tool((const char *[]){"shells=1000", "grace=100ms", NULL});
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.background = 1;
    for (int i = 0; i < 60; i++) {
        command.argv = argv[i % 2];
        if (nacre_start(s, &command, &id, NULL, ERR) == 0) {
            host->ids[atomic_load(&host->count)] = id;
            atomic_fetch_add(&host->count, 1);
        } else {
            CHECK(ERR->code == NACRE_EBACKEND && ERR->msg[0]);
        }
    }
    close_session(s);
}

TEST_LIMIT(keepers_are_killed_at_any_moment, 120)
{
    struct host *host = shared_memory(sizeof *host);

    begin_chance();
    for (int round = 0; round < 3; round++) {
        pid_t pid = host_fork(start_whatever_happens, host), keepers[64];
        while (process_alive(process_of(pid))) {
            pause_us(chance(LONGEST_US));
            size_t count = find_keepers(keepers, 64);
            if (count > 0)
                kill(keepers[chance(count)], SIGKILL);
        }
        host_join(pid);
        look_afterwards(host);
    }
}

/* Both at once: whatever the keeper had forked is found and ended by who looks next. */
TEST_LIMIT(both_are_killed_at_once, 120)
{
    struct host *host = shared_memory(sizeof *host);

    begin_chance();
    for (int round = 0; round < 10; round++) {
        int before = atomic_load(&host->count);
        pid_t pid = host_fork(start_in_a_loop, host), keepers[64];
        CHECK(AWAIT(atomic_load(&host->count) > before, 10000));
        pause_us(chance(LONGEST_US));
        size_t count = find_keepers(keepers, 64);
        kill(pid, SIGKILL);
        for (size_t i = 0; i < count; i++)
            kill(keepers[i], SIGKILL);
        host_kill(pid);
        look_afterwards(host);
    }
}
