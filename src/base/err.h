/* Filling a caller's nacre_error. The functions return the code, so that `return err_set(...)`
 * reads as one thought. err may be NULL. */
#pragma once

#include <nacre/error.h>

#include "base/defs.h"

#define err_set(err, code, ...) err_sys(err, code, 0, "", __VA_ARGS__)

/* The same with an errno (positive) and the stage; ": <text of errno>" is appended. */
int err_sys(nacre_error *err, int code, int sys_errno, const char *stage, const char *fmt, ...)
    PRINTF(5, 6);

/* The text of an errno without locale or static buffer. */
const char *err_text(int sys_errno);
