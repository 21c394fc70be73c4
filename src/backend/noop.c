/* The backend that starts nothing: the smallest one there is, for tests of what is above. */
#include <nacre/backend.h>

#include "base/err.h"

static int noop_start(void *self UNUSED, const nacre_command *command UNUSED,
                      nacre_op **ret_op UNUSED, nacre_error *reterr)
{
    return err_set(reterr, NACRE_EPERM, "the noop backend runs nothing");
}

const nacre_backend *nacre_backend_noop(void)
{
    static const nacre_backend_ops ops = {
        .version = NACRE_BACKEND_VERSION, .size = sizeof ops, .name = "noop", .start = noop_start};
    static const nacre_backend noop = {.ops = &ops};
    return &noop;
}
