/* Errors: the names of codes, and the sentences that reach the caller. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *nacre_code_name(int code)
{
    switch (code) {
    case NACRE_OK:
        return "ok";
    case NACRE_EINVAL:
        return "invalid argument";
    case NACRE_ENOMEM:
        return "out of memory";
    case NACRE_ENOTFOUND:
        return "not found";
    case NACRE_EAMBIGUOUS:
        return "ambiguous";
    case NACRE_EPERM:
        return "not permitted";
    case NACRE_EBACKEND:
        return "backend failure";
    case NACRE_ESTART:
        return "start failed";
    case NACRE_ELIMIT:
        return "limit reached";
    case NACRE_ETIMEOUT:
        return "time is over";
    case NACRE_EIO:
        return "input/output failure";
    case NACRE_EUNSUPPORTED:
        return "not supported";
    case NACRE_ECLOSED:
        return "takes no input";
    case NACRE_EFORKED:
        return "handle of another process";
    case NACRE_EBUSY:
        return "busy";
    case NACRE_EFORBIDDEN:
        return "forbidden";
    default:
        return "unknown";
    }
}

const char *err_text(int sys_errno)
{
    const char *text = strerrordesc_np(sys_errno);
    return text ? text : "unknown error";
}

PRINTF(5, 0)
static void fill(nacre_error *err, int code, int sys_errno, const char *stage, const char *fmt,
                 va_list ap)
{
    *err = (nacre_error){.code = code, .sys_errno = sys_errno};
    snprintf(err->stage, sizeof err->stage, "%s", stage);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    if (sys_errno > 0 && n >= 0 && (size_t)n < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", err_text(sys_errno));
}

int err_set(nacre_error *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        fill(err, code, 0, "", fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_sys(nacre_error *err, int code, int sys_errno, const char *stage, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        fill(err, code, sys_errno, stage, fmt, ap);
        va_end(ap);
    }
    return code;
}
