/* The acp backend: commands run in the terminals of an ACP client. */
#include "backend/acp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nacre/session.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fd.h"

#define OUTPUT_LIMIT ((size_t)4 << 20)
#define ANSWER_MS    30000

/* A verb of the backend of the home, for shells that are not ours. */
#define HOME(a, fn, ...) (a)->home.ops->fn((a)->home.self, __VA_ARGS__)

/* Shells stay until the agent is closed, so what was found stays valid. NULL = not ours. */
static struct acp_shell *find_shell(nacre_acp_agent *a, const nacre_id *id)
{
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shell = a->shells;
    while (shell && !nacre_id_equal(&shell->id, id))
        shell = shell->next;
    pthread_mutex_unlock(&a->lock);
    return shell;
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* Asks for the output and waits until it is there, unless all of it is. */
static int refresh(nacre_acp_agent *a, struct acp_shell *shell, nacre_error *err)
{
    int64_t deadline = clock_deadline(a->options.answer_ms);
    pthread_mutex_lock(&a->lock);
    bool post = !shell->final && !shell->fetching && !a->gone;
    uint64_t fetches = shell->fetches;
    if (post)
        shell->fetching = true;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_OUTPUT, shell);
    pthread_mutex_lock(&a->lock);
    bool more = true;
    while (!shell->final && shell->fetches == fetches && more)
        more = acp_pause(a, deadline);
    pthread_mutex_unlock(&a->lock);
    return more ? 0 : err_set(err, NACRE_EBACKEND, "the client does not answer terminal/output");
}

/* What was fetched is read at once; only who has read all of it makes the client send more. */
static int64_t acp_output(void *self, const nacre_id *id, uint64_t *cursor, unsigned streams,
                          void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    int64_t n = HOME(a, output, id, cursor, streams, buf, size, ret_piece, err);
    if (n != 0 || !shell)
        return n;
    int r = refresh(a, shell, err);
    return r < 0 ? r : HOME(a, output, id, cursor, streams, buf, size, ret_piece, err);
}

/* A client that does not answer leaves what is known. */
static int acp_get(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    if (shell)
        refresh(a, shell, err);
    return HOME(a, get, id, ret_record, err);
}

static int acp_peek(void *self, const nacre_id *id, nacre_record *ret_record, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, peek, id, ret_record, err);
}

static int acp_reader(void *self, const nacre_id *id, const nacre_reader_options *options,
                      nacre_reader **ret_reader, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, reader, id, options, ret_reader, err);
}

static int acp_find(void *self, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, find, prefix, ret_id, err);
}

static int acp_list(void *self, int only_alive, int (*fn)(const nacre_record *, void *),
                    void *userdata, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, list, only_alive, fn, userdata, err);
}

static int acp_usage(void *self, const nacre_id *id, nacre_usage *ret_usage, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, usage, id, ret_usage, err);
}

static int acp_owner(void *self, const nacre_id *id, nacre_id *ret_session, int *ret_alive,
                     nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, owner, id, ret_session, ret_alive, err);
}

static int acp_watch(void *self, const nacre_id *id, uint64_t offset, nacre_watch **ret_watch,
                     nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    return shell ? acp_watch_new(a, shell, offset, ret_watch, err)
                 : HOME(a, watch, id, offset, ret_watch, err);
}

/* -- Waiting and ending ------------------------------------------------------------------------ */

/* Waits for the exit, the last output and the release, as long as there is patience; kills it when
 * its own time is over. */
static bool await_end(nacre_acp_agent *a, struct acp_shell *shell, int64_t timeout_ms)
{
    int64_t deadline = clock_deadline(timeout_ms);
    pthread_mutex_lock(&a->lock);
    bool more = true;
    while (!shell->settled && more) {
        if (acp_is_late(shell)) {
            pthread_mutex_unlock(&a->lock);
            acp_post(a, ACP_KILL, shell);
            pthread_mutex_lock(&a->lock);
        }
        int64_t until =
            shell->exited || shell->reason ? deadline : MIN(deadline, shell->deadline_ns);
        more = acp_pause(a, until) || clock_left_ms(deadline) != 0;
    }
    bool done = shell->final;
    pthread_mutex_unlock(&a->lock);
    return done;
}

static int acp_wait(void *self, const nacre_id *id, int64_t timeout_ms, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    if (!shell)
        return HOME(a, wait_for_exit, id, timeout_ms, err);
    return await_end(a, shell, timeout_ms)
               ? 0
               : err_set(err, NACRE_ETIMEOUT, "shell %s goes on", nacre_id_short(id).s);
}

/* Whether there is something to kill; then it is noted why. */
static bool condemn(nacre_acp_agent *a, struct acp_shell *shell, nacre_reason reason)
{
    pthread_mutex_lock(&a->lock);
    bool alive = !shell->exited;
    if (alive && shell->reason == NACRE_REASON_NONE)
        shell->reason = reason;
    pthread_mutex_unlock(&a->lock);
    return alive;
}

static int kill_shell(nacre_acp_agent *a, struct acp_shell *shell, nacre_error *err)
{
    json_t *result = NULL;
    int r = acp_call(a, ACP_KILL, acp_target(a, shell), &result, err);
    json_decref(result);
    if (r == 0 && !await_end(a, shell, ACP_END_MS))
        r = err_set(err, NACRE_EBACKEND, "the client has killed shell %s but reports no exit",
                    nacre_id_short(&shell->id).s);
    return r;
}

static int acp_kill(void *self, const nacre_id *id, const struct nacre_kill_options *options,
                    struct nacre_kill_result *ret_result, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    if (!shell)
        return HOME(a, kill, id, options, ret_result, err);
    nacre_reason reason = options && options->cancel ? NACRE_REASON_CANCEL : NACRE_REASON_KILL;
    bool alive = condemn(a, shell, reason);
    if (ret_result)
        *ret_result = (struct nacre_kill_result){.was_alive = alive, .signalled = alive};
    if (!alive)
        return 0;
    if (!options || !options->no_wait)
        return kill_shell(a, shell, err);
    acp_post(a, ACP_KILL, shell);
    return 0;
}

static void post_release(nacre_acp_agent *a, struct acp_shell *shell)
{
    pthread_mutex_lock(&a->lock);
    bool post = !shell->releasing;
    shell->releasing = true;
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_RELEASE, shell);
}

static bool await_release(nacre_acp_agent *a, struct acp_shell *shell, int64_t deadline)
{
    pthread_mutex_lock(&a->lock);
    while (!shell->over && acp_pause(a, deadline))
        continue;
    bool over = shell->over;
    pthread_mutex_unlock(&a->lock);
    return over;
}

/* The client kills what runs; that it did is its word. */
static int acp_release(void *self, const nacre_id *id, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    if (!shell)
        return HOME(a, release, id, err);
    condemn(a, shell, NACRE_REASON_KILL);
    post_release(a, shell);
    return await_release(a, shell, clock_deadline(a->options.answer_ms))
               ? 0
               : err_set(err, NACRE_EBACKEND, "the client does not answer terminal/release");
}

static int acp_remove(void *self, const nacre_id *id, nacre_error *err)
{
    return HOME((nacre_acp_agent *)self, remove, id, err);
}

/* -- What terminals cannot do ------------------------------------------------------------------ */

static int64_t acp_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                         int64_t timeout_ms, nacre_error *err)
{
    nacre_acp_agent *a = self;
    return find_shell(a, id)
               ? err_set(err, NACRE_EUNSUPPORTED, "terminals of an ACP client take no input")
               : HOME(a, input, id, data, size, eof, timeout_ms, err);
}

static int acp_signal(void *self, const nacre_id *id, int signal, nacre_error *err)
{
    nacre_acp_agent *a = self;
    return find_shell(a, id) ? err_set(err, NACRE_EUNSUPPORTED,
                                       "terminals of an ACP client take no signals; kill it")
                             : HOME(a, signal, id, signal, err);
}

/* -- With the session -------------------------------------------------------------------------- */

static int acp_change(void *self, const nacre_id *id, int background, int keep, nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = find_shell(a, id);
    if (!shell)
        return HOME(a, change, id, background, keep, err);
    if (keep > 0)
        return err_set(err, NACRE_EUNSUPPORTED, "terminals of an ACP client cannot be kept");
    pthread_mutex_lock(&a->lock);
    shell->background = shell->background || background > 0;
    acp_run_note(shell);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static int acp_bell(void *self)
{
    return ((nacre_acp_agent *)self)->bell_fd;
}

/* Nobody may be waiting for a shell of the background when its time is over. */
static void kill_late(nacre_acp_agent *a)
{
    struct acp_shell *late;
    do {
        pthread_mutex_lock(&a->lock);
        late = a->shells;
        while (late && !acp_is_late(late))
            late = late->next;
        pthread_mutex_unlock(&a->lock);
        if (late)
            acp_post(a, ACP_KILL, late);
    } while (late);
}

static int acp_rung(void *self, nacre_id *ret_id)
{
    nacre_acp_agent *a = self;
    uint64_t count;
    kill_late(a);
    acp_lose_patience(a);
    if (a->options.receive && a->options.receive(0, a->options.userdata) < 0)
        nacre_acp_agent_gone(a);
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shell = a->shells;
    while (shell && !shell->rings)
        shell = shell->next;
    if (shell) {
        shell->rings = false;
        *ret_id = shell->id;
    } else {
        ssize_t drained UNUSED = read(a->bell_fd, &count, sizeof count);
    }
    pthread_mutex_unlock(&a->lock);
    return shell != NULL;
}

/* Everything that was not released is, all at once. */
static int release_all(nacre_acp_agent *a)
{
    int64_t deadline = clock_deadline(a->options.answer_ms);
    int left = 0;
    pthread_mutex_lock(&a->lock);
    struct acp_shell *shells = a->shells;
    pthread_mutex_unlock(&a->lock);
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        if (condemn(a, shell, NACRE_REASON_OWNER))
            acp_post(a, ACP_KILL, shell);
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        post_release(a, shell);
    for (struct acp_shell *shell = shells; shell; shell = shell->next)
        left += !await_release(a, shell, deadline);
    return left;
}

static int acp_close(void *self, int forked, nacre_error *err)
{
    nacre_acp_agent *a = self;
    int left = forked ? 0 : release_all(a);
    left += HOME(a, close, forked, err);
    a->home = (nacre_backend){0};
    if (left > 0)
        err_set(err, NACRE_EBUSY, "the client has not released %d terminals", left);
    return left;
}

static const nacre_backend_ops acp_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof acp_ops,
    .name = "acp",
    .create = acp_create,
    .output = acp_output,
    .wait_for_exit = acp_wait,
    .kill = acp_kill,
    .release = acp_release,
    .get = acp_get,
    .watch = acp_watch,
    .input = acp_input,
    .find = acp_find,
    .list = acp_list,
    .remove = acp_remove,
    .close = acp_close,
    .bell = acp_bell,
    .rung = acp_rung,
    .peek = acp_peek,
    .change = acp_change,
    .owner = acp_owner,
    .reader = acp_reader,
    .usage = acp_usage,
    .signal = acp_signal,
};

nacre_acp_agent *acp_agent_of(const nacre_backend *backend)
{
    return backend && backend->ops == &acp_ops ? backend->self : NULL;
}

const char *acp_default_cwd(const nacre_acp_agent *a)
{
    return a->workspace ? a->workspace[0] : NULL;
}

int acp_join(nacre_acp_agent *a, const nacre_backend *home, nacre_error *err)
{
    if (a->home.self)
        return err_set(err, NACRE_EBUSY,
                       "another session uses this agent; close it, or open another agent");
    a->home = *home;
    return 0;
}

/* -- The agent -------------------------------------------------------------------------------- */

const nacre_backend *nacre_backend_acp(nacre_acp_agent *agent)
{
    return &agent->backend;
}

int nacre_acp_agent_terminal(nacre_acp_agent *agent, const nacre_id *id, char **ret_terminal,
                             nacre_error *reterr)
{
    struct acp_shell *shell = find_shell(agent, id);
    if (!shell)
        return err_set(reterr, NACRE_ENOTFOUND, "no terminal with id %s", nacre_id_short(id).s);
    *ret_terminal = strdup(shell->terminal);
    return *ret_terminal ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

/* The session's directory first. 0, -EINVAL if one is not absolute, or -ENOMEM. */
static int take_workspace(nacre_acp_agent *a, const nacre_acp_agent_options *options)
{
    size_t count = 1;
    for (const char *const *more = options->directories; more && *more; more++)
        count++;
    a->workspace = options->cwd ? calloc(count + 1, sizeof *a->workspace) : NULL;
    if (!options->cwd)
        return options->directories ? -EINVAL : 0;
    for (size_t i = 0; a->workspace && i < count; i++) {
        const char *path = i == 0 ? options->cwd : options->directories[i - 1];
        if (path[0] != '/')
            return -EINVAL;
        a->workspace[i] = acp_place_normal(path);
        if (!a->workspace[i])
            return -ENOMEM;
    }
    return a->workspace ? 0 : -ENOMEM;
}

static void free_agent(nacre_acp_agent *a)
{
    while (a->shells) {
        struct acp_shell *shell = a->shells;
        a->shells = shell->next;
        acp_shell_free(shell);
    }
    for (char **path = a->workspace; path && *path; path++)
        free(*path);
    free(a->workspace);
    free(a->session_id);
    close_fd(&a->bell_fd);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static int fill_agent(nacre_acp_agent *a, const nacre_acp_agent_options *options, nacre_error *err)
{
    a->backend = (nacre_backend){.ops = &acp_ops, .self = a};
    a->owner = getpid();
    a->options = *options;
    a->options.session_id = a->session_id = strdup(options->session_id);
    a->options.cwd = NULL;
    a->options.directories = NULL;
    if (!a->options.output_limit)
        a->options.output_limit = OUTPUT_LIMIT;
    if (a->options.answer_ms <= 0)
        a->options.answer_ms = ANSWER_MS;
    int r = a->session_id ? take_workspace(a, options) : -ENOMEM;
    if (r == -EINVAL)
        return err_set(err, NACRE_EINVAL,
                       "cwd and directories must be absolute paths, and directories need a cwd");
    if (r < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    a->bell_fd = fd_lift_consume(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return a->bell_fd < 0 ? err_set(err, NACRE_ELIMIT, "no descriptor left for an agent") : 0;
}

int nacre_acp_agent_open(const nacre_acp_agent_options *options, nacre_acp_agent **ret_agent,
                         nacre_error *reterr)
{
    if (!options || options->size != sizeof *options || !options->send || !options->session_id)
        return err_set(reterr, NACRE_EINVAL,
                       "the options must start from NACRE_ACP_AGENT_OPTIONS_INIT, with send and "
                       "session_id set");
    nacre_acp_agent *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&a->lock, NULL);
    a->bell_fd = -EBADF;
    int r = fill_agent(a, options, reterr);
    if (r < 0) {
        free_agent(a);
        return r;
    }
    *ret_agent = a;
    return 0;
}

/* In a forked child the run directories are the parent's to write. */
void nacre_acp_agent_close(nacre_acp_agent *agent)
{
    if (!agent)
        return;
    if (agent->owner == getpid())
        nacre_acp_agent_gone(agent);
    free_agent(agent);
}
