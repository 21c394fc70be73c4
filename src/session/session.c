/* Sessions: opened, closed, and the public functions that only read the home. */
#include "session/session.h"
#include "session/asking.h"
#include "session/policy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "config/project.h"
#include "config/settings.h"
#include "home/door.h"
#include "local/local.h"
#include "run/log.h"
#include "session/always.h"
#include "session/defaults.h"
#include "session/deferred.h"
#include "session/exec_gate.h"
#include "session/sandbox.h"
#include "sys/host.h"
#include "sys/proc.h"

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

int64_t session_setting(const nacre_session *s, nacre_setting setting)
{
    return nacre_settings_number(s->settings, setting);
}

static int take_settings(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    return options->settings ? nacre_settings_copy(options->settings, &s->settings, err)
                             : nacre_settings_load(NULL, &s->settings, err);
}

/* Of the options, or of the backend; NULL = the host's. */
static const char *default_cwd(const nacre_options *options)
{
    const nacre_backend *backend = options->backend;
    return options->cwd || !backend || !backend->ops->cwd ? options->cwd
                                                          : backend->ops->cwd(backend->self);
}

/* The name and the place by which a later session finds what this one left. */
static int take_names(nacre_session *s, const nacre_options *options)
{
    const char *name = options->name ? options->name : getenv("NACRE_SESSION");
    s->name = strdup(name ? name : "");
    const char *cwd = default_cwd(options);
    s->cwd = cwd ? strdup(cwd) : getcwd(NULL, 0);
    if (!s->cwd)
        s->cwd = strdup(""); /* removed, or out of reach */
    return s->name && s->cwd ? 0 : -ENOMEM;
}

/* What the options do not say, the settings do. */
static struct home_options home_options(const nacre_session *s, const nacre_options *options)
{
    const nacre_settings *settings = s->settings;
    return (struct home_options){
        .home = options->home ? options->home : settings_text_or_null(settings, NACRE_SETTING_HOME),
        .cwd = default_cwd(options),
        .shell = settings_text_or_null(settings, NACRE_SETTING_SHELL),
        .secrets = settings_secret_rules(settings),
        .session = s->id,
        .session_name = s->name,
        .session_cwd = s->cwd,
        .person = s->person && s->single,
        .grace_ms =
            options->grace_ms >= 0 ? options->grace_ms : session_setting(s, NACRE_SETTING_GRACE),
        .quota =
            options->quota ? options->quota : (uint64_t)session_setting(s, NACRE_SETTING_QUOTA),
        .fleeting = !session_setting(s, NACRE_SETTING_HISTORY),
    };
}

/* Its lists belong to the settings, which live as long as the session. */
static struct fence_wish fence_wish(const nacre_session *s)
{
    const nacre_settings *settings = s->settings;
    int64_t caches = session_setting(s, NACRE_SETTING_SANDBOX_CACHES);
    return (struct fence_wish){
        .mode = (enum fence_mode)session_setting(s, NACRE_SETTING_SANDBOX),
        .workspace = s->cwd,
        .config = nacre_settings_file(settings),
        .write = nacre_settings_list(settings, NACRE_SETTING_SANDBOX_WRITE),
        .hide = nacre_settings_list(settings, NACRE_SETTING_SANDBOX_HIDE),
        .protect = nacre_settings_list(settings, NACRE_SETTING_SANDBOX_PROTECT),
        .network = nacre_settings_list(settings, NACRE_SETTING_SANDBOX_NETWORK),
        .sockets = nacre_settings_list(settings, NACRE_SETTING_SANDBOX_SOCKETS),
        .private_caches = caches == 0,
        .shared_caches = caches == 1,
        .private_tmp = session_setting(s, NACRE_SETTING_SANDBOX_TMP) == 0,
        .wide = session_setting(s, NACRE_SETTING_SANDBOX_WIDE) != 0,
    };
}

int session_compose_fence(nacre_session *s, const char *sandbox, struct fence_wish *ret_wish,
                          struct fence_plan *ret_plan, nacre_error *err)
{
    char private_dir[PATH_MAX], keeper[PATH_MAX];
    struct fence_wish wish = fence_wish(s);
    if (sandbox && *sandbox && fence_mode_of(sandbox) > 0 &&
        (wish.mode == FENCE_OFF || fence_mode_of(sandbox) == FENCE_READ_ONLY))
        wish.mode = (enum fence_mode)fence_mode_of(sandbox);
    *ret_plan = (struct fence_plan){0};
    *ret_wish = wish;
    int r = session_check(s, err);
    if (r == 0)
        r = home_path(s->home, &wish.home, NULL, err);
    if (r < 0 || wish.mode == FENCE_OFF)
        return r;
    fences_name_private_dir(wish.home, &s->id, private_dir);
    defaults_keeper(keeper);
    wish.private_dir = private_dir;
    wish.keeper = keeper;
    return fence_plan_make(&wish, ret_plan, err);
}

static void hear_keepers(void *userdata)
{
    ends_hear_keepers(userdata);
}

static int open_backends(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    nacre_tier tier = (nacre_tier)session_setting(s, NACRE_SETTING_TIER);
    const char *keeper = options->keeper ? options->keeper
                                         : settings_text_or_null(s->settings, NACRE_SETTING_KEEPER);
    struct fence_wish wish = fence_wish(s);
    int r = local_new(s->home, keeper, MAX(options->tier, tier), options->single, &wish,
                      &s->keepers, err);
    if (r < 0)
        return r;
    const nacre_backend *backend = options->backend ? options->backend : &s->keepers;
    /* A table of an older or newer library: what it does not reach is NULL. */
    memcpy(&s->ops, backend->ops, MIN(backend->ops->size, sizeof s->ops));
    nacre_error spare;
    r = s->ops.open ? s->ops.open(backend->self, s->home, err ? err : &spare) : 0;
    if (r < 0) {
        s->ops = (nacre_backend_ops){0};
        return r;
    }
    s->self = backend->self;
    home_set_backend(s->home, &s->ops, s->self);
    home_set_questions(s->home, hear_keepers, s);
    return exec_gate_open(s, err);
}

static int open_home(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    struct home_options home = home_options(s, options);
    int r = home_new(&home, &s->home, err);
    if (r < 0)
        return r;
    s->row = (struct catalog_session){.id = s->id,
                                      .name = s->name,
                                      .cwd = s->cwd,
                                      .person = s->person && s->single,
                                      .pid = getpid(),
                                      .opened_ms = clock_real_ns() / NS_PER_MS};
    if (session_setting(s, NACRE_SETTING_AUDIT))
        s->audit = audit_new(&s->id);
    return open_backends(s, options, err);
}

void session_free(nacre_session *s, bool forked)
{
    ends_done(s);
    home_free(s->home);
    catalog_free(s->catalog, forked);
    audit_free(s->audit);
    registry_free(s->registry);
    nacre_settings_free(s->settings);
    exec_gate_done(s);
    always_end(s);
    deferred_free(s);
    desk_free(s->desk, forked);
    close_fd(&s->bell_fd);
    close_fd(&s->due_fd);
    close_fd(&s->tick_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->catalog_lock);
    pthread_cond_destroy(&s->changed);
    free(s->name);
    free(s->cwd);
    free(s->client);
    free(s);
}

static int session_init(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    s->owner = getpid();
    s->person = options->person;
    s->single = options->single;
    s->ask = options->ask;
    s->ask_userdata = options->ask_userdata;
    s->bell_fd = s->due_fd = s->tick_fd = s->deferred_timer = -EBADF;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->catalog_lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    int e = host_random(&s->id, sizeof s->id);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "random", "no random bytes for an id");
    s->registry = registry_new();
    if (!s->registry || take_names(s, options) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = take_settings(s, options, err);
    /* The commands of a backend run elsewhere. */
    if (r == 0 && !options->backend)
        r = project_narrow(s->settings, s->cwd, err);
    if (r == 0)
        r = always_begin(s, err);
    if (r == 0 && !(s->desk = asking_new_desk(s)))
        r = err_set(err, NACRE_ENOMEM, "out of memory");
    return r < 0 ? r : open_home(s, options, err);
}

bool session_has_catalog(nacre_session *s)
{
    const char *home;
    char path[PATH_MAX + 16];
    if (home_path(s->home, &home, NULL, NULL) < 0)
        return false;
    snprintf(path, sizeof path, "%s/catalog.db", home);
    return access(path, F_OK) == 0;
}

static void identify_session(struct catalog_session *row)
{
    struct host host;
    struct proc_ref self;
    if (proc_ref(getpid(), &self) == 0)
        row->start = self.start;
    if (host_identify(&host) == 0) {
        memcpy(row->boot, host.boot, sizeof row->boot);
        row->pid_ns = host.pid_ns;
    }
}

static int write_row(nacre_session *s, nacre_error *err)
{
    if (s->signed_in)
        return 0;
    identify_session(&s->row);
    int r = catalog_create(s->catalog, err);
    if (r >= 0)
        r = catalog_put_session(s->catalog, &s->row, err);
    s->signed_in = r >= 0;
    return MIN(r, 0);
}

int session_catalog(nacre_session *s, bool write, struct catalog **ret_catalog, nacre_error *err)
{
    const char *home;
    int r = home_runs(s->home, err);
    if (r >= 0)
        r = home_path(s->home, &home, NULL, err);
    if (r < 0)
        return r;
    HOLD(&s->catalog_lock);
    if (!s->catalog)
        r = catalog_open(home, false, CATALOG_BUSY_MS, &s->catalog, err);
    if (r >= 0 && write)
        r = write_row(s, err);
    *ret_catalog = s->catalog;
    return MIN(r, 0);
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
    r = session_init(s, options, reterr);
    if (r < 0) {
        session_abandon(s);
        return r;
    }
    *ret_session = s;
    return 0;
}

nacre_id nacre_session_id(const nacre_session *session)
{
    return session->id;
}

/* The catalog hears of it when the session is written there, or now if it was. */
int nacre_session_set_client(nacre_session *session, const char *client, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    char *copy = strdup(client ? client : "");
    if (!copy)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    HOLD(&session->catalog_lock);
    free(session->client);
    session->client = copy;
    session->row.client = copy;
    return session->signed_in ? catalog_put_session(session->catalog, &session->row, reterr) : 0;
}

int nacre_session_set_end(nacre_session *session, int64_t ends_ms, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    HOLD(&session->catalog_lock);
    session->row.ends_ms = ends_ms;
    return session->signed_in ? catalog_put_session(session->catalog, &session->row, reterr) : 0;
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

int session_check_id(nacre_session *s, const nacre_id *id, bool change, nacre_error *err)
{
    int r = session_check(s, err);
    if (r == 0 && !id)
        r = err_set(err, NACRE_EINVAL, "the id is NULL");
    return r < 0 ? r : scope_check(s, id, change, err);
}

int nacre_session_home(nacre_session *session, const char **ret_path, const char **ret_note,
                       nacre_error *reterr)
{
    int r = session_check(session, reterr);
    return r < 0 ? r : home_path(session->home, ret_path, ret_note, reterr);
}

int nacre_get_usage(nacre_session *session, const nacre_id *id, nacre_usage *ret_usage,
                    nacre_error *reterr)
{
    int r = session_check_id(session, id, false, reterr);
    if (r < 0)
        return r;
    if (ret_usage->size != sizeof *ret_usage)
        return err_set(reterr, NACRE_EINVAL, "the usage must start from NACRE_USAGE_INIT");
    return home_usage(session->home, id, ret_usage, reterr);
}

int nacre_watch_open(nacre_session *session, const nacre_id *id, uint64_t offset,
                     nacre_watch **ret_watch, nacre_error *reterr)
{
    int r = session_check_id(session, id, false, reterr);
    return r < 0 ? r : session_watch(session, id, offset, ret_watch, reterr);
}

int nacre_reader_open(nacre_session *session, const nacre_id *id,
                      const nacre_reader_options *options, nacre_reader **ret_reader,
                      nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!id || !options || options->size != sizeof *options)
        return err_set(reterr, NACRE_EINVAL,
                       "the id is NULL, or the options do not start from "
                       "NACRE_READER_OPTIONS_INIT");
    if (options->stream != NACRE_STDOUT && options->stream != NACRE_STDERR)
        return err_set(reterr, NACRE_EINVAL, "the stream of a reader is stdout or stderr");
    r = scope_check(session, id, false, reterr);
    return r < 0 ? r : home_reader(session->home, id, options, ret_reader, reterr);
}
