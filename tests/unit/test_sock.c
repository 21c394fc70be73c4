/* Messages with borders, descriptors that travel along, and sockets behind long paths. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/defs.h"
#include "sys/sock.h"

static void open_pair(int pair[2])
{
    assert_int_equal(sock_pair(pair), 0);
}

static void close_pair(int pair[2])
{
    close_fd(&pair[0]);
    close_fd(&pair[1]);
}

/* A descriptor that can be told from all others. */
static int numbered(int number)
{
    int fd = memfd_create("numbered", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &number, sizeof number, 0), sizeof number);
    return fd;
}

static int number_of(int fd)
{
    int number = -1;
    assert_int_equal(pread(fd, &number, sizeof number, 0), sizeof number);
    return number;
}

static void messages_keep_their_borders(void **state)
{
    (void)state;
    int pair[2];
    char buf[64];
    open_pair(pair);
    assert_int_equal(sock_send(pair[0], "one", 3, NULL, 0, 0), 0);
    assert_int_equal(sock_send(pair[0], "second", 6, NULL, 0, MSG_DONTWAIT), 0);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, NULL, 0, 0), 3);
    assert_memory_equal(buf, "one", 3);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, NULL, 0, 0), 6);
    assert_memory_equal(buf, "second", 6);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, NULL, 0, MSG_DONTWAIT), -EAGAIN);
    close_pair(pair);
}

static void descriptors_travel(void **state)
{
    (void)state;
    int pair[2], sent[SOCK_FDS_MAX], got[SOCK_FDS_MAX];
    char buf[8];
    open_pair(pair);
    for (int i = 0; i < SOCK_FDS_MAX; i++)
        sent[i] = numbered(i);
    for (size_t count = 0; count <= SOCK_FDS_MAX; count++) {
        assert_int_equal(sock_send(pair[0], "x", 1, sent, count, 0), 0);
        for (size_t i = 0; i < SOCK_FDS_MAX; i++)
            got[i] = 12345;
        assert_int_equal(sock_recv(pair[1], buf, sizeof buf, got, SOCK_FDS_MAX, 0), 1);
        for (size_t i = 0; i < SOCK_FDS_MAX; i++) {
            if (i >= count) {
                assert_int_equal(got[i], -EBADF);
                continue;
            }
            assert_int_equal(number_of(got[i]), (int)i);
            assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
            close(got[i]);
        }
    }
    for (int i = 0; i < SOCK_FDS_MAX; i++)
        close(sent[i]);
    close_pair(pair);
}

static void surplus_descriptors_are_closed(void **state)
{
    (void)state;
    int pair[2], sent[SOCK_FDS_MAX], got[2];
    char buf[8];
    open_pair(pair);
    for (int i = 0; i < SOCK_FDS_MAX; i++)
        sent[i] = numbered(i);
    int before = unit_count_fds();
    assert_int_equal(sock_send(pair[0], "x", 1, sent, SOCK_FDS_MAX, 0), 0);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, got, 2, 0), 1);
    assert_int_equal(number_of(got[0]), 0);
    assert_int_equal(number_of(got[1]), 1);
    close(got[0]);
    close(got[1]);
    assert_int_equal(unit_count_fds(), before);
    /* Nobody asked for any. */
    assert_int_equal(sock_send(pair[0], "x", 1, sent, 3, 0), 0);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, NULL, 0, 0), 1);
    assert_int_equal(unit_count_fds(), before);
    for (int i = 0; i < SOCK_FDS_MAX; i++)
        close(sent[i]);
    close_pair(pair);
}

/* A sender that is not ours may send more than fit into our control buffer. */
static void a_flood_of_descriptors_is_closed(void **state)
{
    (void)state;
    enum { MANY = 64 };
    union {
        char space[CMSG_SPACE(MANY * sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {.iov_base = (void *)"x", .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    int pair[2], fds[MANY], got[1];
    char buf[8];
    open_pair(pair);
    for (int i = 0; i < MANY; i++)
        fds[i] = STDERR_FILENO;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    int before = unit_count_fds();
    assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, got, 1, 0), 1);
    close(got[0]);
    assert_int_equal(unit_count_fds(), before);
    close_pair(pair);
}

static void long_messages_are_refused(void **state)
{
    (void)state;
    int pair[2], got[1];
    char buf[16];
    open_pair(pair);
    int before = unit_count_fds();
    int fd = STDERR_FILENO;
    assert_int_equal(sock_send(pair[0], "0123456789abcdef", 16, NULL, 0, 0), 0);
    assert_int_equal(sock_send(pair[0], "0123456789abcdefg", 17, NULL, 0, 0), 0);
    assert_int_equal(sock_send(pair[0], "0123456789abcdefg", 17, &fd, 1, 0), 0);
    assert_int_equal(sock_send(pair[0], "after", 5, NULL, 0, 0), 0);
    assert_int_equal(sock_recv(pair[1], buf, 16, NULL, 0, 0), 16);
    memset(buf, 'z', sizeof buf);
    assert_int_equal(sock_recv(pair[1], buf, 8, NULL, 0, 0), -EMSGSIZE);
    assert_int_equal(buf[8], 'z');
    assert_int_equal(sock_recv(pair[1], buf, 8, got, 1, 0), -EMSGSIZE);
    close_fd(&got[0]);
    assert_int_equal(unit_count_fds(), before);
    assert_int_equal(sock_recv(pair[1], buf, sizeof buf, NULL, 0, 0), 5);
    close_pair(pair);
}

static void the_other_side_goes(void **state)
{
    (void)state;
    int pair[2];
    char buf[8];
    open_pair(pair);
    assert_int_equal(sock_send(pair[1], "last", 4, NULL, 0, 0), 0);
    close_fd(&pair[1]);
    assert_int_equal(sock_recv(pair[0], buf, sizeof buf, NULL, 0, 0), 4);
    assert_int_equal(sock_recv(pair[0], buf, sizeof buf, NULL, 0, 0), 0);
    /* SIGPIPE would end this program. */
    assert_int_equal(sock_send(pair[0], "x", 1, NULL, 0, 0), -EPIPE);
    close_pair(pair);
    assert_int_equal(sock_send(-EBADF, "x", 1, NULL, 0, 0), -EBADF);
    assert_int_equal(sock_recv(-EBADF, buf, sizeof buf, NULL, 0, 0), -EBADF);
}

static void a_full_socket_does_not_block(void **state)
{
    (void)state;
    int pair[2], r = 0, sent = 0;
    char buf[1024] = {0};
    open_pair(pair);
    while ((r = sock_send(pair[0], buf, sizeof buf, NULL, 0, MSG_DONTWAIT)) == 0)
        assert_true(++sent < 100000);
    assert_int_equal(r, -EAGAIN);
    assert_true(sent > 0);
    close_pair(pair);
}

/* A listener, a client, and a word from one to the other; below 0 = by the abstract name. */
static void talk_at(int dir, const char *name)
{
    char buf[16];
    int listener = dir < 0 ? sock_listen_abstract(name) : sock_listen_at(dir, name);
    assert_true(listener > 2);
    assert_int_equal(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
    assert_int_equal(errno, EAGAIN);
    int client = dir < 0 ? sock_connect_abstract(name) : sock_connect_at(dir, name);
    assert_true(client > 2);
    assert_int_equal(fcntl(client, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(listener, F_GETFD), FD_CLOEXEC);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    assert_true(sock_peer_is_us(server));
    assert_true(sock_peer_is_us(client));
    assert_int_equal(sock_peer_pid(server), getpid());
    assert_int_equal(sock_send(client, "hello", 5, NULL, 0, 0), 0);
    assert_int_equal(sock_recv(server, buf, sizeof buf, NULL, 0, 0), 5);
    close(server);
    close(client);
    close(listener);
}

static void paths_may_be_long(void **state)
{
    (void)state;
    char path[PATH_MAX];
    int dir = unit_dir(path);
    for (int depth = 0; depth < 12; depth++) {
        static const char name[] = "a-directory-with-quite-a-long-name-of-its-own";
        assert_int_equal(mkdirat(dir, name, 0700), 0);
        int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(below >= 0);
        close(dir);
        dir = below;
    }
    talk_at(dir, "ctl");
    struct stat st;
    assert_int_equal(fstatat(dir, "ctl", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISSOCK(st.st_mode));
    /* Its listener is gone. */
    assert_int_equal(sock_connect_at(dir, "ctl"), -ECONNREFUSED);
    close(dir);
}

static void abstract_names(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "unit-%d", getpid());
    talk_at(-1, name);
    assert_int_equal(sock_connect_abstract(name), -ECONNREFUSED);
}

struct names {
    const char *wanted;
    int count;
};

static int count_name(const char *name, void *userdata)
{
    struct names *names = userdata;
    names->count += strcmp(name, names->wanted) == 0;
    return 0;
}

static int count_names(const char *name)
{
    struct names names = {.wanted = name};
    assert_int_equal(sock_each_abstract(count_name, &names), 0);
    return names.count;
}

/* It is seen, and nobody gets in; when it is closed it is gone. */
static void a_name_alone(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "home-unit/%d", getpid());
    assert_int_equal(count_names(name), 0);
    int fd = sock_bind_abstract(name);
    assert_true(fd > 2);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(count_names(name), 1);
    assert_int_equal(sock_connect_abstract(name), -ECONNREFUSED);
    close(fd);
    assert_int_equal(count_names(name), 0);
}

/* Whatever lies where a socket should be: it is not followed, and nothing waits for it. */
static void only_sockets_are_connected_to(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    int listener = sock_listen_at(dir, "real");
    assert_true(listener >= 0);
    assert_int_equal(sock_connect_at(dir, "none"), -ENOENT);
    assert_int_equal(symlinkat("real", dir, "link"), 0);
    assert_int_equal(sock_connect_at(dir, "link"), -ECONNREFUSED);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(sock_connect_at(dir, "fifo"), -ECONNREFUSED);
    assert_int_equal(mkdirat(dir, "dir", 0700), 0);
    assert_int_equal(sock_connect_at(dir, "dir"), -ECONNREFUSED);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(sock_listen_at(proc, "ctl") < 0);
    close(proc);
    close(listener);
    close(dir);
}

static void a_second_listener_does_not_take_the_name(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "unit-second-%d", getpid());
    int first = sock_listen_abstract(name);
    assert_int_equal(sock_listen_abstract(name), -EADDRINUSE);
    assert_true(first >= 0);
    int client = sock_connect_abstract(name);
    assert_true(client >= 0);
    int server = accept4(first, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    close(server);
    close(client);
    close(first);
}

/* Whoever listens may be stopped: who comes too late is told so, and does not wait for it. */
static void a_crowd_at_the_door_does_not_block(void **state)
{
    (void)state;
    int clients[256], count = 0;
    int dir = unit_dir(NULL);
    int listener = sock_listen_at(dir, "ctl");
    assert_true(listener >= 0);
    do
        clients[count] = sock_connect_at(dir, "ctl");
    while (clients[count] >= 0 && ++count < (int)ARRAY_SIZE(clients));
    assert_true(count >= 64 && count < (int)ARRAY_SIZE(clients));
    assert_int_equal(clients[count], -EAGAIN);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    int late = sock_connect_at(dir, "ctl");
    assert_true(late >= 0);
    close(late);
    close(server);
    while (count > 0)
        close(clients[--count]);
    close(listener);
    close(dir);
}

static void connect_as_somebody_else(void *data)
{
    (void)data;
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    char name[64], c;
    snprintf(name, sizeof name, "unit-peer-%d", getppid());
    int fd = sock_connect_abstract(name);
    EXPECT(fd >= 0);
    EXPECT(!sock_peer_is_us(fd));
    fcntl(fd, F_SETFL, 0);
    EXPECT(read(fd, &c, 1) == 0);
}

static void strangers_are_told_apart(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("connections of another uid: this is not root");
    char name[64];
    int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(name, sizeof name, "unit-peer-%d", getpid());
    int listener = sock_listen_abstract(name);
    assert_true(listener >= 0);
    fcntl(listener, F_SETFL, 0);
    pid_t pid = unit_fork(connect_as_somebody_else, NULL);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    assert_false(sock_peer_is_us(server));
    assert_int_equal(sock_peer_pid(server), pid);
    close(server);
    assert_int_equal(unit_join(pid), 0);
    assert_false(sock_peer_is_us(dir));
    assert_int_equal(sock_peer_pid(dir), 0);
    close(listener);
    close(dir);
}

static void with_no_standard_streams(void *data)
{
    const int *dir = data;
    int spare = fcntl(STDERR_FILENO, F_DUPFD, 20);
    int pair[2], got[2], sent[2];
    char buf[4];
    close(0);
    close(1);
    close(2);
    bool fine = sock_pair(pair) == 0 && pair[0] > 2 && pair[1] > 2;
    int listener = sock_listen_at(*dir, "low");
    int client = sock_connect_at(*dir, "low");
    fine = fine && listener > 2 && client > 2;
    sent[0] = sent[1] = spare;
    fine = fine && sock_send(pair[0], "x", 1, sent, 2, 0) == 0 &&
           sock_recv(pair[1], buf, sizeof buf, got, 2, 0) == 1 && got[0] > 2 && got[1] > 2;
    fine = fine && !unit_is_open(0) && !unit_is_open(1) && !unit_is_open(2);
    dup2(spare, 2);
    EXPECT(fine);
}

static void nothing_lands_below_three(void **state)
{
    (void)state;
    int dir = unit_dir(NULL);
    unit_in_child(with_no_standard_streams, &dir);
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_borders),
        cmocka_unit_test(descriptors_travel),
        cmocka_unit_test(surplus_descriptors_are_closed),
        cmocka_unit_test(a_flood_of_descriptors_is_closed),
        cmocka_unit_test(long_messages_are_refused),
        cmocka_unit_test(the_other_side_goes),
        cmocka_unit_test(a_full_socket_does_not_block),
        cmocka_unit_test(paths_may_be_long),
        cmocka_unit_test(abstract_names),
        cmocka_unit_test(a_name_alone),
        cmocka_unit_test(only_sockets_are_connected_to),
        cmocka_unit_test(a_second_listener_does_not_take_the_name),
        cmocka_unit_test(a_crowd_at_the_door_does_not_block),
        cmocka_unit_test(strangers_are_told_apart),
        cmocka_unit_test(nothing_lands_below_three),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
