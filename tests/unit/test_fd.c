/* Descriptors: kept above 2, closed from a number on, also where close_range is refused. */
#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/defs.h"
#include "sys/fd.h"
#include "sys/syscalls.h"

static void lift_moves_only_low_ones(void *data)
{
    (void)data;
    int high = fcntl(STDERR_FILENO, F_DUPFD, 20);
    EXPECT(fd_lift_consume(high) == high);
    EXPECT(unit_is_open(high));
    for (int low = 0; low <= 2; low++) {
        EXPECT(dup2(high, low) == low);
        int lifted = fd_lift_consume(low);
        EXPECT(lifted >= 3);
        EXPECT(!unit_is_open(low));
        EXPECT(fcntl(lifted, F_GETFD) == FD_CLOEXEC);
        close(lifted);
    }
    EXPECT(fd_lift_consume(-EBADF) == -EBADF);
    EXPECT(fd_lift_consume(-1) == -1);
    /* What cannot be lifted is closed all the same. */
    struct rlimit none = {.rlim_cur = 3, .rlim_max = 3};
    EXPECT(dup2(high, 1) == 1);
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int r = fd_lift_consume(1);
    EXPECT(r == -EINVAL || r == -EMFILE);
    EXPECT(!unit_is_open(1));
}

static void lift(void **state)
{
    (void)state;
    unit_in_child(lift_moves_only_low_ones, NULL);
}

static void pipes_with_no_standard_streams(void *data)
{
    (void)data;
    int fds[2], copy;
    int spare = fcntl(STDERR_FILENO, F_DUPFD, 20);
    close(0);
    close(1);
    close(2);
    int r = fd_pipe(fds);
    bool fine = r == 0 && fds[0] > 2 && fds[1] > 2 && fcntl(fds[0], F_GETFD) == FD_CLOEXEC &&
                fcntl(fds[1], F_GETFD) == FD_CLOEXEC && !unit_is_open(0) && !unit_is_open(1) &&
                !unit_is_open(2);
    char c = 'x';
    fine = fine && write(fds[1], &c, 1) == 1 && read(fds[0], &c, 1) == 1;
    copy = fd_dup(fds[0]);
    fine = fine && copy > 2 && fcntl(copy, F_GETFD) == FD_CLOEXEC;
    dup2(spare, 2);
    EXPECT(fine);
    EXPECT(fd_dup(-1) == -EBADF);
    /* Too few are left: both are given back. */
    int before = unit_count_fds();
    struct rlimit few = {.rlim_cur = 3, .rlim_max = 3};
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    EXPECT(fd_pipe(fds) < 0);
    EXPECT(unit_count_fds() == before);
}

static void plug_in_child(void *data)
{
    (void)data;
    EXPECT(fd_plug_low() == 0);
    close(0);
    close(2);
    unsigned taken = fd_plug_low();
    EXPECT(taken == (1u << 0 | 1u << 2));
    EXPECT(fcntl(0, F_GETFD) == FD_CLOEXEC && fcntl(2, F_GETFD) == FD_CLOEXEC);
    EXPECT(fd_plug_low() == 0);
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    EXPECT(fd > 2);
    fd_unplug_low(taken);
    EXPECT(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) < 0);
}

static void plug(void **state)
{
    (void)state;
    unit_in_child(plug_in_child, NULL);
}

static void pipes(void **state)
{
    (void)state;
    unit_in_child(pipes_with_no_standard_streams, NULL);
}

static void nonblocking(void **state)
{
    (void)state;
    int fds[2];
    char c;
    assert_int_equal(fd_pipe(fds), 0);
    assert_int_equal(fd_set_nonblock(fds[0]), 0);
    assert_int_equal(read(fds[0], &c, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(fd_set_nonblock(fds[0]), -EBADF);
}

/* With a filter the fallback has to do; data says whether. */
static void refuse_close_range(const bool *deny)
{
    if (!*deny)
        return;
    EXPECT(unit_deny(SYS_close_range, ENOSYS));
    EXPECT(sys_close_range(1000, 1001, 0) == -ENOSYS);
}

static void closes_from(void *data)
{
    refuse_close_range(data);
    for (int i = 0; i < 300; i++)
        EXPECT(fcntl(2, F_DUPFD, 0) >= 0);
    EXPECT(dup2(2, 900) == 900);
    EXPECT(dup2(2, 5) == 5);
    EXPECT(dup2(2, 6) == 6);
    EXPECT(fd_close_from(6) == 0);
    EXPECT(unit_is_open(5));
    for (int fd = 6; fd < 1024; fd++)
        EXPECT(!unit_is_open(fd));
}

static void marks_from(void *data)
{
    refuse_close_range(data);
    for (int i = 0; i < 300; i++)
        EXPECT(fcntl(2, F_DUPFD, 0) >= 0);
    EXPECT(dup2(2, 900) == 900);
    EXPECT(dup2(2, 5) == 5);
    EXPECT(fd_cloexec_from(6) == 0);
    EXPECT(fcntl(5, F_GETFD) == 0);
    int open = 0;
    for (int fd = 6; fd < 1024; fd++) {
        if (!unit_is_open(fd))
            continue;
        open++;
        EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    }
    EXPECT(open >= 290);
    EXPECT(unit_is_open(900));
}

static void close_from(void **state)
{
    (void)state;
    bool deny = false;
    unit_in_child(closes_from, &deny);
    unit_in_child(marks_from, &deny);
}

static void close_from_without_close_range(void **state)
{
    (void)state;
    bool deny = true;
    unit_in_child(closes_from, &deny);
    unit_in_child(marks_from, &deny);
}

static void whole_writes(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    int fd = unit_file(dir, "f");
    char text[10000], back[10001];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    assert_int_equal(fd_write_all(fd, text, sizeof text), 0);
    assert_int_equal(fd_pread_all(fd, back, sizeof back, 0), sizeof text);
    assert_memory_equal(back, text, sizeof text);
    assert_int_equal(fd_pread_all(fd, back, 10, 9995), 5);
    assert_int_equal(fd_pread_all(fd, back, 10, 20000), 0);
    assert_int_equal(fd_pread_all(fd, back, 10, -1), -EINVAL);
    assert_int_equal(fd_pwrite_all(fd, "abc", 3, 9999), 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 10002);
    assert_int_equal(lseek(fd, 9999, SEEK_SET), 9999);
    assert_int_equal(fd_read_all(fd, back, 100), 3);
    assert_memory_equal(back, "abc", 3);
    assert_int_equal(fd_write_all(-1, "", 0), 0);
    assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(fd_read_all(-1, back, 1), -EBADF);
    assert_int_equal(fd_pwrite_all(-1, "x", 1, 0), -EBADF);
    close(fd);
    close(dir);
}

static void *write_slowly(void *data)
{
    int fd = *(int *)data;
    for (int i = 0; i < 20; i++) {
        unit_pause(1);
        if (write(fd, "0123456789", 10) != 10)
            break;
    }
    close(fd);
    return NULL;
}

static void reads_collect_short_pieces(void **state)
{
    (void)state;
    int fds[2];
    char back[300];
    pthread_t writer;
    assert_int_equal(fd_pipe(fds), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_slowly, &fds[1]), 0);
    assert_int_equal(fd_read_all(fds[0], back, 55), 55);
    assert_int_equal(fd_read_all(fds[0], back + 55, sizeof back - 55), 145);
    for (int i = 0; i < 200; i++)
        assert_int_equal(back[i], '0' + i % 10);
    pthread_join(writer, NULL);
    close(fds[0]);
}

static void slurp_and_poke(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    char buf[8];
    assert_int_equal(fd_slurp_at(dir, "none", buf, sizeof buf), -ENOENT);
    assert_int_equal(fd_poke_at(dir, "none", "x"), -ENOENT);
    int fd = unit_file(dir, "f");
    memset(buf, 'z', sizeof buf);
    assert_int_equal(fd_slurp_at(dir, "f", buf, sizeof buf), 0);
    assert_string_equal(buf, "");
    assert_int_equal(fd_poke_at(dir, "f", "1234567"), 0);
    assert_int_equal(fd_slurp_at(dir, "f", buf, sizeof buf), 7);
    assert_string_equal(buf, "1234567");
    /* Longer than the buffer: its beginning, with the NUL inside the buffer. */
    assert_int_equal(fd_poke_at(dir, "f", "abcdefghijkl"), 0);
    assert_int_equal(fd_slurp_at(dir, "f", buf, sizeof buf), 7);
    assert_string_equal(buf, "abcdefg");
    assert_int_equal(fd_slurp_at(dir, ".", buf, sizeof buf), -EISDIR);
    int before = unit_count_fds();
    for (int i = 0; i < 100; i++)
        fd_slurp_at(dir, "f", buf, sizeof buf);
    assert_int_equal(unit_count_fds(), before);
    close(fd);
    close(dir);
}

static void only_regular_files(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    close(unit_file(dir, "file"));
    assert_int_equal(symlinkat("file", dir, "link"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(mkdirat(dir, "dir", 0700), 0);
    int before = unit_count_fds();
    assert_int_equal(fd_open_file_at(dir, "none", O_RDONLY), -ENOENT);
    assert_int_equal(fd_open_file_at(dir, "link", O_RDONLY), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "link", O_RDWR | O_CREAT), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "fifo", O_RDONLY), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "fifo", O_RDWR), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "fifo", O_WRONLY), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "dir", O_RDONLY), -EINVAL);
    assert_int_equal(fd_open_file_at(dir, "dir", O_RDWR), -EINVAL);
    assert_int_equal(symlinkat("dir", dir, "link to dir"), 0);
    assert_true(fd_open_dir_at(dir, "link to dir") < 0);
    assert_true(fd_open_dir_at(dir, "file") < 0);
    assert_int_equal(unit_count_fds(), before);
    int inner = fd_open_dir_at(dir, "dir");
    assert_true(inner > 2);
    close(inner);
    if (geteuid() == 0) {
        close(unit_file(dir, "foreign"));
        assert_int_equal(fchownat(dir, "foreign", 65534, 65534, 0), 0);
        assert_int_equal(fd_open_file_at(dir, "foreign", O_RDONLY), -EPERM);
    }
    int fd = fd_open_file_at(dir, "file", O_RDWR);
    assert_true(fd > 2);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, "x", 1), 0);
    close(fd);
    close(dir);
}

#define ENTRIES 500

struct seen {
    bool found[ENTRIES];
    int count;
    int stop_at;
};

static int note_entry(const char *name, void *userdata)
{
    struct seen *seen = userdata;
    assert_string_not_equal(name, ".");
    assert_string_not_equal(name, "..");
    long number = fd_parse_number(strrchr(name, '-') + 1);
    assert_in_range(number, 0, ENTRIES - 1);
    assert_false(seen->found[number]);
    seen->found[number] = true;
    return ++seen->count == seen->stop_at ? 77 : 0;
}

static void walk_meets_every_entry_once(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    struct seen seen = {.stop_at = -1};
    assert_int_equal(fd_walk(dir, note_entry, &seen), 0);
    assert_int_equal(seen.count, 0);
    /* Far more than one buffer of entries. */
    for (int i = 0; i < ENTRIES; i++) {
        char name[64];
        snprintf(name, sizeof name, "an-entry-with-a-name-that-takes-some-room-%d", i);
        close(unit_file(dir, name));
    }
    for (int round = 0; round < 2; round++) {
        seen = (struct seen){.stop_at = -1};
        assert_int_equal(fd_walk(dir, note_entry, &seen), 0);
        assert_int_equal(seen.count, ENTRIES);
    }
    seen = (struct seen){.stop_at = 300};
    assert_int_equal(fd_walk(dir, note_entry, &seen), 77);
    assert_int_equal(seen.count, 300);
    close(dir);
    assert_true(fd_walk(dir, note_entry, &seen) < 0);
    int file = memfd_create("f", MFD_CLOEXEC);
    assert_int_equal(fd_walk(file, note_entry, &seen), -ENOTDIR);
    close(file);
}

static void numbers(void **state)
{
    (void)state;
    assert_int_equal(fd_parse_number("0"), 0);
    assert_int_equal(fd_parse_number("007"), 7);
    assert_int_equal(fd_parse_number("123 456"), 123);
    assert_int_equal(fd_parse_number("42abc"), 42);
    assert_int_equal(fd_parse_number("4294967296"), INT64_C(4294967296));
    assert_int_equal(fd_parse_number("9223372036854775799"), INT64_C(9223372036854775799));
    static const char *const wrong[] = {"",
                                        " 1",
                                        "-1",
                                        "+1",
                                        "a",
                                        "/",
                                        ":",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "99999999999999999999999999999999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(fd_parse_number(wrong[i]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lift),
        cmocka_unit_test(plug),
        cmocka_unit_test(pipes),
        cmocka_unit_test(nonblocking),
        cmocka_unit_test(close_from),
        cmocka_unit_test(close_from_without_close_range),
        cmocka_unit_test(whole_writes),
        cmocka_unit_test(reads_collect_short_pieces),
        cmocka_unit_test(slurp_and_poke),
        cmocka_unit_test(only_regular_files),
        cmocka_unit_test(walk_meets_every_entry_once),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
