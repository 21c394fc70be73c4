/* Sessions: opened, closed, and the public functions that go straight to the backend. */
#include "shell/session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/acp.h"
#include "backend/kill.h"
#include "backend/local.h"
#include "base/defs.h"
#include "base/err.h"
#include "config/settings.h"
#include "run/log.h"
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

int64_t session_setting(const nacre_session *s, nacre_setting setting)
{
    return nacre_settings_number(s->settings, setting);
}

static int take_settings(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    return options->settings ? nacre_settings_copy(options->settings, &s->settings, err)
                             : nacre_settings_load(NULL, &s->settings, err);
}

/* Of the options, or of the ACP session whose client runs the commands; NULL = the host's. */
static const char *default_cwd(const nacre_options *options)
{
    const nacre_acp_agent *agent = acp_agent_of(options->backend);
    return options->cwd || !agent ? options->cwd : acp_default_cwd(agent);
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
static struct local_options local_options(const nacre_session *s, const nacre_options *options)
{
    const nacre_settings *settings = s->settings;
    nacre_tier tier = (nacre_tier)session_setting(s, NACRE_SETTING_TIER);
    return (struct local_options){
        .home = options->home ? options->home : settings_text_or_null(settings, NACRE_SETTING_HOME),
        .cwd = default_cwd(options),
        .keeper = options->keeper ? options->keeper
                                  : settings_text_or_null(settings, NACRE_SETTING_KEEPER),
        .shell = settings_text_or_null(settings, NACRE_SETTING_SHELL),
        .secrets = settings_secret_rules(settings),
        .session_name = s->name,
        .session_cwd = s->cwd,
        .grace_ms =
            options->grace_ms >= 0 ? options->grace_ms : session_setting(s, NACRE_SETTING_GRACE),
        .quota =
            options->quota ? options->quota : (uint64_t)session_setting(s, NACRE_SETTING_QUOTA),
        .tier = MAX(options->tier, tier),
        .session = s->id,
        .single = options->single,
        .fleeting = !session_setting(s, NACRE_SETTING_HISTORY),
    };
}

static int open_local(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    nacre_backend backend;
    struct local_options local = local_options(s, options);
    struct books_owner owner = {.session = s->id, .name = s->name, .cwd = s->cwd};
    int r = local_new(&local, &backend, err);
    if (r < 0)
        return r;
    nacre_acp_agent *agent = acp_agent_of(options->backend);
    r = agent ? acp_join(agent, &backend, err) : 0;
    if (r < 0) {
        backend.ops->close(backend.self, 1, err);
        return r;
    }
    s->local = backend.self;
    take_ops(s, agent ? nacre_backend_acp(agent) : &backend);
    s->books = books_new(&owner);
    if (session_setting(s, NACRE_SETTING_AUDIT))
        s->audit = audit_new(&s->id);
    return s->books ? 0 : err_set(err, NACRE_ENOMEM, "out of memory");
}

static void session_free(nacre_session *s, bool forked)
{
    books_free(s->books, forked);
    audit_free(s->audit);
    registry_free(s->registry);
    nacre_settings_free(s->settings);
    close_fd(&s->bell_fd);
    close_fd(&s->due_fd);
    close_fd(&s->tick_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->naming);
    pthread_cond_destroy(&s->changed);
    free(s->name);
    free(s->cwd);
    free(s);
}

static int session_init(nacre_session *s, const nacre_options *options, nacre_error *err)
{
    s->owner = getpid();
    s->person = options->person;
    s->single = options->single;
    s->bell_fd = s->due_fd = s->tick_fd = -EBADF;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->naming, NULL);
    pthread_cond_init(&s->changed, NULL);
    int e = host_random(&s->id, sizeof s->id);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "random", "no random bytes for an id");
    s->registry = registry_new();
    if (!s->registry || take_names(s, options) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = take_settings(s, options, err);
    if (r < 0)
        return r;
    if (!options->backend || acp_agent_of(options->backend))
        return open_local(s, options, err);
    take_ops(s, options->backend);
    return 0;
}

bool session_has_catalog(nacre_session *s)
{
    const char *home;
    char path[PATH_MAX + 16];
    if (!s->books || local_home(s->local, &home, NULL, NULL) < 0)
        return false;
    snprintf(path, sizeof path, "%s/catalog.db", home);
    return access(path, F_OK) == 0;
}

int session_catalog(nacre_session *s, bool write, struct catalog **ret_catalog, nacre_error *err)
{
    const char *home;
    if (!s->books)
        return session_unsupported(s, "keep a catalog", err);
    int r = local_check(s->local, err);
    if (r == 0)
        r = local_home(s->local, &home, NULL, err);
    return r < 0 ? r : books_open(s->books, home, write, ret_catalog, err);
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
        if (s->local)
            s->ops.close(s->self, 1, reterr);
        session_free(s, true);
        return r;
    }
    *ret_session = s;
    return 0;
}

/* Nothing starts any more, and nothing is half started. */
static void stop_starting(nacre_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    while (s->starting > 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Others take a session for alive as long as its process is, unless its row says otherwise. */
static void sign_in(nacre_session *s)
{
    struct catalog *catalog;
    if (s->started && !s->single)
        session_catalog(s, true, &catalog, NULL);
}

/* Where something has to be forgotten, if the session keeps no history and has any. */
static char *fleeting_home(nacre_session *s)
{
    const char *home;
    bool fleeting = s->books && !session_setting(s, NACRE_SETTING_HISTORY);
    return fleeting && local_home(s->local, &home, NULL, NULL) == 0 ? strdup(home) : NULL;
}

int nacre_close(nacre_session *session, nacre_error *reterr)
{
    if (!session)
        return 0;
    nacre_error spare;
    bool forked = session->owner != getpid();
    int survivors = 0;
    if (!forked) {
        stop_starting(session);
        sign_in(session);
        retention_now_and_then(session);
    }
    char *home = fleeting_home(session);
    struct ends_rest *rest = forked ? NULL : ends_rest_new(session);
    if (session->ops.close)
        survivors = session->ops.close(session->self, forked, reterr ? reterr : &spare);
    ends_rest_tell_consume(session, rest);
    if (!forked && session->books)
        books_close(session->books);
    if (!forked && home)
        retention_forget(session, home);
    free(home);
    session_free(session, forked);
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

static int check_id(nacre_session *s, const nacre_id *id, bool change, nacre_error *err)
{
    int r = session_check(s, err);
    if (r == 0 && !id)
        r = err_set(err, NACRE_EINVAL, "the id is NULL");
    return r < 0 ? r : scope_check(s, id, change, err);
}

int session_unsupported(const nacre_session *s, const char *what, nacre_error *err)
{
    return err_set(err, NACRE_EUNSUPPORTED, "the %s backend cannot %s", s->ops.name, what);
}

int nacre_session_home(nacre_session *session, const char **ret_path, const char **ret_note,
                       nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!session->local)
        return session_unsupported(session, "tell its home", reterr);
    return local_home(session->local, ret_path, ret_note, reterr);
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
        return session_unsupported(session, "look ids up", reterr);
    return CALL(session, find, prefix, ret_id);
}

int nacre_get(nacre_session *session, const nacre_id *id, nacre_record *ret_record,
              nacre_error *reterr)
{
    int r = check_id(session, id, false, reterr);
    return r < 0 ? r : ends_look(session, id, ret_record, reterr);
}

int nacre_get_usage(nacre_session *session, const nacre_id *id, nacre_usage *ret_usage,
                    nacre_error *reterr)
{
    int r = check_id(session, id, false, reterr);
    if (r < 0)
        return r;
    if (ret_usage->size != sizeof *ret_usage)
        return err_set(reterr, NACRE_EINVAL, "the usage must start from NACRE_USAGE_INIT");
    if (!session->ops.usage)
        return session_unsupported(session, "tell what shells use", reterr);
    return CALL(session, usage, id, ret_usage);
}

int64_t nacre_read(nacre_session *session, const nacre_id *id, uint64_t *cursor, unsigned streams,
                   void *buf, size_t size, nacre_piece *ret_piece, nacre_error *reterr)
{
    int r = check_id(session, id, false, reterr);
    if (r < 0)
        return r;
    if (!(streams & NACRE_BOTH) || size == 0)
        return err_set(reterr, NACRE_EINVAL, "no stream or no room to read into");
    return CALL(session, output, id, cursor, streams, buf, size, ret_piece);
}

int nacre_watch_open(nacre_session *session, const nacre_id *id, uint64_t offset,
                     nacre_watch **ret_watch, nacre_error *reterr)
{
    int r = check_id(session, id, false, reterr);
    if (r < 0)
        return r;
    if (!session->ops.watch)
        return session_unsupported(session, "watch shells", reterr);
    return CALL(session, watch, id, offset, ret_watch);
}

static void note_kill(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                      const nacre_kill_result *result)
{
    audit_kill(s->audit, id, options, result);
    ends_look(s, id, NULL, NULL);
}

int nacre_kill(nacre_session *session, const nacre_id *id, const nacre_kill_options *options,
               nacre_kill_result *ret_result, nacre_error *reterr)
{
    nacre_kill_result unused;
    ret_result = ret_result ? ret_result : &unused;
    int r = check_id(session, id, true, reterr);
    if (r < 0)
        return r;
    r = CALL(session, kill, id, options, ret_result);
    if (r >= 0)
        note_kill(session, id, options, ret_result);
    return r;
}

int session_kill_begin(nacre_session *s, const nacre_id *id, const nacre_kill_options *options,
                       struct killing *ret, nacre_error *err)
{
    *ret = KILLING_NONE;
    int r = check_id(s, id, true, err);
    if (r == 0 && !s->local)
        r = session_unsupported(s, "end shells without waiting", err);
    if (r == 0)
        r = local_kill_begin(s->local, id, options, ret, err);
    if (r > 0)
        note_kill(s, id, &ret->options, &ret->result);
    return r;
}

int session_kill_step(nacre_session *s, struct killing *k, nacre_error *err)
{
    int r = killing_step(k, err);
    if (r > 0)
        note_kill(s, &k->run.id, &k->options, &k->result);
    return r;
}

/* One that is left to the keeper is audited with what is known of it. */
void session_kill_end(nacre_session *s, struct killing *k)
{
    if (k->phase != KILL_DONE && session_check(s, NULL) == 0)
        note_kill(s, &k->run.id, &k->options, &k->result);
    killing_end(k);
}

int nacre_signal(nacre_session *session, const nacre_id *id, int signal, nacre_error *reterr)
{
    int r = check_id(session, id, true, reterr);
    if (r < 0)
        return r;
    if (!session->ops.signal)
        return session_unsupported(session, "signal commands", reterr);
    return CALL(session, signal, id, signal);
}

int nacre_release(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    int r = check_id(session, id, true, reterr);
    if (r == NACRE_ENOTFOUND)
        return 0;
    if (r == 0)
        r = CALL(session, release, id);
    if (r == 0)
        ends_look(session, id, NULL, NULL);
    return r;
}

int nacre_remove(nacre_session *session, const nacre_id *id, nacre_error *reterr)
{
    struct catalog *catalog;
    int r = check_id(session, id, true, reterr);
    if (r < 0)
        return r;
    if (!session->ops.remove)
        return session_unsupported(session, "forget shells", reterr);
    r = CALL(session, remove, id);
    if (r == 0) {
        registry_remove(session->registry, id);
        if (session_catalog(session, false, &catalog, NULL) == 0)
            catalog_remove_run(catalog, id, NULL);
    }
    return r;
}

int64_t nacre_input(nacre_session *session, const nacre_id *id, const void *data, size_t size,
                    int eof, int64_t timeout_ms, nacre_error *reterr)
{
    int r = check_id(session, id, true, reterr);
    if (r < 0)
        return r;
    if (!session->ops.input)
        return session_unsupported(session, "take input", reterr);
    return CALL(session, input, id, data, size, eof, timeout_ms);
}

int session_feed(nacre_session *s, const nacre_id *id, struct feed *ret, nacre_error *err)
{
    int r = check_id(s, id, true, err);
    if (r < 0)
        return r;
    return s->local ? local_feed(s->local, id, ret, err)
                    : session_unsupported(s, "be fed without waiting", err);
}
