#include "console/raw_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "console/signals.h"
#include "sys/fd.h"

#define LEAVE_MS 500 /* for the last bytes, to a terminal that does not read */
#define SMALL    256 /* does not wait after poll() said that there is room */

/* Beside those that mean "stop". */
static const int about_us[] = {SIGWINCH, SIGCONT, SIGTSTP, SIGQUIT};

bool raw_terminal_is_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

void raw_terminal_size(unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col ? size.ws_col : 80;
    *ret_rows = size.ws_row ? size.ws_row : 24;
}

void raw_terminal_keys(struct raw_terminal *t)
{
    struct termios raw = t->saved;
    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    t->taken = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void raw_terminal_lines(struct raw_terminal *t, char end, char other_end)
{
    struct termios lines = t->saved;
    lines.c_lflag |= ICANON | ECHO | ECHOE | ECHOK;
    lines.c_lflag &= ~(tcflag_t)ISIG;
    lines.c_iflag |= ICRNL;
    lines.c_cc[VEOL] = end ? (cc_t)end : _POSIX_VDISABLE;
    lines.c_cc[VEOL2] = (cc_t)other_end;
    t->taken = tcsetattr(STDIN_FILENO, TCSANOW, &lines) == 0;
}

static void take_over(struct raw_terminal *t)
{
    raw_terminal_keys(t);
    buf_str(&t->pending, t->enter);
}

int raw_terminal_open(struct raw_terminal *t, const char *enter, const char *leave)
{
    *t = (struct raw_terminal){
        .out = -EBADF, .enter = enter, .leave = leave, .pending = BUF_UP_TO(SIZE_MAX / 2)};
    sigprocmask(SIG_SETMASK, NULL, &t->blocked);
    t->signal_fd = signals_catch_also(about_us, ARRAY_SIZE(about_us));
    if (t->signal_fd < 0)
        return t->signal_fd;
    if (tcgetattr(STDIN_FILENO, &t->saved) < 0)
        return -errno;
    t->out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    take_over(t);
    return 0;
}

int raw_terminal_write(struct raw_terminal *t)
{
    int fd = t->out >= 0 ? t->out : STDOUT_FILENO;
    while (raw_terminal_owes(t)) {
        size_t size = t->pending.len - t->written;
        if (t->out < 0)
            size = MIN(size, (size_t)SMALL);
        ssize_t n = RETRY(write(fd, t->pending.data + t->written, size));
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        t->written += (size_t)n;
        if (t->out < 0)
            break;
    }
    if (!raw_terminal_owes(t))
        t->pending.len = t->written = 0;
    return 0;
}

/* Whatever is not read in time is not waited for. */
static void write_rest(struct raw_terminal *t)
{
    int64_t deadline = clock_deadline(LEAVE_MS);
    struct pollfd poller = {.fd = STDOUT_FILENO, .events = POLLOUT};
    while (raw_terminal_owes(t) && clock_left_ms(deadline) > 0)
        if (poll(&poller, 1, clock_left_ms(deadline)) > 0 && raw_terminal_write(t) < 0)
            return;
}

static void restore_terminal(struct raw_terminal *t)
{
    if (!t->taken)
        return;
    buf_str(&t->pending, t->leave);
    write_rest(t);
    tcsetattr(STDIN_FILENO, TCSANOW, &t->saved);
    t->taken = false;
}

void raw_terminal_close(struct raw_terminal *t)
{
    restore_terminal(t);
    close_fd(&t->out);
    if (t->signal_fd >= 0)
        sigprocmask(SIG_SETMASK, &t->blocked, NULL);
    close_fd(&t->signal_fd);
    buf_done(&t->pending);
}

/* Somebody else has the terminal until we go on. */
static void stop_for_a_while(struct raw_terminal *t)
{
    restore_terminal(t);
    raise(SIGSTOP);
    take_over(t);
}

enum raw_event raw_terminal_hear(struct raw_terminal *t, int *ret_signal)
{
    switch (*ret_signal = signals_take(t->signal_fd)) {
    case 0:
        return RAW_NOTHING;
    case SIGWINCH:
        return RAW_RESIZED;
    case SIGTSTP:
        stop_for_a_while(t);
        return RAW_BACK;
    case SIGCONT:
        take_over(t);
        return RAW_BACK;
    default:
        return RAW_STOP;
    }
}

ssize_t raw_terminal_read(char *bytes, size_t size)
{
    struct pollfd poller = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&poller, 1, 0) <= 0)
        return 0;
    ssize_t n = RETRY(read(STDIN_FILENO, bytes, size));
    return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : n < 0 ? -errno : -EIO;
}
