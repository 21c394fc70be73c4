#include "console/live.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "console/signals.h"

#define SLICE_MS 1000 /* a watch wants to be asked so often, whatever its descriptor says */
#define FLUSH_MS 200  /* for the last output to come and go, once the tree has been ended */

/* A write this small does not block after poll() said that there is room. */
#define SAFE_WRITE 4096

static void *ender_main(void *userdata)
{
    struct ender *e = userdata;
    nacre_kill(e->session, &e->id, &e->options, &e->result, &e->error);
    eventfd_write(e->done_fd, 1);
    return NULL;
}

static void ender_start(struct live *l, bool cancel)
{
    struct ender *e = &l->ender;
    if (e->started)
        return;
    e->session = l->session;
    e->id = l->id;
    e->options = (nacre_kill_options)NACRE_KILL_OPTIONS_INIT;
    e->options.cancel = cancel;
    e->started = true;
    if (pthread_create(&e->thread, NULL, ender_main, e) != 0) {
        e->thread = pthread_self();
        ender_main(e);
    }
}

static void ender_join(struct ender *e)
{
    if (!e->started || e->done)
        return;
    if (!pthread_equal(e->thread, pthread_self()))
        pthread_join(e->thread, NULL);
    e->done = true;
}

/* Somebody may read there, and can go away: a file or /dev/null cannot. */
static bool has_reader(int fd)
{
    struct stat st;
    return isatty(fd) || (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

/* Who reads stderr alone is missed only where nobody reads stdout. */
static void note_readers(struct live *l)
{
    l->readers[0] = has_reader(STDOUT_FILENO) ? STDOUT_FILENO : -1;
    l->readers[1] = l->readers[0] < 0 && has_reader(STDERR_FILENO) ? STDERR_FILENO : -1;
}

int live_init(struct live *l, nacre_session *session, bool copying)
{
    *l = (struct live){.session = session, .copying = copying, .signal_fd = -EBADF};
    l->ender.done_fd = -EBADF;
    note_readers(l);

    struct sigaction ignore = {.sa_handler = SIG_IGN};
    l->signal_fd = signals_catch();
    if (l->signal_fd < 0)
        return l->signal_fd;
    if (sigaction(SIGPIPE, &ignore, NULL) < 0)
        return -errno;
    l->ender.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return l->ender.done_fd < 0 ? -errno : 0;
}

void live_done(struct live *l)
{
    ender_join(&l->ender);
    nacre_watch_close(l->watch);
    close_fd(&l->signal_fd);
    close_fd(&l->ender.done_fd);
}

/* The first signal ends the tree with the usual grace; Ctrl-C while that goes on ends the grace. */
static void take_stop_signals(struct live *l)
{
    for (int number; (number = signals_take(l->signal_fd)) != 0;) {
        bool insist = l->ender.started && number == SIGINT;
        if (l->signal == 0)
            l->signal = number;
        ender_start(l, true);
        if (insist) {
            nacre_kill_options now = NACRE_KILL_OPTIONS_INIT;
            now.signal = SIGKILL;
            now.cancel = 1;
            nacre_kill(l->session, &l->id, &now, NULL, NULL);
        }
    }
}

static bool pending(const struct live *l)
{
    return l->written < l->size;
}

static void stop_copying(struct live *l)
{
    l->copying = false;
    l->written = l->size = 0;
}

/* Writes what there is room for. A write that blocks would be deaf to signals, and O_NONBLOCK is
 * not ours to set: others share the file. Where the kernel cannot do it, a small write is safe
 * after poll(); a file on disk takes everything. */
static ssize_t write_without_waiting(int fd, const char *data, size_t size)
{
    struct iovec iov = {.iov_base = (char *)data, .iov_len = size};
    ssize_t n = RETRY(pwritev2(fd, &iov, 1, -1, RWF_NOWAIT));
    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != ESPIPE))
        return n;
    struct stat st;
    bool on_disk = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    return RETRY(write(fd, data, on_disk ? size : MIN(size, (size_t)SAFE_WRITE)));
}

/* Nobody reads any more, whether there is something to write or not: the tree ends. */
static void lose_reader(struct live *l)
{
    l->readers[0] = l->readers[1] = -1;
    if (l->signal == 0)
        l->signal = SIGPIPE;
    stop_copying(l);
    ender_start(l, true);
}

static void write_pending(struct live *l)
{
    ssize_t n = write_without_waiting(l->target, l->data + l->written, l->size - l->written);
    if (n >= 0) {
        l->written += (size_t)n;
        return;
    }
    if (errno == EAGAIN)
        return;
    if (errno == EPIPE) {
        lose_reader(l);
        return;
    }
    l->write_errno = errno;
    stop_copying(l);
    ender_start(l, true);
}

static int take_shell_event(struct live *l, nacre_error *reterr)
{
    nacre_event event = {0};
    int r = nacre_watch_next(l->watch, l->data, sizeof l->data, &event, reterr);
    if (r < 0)
        return r;
    l->idle = event.kind == NACRE_EVENT_NONE || event.kind == NACRE_EVENT_END;
    if (event.kind == NACRE_EVENT_OUTPUT && l->copying) {
        l->missed += event.piece.gap_bytes;
        l->next = event.piece.offset + event.piece.size;
        l->target = event.piece.stream == NACRE_STDERR ? STDERR_FILENO : STDOUT_FILENO;
        l->size = event.piece.size;
        l->written = 0;
    }
    l->ended |= event.kind == NACRE_EVENT_END;
    l->settled |= event.kind == NACRE_EVENT_SETTLED || l->ended;
    return 0;
}

/* Waits for whatever can happen next; only looks if there is more to read at once. */
static int wait_step(struct live *l)
{
    enum { SIGNALS, ENDER, READER, OTHER_READER, DATA };
    struct pollfd fds[] = {
        [SIGNALS] = {.fd = l->signal_fd, .events = POLLIN},
        [ENDER] = {.fd = l->ender.done ? -1 : l->ender.done_fd, .events = POLLIN},
        [READER] = {.fd = l->readers[0]},
        [OTHER_READER] = {.fd = l->readers[1]},
        [DATA] = {.fd = l->ended ? -1 : nacre_watch_fd(l->watch), .events = POLLIN},
    };
    if (pending(l))
        fds[DATA] = (struct pollfd){.fd = l->target, .events = POLLOUT};
    int timeout = !pending(l) && !l->idle ? 0 : l->ender.done ? FLUSH_MS : SLICE_MS;
    int n = RETRY(poll(fds, ARRAY_SIZE(fds), timeout));
    if (n < 0)
        return -errno;
    if (n == 0 && timeout == FLUSH_MS) {
        stop_copying(l);
        l->gave_up = true;
    }
    if (fds[SIGNALS].revents)
        take_stop_signals(l);
    if (fds[ENDER].revents)
        ender_join(&l->ender);
    if (fds[DATA].revents && pending(l))
        write_pending(l);
    if ((fds[READER].revents | fds[OTHER_READER].revents) & (POLLERR | POLLHUP) && !l->ended)
        lose_reader(l);
    return 0;
}

/* Takes events and waits by turns, until done says so. */
static int go_on_until(struct live *l, bool (*done)(const struct live *l), nacre_error *reterr)
{
    while (!done(l)) {
        int r = pending(l) ? 0 : take_shell_event(l, reterr);
        if (r < 0)
            return r;
        if (done(l))
            break;
        r = wait_step(l);
        if (r < 0)
            return err_sys(reterr, NACRE_EIO, -r, "poll", "cannot wait for the command");
    }
    return 0;
}

static bool answered(const struct live *l)
{
    if (pending(l))
        return false;
    return l->ender.started ? l->ender.done && (l->ended || l->gave_up) : l->settled;
}

static bool tree_ended(const struct live *l)
{
    return l->ender.done;
}

int live_follow(struct live *l, nacre_error *reterr)
{
    return go_on_until(l, answered, reterr);
}

void live_seen(struct live *l, uint64_t missed, uint64_t next, int signal)
{
    l->copying = false;
    l->missed = missed;
    l->next = next;
    l->settled = signal == 0;
    l->signal = signal;
    if (signal != 0)
        ender_start(l, true);
}

uint64_t live_missed(const struct live *l, const nacre_record *record)
{
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    bool at_the_end = record->tree == NACRE_TREE_EMPTY && end > l->next;
    return l->missed + (at_the_end ? end - l->next : 0);
}

int live_end(struct live *l, nacre_error *reterr)
{
    stop_copying(l);
    ender_start(l, false);
    return go_on_until(l, tree_ended, reterr);
}
