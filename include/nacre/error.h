/*
 * Errors. Every fallible function returns an int: >= 0 is success, < 0 is one of the codes
 * below. The detail goes into a caller-owned nacre_error, always the last parameter, which may
 * be NULL. Nothing is allocated and nothing is thread-local, so errors work when memory is
 * short and from any thread.
 */
#ifndef NACRE_ERROR_H
#define NACRE_ERROR_H

#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef enum nacre_code {
    NACRE_OK = 0,
    NACRE_EINVAL = -1,        /* an argument is wrong; the message names it */
    NACRE_ENOMEM = -2,        /* out of memory */
    NACRE_ENOTFOUND = -3,     /* no shell with that id */
    NACRE_EAMBIGUOUS = -4,    /* several shells begin with that prefix */
    NACRE_EPERM = -5,         /* not permitted: another user's, or a backend that refuses */
    NACRE_EBACKEND = -6,      /* the backend failed: keeper missing, of another format, gone */
    NACRE_ESTART = -7,        /* the command could not be started; see stage and sys_errno */
    NACRE_ELIMIT = -8,        /* a cap or a limit of the system was reached */
    NACRE_ETIMEOUT = -9,      /* the time given to the call is over; the shell goes on */
    NACRE_EIO = -10,          /* the home or a run directory cannot be read or written */
    NACRE_EUNSUPPORTED = -11, /* this kernel, backend or kind of shell cannot do that */
    NACRE_ECLOSED = -12,      /* the shell takes no input: exited, or started without */
    NACRE_EFORKED = -13,      /* the handle belongs to the process that opened it */
    NACRE_EBUSY = -14,        /* something else is in the way just now; try again */
    NACRE_EFORBIDDEN = -15    /* the shell belongs to another session; see session.h */
} nacre_code;

typedef struct nacre_error {
    int code;       /* a nacre_code */
    int sys_errno;  /* the errno behind it, or 0 */
    char stage[24]; /* what was being done: "chdir", "exec", "spec", ...; may be empty */
    char msg[240];  /* one sentence: the cause, and what to do */
} nacre_error;

#define NACRE_ERROR_INIT \
    {                    \
        0, 0, {0},       \
        {                \
            0            \
        }                \
    }

/* The name of a code, such as "not found". Never NULL; valid forever. */
NACRE_API const char *nacre_code_name(int code);

NACRE_END_DECLS

#endif
