/*
 * The life of the process around its runs, as a table: state × event → action. The actions set the
 * next state; what does not stand in the table is ignored. The run itself is machine.c's: it is at
 * ST_WARM while we are ready or hurried, and when it is at ST_DONE the loop ends and LE_RUN_OVER
 * says so here.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/sock.h"
#include "sys/syscalls.h"

/* Where the linker has put what is executed. */
extern char __executable_start, etext;

static void begin_run(struct keeper *k)
{
    k->life = LIFE_BEGUN;
    k->log.half = MAX(k->spec.quota, LOG_QUOTA_MIN) / 2;
    machine_event(k, EV_STARTED);
    if (k->page->outside) {
        setup_leave_cgroup(k);
        k->st.tier = NACRE_TIER_SUBREAPER;
        publish(k);
    }
    excess_begin(k);
    tty_begin(k);
    k->at[AT_QUIET] = k->st.started_mono_ns + QUIET_NS;
    struct conn *first = ctl_place(k, TAKE_FD(k->fd[FD_LAUNCH]), true);
    k->pacer = k->spec.paced ? first : NULL;
    /* A short command is over before we hear that it began, and somebody waits for that. */
    tree_reap(k);
    if (k->state == ST_DONE)
        return;
    ctl_listen(k, first);
    if (k->spec.input != NACRE_STDIN_PIPE)
        close_fd(&k->fd[FD_IN]);
}

static void begin_hurried(struct keeper *k)
{
    begin_run(k);
    k->at[AT_QUIET] = 0;
}

static void call_off(struct keeper *k)
{
    machine_event(k, EV_NOT_STARTED);
}

/* From now on the stand-in's end wakes us: else we would sleep on until the alarm. */
static void promise_next(struct keeper *k)
{
    k->life = LIFE_HURRIED;
    loop_watch(k, FD_BORN);
}

static void drop_next(struct keeper *k)
{
    loop_close(k, FD_NEXT);
}

/*
 * The next keeper is a copy of this one, or this one when it has nothing else to do: it costs no
 * exec, and an upgrade of the program changes nothing for a host that is up. It keeps what belongs
 * to the session and forgets all that belongs to the run, the lock above all.
 */
static void be_reborn(struct keeper *k)
{
    struct keeper next = {.session = k->session, .life = LIFE_REBORN, .state = ST_DONE};
    connects_forget(k);
    execs_forget(k);
    memcpy(next.fd, k->fd, sizeof next.fd);
    logw_done(&k->log);
    *k = next;
    loop_inherit(k);
}

/* What the copy shares with us is copied when it is written to: now, and not when somebody waits
 * for our answer. */
static void unshare_pages(struct keeper *k)
{
    volatile char *bytes = (volatile char *)k;
    for (size_t i = 0; i < sizeof *k; i += 1024)
        bytes[i] = bytes[i];
}

static bool wants_next(const struct keeper *k)
{
    return k->fd[FD_NEXT] >= 0 && k->spec.successor;
}

static void make_next(struct keeper *k)
{
    k->life = LIFE_FOLLOWED;
    standin_forget(k);
    loop_ignore(k, FD_NEXT);
    if (wants_next(k) && sys_fork_sibling() == 0) {
        k->session.copies++;
        be_reborn(k);
        /* Until it has said who it is, it is found in the group of its maker. */
        handshake_made(k);
        setsid();
        return;
    }
    close_fd(&k->fd[FD_NEXT]);
    unshare_pages(k);
}

/* For whoever has to tell the command from another process after we are gone. */
static void note_main_start(struct keeper *k)
{
    struct proc_ref ref;
    if (k->main_reaped || !k->proc_ours || proc_ref(k->main, &ref) < 0)
        return;
    k->st.main_start = ref.start;
    state_write(k->fd[FD_STATE], &k->st);
}

/* The kernel maps much more of a program than it executes. Most of a run is waiting, and there may
 * be a thousand of us: what is needed again comes back by itself. */
static void give_program_back(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)&__executable_start / page * page, to = (uintptr_t)&etext;
    if (!SANITIZED)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

/*
 * What nobody waits for. Most commands are over in a moment, and all that is done beside them slows
 * them down: so we sleep through that moment, and do this afterwards, or when it lasts.
 */
static void settle_in(struct keeper *k)
{
    close_fd(&k->fd[FD_TEXT]);
    restore_look(k);
    note_main_start(k);
    tree_yield_memory(k);
    give_program_back();
    if (k->st.kept)
        outlive_owner(k);
}

static void make_next_and_settle(struct keeper *k)
{
    make_next(k);
    if (k->life == LIFE_FOLLOWED)
        settle_in(k);
}

/*
 * Nothing is left of the run but what its directory says, if it says it all: a reader that finds
 * the lock free and no end would take a keeper that lives on for a sign of life.
 */
static void start_over(struct keeper *k)
{
    k->life = LIFE_OVER;
    if (!wants_next(k) || k->fd[FD_LINE] < 0 || state_write(k->fd[FD_STATE], &k->st) < 0)
        return;
    standin_forget(k);
    flood_step_aside(k, false);
    hunt_go_first(k, false);
    be_reborn(k);
}

/* clang-format off */
static void (*const life_table[LIFE_COUNT][LE_COUNT])(struct keeper *k) = {
    /*                  STARTED        NOT_STARTED  HURRY         UNWANTED   QUIET                 RUN_OVER */
    [LIFE_READY]    = {begin_run,     call_off,    promise_next, drop_next, NULL,                 start_over},
    [LIFE_HURRIED]  = {begin_hurried, call_off,    NULL,         drop_next, NULL,                 start_over},
    [LIFE_BEGUN]    = {NULL,          NULL,        make_next,    drop_next, make_next_and_settle, start_over},
    [LIFE_FOLLOWED] = {NULL,          NULL,        NULL,         NULL,      settle_in,            start_over},
    [LIFE_REBORN]   = {NULL},
    [LIFE_OVER]     = {NULL},
};
/* clang-format on */

void life_event(struct keeper *k, enum life_event event)
{
    if (life_table[k->life][event])
        life_table[k->life][event](k);
}

void life_look(struct keeper *k)
{
    if (k->state == ST_WARM && standin_is_over(k))
        life_event(k, k->page->st.phase == PHASE_RUN && k->page->stage == STAGE_NONE
                          ? LE_STARTED
                          : LE_NOT_STARTED);
}

void life_hear_next(struct keeper *k)
{
    struct wire_head word;
    ssize_t n = sock_recv(k->fd[FD_NEXT], &word, sizeof word, NULL, 0, MSG_DONTWAIT);
    life_event(k, n > 0 ? LE_HURRY : LE_UNWANTED);
}
