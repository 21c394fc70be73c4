/* Errors: the names of codes, and the sentences that reach the caller. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *nacre_code_name(int code)
{
    static const char *const names[] = {
        [NACRE_OK] = "ok",
        [-NACRE_EINVAL] = "invalid argument",
        [-NACRE_ENOMEM] = "out of memory",
        [-NACRE_ENOTFOUND] = "not found",
        [-NACRE_EAMBIGUOUS] = "ambiguous",
        [-NACRE_EPERM] = "not permitted",
        [-NACRE_EBACKEND] = "backend failure",
        [-NACRE_ESTART] = "start failed",
        [-NACRE_ELIMIT] = "limit reached",
        [-NACRE_ETIMEOUT] = "time is over",
        [-NACRE_EIO] = "input/output failure",
        [-NACRE_EUNSUPPORTED] = "not supported",
        [-NACRE_ECLOSED] = "takes no input",
        [-NACRE_EFORKED] = "handle of another process",
        [-NACRE_EBUSY] = "busy",
        [-NACRE_EFORBIDDEN] = "forbidden",
    };
    return code <= 0 && code > -(int)ARRAY_SIZE(names) ? names[-code] : "unknown";
}

const char *err_text(int sys_errno)
{
    const char *text = strerrordesc_np(sys_errno);
    return text ? text : "unknown error";
}

int err_sys(nacre_error *err, int code, int sys_errno, const char *stage, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    *err = (nacre_error){.code = code, .sys_errno = sys_errno};
    snprintf(err->stage, sizeof err->stage, "%s", stage);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    if (sys_errno > 0 && n >= 0 && (size_t)n < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", err_text(sys_errno));
    va_end(ap);
    return code;
}
