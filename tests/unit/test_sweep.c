/* What is left of a run without a keeper: killed only where its pids mean something. */
#include "runs.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/defs.h"
#include "home/sweep.h"
#include "run/log.h"
#include "sys/cgroup.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/proc.h"

struct scene {
    int runs;
    int dir;
    struct run run;
    struct run_state st;
};

/* A run of this boot and namespace whose keeper is gone. */
static struct run_state orphaned(void)
{
    struct run_state st;
    struct host host;
    struct proc_ref self;
    assert_int_equal(host_identify(&host), 0);
    assert_int_equal(proc_ref(getpid(), &self), 0);
    state_init(&st, &runs_id, &runs_session);
    st.phase = PHASE_RUN;
    memcpy(st.boot, host.boot, sizeof host.boot);
    st.pid_ns = host.pid_ns;
    st.keeper_pid = 999999;
    st.keeper_start = self.start;
    st.started_ns = 1;
    return st;
}

static struct scene stage(struct run_state st)
{
    struct scene scene = {.runs = unit_dir(NULL), .st = st};
    scene.dir = runs_make(scene.runs, &runs_id, &scene.st);
    close(unit_file(scene.dir, "ctl"));
    assert_int_equal(run_open(scene.runs, &runs_id, &scene.run, NULL), 0);
    return scene;
}

static void leave(struct scene *scene)
{
    run_close(&scene->run);
    close(scene->dir);
    close(scene->runs);
}

static struct run_state stored(const struct scene *scene)
{
    struct run_state st;
    assert_int_equal(state_read(scene->run.state_fd, &st), 0);
    return st;
}

/* A process with the run's mark in its environment. */
static pid_t marked_process(const char *entry)
{
    int fds[2];
    char c;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *argv[] = {(char *)"sleep", (char *)"60", NULL};
        char *env[] = {(char *)"FIRST=1", (char *)entry, NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    /* The pipe ends with the exec. */
    close(fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 0);
    close(fds[0]);
    return pid;
}

static bool ended(pid_t pid)
{
    int status = 0;
    for (int i = 0; i < 500; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        unit_pause(1);
    }
    return false;
}

/* All steps of it. */
static int force(const struct scene *scene, struct run_state *ret_state, nacre_error *err)
{
    struct sweeping sweeping = SWEEPING_NONE;
    int r = sweep_by_force(&scene->run, &sweeping, NACRE_REASON_NONE, ret_state, err);
    while (r == 0 && (r = sweep_step(&scene->run, &sweeping, ret_state, err)) == 0)
        unit_pause(SWEEP_ROUND_MS);
    sweep_end(&sweeping);
    return r > 0 ? 0 : r;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool lives(pid_t pid)
{
    unit_pause(20);
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static char *mark(void)
{
    static char entry[64];
    snprintf(entry, sizeof entry, "NACRE_ID=%s", nacre_id_format(&runs_id).s);
    return entry;
}

/* The name of the run's cgroup: under no other is anything killed. */
static char *leaf(void)
{
    static char name[64];
    snprintf(name, sizeof name, "nacre-%s", nacre_id_format(&runs_id).s);
    return name;
}

/* A whole sweep, in its steps. */
static int sweep_state(const struct run *run, struct run_state *ret_state, nacre_error *err)
{
    struct sweeping s = SWEEPING_NONE;
    int r = sweep_begin(run, &s, ret_state, err);
    while (r == 0 && (r = sweep_step(run, &s, ret_state, err)) == 0)
        poll(NULL, 0, SWEEP_ROUND_MS);
    sweep_end(&s);
    return MIN(r, 0);
}

static void a_lost_run_is_swept(void **state)
{
    (void)state;
    pid_t ours = marked_process(mark()), theirs = marked_process("NACRE_ID=other");
    struct scene scene = stage(orphaned());
    struct run_state got;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(sweep_state(&scene.run, &got, &err), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_int_equal(got.tree, NACRE_TREE_EMPTY);
    assert_int_equal(got.settled, 1);
    assert_true(got.exited_ns > 0);
    assert_true(ended(ours));
    assert_true(lives(theirs));
    end(theirs);
    struct run_state after = stored(&scene);
    assert_int_equal(after.outcome, NACRE_LOST);
    assert_int_equal(after.tree, NACRE_TREE_EMPTY);
    assert_int_equal(faccessat(scene.dir, "ctl", F_OK, 0), -1);
    /* The lock was given back, and a second look changes nothing. */
    assert_int_equal(lock_held(scene.run.state_fd), 0);
    assert_int_equal(sweep_state(&scene.run, &got, &err), 0);
    assert_int_equal(stored(&scene).generation, after.generation);
    leave(&scene);
}

/* An outcome that was known before stays; only the tree is gone. */
static void a_known_outcome_stays(void **state)
{
    (void)state;
    struct run_state st = orphaned(), got;
    st.outcome = NACRE_EXITED;
    st.exit_code = 7;
    st.exited_ns = 5;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_EXITED);
    assert_int_equal(got.exit_code, 7);
    assert_int_equal(got.exited_ns, 5);
    assert_int_equal(got.tree, NACRE_TREE_EMPTY);
    leave(&scene);
}

static void put(int dir, const char *name, const char *text)
{
    int fd = unit_file(dir, name);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* A process that cannot be killed now is named, and the run is not called empty; when it is gone
 * the next look says so. What stands for a cgroup here is a folder that says it is populated. */
static void who_resists_is_named(void **state)
{
    (void)state;
    struct run_state st = orphaned(), got;
    char path[PATH_MAX];
    int above = unit_dir(path);
    assert_int_equal(mkdirat(above, leaf(), 0700), 0);
    snprintf(st.cgroup, sizeof st.cgroup, "%.400s/%s", path, leaf());
    int fake = open(st.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(above);
    put(fake, "cgroup.events", "populated 1\nfrozen 0\n");
    put(fake, "cgroup.procs", "4000001\n4000002\n");
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_int_equal(got.tree, NACRE_TREE_ALIVE);
    assert_int_equal(got.survivors, 2);
    assert_int_equal(got.survivor_pids[0], 4000001);
    assert_int_equal(got.survivor_pids[1], 4000002);
    /* Waited for once: the next looks come back at once. */
    int64_t begin = clock_mono_ns();
    for (int i = 0; i < 3; i++)
        assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_true(clock_mono_ns() - begin < 4 * NS_PER_S);
    assert_int_equal(got.tree, NACRE_TREE_ALIVE);
    put(fake, "cgroup.events", "populated 0\nfrozen 0\n");
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_int_equal(got.tree, NACRE_TREE_EMPTY);
    assert_int_equal(got.survivors, 0);
    leave(&scene);
    close(fake);
}

/* Takes the memory away in which the kernel shows arguments and environment, at the top of the
 * stack that the process began on. */
static void hide_arguments(void)
{
    unsigned long begin = 0, end = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[256];
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[stack]"))
            sscanf(line, "%lx-%lx", &begin, &end);
    unsigned long from = (unsigned long)program_invocation_name & ~4095UL;
    EXPECT(from > begin && from < end && munmap((void *)from, end - from) == 0);
}

static void *become_marked(void *input)
{
    char *argv[] = {(char *)"sleep", (char *)"60", NULL};
    char *env[] = {mark(), NULL};
    char c;
    hide_arguments();
    if (RETRY(read(*(int *)input, &c, 1)) == 1)
        execve("/bin/sleep", argv, env);
    _exit(127);
}

/* A process that shows neither arguments nor environment, as in the middle of an exec, and becomes
 * one with the mark when it is told to. */
static pid_t late_process(int *ret_input)
{
    int fds[2];
    pthread_t thread;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, become_marked, &fds[0]) == 0)
            pause();
        _exit(127);
    }
    close(fds[0]);
    *ret_input = fds[1];
    while (proc_has_env(pid, "X=") != -ENODATA)
        unit_pause(1);
    return pid;
}

/* In the middle of an exec a process shows no environment. */
static void a_process_without_an_environment_is_looked_at_again(void **state)
{
    (void)state;
    struct sweeping sweeping = SWEEPING_NONE;
    struct run_state got;
    int input, r;
    pid_t pid = late_process(&input);
    struct scene scene = stage(orphaned());
    assert_int_equal(sweep_begin(&scene.run, &sweeping, &got, NULL), 0);
    while ((r = sweep_step(&scene.run, &sweeping, &got, NULL)) == 0 && sweeping.doubts == 0)
        unit_pause(1);
    assert_int_equal(r, 0);
    assert_int_equal(write(input, "x", 1), 1);
    while (proc_has_env(pid, mark()) != 1)
        unit_pause(1);
    while ((r = sweep_step(&scene.run, &sweeping, &got, NULL)) == 0)
        unit_pause(1);
    sweep_end(&sweeping);
    assert_int_equal(r, 1);
    assert_int_equal(got.tree, NACRE_TREE_EMPTY);
    assert_true(ended(pid));
    close(input);
    leave(&scene);
}

static void the_command_is_known_by_its_start(void **state)
{
    (void)state;
    struct proc_ref ref;
    pid_t right = marked_process("NOTHING=1"), wrong = marked_process("NOTHING=1");
    struct run_state st = orphaned(), got;
    assert_int_equal(proc_ref(right, &ref), 0);
    st.main_pid = right;
    st.main_start = ref.start;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_true(ended(right));
    leave(&scene);
    /* A pid that belongs to somebody else by now. */
    st.main_pid = wrong;
    st.main_start = ref.start + 1000;
    scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_true(lives(wrong));
    leave(&scene);
    st.main_start = 0;
    scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_true(lives(wrong));
    leave(&scene);
    end(wrong);
}

/* A mark on a process that is older than the keeper was not put there by it. */
static void older_processes_are_spared(void **state)
{
    (void)state;
    struct proc_ref ref;
    pid_t pid = marked_process(mark());
    struct run_state st = orphaned(), got;
    assert_int_equal(proc_ref(pid, &ref), 0);
    st.keeper_start = ref.start + 1;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

static void another_boot(void **state)
{
    (void)state;
    struct proc_ref ref;
    pid_t pid = marked_process(mark());
    struct run_state st = orphaned(), got;
    assert_int_equal(proc_ref(pid, &ref), 0);
    st.boot[3] ^= 1;
    st.main_pid = pid;
    st.main_start = ref.start;
    struct scene scene = stage(st);
    assert_false(sweep_is_here(&scene.st));
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_int_equal(stored(&scene).outcome, NACRE_LOST);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

static void another_namespace(void **state)
{
    (void)state;
    struct proc_ref ref;
    pid_t pid = marked_process(mark());
    struct run_state st = orphaned(), got;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(proc_ref(pid, &ref), 0);
    st.pid_ns++;
    st.main_pid = pid;
    st.main_start = ref.start;
    struct scene scene = stage(st);
    assert_false(sweep_is_here(&scene.st));
    assert_int_equal(sweep_state(&scene.run, &got, &err), NACRE_EPERM);
    assert_non_null(strstr(err.msg, "namespace"));
    struct run_state after = stored(&scene);
    assert_memory_equal(&after, &scene.st, sizeof after);
    assert_int_equal(faccessat(scene.dir, "ctl", F_OK, 0), 0);
    assert_int_equal(force(&scene, &got, &err), NACRE_EPERM);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

static void a_held_lock_means_a_keeper(void **state)
{
    (void)state;
    pid_t pid = marked_process(mark());
    struct scene scene = stage(orphaned());
    struct run_state got;
    cleanup_close int keeper = unit_file(scene.dir, "state");
    assert_int_equal(lock_take(keeper), 0);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_RUNNING);
    assert_true(lives(pid));
    assert_int_equal(stored(&scene).generation, 1);
    end(pid);
    leave(&scene);
}

static void a_finished_run_is_left_alone(void **state)
{
    (void)state;
    pid_t pid = marked_process(mark());
    struct run_state st = orphaned(), got;
    st.outcome = NACRE_EXITED;
    st.tree = NACRE_TREE_EMPTY;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(stored(&scene).generation, 1);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

static void what_never_became_a_run_vanishes(void **state)
{
    (void)state;
    for (int rebooted = 0; rebooted < 2; rebooted++) {
        struct run_state st = orphaned(), got;
        nacre_error err = NACRE_ERROR_INIT;
        st.phase = PHASE_WARM;
        st.boot[0] ^= (uint8_t)rebooted;
        struct scene scene = stage(st);
        assert_int_equal(sweep_state(&scene.run, &got, &err), NACRE_ENOTFOUND);
        assert_int_equal(faccessat(scene.runs, nacre_id_format(&runs_id).s, F_OK, 0), -1);
        leave(&scene);
    }
}

/* The directory of a living run was copied: its lock is elsewhere, and so are its processes. */
static void a_copy_of_a_living_run(void **state)
{
    (void)state;
    struct proc_ref self;
    struct run_state st = orphaned(), got;
    nacre_error err = NACRE_ERROR_INIT;
    pid_t pid = marked_process(mark());
    assert_int_equal(proc_ref(getpid(), &self), 0);
    st.keeper_pid = self.pid;
    st.keeper_start = self.start;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, &err), 0);
    assert_int_equal(got.outcome, NACRE_RUNNING);
    assert_int_equal(stored(&scene).generation, 1);
    assert_int_equal(force(&scene, &got, &err), NACRE_EBUSY);
    assert_true(lives(pid));
    leave(&scene);
    end(pid);
}

/* A state that names another run says nothing about this one. */
static void a_state_of_another_run(void **state)
{
    (void)state;
    struct run_state st = orphaned(), got;
    nacre_error err = NACRE_ERROR_INIT;
    pid_t pid = marked_process(mark());
    st.id.bytes[0] ^= 1;
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, &err), NACRE_EIO);
    assert_int_equal(stored(&scene).generation, 1);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

static void unreadable_states(void **state)
{
    (void)state;
    struct scene scene = stage(orphaned());
    struct run_state got;
    nacre_error err = NACRE_ERROR_INIT;
    pid_t pid = marked_process(mark());
    runs_write(scene.dir, "state", "garbage", 7);
    assert_int_equal(sweep_state(&scene.run, &got, &err), NACRE_EIO);
    scene.st.format = RUN_FORMAT + 1;
    int fd = unit_file(scene.dir, "state");
    assert_int_equal(state_write(fd, &scene.st), 0);
    assert_int_equal(state_write(fd, &scene.st), 0);
    close(fd);
    assert_int_equal(sweep_state(&scene.run, &got, &err), NACRE_EUNSUPPORTED);
    assert_true(lives(pid));
    end(pid);
    leave(&scene);
}

/* What the keeper had written but not yet told is taken in. */
static void unpublished_output_is_kept(void **state)
{
    (void)state;
    struct span span = {.offset = 0, .when = 1};
    struct scene scene = stage(orphaned());
    struct run_state got;
    runs_write(scene.dir, "log", "one\ntwo", 7);
    runs_write(scene.dir, "spans", &span, sizeof span);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.log.end, 7);
    assert_int_equal(got.log.bytes[NACRE_STDERR], 7);
    assert_int_equal(got.log.newlines[NACRE_STDERR], 1);
    assert_int_equal(got.log.unfinished[NACRE_STDERR], 1);
    assert_int_equal(stored(&scene).log.end, 7);
    leave(&scene);
}

static void by_cgroup(void **state)
{
    (void)state;
    char own[CGROUP_PATH_MAX - 128], above[CGROUP_PATH_MAX - 64], name[32];
    int r = cgroup_own(own, sizeof own);
    snprintf(name, sizeof name, "nacre-unit-sweep-%d", getpid());
    int fd = r < 0 ? r : cgroup_create(own, name);
    if (fd < 0)
        SKIP("cgroups: no leaf can be made here (%s)", strerror(-fd));
    close(fd);
    snprintf(above, sizeof above, "%s/%s", own, name);
    fd = cgroup_create(above, leaf());
    assert_true(fd >= 0);
    struct run_state st = orphaned(), got;
    char pid_text[16];
    pid_t pid = marked_process("NO_MARK=1");
    snprintf(pid_text, sizeof pid_text, "%d", pid);
    assert_int_equal(fd_poke_at(fd, "cgroup.procs", pid_text), 0);
    close(fd);
    snprintf(st.cgroup, sizeof st.cgroup, "%s/%s", above, leaf());
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_true(ended(pid));
    assert_int_equal(access(st.cgroup, F_OK), -1);
    assert_int_equal(rmdir(above), 0);
    leave(&scene);
}

/* A state that names somebody else's cgroup ends nobody there. */
static void by_no_other_cgroup(void **state)
{
    (void)state;
    struct run_state st = orphaned(), got;
    char path[PATH_MAX];
    int other = unit_dir(path);
    snprintf(st.cgroup, sizeof st.cgroup, "%.500s", path);
    put(other, "cgroup.kill", "");
    put(other, "cgroup.events", "populated 1\n");
    struct scene scene = stage(st);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.tree, NACRE_TREE_EMPTY);
    struct stat written;
    assert_int_equal(fstatat(other, "cgroup.kill", &written, 0), 0);
    assert_int_equal(written.st_size, 0);
    leave(&scene);
    close(other);
}

struct hold {
    struct scene *scene;
    int ready;
};

static void hold_the_lock(void *data)
{
    const struct hold *hold = data;
    int fd = openat(hold->scene->dir, "state", O_RDWR | O_CLOEXEC);
    EXPECT(lock_take(fd) == 0);
    EXPECT(write(hold->ready, "x", 1) == 1);
    for (;;)
        pause();
}

/* A keeper that does not answer is killed, known by pid and start, and swept. */
static void by_force(void **state)
{
    (void)state;
    int fds[2];
    char c;
    struct proc_ref ref;
    struct scene scene = stage(orphaned());
    struct run_state got;
    struct hold hold = {.scene = &scene};
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    hold.ready = fds[1];
    pid_t keeper = unit_fork(hold_the_lock, &hold);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(proc_ref(keeper, &ref), 0);
    scene.st.keeper_pid = keeper;
    scene.st.keeper_start = ref.start;
    int fd = unit_file(scene.dir, "state");
    assert_int_equal(state_write(fd, &scene.st), 0);
    close(fd);
    assert_int_equal(sweep_state(&scene.run, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_RUNNING);
    kill(keeper, SIGSTOP);
    sweep_wake(&scene.st);
    assert_true(lives(keeper));
    assert_int_equal(force(&scene, &got, NULL), 0);
    assert_int_equal(got.outcome, NACRE_LOST);
    assert_true(ended(keeper));
    close(fds[0]);
    close(fds[1]);
    leave(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_run_is_swept),
        cmocka_unit_test(a_known_outcome_stays),
        cmocka_unit_test(who_resists_is_named),
        cmocka_unit_test(a_process_without_an_environment_is_looked_at_again),
        cmocka_unit_test(the_command_is_known_by_its_start),
        cmocka_unit_test(older_processes_are_spared),
        cmocka_unit_test(another_boot),
        cmocka_unit_test(another_namespace),
        cmocka_unit_test(a_held_lock_means_a_keeper),
        cmocka_unit_test(a_finished_run_is_left_alone),
        cmocka_unit_test(what_never_became_a_run_vanishes),
        cmocka_unit_test(a_copy_of_a_living_run),
        cmocka_unit_test(a_state_of_another_run),
        cmocka_unit_test(unreadable_states),
        cmocka_unit_test(unpublished_output_is_kept),
        cmocka_unit_test(by_cgroup),
        cmocka_unit_test(by_no_other_cgroup),
        cmocka_unit_test(by_force),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
