/*
 * Writing files in a host that limits their size. A write beyond the limit fails with EFBIG, and
 * kills the process with SIGXFSZ besides, unless the host ignores that. The signal is for the
 * thread that writes, so that it can be kept from it without anybody noticing: until the end of the
 * scope, after
 *
 *     FSIZE_SHELTER();
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/defs.h"

struct fsize_shelter {
    bool on;
    bool pending; /* one was, before us: it is not ours to take */
    sigset_t before;
};

struct fsize_shelter fsize_shelter_enter(void);
void fsize_shelter_leave(struct fsize_shelter *shelter);

#define FSIZE_SHELTER()                                                                  \
    __attribute__((cleanup(fsize_shelter_leave))) UNUSED struct fsize_shelter shelter_ = \
        fsize_shelter_enter()
