#include "sys/fsize.h"

#include <sys/resource.h>
#include <time.h>

static sigset_t only_xfsz(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

struct fsize_shelter fsize_shelter_enter(void)
{
    struct fsize_shelter shelter = {.on = false};
    struct rlimit limit;
    sigset_t set = only_xfsz(), pending;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        return shelter;
    if (pthread_sigmask(SIG_BLOCK, &set, &shelter.before) != 0)
        return shelter;
    shelter.on = true;
    shelter.pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    return shelter;
}

void fsize_shelter_leave(struct fsize_shelter *shelter)
{
    struct timespec now = {0};
    sigset_t set = only_xfsz();
    if (!shelter->on)
        return;
    if (!shelter->pending)
        sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &shelter->before, NULL);
}
