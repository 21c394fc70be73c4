/*
 * A command with a terminal. It does not lead its session: whoever does takes the terminal along
 * when it ends, and a command's end must not end what it leaves behind. So the stand-in makes two
 * children of the keeper in its place: a leader, which takes the terminal and sleeps until nobody
 * else is left, and the command, in the foreground. All of it happens after the go, and nothing of
 * it for a command with pipes.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"
#include "sys/sock.h"
#include "sys/syscalls.h"

#define LEADER_NAME "nacre-terminal"
#define DRAIN_MOST                                                                \
    ((size_t)256 * 1024) /* more than a terminal holds: somebody goes on printing \
                          */
#define REVIVE_NS   (INT64_C(50) * 1000000)
#define REVIVE_MOST (INT64_C(1) * 1000000000)

/* -- In the stand-in --------------------------------------------------------------------------- */

/* What a fork does not hand on. */
static void depend_on_keeper(const struct keeper *k)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != k->st.keeper_pid)
        sys_exit(127);
}

/* The terminal's own end, which stays with the keeper; it is told by that of the command. */
static int open_master(const struct spec_head *spec, int *ret_slave)
{
    struct winsize size = {.ws_col = spec->columns, .ws_row = spec->rows};
    struct termios modes;
    int unlocked = 0;
    cleanup_close int master =
        fd_lift_consume(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0 ||
        ioctl(master, TIOCSWINSZ, &size) < 0)
        return -errno;
    /* Of whatever /dev is mounted here. */
    *ret_slave = fd_lift_consume(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (*ret_slave < 0)
        return -errno;
    if (tcgetattr(*ret_slave, &modes) == 0) {
        modes.c_iflag |= IUTF8;
        tcsetattr(*ret_slave, TCSANOW, &modes);
    }
    return TAKE_FD(master);
}

/* 0, with the terminal as ours and the keeper told; or -errno. */
static int lead(const struct keeper *k, const struct standin *s, int *ret_slave)
{
    char word = 0;
    struct stat st;
    if (setsid() < 0)
        return -errno;
    cleanup_close int master = open_master(&k->page->spec, ret_slave);
    if (master < 0)
        return master;
    if (ioctl(*ret_slave, TIOCSCTTY, 0) < 0 || fstat(*ret_slave, &st) < 0)
        return -errno;
    k->page->input = (struct foreign_file){.device = st.st_dev, .inode = st.st_ino};
    return sock_send(s->fd[FD_TTY_WORD], &word, sizeof word, &master, 1, 0);
}

/* The command, on a stack of its own in the memory of the leader. */
struct newcomer {
    const struct keeper *k;
    int slave;
    void (*go_on)(const struct keeper *k, int error);
};

static int take_foreground(const struct keeper *k, int slave)
{
    depend_on_keeper(k);
    k->page->command = getpid();
    if (setpgid(0, 0) < 0 || tcsetpgrp(slave, getpid()) < 0)
        return -errno;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(slave, fd) < 0)
            return -errno;
    return 0;
}

static void come(void *argument)
{
    const struct newcomer *n = argument;
    n->go_on(n->k, take_foreground(n->k, n->slave));
}

static int make_command(struct newcomer *newcomer)
{
    char *stack = mmap(NULL, STANDIN_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    return MIN(birth_sibling(stack, come, newcomer), 0);
}

/* It holds nothing, so the terminal ends when the command's side does. Its memory is the command's,
 * until that has executed: then nobody writes into born any more. */
static _Noreturn void sleep_for_good(int born)
{
    struct pollfd executed = {.fd = born};
    sys_close_range(0, (unsigned)born - 1, 0);
    sys_close_range((unsigned)born + 1, ~0u, 0);
    poll(&executed, 1, -1);
    sys_close_range((unsigned)born, (unsigned)born, 0);
    birth_sleep();
}

int tty_become(const struct keeper *k, const struct standin *s,
               void (*go_on)(const struct keeper *k, int error))
{
    struct newcomer newcomer = {.k = k, .slave = -EBADF, .go_on = go_on};
    pid_t pid = sys_fork_sibling();
    if (pid != 0)
        return MIN(pid, 0);
    depend_on_keeper(k);
    k->page->leader = k->page->st.leader_pid = getpid();
    prctl(PR_SET_NAME, LEADER_NAME, 0, 0, 0);
    int r = lead(k, s, &newcomer.slave);
    if (r == 0)
        r = make_command(&newcomer);
    if (r < 0)
        return r;
    sleep_for_good(k->fd[FD_BORN]);
}

/* -- In the keeper ----------------------------------------------------------------------------- */

int tty_open_line(struct keeper *k)
{
    int pair[2];
    int r = sock_pair(pair);
    if (r < 0)
        return r;
    k->fd[FD_TTY] = pair[0];
    k->fd[FD_TTY_WORD] = pair[1];
    return 0;
}

/* What programs ask a terminal is answered at once, or not at all: somebody who asks and never
 * reads holds up nobody. */
static void answer_program(void *self, const char *text, size_t size)
{
    const struct keeper *k = self;
    if (k->fd[FD_IN] >= 0)
        (void)!write(k->fd[FD_IN], text, size);
}

static void hear_output(void *self, nacre_stream stream, const char *data, size_t size)
{
    struct keeper *k = self;
    terminal_feed(&k->session.room->terminal, data, size);
    if (k->hear_after)
        k->hear_after(k, stream, data, size);
}

static void begin_terminal(struct keeper *k)
{
    struct terminal *t = &k->session.room->terminal;
    terminal_init(t, k->spec.columns, k->spec.rows);
    t->answer = answer_program;
    t->answer_self = k;
    k->hear_after = k->log.hear;
    k->log.hear = hear_output;
}

void tty_begin(struct keeper *k)
{
    char word;
    int master = -EBADF;
    k->is_terminal = k->spec.columns > 0;
    if (k->is_terminal)
        sock_recv(k->fd[FD_TTY], &word, sizeof word, &master, 1, MSG_DONTWAIT);
    close_fd(&k->fd[FD_TTY]);
    if (!k->is_terminal)
        return;
    loop_close(k, FD_OUT);
    loop_close(k, FD_ERR);
    close_fd(&k->fd[FD_IN]);
    k->fd[FD_OUT] = master;
    k->fd[FD_IN] = fd_dup(master);
    k->input = k->page->input;
    k->revive_pause = REVIVE_NS;
    k->own_columns = k->st.columns;
    k->own_rows = k->st.rows;
    begin_terminal(k);
    loop_watch(k, FD_OUT);
}

struct others {
    pid_t leader;
    bool any;
};

/* Our leader cannot be traced, and may be hidden like the setuid programs of a user. */
static int note_other(pid_t pid, void *userdata)
{
    struct others *others = userdata;
    struct proc_stat stat;
    if (pid != others->leader)
        others->any =
            others->any || proc_is_hidden(pid) || (proc_stat(pid, &stat) == 0 && stat.alive);
    return 0;
}

static bool only_leader_is_listed(const struct keeper *k)
{
    struct proc_ref two[2];
    struct others others = {.leader = k->leader};
    if (proc_each_child(getpid(), note_other, &others) == 0)
        return !others.any;
    return proc_tree(getpid(), two, ARRAY_SIZE(two), NULL, NULL) == 1 && two[0].pid == k->leader;
}

bool tty_is_alone(const struct keeper *k)
{
    if (k->leader <= 0)
        return false;
    if (tree_is_group(k))
        return kill(-k->main, 0) < 0 && errno == ESRCH;
    /* A list of children that end meanwhile may lack some that do not. */
    for (int look = 0; look < 2; look++)
        if (!only_leader_is_listed(k))
            return false;
    return true;
}

static int is_other(pid_t pid, void *userdata)
{
    const struct keeper *k = userdata;
    return pid != k->leader;
}

bool tty_is_over(struct keeper *k)
{
    if (k->leader <= 0 || tree_is_group(k) || !k->proc_ours || !proc_is_only_child(k->leader))
        return false;
    return k->fd[FD_LEAF] >= 0 ? cgroup_each_member(k->fd[FD_CGROUP], is_other, k) == 0
                               : tree_is_empty(k);
}

/* What was printed is read first: the end of the leader hangs up. */
void tty_end(struct keeper *k)
{
    drain_now(k);
    kill(k->leader, SIGKILL);
    (void)RETRY(waitpid(k->leader, NULL, 0));
    k->leader = 0;
}

/* Nobody has it open at present. It ends with that, unless the command, which it still controls,
 * opens it again. */
void tty_hang_up(struct keeper *k)
{
    k->hung_up = true;
    loop_ignore(k, FD_OUT);
    if (k->main_reaped)
        return;
    k->at[AT_REVIVE] = clock_mono_ns() + k->revive_pause;
    k->revive_pause = MIN(2 * k->revive_pause, REVIVE_MOST);
}

void tty_revive(struct keeper *k)
{
    loop_watch(k, FD_OUT);
}

void tty_drain(struct keeper *k, ssize_t (*pull)(struct keeper *k, nacre_stream stream))
{
    ssize_t n;
    for (size_t got = 0; got < DRAIN_MOST && (n = pull(k, NACRE_STDOUT)) > 0; got += (size_t)n)
        ;
}

/* Where lines are read, the character that ends the input; else there is none to write. */
void tty_end_input(const struct keeper *k)
{
    struct termios modes;
    if (tcgetattr(k->fd[FD_OUT], &modes) < 0)
        return;
    char end = (char)modes.c_cc[VEOF];
    (void)!write(k->fd[FD_IN], &end, sizeof end);
}

int tty_resize(struct keeper *k, unsigned columns, unsigned rows)
{
    struct terminal *t = &k->session.room->terminal;
    if (!k->is_terminal || k->state == ST_DONE)
        return -ENOTTY;
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    drain_now(k);
    if (ioctl(k->fd[FD_OUT], TIOCSWINSZ, &size) < 0)
        return -errno;
    terminal_resize(t, columns, rows);
    k->st.columns = t->columns;
    k->st.rows = t->rows;
    mark_note(k, MARK_SIZE);
    publish(k);
    return 0;
}
