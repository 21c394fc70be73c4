/* The acp backend: commands run in the terminals of an ACP client. */
#include "acp/agent.h"

#include <string.h>
#include <sys/eventfd.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "sys/fd.h"

#define OUTPUT_LIMIT ((size_t)4 << 20)
#define ANSWER_MS    30000
#define LOOK_MS      250 /* between looks at the output of what runs */

struct acp_shell *acp_find_shell(nacre_acp_agent *a, const nacre_id *id)
{
    HOLD(&a->lock);
    struct acp_shell *shell = a->shells;
    while (shell && !nacre_id_equal(&shell->id, id))
        shell = shell->next;
    return shell;
}

/* -- The session ------------------------------------------------------------------------------ */

static int acp_open(void *self, nacre_home *home, nacre_error *err)
{
    nacre_acp_agent *a = self;
    pthread_mutex_lock(&a->lock);
    bool free = !a->home;
    if (free)
        a->home = home;
    pthread_mutex_unlock(&a->lock);
    return free ? 0
                : err_set(err, NACRE_EBUSY,
                          "another session uses this agent; close it, or open another agent");
}

static const char *acp_cwd(void *self)
{
    const nacre_acp_agent *a = self;
    return a->workspace ? a->workspace[0] : NULL;
}

/* -- Its shells ------------------------------------------------------------------------------- */

static int acp_change(void *self, const nacre_id *id, int background, int keep, nacre_op **ret_op,
                      nacre_error *err)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = acp_find_shell(a, id);
    if (keep > 0)
        return err_set(err, NACRE_EUNSUPPORTED, "terminals of an ACP client cannot be kept");
    *ret_op = op_done();
    if (!*ret_op)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    HOLD(&a->lock);
    if (shell) {
        shell->background = shell->background || background > 0;
        acp_note(shell);
    }
    return 0;
}

/* A client that takes longer than that to answer is not asked again meanwhile. */
static int64_t acp_pump(void *self, const nacre_id *id, int quiet)
{
    nacre_acp_agent *a = self;
    struct acp_shell *shell = acp_find_shell(a, id);
    int64_t next = acp_tend(a);
    if (quiet || !shell)
        return next;
    pthread_mutex_lock(&a->lock);
    bool due = !shell->exited && clock_left_ms(shell->look_ns) == 0;
    bool post = due && !shell->fetching;
    if (due)
        shell->look_ns = clock_deadline(LOOK_MS);
    if (post)
        shell->fetching = true;
    if (!shell->exited)
        next = MIN(next, shell->look_ns);
    pthread_mutex_unlock(&a->lock);
    if (post)
        acp_post(a, ACP_OUTPUT, shell);
    return next;
}

static int acp_bell(void *self)
{
    return ((nacre_acp_agent *)self)->bell_fd;
}

/* Nobody may be waiting for a shell of the background when its time is over. */
static int acp_rung(void *self, nacre_id *ret_id)
{
    nacre_acp_agent *a = self;
    uint64_t count;
    acp_tend(a);
    HOLD(&a->lock);
    struct acp_shell *shell = a->shells;
    while (shell && !shell->rings)
        shell = shell->next;
    if (shell) {
        shell->rings = false;
        *ret_id = shell->id;
    } else {
        ssize_t drained UNUSED = read(a->bell_fd, &count, sizeof count);
    }
    return shell != NULL;
}

static const nacre_backend_ops acp_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof acp_ops,
    .name = "acp",
    .open = acp_open,
    .cwd = acp_cwd,
    .start = acp_start,
    .kill = acp_kill,
    .change = acp_change,
    .look = acp_look,
    .pump = acp_pump,
    .bell = acp_bell,
    .rung = acp_rung,
    .close = acp_close,
};

/* -- The agent -------------------------------------------------------------------------------- */

const nacre_backend *nacre_backend_acp(nacre_acp_agent *agent)
{
    return &agent->backend;
}

int nacre_acp_agent_terminal(nacre_acp_agent *agent, const nacre_id *id, char **ret_terminal,
                             nacre_error *reterr)
{
    struct acp_shell *shell = acp_find_shell(agent, id);
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
