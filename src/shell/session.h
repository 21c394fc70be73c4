/* What the files of this layer share of a session. */
#ifndef NACRE_SHELL_SESSION_H
#define NACRE_SHELL_SESSION_H

#include <nacre/session.h>
#include <stdbool.h>
#include <sys/types.h>

struct nacre_session {
    pid_t owner; /* the process that opened it */
    nacre_id id;
    bool is_local;
    nacre_settings *settings; /* never NULL; read from any thread */
    nacre_backend_ops ops;
    void *self;
};

/* NACRE_EFORKED in a forked child. */
int session_check(const nacre_session *s, nacre_error *err);

#endif
