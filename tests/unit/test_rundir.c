/* Run directories: opened, read, listed and removed, also when they are damaged or shared. */
#include "runs.h"

#include "base/defs.h"

static struct run_state running(void)
{
    struct run_state state;
    state_init(&state, &runs_id, &runs_session);
    state.phase = PHASE_RUN;
    return state;
}

static void opened_and_read(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    struct run_state st = running(), got;
    nacre_error err = NACRE_ERROR_INIT;
    struct run run = RUN_NONE;
    assert_int_equal(run_open(runs, &runs_id, &run, &err), NACRE_ENOTFOUND);
    assert_non_null(strstr(err.msg, "abcdef01"));
    close(runs_make(runs, &runs_id, &st));
    assert_int_equal(run_open(runs, &runs_id, &run, &err), 0);
    assert_true(run.dir > 2 && run.state_fd > 2);
    assert_int_equal(fcntl(run.dir, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(run.state_fd, F_GETFD), FD_CLOEXEC);
    assert_true(nacre_id_equal(&run.id, &runs_id));
    assert_int_equal(run_read_state(&run, &got, &err), 0);
    assert_memory_equal(&got, &st, sizeof st);
    struct spec spec;
    assert_int_equal(run_load_spec(&run, &spec, &err), 0);
    assert_string_equal(spec_string(&spec, spec.head->text), "echo hello | cat");
    free((void *)spec.head);
    run_close(&run);
    assert_int_equal(run.dir, -EBADF);
    run_close(&run);
}

static void what_is_no_directory(void **state)
{
    (void)state;
    char path[PATH_MAX];
    cleanup_close int runs = unit_dir(path);
    struct run_state st = running();
    nacre_error err = NACRE_ERROR_INIT;
    struct run run = RUN_NONE;
    nacre_id other = runs_id;
    other.bytes[15]++;
    close(unit_file(runs, nacre_id_format(&runs_id).s));
    assert_int_equal(run_open(runs, &runs_id, &run, &err), NACRE_EIO);
    /* A link to a run is none. */
    assert_int_equal(unlinkat(runs, nacre_id_format(&runs_id).s, 0), 0);
    close(runs_make(runs, &runs_id, &st));
    assert_int_equal(symlinkat(nacre_id_format(&runs_id).s, runs, nacre_id_format(&other).s), 0);
    assert_int_equal(run_open(runs, &other, &run, &err), NACRE_EIO);
    assert_true(run_remove(runs, &other) < 0);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), 0);
    run_close(&run);
}

static void damaged_states(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    struct run_state st = running();
    nacre_error err = NACRE_ERROR_INIT;
    cleanup_close int dir = runs_make(runs, &runs_id, &st);
    int before = unit_count_fds();
    cleanup_run struct run run = RUN_NONE;
    assert_int_equal(unlinkat(dir, "state", 0), 0);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), NACRE_EIO);
    assert_int_equal(err.sys_errno, ENOENT);
    /* What would keep us waiting, or lead elsewhere. */
    assert_int_equal(mkfifoat(dir, "state", 0600), 0);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), NACRE_EIO);
    assert_int_equal(unlinkat(dir, "state", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", dir, "state"), 0);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), NACRE_EIO);
    assert_int_equal(unit_count_fds(), before);
    assert_int_equal(unlinkat(dir, "state", 0), 0);
    static const char *const contents[] = {"", "garbage", "nacstate"};
    for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
        struct run_state got;
        runs_write(dir, "state", contents[i], strlen(contents[i]));
        assert_int_equal(run_open(runs, &runs_id, &run, &err), 0);
        assert_int_equal(run_read_state(&run, &got, &err), NACRE_EIO);
        assert_non_null(strstr(err.msg, "damaged"));
        run_close(&run);
    }
}

static void states_that_are_not_for_us(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    struct run_state st = running(), got;
    nacre_error err = NACRE_ERROR_INIT;
    cleanup_run struct run run = RUN_NONE;
    st.phase = PHASE_WARM;
    cleanup_close int dir = runs_make(runs, &runs_id, &st);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), 0);
    assert_int_equal(run_read_state(&run, &got, &err), NACRE_ENOTFOUND);
    /* Copied from elsewhere. */
    run.id.bytes[0] ^= 1;
    assert_int_equal(run_read_state(&run, &got, &err), NACRE_EIO);
    assert_non_null(strstr(err.msg, "copy"));
    int fd = unit_file(dir, "state");
    st.format = RUN_FORMAT + 1;
    assert_int_equal(state_write(fd, &st), 0);
    assert_int_equal(state_write(fd, &st), 0);
    close(fd);
    assert_int_equal(run_read_state(&run, &got, &err), NACRE_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "newer"));
}

static void damaged_specs(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    struct run_state st = running();
    nacre_error err = NACRE_ERROR_INIT;
    cleanup_run struct run run = RUN_NONE;
    struct spec spec;
    size_t size;
    cleanup_close int dir = runs_make(runs, &runs_id, &st);
    cleanup_free char *good = runs_spec(&size);
    assert_int_equal(run_open(runs, &runs_id, &run, &err), 0);
    for (size_t length = 0; length < size; length += 37) {
        runs_write(dir, "spec", good, length);
        assert_int_equal(run_load_spec(&run, &spec, &err), NACRE_EIO);
    }
    assert_int_equal(unlinkat(dir, "spec", 0), 0);
    assert_int_equal(run_load_spec(&run, &spec, &err), NACRE_EIO);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(mkfifoat(dir, "spec", 0600), 0);
    assert_int_equal(run_load_spec(&run, &spec, &err), NACRE_EIO);
    assert_int_equal(unlinkat(dir, "spec", 0), 0);
    /* A file of 5 GiB that is nothing but a hole. */
    int fd = unit_file(dir, "spec");
    assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
    close(fd);
    assert_int_equal(run_load_spec(&run, &spec, &err), NACRE_EIO);
}

static int collect(const nacre_id *id, void *userdata)
{
    int *count = userdata;
    assert_int_equal(id->bytes[0], 0xaa);
    return ++*count == 150 ? 7 : 0;
}

static void each_is_met_once(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    nacre_id id = {{0xaa}};
    int count = 0;
    assert_int_equal(run_each(runs, collect, &count), 0);
    assert_int_equal(count, 0);
    for (int i = 0; i < 100; i++) {
        id.bytes[1] = (uint8_t)i;
        assert_int_equal(mkdirat(runs, nacre_id_format(&id).s, 0700), 0);
    }
    static const char *const others[] = {"aa00", "AA000000000000000000000000000000",
                                         "aa0000000000000000000000000000zz", "x",
                                         "aa000000000000000000000000000000.tmp"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(mkdirat(runs, others[i], 0700), 0);
    assert_int_equal(run_each(runs, collect, &count), 0);
    assert_int_equal(count, 100);
    /* The descriptor is shared, its position is not: a second walk begins at the start. */
    assert_int_equal(run_each(runs, collect, &count), 7);
    assert_int_equal(count, 150);
    assert_int_equal(run_each(-EBADF, collect, &count), -EBADF);
}

static void removed_with_all_its_files(void **state)
{
    (void)state;
    cleanup_close int runs = unit_dir(NULL);
    struct run_state st = running();
    int dir = runs_make(runs, &runs_id, &st);
    close(unit_file(dir, "tail"));
    close(unit_file(dir, "pipestatus"));
    close(unit_file(dir, "ctl"));
    close(unit_file(dir, "told"));
    close(dir);
    assert_int_equal(run_remove(runs, &runs_id), 0);
    assert_int_equal(faccessat(runs, nacre_id_format(&runs_id).s, F_OK, 0), -1);
    assert_int_equal(run_remove(runs, &runs_id), -ENOENT);
    /* Half removed already, as after a crash in the middle. */
    dir = runs_make(runs, &runs_id, &st);
    assert_int_equal(unlinkat(dir, "log", 0), 0);
    close(dir);
    assert_int_equal(run_remove(runs, &runs_id), 0);
}

/* Else a command could fill a home for ever, beyond every quota. What lies elsewhere stays. */
static void what_a_command_put_there_goes(void **state)
{
    (void)state;
    char path[PATH_MAX], target[PATH_MAX + 16];
    cleanup_close int runs = unit_dir(path);
    struct run_state st = running();
    cleanup_close int dir = runs_make(runs, &runs_id, &st);
    snprintf(target, sizeof target, "%s/elsewhere", path);
    assert_int_equal(mkdirat(runs, "elsewhere", 0700), 0);
    close(unit_file(runs, "elsewhere/precious"));
    runs_write(dir, "file", "data", 4);
    assert_int_equal(symlinkat(target, dir, "link"), 0);
    assert_int_equal(unlinkat(dir, "tail", 0) < 0 && errno != ENOENT, 0);
    assert_int_equal(mkdirat(dir, "tail", 0700), 0);
    int deep = openat(dir, "tail", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(deep, "folder", 0700), 0);
        runs_write(deep, "file", "data", 4);
        int next = openat(deep, "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        assert_int_equal(fchmod(deep, i % 2 ? 0700 : 0), 0);
        close(deep);
        deep = next;
    }
    close(deep);
    assert_int_equal(run_remove(runs, &runs_id), 0);
    assert_int_equal(faccessat(runs, nacre_id_format(&runs_id).s, F_OK, 0), -1);
    assert_int_equal(faccessat(runs, "elsewhere/precious", F_OK, 0), 0);
}

/* A link in the place of one of its files: the link goes, what it leads to stays. */
static void links_are_not_followed(void **state)
{
    (void)state;
    char path[PATH_MAX], target[PATH_MAX + 16];
    cleanup_close int runs = unit_dir(path);
    struct run_state st = running();
    cleanup_close int dir = runs_make(runs, &runs_id, &st);
    snprintf(target, sizeof target, "%s/target", path);
    close(unit_file(runs, "target"));
    assert_int_equal(unlinkat(dir, "log", 0), 0);
    assert_int_equal(symlinkat(target, dir, "log"), 0);
    assert_int_equal(run_remove(runs, &runs_id), 0);
    assert_int_equal(access(target, F_OK), 0);
}

/* Who is no root, in a directory that is open to all. */
static void takes_rights_back(void *data)
{
    int dir = *(int *)data;
    struct stat st;
    if (geteuid() == 0)
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    int fd = fd_open_file_at(dir, "log", O_WRONLY | O_CREAT);
    EXPECT(fd >= 0 && fchmod(fd, 0) == 0);
    close(fd);
    EXPECT(fd_open_file_at(dir, "log", O_RDONLY) == -EACCES);
    fd = run_open_file(dir, "log", O_RDONLY);
    EXPECT(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600);
    /* Under another name it may be anything of ours. */
    EXPECT(fchmod(fd, 0) == 0 && linkat(dir, "log", dir, "spans", 0) == 0);
    EXPECT(run_open_file(dir, "spans", O_RDONLY) == -EACCES);
    EXPECT(run_open_file(dir, "none", O_RDONLY) == -ENOENT);
    close(fd);
}

static void files_without_rights(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    assert_int_equal(fchmod(dir, 0777), 0);
    unit_in_child(takes_rights_back, &dir);
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_and_read),
        cmocka_unit_test(what_is_no_directory),
        cmocka_unit_test(damaged_states),
        cmocka_unit_test(states_that_are_not_for_us),
        cmocka_unit_test(damaged_specs),
        cmocka_unit_test(each_is_met_once),
        cmocka_unit_test(removed_with_all_its_files),
        cmocka_unit_test(what_a_command_put_there_goes),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(files_without_rights),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
