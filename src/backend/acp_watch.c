/*
 * Watches of terminals. The descriptor is a timer: it fires at once when something has happened,
 * when the next look at the output is due, and at the deadline of the command.
 */
#include <stdlib.h>
#include <sys/timerfd.h>

#include "backend/acp.h"
#include "backend/local_parts.h"
#include "backend/local_watch.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fd.h"

#define LOOK_MS 250 /* between looks at the output of what runs */
#define PUMP_MS 10  /* between looks at a connection that nobody else reads */

struct acp_watch {
    struct acp_watch *next;
    nacre_acp_agent *agent;
    struct acp_shell *shell;
    struct local_watch *log; /* reads what was written down */
    int timer_fd;
    bool skip;
    uint64_t rings;
    int64_t look_ns; /* when the output is asked for again */
};

static void set_timer(const struct acp_watch *w, int64_t at_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S}};
    timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void acp_watch_ring(nacre_acp_agent *a, const struct acp_shell *shell)
{
    for (struct acp_watch *w = a->watches; w; w = w->next) {
        if (w->shell != shell)
            continue;
        w->rings++;
        set_timer(w, 1);
    }
}

/* Whether to ask for the output now. */
static bool wants_look(struct acp_watch *w)
{
    struct acp_shell *shell = w->shell;
    if (w->skip || shell->exited || shell->fetching || clock_mono_ns() < w->look_ns)
        return false;
    w->look_ns = clock_deadline(LOOK_MS);
    shell->fetching = true;
    return true;
}

/* When to look again if nothing happens; 0 = never. */
static int64_t next_look(const struct acp_watch *w)
{
    const struct acp_shell *shell = w->shell;
    int64_t next = shell->exited || shell->reason ? INT64_MAX : shell->deadline_ns;
    next = MIN(next, shell->patience_ns);
    if (!w->skip && !shell->exited)
        next = MIN(next, w->look_ns);
    if (w->agent->options.receive)
        next = MIN(next, clock_deadline(PUMP_MS));
    return next == INT64_MAX ? 0 : next;
}

/* There is no event: what is due is done, and the timer set for what is due next. */
static void go_on(struct acp_watch *w, uint64_t rings)
{
    nacre_acp_agent *a = w->agent;
    acp_lose_patience(a);
    pthread_mutex_lock(&a->lock);
    bool late = acp_is_late(w->shell);
    bool look = wants_look(w);
    set_timer(w, w->rings != rings ? 1 : next_look(w));
    pthread_mutex_unlock(&a->lock);
    if (late)
        acp_post(a, ACP_KILL, w->shell);
    if (look)
        acp_post(a, ACP_OUTPUT, w->shell);
}

static int watch_next(void *self, void *buf, size_t size, nacre_event *ret_event, nacre_error *err)
{
    struct acp_watch *w = self;
    nacre_acp_agent *a = w->agent;
    uint64_t times;
    if (a->options.receive && a->options.receive(0, a->options.userdata) < 0)
        nacre_acp_agent_gone(a);
    pthread_mutex_lock(&a->lock);
    ssize_t drained UNUSED = read(w->timer_fd, &times, sizeof times);
    uint64_t rings = w->rings;
    pthread_mutex_unlock(&a->lock);
    int r = local_watch_next(w->log, buf, size, ret_event, err);
    if (r < 0 || ret_event->kind != NACRE_EVENT_NONE)
        set_timer(w, 1);
    else
        go_on(w, rings);
    return r;
}

static int watch_fd(void *self)
{
    return ((struct acp_watch *)self)->timer_fd;
}

static void watch_skip_output(void *self)
{
    struct acp_watch *w = self;
    w->skip = true;
    local_watch_skip(w->log);
}

static int watch_record(void *self, nacre_record *ret_record, nacre_error *err)
{
    return local_watch_record(((struct acp_watch *)self)->log, ret_record, err);
}

static void free_watch(struct acp_watch *w)
{
    local_watch_free(w->log);
    close_fd(&w->timer_fd);
    free(w);
}

static void watch_close(void *self)
{
    struct acp_watch *w = self;
    pthread_mutex_lock(&w->agent->lock);
    struct acp_watch **at = &w->agent->watches;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    pthread_mutex_unlock(&w->agent->lock);
    free_watch(w);
}

int acp_watch_new(nacre_acp_agent *a, struct acp_shell *shell, uint64_t offset,
                  nacre_watch **ret_watch, nacre_error *err)
{
    static const nacre_watch_ops ops = {.version = NACRE_BACKEND_VERSION,
                                        .size = sizeof ops,
                                        .fd = watch_fd,
                                        .next = watch_next,
                                        .skip_output = watch_skip_output,
                                        .record = watch_record,
                                        .close = watch_close};
    struct acp_watch *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *w = (struct acp_watch){.agent = a, .shell = shell};
    w->timer_fd = fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    int runs = local_runs(a->home.self, err);
    int r = runs < 0 ? runs : local_watch_new_own(runs, &shell->id, offset, &w->log, err);
    nacre_watch *watch = r < 0 || w->timer_fd < 0 ? NULL : nacre_watch_new(&ops, w);
    if (!watch) {
        free_watch(w);
        return r < 0 ? r : err_set(err, NACRE_ELIMIT, "no descriptor or memory left for a watch");
    }
    pthread_mutex_lock(&a->lock);
    w->next = a->watches;
    a->watches = w;
    set_timer(w, 1);
    pthread_mutex_unlock(&a->lock);
    *ret_watch = watch;
    return 0;
}
