#include "sys/apart.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "sys/fd.h"

void apart_detach(const char *name)
{
    setsid();
    /* The kernel sees an exec through a descriptor and would call us by its number. */
    prctl(PR_SET_NAME, name);
    umask(077);
    if (chdir("/") < 0)
        _exit(1);
    /* Not close-on-exec: it may come to lie where it has to stay. */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            _exit(1);
    fd_close_from(APART_FD + 1);
    fcntl(APART_FD, F_SETFD, FD_CLOEXEC);
}

void apart_shield(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int i = 1; i < NSIG; i++)
        sigaction(i, &dfl, NULL);
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, SIGBUS);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}
