/* Sessions: the public functions, checked and handed to the backend. */
#include <nacre/session.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local.h"
#include "base/defs.h"
#include "base/err.h"
#include "config/settings.h"
#include "run/log.h"
#include "shell/session.h"
#include "sys/host.h"

static int check_options(const nacre_options *options, nacre_error *err)
{
    char release[72];
    int r = host_check_kernel(release, sizeof release);
    if (r < 0)
        return err_set(err, NACRE_EUNSUPPORTED, "nacre needs Linux %d.%d or newer; this is %s",
                       HOST_KERNEL_MAJOR, HOST_KERNEL_MINOR, release);
    if (options->size != sizeof *options)
        return err_set(err, NACRE_EINVAL, "the options must start from NACRE_OPTIONS_INIT");
    if (options->quota && options->quota < LOG_QUOTA_MIN)
        return err_set(err, NACRE_EINVAL, "the quota must be at least 256 KiB");
    if (options->tier < NACRE_TIER_CGROUP || options->tier > NACRE_TIER_GROUP)
        return err_set(err, NACRE_EINVAL, "the tier is unknown");
    if (options->backend && options->backend->ops->version != NACRE_BACKEND_VERSION)
        return err_set(err, NACRE_EUNSUPPORTED, "the backend is of version %u, not %u",
                       options->backend->ops->version, NACRE_BACKEND_VERSION);
    return 0;
}

/* A table of an older or newer library: what it does not reach is NULL. */
static void take_ops(nacre_session *s, const nacre_backend *backend)
{
    memcpy(&s->ops, backend->ops, MIN(backend->ops->size, sizeof s->ops));
    s->self = backend->self;
}

static int take_settings(nacre_session *s, const nacre_settings *settings, nacre_error *err)
{
    return settings ? nacre_settings_copy(settings, &s->settings, err)
                    : nacre_settings_load(NULL, &s->settings, err);
}

/* What the options do not say, the settings do. */
static struct local_options local_options(const nacre_session *s, const nacre_options *options)
{
    const nacre_settings *settings = s->settings;
    nacre_tier tier = (nacre_tier)nacre_settings_number(settings, NACRE_SETTING_TIER);
    return (struct local_options){
        .home = options->home ? options->home : settings_text_or_null(settings, NACRE_SETTING_HOME),
        .cwd = options->cwd,
        .keeper = options->keeper ? options->keeper
                                  : settings_text_or_null(settings, NACRE_SETTING_KEEPER),
        .shell = settings_text_or_null(settings, NACRE_SETTING_SHELL),
        .secrets = settings_secret_rules(settings),
        .grace_ms = options->grace_ms >= 0 ? options->grace_ms
                                           : nacre_settings_number(settings, NACRE_SETTING_GRACE),
        .quota = options->quota ? options->quota
                                : (uint64_t)nacre_settings_number(settings, NACRE_SETTING_QUOTA),
        .tier = MAX(options->tier, tier),
        .session = s->id,
        .single = options->single,
    };
}

static void free_session(nacre_session *s)
{
    nacre_settings_free(s->settings);
    free(s);
}

int nacre_open(const nacre_options *options, nacre_session **ret_session, nacre_error *reterr)
{
    nacre_options defaults = NACRE_OPTIONS_INIT;
    options = options ? options : &defaults;
    int r = check_options(options, reterr);
    if (r < 0)
        return r;
    nacre_session *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    s->owner = getpid();
    r = take_settings(s, options->settings, reterr);
    if (r < 0) {
        free_session(s);
        return r;
    }
    int e = host_random(&s->id, sizeof s->id);
    if (e < 0) {
        free_session(s);
        return err_sys(reterr, NACRE_EIO, -e, "random", "no random bytes for an id");
    }
    nacre_backend backend;
    struct local_options local = local_options(s, options);
    s->is_local = !options->backend;
    r = s->is_local ? local_new(&local, &backend, reterr) : 0;
    if (r < 0) {
        free_session(s);
        return r;
    }
    take_ops(s, s->is_local ? &backend : options->backend);
    *ret_session = s;
    return 0;
}

int nacre_close(nacre_session *session, nacre_error *reterr)
{
    if (!session)
        return 0;
    int survivors = 0;
    if (session->ops.close)
        survivors = session->ops.close(session->self, session->owner != getpid(), reterr);
    free_session(session);
    return survivors;
}

nacre_id nacre_session_id(const nacre_session *session)
{
    return session->id;
}

const nacre_settings *nacre_session_settings(const nacre_session *session)
{
    return session->settings;
}

int session_check(const nacre_session *s, nacre_error *err)
{
    if (!s)
        return err_set(err, NACRE_EINVAL, "the session is NULL");
    if (s->owner != getpid())
        return err_set(err, NACRE_EFORKED,
                       "this session belongs to the process that opened it; open another one in "
                       "the forked child");
    return 0;
}

static int check_id(const nacre_session *s, const nacre_id *id, nacre_error *err)
{
    int r = session_check(s, err);
    return r == 0 && !id ? err_set(err, NACRE_EINVAL, "the id is NULL") : r;
}

static int unsupported(const nacre_session *s, const char *what, nacre_error *err)
{
    return err_set(err, NACRE_EUNSUPPORTED, "the %s backend cannot %s", s->ops.name, what);
}

/* A backend may count on an error to fill in. */
#define CALL(s, fn, ...)                                                \
    ({                                                                  \
        nacre_error spare_;                                             \
        (s)->ops.fn((s)->self, __VA_ARGS__, reterr ? reterr : &spare_); \
    })

int nacre_session_home(nacre_session *session, const char **ret_path, const char **ret_note,
                       nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!session->is_local)
        return unsupported(session, "tell its home", reterr);
    return local_home(session->self, ret_path, ret_note, reterr);
}

int nacre_start(nacre_session *session, const nacre_command *command, nacre_id *ret_id,
                nacre_watch **ret_watch, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    return r < 0 ? r : CALL(session, create, command, ret_id, ret_watch);
}

int nacre_find(nacre_session *session, const char *prefix, nacre_id *ret_id, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    size_t n = prefix ? strlen(prefix) : 0;
    if (n < NACRE_ID_PREFIX_MIN || n > NACRE_ID_DIGITS || strspn(prefix, "0123456789abcdef") != n)
        return err_set(reterr, NACRE_EINVAL,
                       "\"%.40s\" is no id: give 4 to 32 lowercase hex digits",
                       prefix ? prefix : "");
    if (!session->ops.find)
        return unsupported(session, "look ids up", reterr);
    return CALL(session, find, prefix, ret_id);
}

int nacre_get(nacre_session *session, const nacre_id *id, nacre_record *ret_record,
              nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    return r < 0 ? r : CALL(session, get, id, ret_record);
}

int64_t nacre_read(nacre_session *session, const nacre_id *id, uint64_t *cursor, unsigned streams,
                   void *buf, size_t size, nacre_piece *ret_piece, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    if (r < 0)
        return r;
    if (!(streams & NACRE_BOTH) || size == 0)
        return err_set(reterr, NACRE_EINVAL, "no stream or no room to read into");
    return CALL(session, output, id, cursor, streams, buf, size, ret_piece);
}

int nacre_watch_open(nacre_session *session, const nacre_id *id, uint64_t offset,
                     nacre_watch **ret_watch, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    if (r < 0)
        return r;
    if (!session->ops.watch)
        return unsupported(session, "watch shells", reterr);
    return CALL(session, watch, id, offset, ret_watch);
}

int nacre_kill(nacre_session *session, const nacre_id *id, const nacre_kill_options *options,
               nacre_kill_result *ret_result, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    return r < 0 ? r : CALL(session, kill, id, options, ret_result);
}

int nacre_release(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    return r < 0 ? r : CALL(session, release, id);
}

int nacre_remove(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    if (r < 0)
        return r;
    if (!session->ops.remove)
        return unsupported(session, "forget shells", reterr);
    return CALL(session, remove, id);
}

int64_t nacre_input(nacre_session *session, const nacre_id *id, const void *data, size_t size,
                    int eof, int64_t timeout_ms, nacre_error *reterr)
{
    int r = check_id(session, id, reterr);
    if (r < 0)
        return r;
    if (!session->ops.input)
        return unsupported(session, "take input", reterr);
    return CALL(session, input, id, data, size, eof, timeout_ms);
}

int nacre_list(nacre_session *session, int only_alive, nacre_list_fn *fn, void *userdata,
               nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!session->ops.list)
        return unsupported(session, "list shells", reterr);
    return CALL(session, list, only_alive, fn, userdata);
}
