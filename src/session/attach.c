/* A person beside a shell: what they may do there, and what they type. */
#include <nacre/attach.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "home/run_watch.h"
#include "session/session.h"

#define ANSWER_MS 5000

/* What a keeper answered. */
static int say_why(const nacre_watch *watch, int e, nacre_error *err)
{
    nacre_id id = run_watch_id(watch);
    const char *name = nacre_id_short(&id).s;
    switch (e) {
    case -EDEADLK:
        return err_set(err, NACRE_EFORBIDDEN,
                       "forbidden: this is inside of shell %s, which would show itself", name);
    case -EPERM:
        return err_set(err, NACRE_EFORBIDDEN, "forbidden: shell %s is only looked at", name);
    case -EPIPE:
    case -ECONNREFUSED:
        return err_set(err, NACRE_ECLOSED,
                       "shell %s takes no input: it has ended, closed its stdin, or was started "
                       "without one",
                       name);
    case -ENOTTY:
        return err_set(err, NACRE_EUNSUPPORTED, "shell %s has no terminal", name);
    default:
        return err_sys(err, NACRE_EBACKEND, -e, "attach", "the keeper of shell %s does not answer",
                       name);
    }
}

int nacre_attach(nacre_session *session, nacre_watch *watch, const nacre_attach_options *options,
                 nacre_error *reterr)
{
    static const nacre_attach_options defaults = NACRE_ATTACH_OPTIONS_INIT;
    struct wire_attach wish = {.head = keeper_line_head(WIRE_ATTACH)};
    nacre_id id = run_watch_id(watch);
    options = options ? options : &defaults;
    if (options->size != sizeof *options || options->columns < 0 || options->rows < 0)
        return err_set(reterr, NACRE_EINVAL,
                       "the options must start from NACRE_ATTACH_OPTIONS_INIT");
    bool changes = options->input || options->columns > 0;
    int r = session_check_id(session, &id, changes, reterr);
    if (r < 0)
        return r;
    if (session_mirrors(session, &id))
        return err_set(reterr, NACRE_EUNSUPPORTED,
                       "shell %s runs elsewhere, without a keeper: it can only be watched",
                       nacre_id_short(&id).s);
    wish.types = options->input != 0;
    wish.columns = (uint32_t)options->columns;
    wish.rows = (uint32_t)options->rows;
    int e = run_watch_ask(watch, &wish, sizeof wish, ANSWER_MS);
    return e < 0 ? say_why(watch, e, reterr) : 0;
}

int64_t nacre_type(nacre_watch *watch, const void *data, size_t size, nacre_error *reterr)
{
    struct wire_input input = {.head = keeper_line_head(WIRE_INPUT)};
    size = MIN(size, sizeof input.data);
    if (size == 0)
        return 0;
    input.size = (uint32_t)size;
    memcpy(input.data, data, size);
    int e = run_watch_say(watch, &input, offsetof(struct wire_input, data) + size);
    explicit_bzero(input.data, size);
    return e < 0 ? say_why(watch, e, reterr) : e > 0 ? (int64_t)size : 0;
}

int nacre_fit(nacre_watch *watch, int columns, int rows, nacre_error *reterr)
{
    struct wire_resize size = {.head = keeper_line_head(WIRE_RESIZE),
                               .columns = (uint32_t)columns,
                               .rows = (uint32_t)rows};
    int e = run_watch_say(watch, &size, sizeof size);
    return e < 0 ? say_why(watch, e, reterr) : e;
}
