/* The backend that refuses everything: the smallest one there is, for tests of what is above. */
#include <nacre/backend.h>

#include "base/defs.h"
#include "base/err.h"

static int refuse(nacre_error *err)
{
    return err_set(err, NACRE_EPERM, "the noop backend runs nothing");
}

static int noop_create(void *self UNUSED, const nacre_command *command UNUSED,
                       nacre_id *ret_id UNUSED, nacre_watch **ret_watch UNUSED, nacre_error *reterr)
{
    return refuse(reterr);
}

static int64_t noop_output(void *self UNUSED, const nacre_id *id UNUSED, uint64_t *cursor UNUSED,
                           unsigned streams UNUSED, void *buf UNUSED, size_t size UNUSED,
                           nacre_piece *ret_piece UNUSED, nacre_error *reterr)
{
    return refuse(reterr);
}

static int noop_wait(void *self UNUSED, const nacre_id *id UNUSED, int64_t timeout_ms UNUSED,
                     nacre_error *reterr)
{
    return refuse(reterr);
}

static int noop_kill(void *self UNUSED, const nacre_id *id UNUSED,
                     const struct nacre_kill_options *options UNUSED,
                     struct nacre_kill_result *ret_result UNUSED, nacre_error *reterr)
{
    return refuse(reterr);
}

static int noop_release(void *self UNUSED, const nacre_id *id UNUSED, nacre_error *reterr)
{
    return refuse(reterr);
}

static int noop_get(void *self UNUSED, const nacre_id *id UNUSED, nacre_record *ret_record UNUSED,
                    nacre_error *reterr)
{
    return refuse(reterr);
}

static const nacre_backend_ops noop_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof noop_ops,
    .name = "noop",
    .create = noop_create,
    .output = noop_output,
    .wait_for_exit = noop_wait,
    .kill = noop_kill,
    .release = noop_release,
    .get = noop_get,
};

const nacre_backend *nacre_backend_noop(void)
{
    static const nacre_backend noop = {.ops = &noop_ops};
    return &noop;
}
