/*
 * The run directory of a terminal, written by the agent's process where a keeper would write it.
 * The lock on its state belongs to this process and to none that it forks: when it is gone, whoever
 * looks next finds the shell lost, as with a keeper.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "backend/acp.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"
#include "run/make.h"
#include "run/rundir.h"
#include "sys/fd.h"
#include "sys/host.h"
#include "sys/lock.h"

struct acp_run {
    struct run_state st;
    struct run_files files;
    struct lock_pin lock;
    struct logw log;
};

static int publish(void *userdata)
{
    struct acp_run *run = userdata;
    return state_write(run->files.state, &run->st);
}

void acp_run_free(struct acp_run *run)
{
    if (!run)
        return;
    logw_done(&run->log);
    run_files_close(&run->files);
    lock_unpin(&run->lock);
    free(run);
}

void acp_run_undo(struct acp_run *run, int runs_fd)
{
    if (run)
        run_remove(runs_fd, &run->st.id);
    acp_run_free(run);
}

/* The state is written by another description from here on, which holds no lock. */
static int own_lock(struct acp_run *run)
{
    cleanup_close int locked = run->files.state;
    run->files.state = fd_open_file_at(run->files.dir, "state", O_RDWR);
    return run->files.state < 0 ? run->files.state : lock_pin(locked, &run->lock);
}

static int fill(struct acp_run *run, int runs_fd, const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    struct host host;
    int r = host_identify(&host);
    if (r < 0)
        return r;
    state_init(&run->st, &head->id, &head->session);
    memcpy(run->st.boot, host.boot, sizeof host.boot);
    run->st.pid_ns = host.pid_ns;
    run->st.tier = NACRE_TIER_CLIENT;
    run->st.background = head->background;
    run->st.fleeting = head->fleeting;
    r = run_make(runs_fd, &run->st, &run->files);
    if (r == 0)
        r = own_lock(run);
    logw_init(&run->log, run->files.dir, run->files.log, run->files.spans, &run->st.log,
              head->quota);
    run->log.unmapped = true;
    run->log.publish = publish;
    run->log.userdata = run;
    return r < 0 ? r : fd_pwrite_all(run->files.spec, head, spec->size, 0);
}

int acp_run_make(int runs_fd, const struct spec *spec, struct acp_run **ret_run, nacre_error *err)
{
    struct acp_run *run = calloc(1, sizeof *run);
    if (!run)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    run->files = RUN_FILES_NONE;
    int r = fill(run, runs_fd, spec);
    if (r == 0) {
        close_fd(&run->files.spec);
        *ret_run = run;
        return 0;
    }
    run->st.id = spec->head->id;
    acp_run_undo(run, runs_fd);
    return err_sys(err, NACRE_EIO, -r, "run", "cannot write a run directory");
}

int acp_run_begin(struct acp_run *run, nacre_error *err)
{
    run->st.phase = PHASE_RUN;
    run->st.started_ns = clock_real_ns();
    run->st.started_mono_ns = clock_mono_ns();
    int r = publish(run);
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "state", "cannot write the state of a shell") : 0;
}

/* The client does not say how much it has dropped: a gap of one byte stands for all of it. */
void acp_run_add(struct acp_run *run, const char *text, size_t size, bool gap)
{
    int64_t now_us = (clock_mono_ns() - run->st.started_mono_ns) / 1000;
    if (gap)
        logw_skip(&run->log, 1, ENODATA);
    if (size > 0)
        logw_append(&run->log, NACRE_STDOUT, now_us, text, size);
    if (gap || size > 0)
        publish(run);
}

static nacre_outcome outcome_of(const struct acp_shell *shell)
{
    switch (shell->reason) {
    case NACRE_REASON_DEADLINE:
        return NACRE_TIMED_OUT;
    case NACRE_REASON_CANCEL:
        return NACRE_CANCELLED;
    case NACRE_REASON_KILL:
    case NACRE_REASON_OWNER:
        return NACRE_KILLED;
    case NACRE_REASON_NONE:
        break;
    }
    return shell->signal > 0 ? NACRE_SIGNALED : shell->exit_code >= 0 ? NACRE_EXITED : NACRE_LOST;
}

/* A command has ended here when its last output is here too. */
static void note_outcome(struct run_state *st, const struct acp_shell *shell)
{
    st->outcome = outcome_of(shell);
    st->exit_code = shell->exit_code;
    st->signal = shell->signal;
    st->reason = shell->reason;
    st->signalled = shell->reason != NACRE_REASON_NONE;
}

void acp_run_note(struct acp_shell *shell)
{
    struct acp_run *run = shell->run;
    if (!run)
        return;
    struct run_state *st = &run->st;
    st->background = shell->background;
    if (shell->exited && st->exited_ns == 0) {
        st->exited_ns = clock_real_ns();
        st->elapsed_ns = clock_mono_ns() - st->started_mono_ns;
    }
    if (shell->final)
        note_outcome(st, shell);
    st->settled = shell->settled;
    if (shell->over) {
        st->tree = NACRE_TREE_EMPTY;
        st->empty_ns = clock_real_ns();
    }
    publish(run);
    if (!shell->over)
        return;
    shell->run = NULL;
    acp_run_free(run);
}
