#include "console/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/defs.h"

static int stop_signals(sigset_t *ret)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(ret);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) < 0)
            return -errno;
        if (action.sa_handler != SIG_IGN)
            sigaddset(ret, signals[i]);
    }
    return 0;
}

int signals_catch(void)
{
    return signals_catch_also(NULL, 0);
}

int signals_catch_also(const int *more, size_t count)
{
    sigset_t set;
    int r = stop_signals(&set);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, more[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return RETRY(read(fd, &info, sizeof info)) == sizeof info ? (int)info.ssi_signo : 0;
}

void signals_die_by(int number)
{
    sigset_t set;
    struct sigaction deadly = {.sa_handler = SIG_DFL};
    sigemptyset(&set);
    sigaddset(&set, number);
    sigaction(number, &deadly, NULL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}
