/*
 * Mirrors: run directories that this process writes where a keeper would. The lock on the state
 * belongs to this process and to none that it forks: when it is gone, whoever looks next finds the
 * shell lost, as with a keeper.
 */
#include "home/mirror.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "config/limits.h"
#include "home/home.h"
#include "run/log.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/host.h"

#define ELSEWHERE_SHELL "/bin/sh" /* what every machine has */

/* -- Whoever watches -------------------------------------------------------------------------- */

nacre_mirror *mirror_of(nacre_home *h, const nacre_id *id)
{
    nacre_mirror *m = h->mirrors;
    while (m && (m->over || !nacre_id_equal(&m->st.id, id)))
        m = m->next;
    return m;
}

bool mirror_find(nacre_home *h, const nacre_id *id)
{
    HOLD(&h->lock);
    return mirror_of(h, id) != NULL;
}

void mirror_watch(nacre_home *h, const nacre_id *id, int timer_fd, struct mirror_watcher *watcher)
{
    HOLD(&h->lock);
    nacre_mirror *m = mirror_of(h, id);
    if (m) {
        *watcher = (struct mirror_watcher){.next = m->watchers, .mirror = m, .timer_fd = timer_fd};
        m->watchers = watcher;
    }
}

void mirror_unwatch(nacre_home *h, struct mirror_watcher *watcher)
{
    HOLD(&h->lock);
    if (watcher->mirror)
        UNLINK(watcher->mirror->watchers, watcher);
    watcher->mirror = NULL;
}

uint64_t mirror_rings(nacre_home *h, const struct mirror_watcher *watcher)
{
    HOLD(&h->lock);
    return watcher->mirror ? watcher->mirror->rings : 0;
}

static void ring(nacre_mirror *m)
{
    HOLD(&m->home->lock);
    m->rings++;
    for (const struct mirror_watcher *w = m->watchers; w; w = w->next)
        fd_arm_timer(w->timer_fd, 1);
}

/* -- Making and freeing ----------------------------------------------------------------------- */

static int publish(void *userdata)
{
    nacre_mirror *m = userdata;
    return state_write(m->files.state, &m->st);
}

static void close_files(nacre_mirror *m)
{
    logw_done(&m->log);
    run_files_close(&m->files);
    lock_unpin(&m->pin);
}

/* The state is written by another description from here on, which holds no lock. */
static int own_lock(nacre_mirror *m)
{
    cleanup_close int locked = m->files.state;
    m->files.state = fd_open_file_at(m->files.dir, "state", O_RDWR);
    return m->files.state < 0 ? m->files.state : lock_pin(locked, &m->pin);
}

static int make_run(nacre_mirror *m, int runs_fd)
{
    const struct spec_head *head = m->spec.head;
    struct host host;
    FSIZE_SHELTER();
    int r = host_identify(&host);
    if (r < 0)
        return r;
    state_init(&m->st, &head->id, &head->session);
    memcpy(m->st.boot, host.boot, sizeof host.boot);
    m->st.pid_ns = host.pid_ns;
    m->st.tier = NACRE_TIER_CLIENT;
    m->st.background = head->background;
    m->st.fleeting = head->fleeting;
    r = run_make(runs_fd, &m->st, &m->files);
    if (r == 0)
        r = own_lock(m);
    logw_init(&m->log, m->files.dir, m->files.log, m->files.spans, &m->st.log, head->quota);
    m->log.unmapped = true;
    m->log.publish = publish;
    m->log.userdata = m;
    if (r == 0)
        r = fd_pwrite_all(m->files.spec, head, m->spec.size, 0);
    close_fd(&m->files.spec);
    return r;
}

static int compose_elsewhere(nacre_mirror *m, const nacre_command *command, nacre_error *err)
{
    char cwd[PATH_MAX];
    nacre_id id;
    struct compose c = home_compose(m->home, command);
    int e = host_random(&id, sizeof id);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "random", "no random bytes for an id");
    int r = compose_cwd(&c, cwd, err);
    if (r < 0)
        return r;
    bool absolute = command->shell && command->shell[0] == '/';
    c.shell = absolute ? command->shell : ELSEWHERE_SHELL;
    c.elsewhere = true;
    nacre_limit loose = command->limits.strict ? limits_first(&command->limits) : NACRE_LIMIT_NONE;
    if (loose != NACRE_LIMIT_NONE)
        return limits_refused(loose, "a client runs the command", err);
    c.run_path = "";
    r = compose_spec(&c, &id, cwd, &m->spec_bytes, err);
    m->spec = (struct spec){.head = (const void *)m->spec_bytes.data, .size = m->spec_bytes.len};
    return r;
}

/* The run directory is there before anything runs: what cannot be written down is not started. */
static int fill_mirror(nacre_mirror *m, const nacre_command *command, nacre_error *err)
{
    int runs = home_make_runs(m->home, err);
    int r = runs < 0 ? runs : compose_elsewhere(m, command, err);
    if (r < 0)
        return r;
    int e = make_run(m, runs);
    m->st.id = m->spec.head->id;
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "run", "cannot write a run directory") : 0;
}

int nacre_mirror_new(nacre_home *home, const nacre_command *command, nacre_mirror **ret_mirror,
                     const char **ret_cwd, nacre_error *reterr)
{
    int r = compose_check(command, reterr);
    if (r < 0)
        return r;
    nacre_mirror *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    pthread_mutex_init(&m->lock, NULL);
    m->home = home;
    m->owner = getpid();
    m->files = RUN_FILES_NONE;
    m->log.unmapped = true;
    m->background = command->background != 0;
    m->deadline_ns = clock_deadline(command->timeout_ms > 0 ? command->timeout_ms : -1);
    m->grace_ms = command->grace_ms >= 0 ? command->grace_ms : home->options.grace_ms;
    m->kill_ns = INT64_MAX;
    r = fill_mirror(m, command, reterr);
    if (r < 0) {
        nacre_mirror_free(m);
        return r;
    }
    pthread_mutex_lock(&home->lock);
    m->next = home->mirrors;
    home->mirrors = m;
    pthread_mutex_unlock(&home->lock);
    *ret_mirror = m;
    if (ret_cwd)
        *ret_cwd = spec_string(&m->spec, m->spec.head->cwd);
    return 0;
}

static void leave_home(nacre_mirror *m)
{
    HOLD(&m->home->lock);
    UNLINK(m->home->mirrors, m);
    for (struct mirror_watcher *w = m->watchers; w; w = w->next) {
        w->mirror = NULL;
        fd_arm_timer(w->timer_fd, 1);
    }
}

/* In a forked child the directory is the parent's to write. */
void nacre_mirror_free(nacre_mirror *mirror)
{
    if (!mirror)
        return;
    bool ours = mirror->owner == getpid();
    if (ours)
        leave_home(mirror);
    if (ours && !mirror->begun && mirror->files.dir >= 0)
        run_remove(mirror->home->runs_fd, &mirror->st.id);
    close_files(mirror);
    buf_done(&mirror->spec_bytes);
    pthread_mutex_destroy(&mirror->lock);
    free(mirror);
}

/* -- Writing ---------------------------------------------------------------------------------- */

nacre_id nacre_mirror_id(const nacre_mirror *mirror)
{
    return mirror->st.id;
}

const struct spec *mirror_spec(const nacre_mirror *m)
{
    return &m->spec;
}

int nacre_mirror_begin(nacre_mirror *mirror, nacre_error *reterr)
{
    FSIZE_SHELTER();
    pthread_mutex_lock(&mirror->lock);
    mirror->begun = true;
    mirror->st.phase = PHASE_RUN;
    mirror->st.started_ns = clock_real_ns();
    mirror->st.started_mono_ns = clock_mono_ns();
    int r = publish(mirror);
    buf_done(&mirror->spec_bytes);
    pthread_mutex_unlock(&mirror->lock);
    return r < 0 ? err_sys(reterr, NACRE_EIO, -r, "state", "cannot write the state of a shell") : 0;
}

/* Nobody says how much a gap is: one byte stands for all of it. */
void nacre_mirror_write(nacre_mirror *mirror, nacre_stream stream, const void *data, size_t size,
                        int gap)
{
    if (size == 0 && !gap)
        return;
    FSIZE_SHELTER();
    pthread_mutex_lock(&mirror->lock);
    int64_t now_us = (clock_mono_ns() - mirror->st.started_mono_ns) / 1000;
    if (mirror->files.dir >= 0) {
        if (gap)
            logw_skip(&mirror->log, 1, ENODATA);
        if (size > 0)
            logw_append(&mirror->log, stream, now_us, data, size);
        publish(mirror);
    }
    pthread_mutex_unlock(&mirror->lock);
    ring(mirror);
}

static nacre_outcome outcome_of(const nacre_mirror_news *news)
{
    switch (news->reason) {
    case NACRE_REASON_DEADLINE:
        return NACRE_TIMED_OUT;
    case NACRE_REASON_CANCEL:
        return NACRE_CANCELLED;
    case NACRE_REASON_KILL:
    case NACRE_REASON_OWNER:
    case NACRE_REASON_LIMIT:
        return NACRE_KILLED;
    case NACRE_REASON_NONE:
        break;
    }
    return news->signal > 0 ? NACRE_SIGNALED : news->exit_code >= 0 ? NACRE_EXITED : NACRE_LOST;
}

/* A command has ended here when its last output is here too. */
static void note_news(struct run_state *st, const nacre_mirror_news *news)
{
    st->background = news->background != 0;
    if (news->exited && st->exited_ns == 0) {
        st->exited_ns = clock_real_ns();
        st->elapsed_ns = clock_mono_ns() - st->started_mono_ns;
    }
    if (news->final) {
        st->outcome = outcome_of(news);
        st->exit_code = news->exit_code;
        st->signal = news->signal;
        st->reason = news->reason;
        st->signalled = news->reason != NACRE_REASON_NONE;
    }
    st->settled = news->settled != 0;
    if (news->over) {
        st->tree = NACRE_TREE_EMPTY;
        st->empty_ns = clock_real_ns();
    }
}

/* What the session knows better, or has done by itself. */
static nacre_mirror_news complete_news(nacre_mirror *m, const nacre_mirror_news *news)
{
    nacre_mirror_news all = *news;
    HOLD(&m->home->lock);
    m->exited = news->exited != 0;
    m->over = news->over != 0;
    all.background = news->background || m->background;
    all.reason = news->reason ? news->reason : m->reason;
    return all;
}

void nacre_mirror_note(nacre_mirror *mirror, const nacre_mirror_news *news)
{
    FSIZE_SHELTER();
    pthread_mutex_lock(&mirror->lock);
    if (mirror->files.dir >= 0) {
        nacre_mirror_news all = complete_news(mirror, news);
        note_news(&mirror->st, &all);
        publish(mirror);
        if (all.over)
            close_files(mirror);
    }
    pthread_mutex_unlock(&mirror->lock);
    ring(mirror);
}

void mirror_set_background(nacre_home *h, const nacre_id *id)
{
    HOLD(&h->lock);
    nacre_mirror *m = mirror_of(h, id);
    if (m)
        m->background = true;
}
