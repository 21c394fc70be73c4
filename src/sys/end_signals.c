#include "sys/end_signals.h"

#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "sys/fd.h"

int end_signals_catch(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaction(SIGPIPE, &ignore, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return fd_lift_consume(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}
