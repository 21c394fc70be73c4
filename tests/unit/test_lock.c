/* The lock belongs to an open file description: not to a pid, and not to a file name. */
#include "unit.h"

#include <poll.h>
#include <sys/mman.h>

#include "base/defs.h"
#include "sys/fd.h"

struct files {
    int dir;
    int holder;
    int looker; /* another description, for reading only */
};

static struct files open_files(void)
{
    struct files f = {.dir = unit_dir(NULL)};
    f.holder = unit_file(f.dir, "state");
    f.looker = openat(f.dir, "state", O_RDONLY | O_CLOEXEC);
    assert_true(f.looker >= 0);
    return f;
}

static void close_files(struct files *f)
{
    close_fd(&f->dir);
    close_fd(&f->holder);
    close_fd(&f->looker);
}

static void held_by_another_description(void **state)
{
    (void)state;
    struct files f = open_files();
    assert_int_equal(lock_held(f.looker), 0);
    assert_int_equal(lock_take(f.holder), 0);
    assert_int_equal(lock_held(f.looker), 1);
    /* The same process, another description. */
    int other = openat(f.dir, "state", O_RDWR | O_CLOEXEC);
    assert_int_equal(lock_take(other), -EAGAIN);
    assert_int_equal(lock_held(other), 1);
    /* One's own lock is in nobody's way. */
    assert_int_equal(lock_held(f.holder), 0);
    assert_int_equal(lock_take(f.holder), 0);
    close(other);
    assert_int_equal(lock_held(f.looker), 1);
    close_files(&f);
}

static void free_after_close(void **state)
{
    (void)state;
    struct files f = open_files();
    assert_int_equal(lock_take(f.holder), 0);
    int copy = dup(f.holder);
    close_fd(&f.holder);
    assert_int_equal(lock_held(f.looker), 1);
    close(copy);
    assert_int_equal(lock_held(f.looker), 0);
    int other = openat(f.dir, "state", O_RDWR | O_CLOEXEC);
    assert_int_equal(lock_take(other), 0);
    close(other);
    close_files(&f);
}

static void wait_for_end(void *data)
{
    int *pipe_end = data;
    char c;
    EXPECT(read(*pipe_end, &c, 1) >= 0);
}

struct forked {
    struct files *files;
    int reader;
    int writer;
};

static void hold_until_told(void *data)
{
    struct forked *forked = data;
    close(forked->writer);
    /* An opened and closed copy of the file must not free the lock, as a POSIX one would be. */
    close(openat(forked->files->dir, "state", O_RDWR | O_CLOEXEC));
    wait_for_end(&forked->reader);
}

static void shared_with_a_forked_child(void **state)
{
    (void)state;
    struct files f = open_files();
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(lock_take(f.holder), 0);
    struct forked forked = {.files = &f, .reader = fds[0], .writer = fds[1]};
    pid_t pid = unit_fork(hold_until_told, &forked);
    close_fd(&f.holder);
    assert_int_equal(lock_held(f.looker), 1);
    close(fds[1]);
    assert_int_equal(unit_join(pid), 0);
    assert_int_equal(lock_held(f.looker), 0);
    close(fds[0]);
    close_files(&f);
}

static void take_and_tell(void *data)
{
    struct forked *forked = data;
    int fd = openat(forked->files->dir, "state", O_RDWR | O_CLOEXEC);
    EXPECT(lock_take(fd) == 0);
    EXPECT(write(forked->writer, "x", 1) == 1);
    for (;;)
        pause();
}

static void free_after_a_kill(void **state)
{
    (void)state;
    struct files f = open_files();
    int fds[2];
    char c;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct forked forked = {.files = &f, .reader = fds[0], .writer = fds[1]};
    pid_t pid = unit_fork(take_and_tell, &forked);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(lock_held(f.looker), 1);
    assert_int_equal(lock_take(f.holder), -EAGAIN);
    kill(pid, SIGKILL);
    assert_true(WIFSIGNALED(unit_join(pid)));
    assert_int_equal(lock_held(f.looker), 0);
    assert_int_equal(lock_take(f.holder), 0);
    close(fds[0]);
    close(fds[1]);
    close_files(&f);
}

/* A host that pins the lock, forks, and waits to be killed; its child goes on. */
static void pin_and_fork(void *data)
{
    struct forked *forked = data;
    struct lock_pin pin = {0};
    int fd = openat(forked->files->dir, "state", O_RDWR | O_CLOEXEC);
    EXPECT(lock_take(fd) == 0);
    EXPECT(lock_pin(fd, &pin) == 0);
    close(fd);
    if (fork() == 0) {
        /* What is in its place now is not the lock's, and stays. */
        char *page = mmap(pin.page, 1, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        EXPECT(page == pin.page);
        lock_unpin(&pin);
        *page = 'x';
        EXPECT(write(forked->writer, page, 1) == 1);
        wait_for_end(&forked->reader);
        _exit(0);
    }
    for (;;)
        pause();
}

static void pinned_to_one_process(void **state)
{
    (void)state;
    struct files f = open_files();
    int up[2], down[2];
    char c = 0;
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    struct forked forked = {.files = &f, .reader = down[0], .writer = up[1]};
    pid_t pid = unit_fork(pin_and_fork, &forked);
    close(up[1]);
    assert_int_equal(read(up[0], &c, 1), 1);
    assert_int_equal(c, 'x');
    assert_int_equal(lock_held(f.looker), 1);
    kill(pid, SIGKILL);
    assert_true(WIFSIGNALED(unit_join(pid)));
    assert_int_equal(lock_held(f.looker), 0);
    assert_int_equal(lock_take(f.holder), 0);
    /* The child is still there: it has not closed its end. */
    struct pollfd poller = {.fd = up[0], .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 0), 0);
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(read(up[0], &c, 1), 0);
    close(up[0]);
    close(down[0]);
    close(down[1]);
    close_files(&f);
}

static void unpinned_it_is_free(void **state)
{
    (void)state;
    struct files f = open_files();
    struct lock_pin pin = {0};
    assert_int_equal(lock_take(f.holder), 0);
    assert_int_equal(lock_pin(f.holder, &pin), 0);
    close_fd(&f.holder);
    assert_int_equal(lock_held(f.looker), 1);
    lock_unpin(&pin);
    assert_int_equal(lock_held(f.looker), 0);
    lock_unpin(&pin);
    close_files(&f);
}

static void wrong_descriptors(void **state)
{
    (void)state;
    struct files f = open_files();
    assert_int_equal(lock_take(-EBADF), -EBADF);
    assert_int_equal(lock_held(-EBADF), -EBADF);
    /* A write lock needs a descriptor for writing. */
    assert_int_equal(lock_take(f.looker), -EBADF);
    struct lock_pin pin = {0};
    assert_int_equal(lock_pin(-EBADF, &pin), -EBADF);
    lock_unpin(&pin);
    close_files(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_by_another_description), cmocka_unit_test(free_after_close),
        cmocka_unit_test(shared_with_a_forked_child),  cmocka_unit_test(free_after_a_kill),
        cmocka_unit_test(pinned_to_one_process),       cmocka_unit_test(unpinned_it_is_free),
        cmocka_unit_test(wrong_descriptors),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
