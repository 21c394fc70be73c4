/* Who has ended: the command, with all that is known of it, and whoever we were left with. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"

/* A tree may end faster than it can be reaped, and go on for ever: timers and clients have their
 * turn in between. */
#define REAPS_PER_TURN 256

/* "3 0": what the shell's last pipeline left; only believed if it fits the exit code. Anything
 * may lie in its place. */
static void read_pipestatus(struct keeper *k)
{
    char text[256];
    cleanup_close int room = k->spec.pipeline && enter_is_fenced(k) ? enter_room(k) : -EBADF;
    int dir = enter_is_fenced(k) ? room : k->fd[FD_DIR];
    cleanup_close int fd = k->spec.pipeline ? fd_open_file_at(dir, "pipestatus", O_RDONLY) : -EBADF;
    ssize_t n = fd < 0 ? fd : fd_pread_all(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    unlinkat(dir, "pipestatus", 0);
    int count = 0;
    int last_failure = 0, last = -1;
    for (const char *p = text; p && *p >= '0' && *p <= '9' && count < NACRE_PIPESTATUS_MAX;) {
        last = (int)fd_parse_number(p);
        last_failure = last ? last : last_failure;
        k->st.pipestatus[count++] = (uint8_t)last;
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    bool fits = k->st.exit_code == last || k->st.exit_code == last_failure;
    k->st.pipestatus_count = count > 0 && fits ? count : -1;
}

static void note_main_exit(struct keeper *k, int status, const struct rusage *usage)
{
    k->main_reaped = true;
    if (WIFSIGNALED(status)) {
        k->st.signal = WTERMSIG(status);
        k->st.core_dumped = WCOREDUMP(status);
    } else {
        k->st.exit_code = WEXITSTATUS(status);
        read_pipestatus(k);
    }
    k->st.cpu_us = (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * INT64_C(1000000) +
                   usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
    k->st.max_rss_kb = usage->ru_maxrss;
    ctl_close_input(k);
    drain_now(k);
    appeared_look(k);
    excess_judge_exit(k);
    machine_event(k, EV_EXIT);
    excess_end_rest(k);
}

/* No child is left. If somebody is all the same, a leaf tells when it is empty, but it may do so
 * late; others have to be looked at. */
static void prove(struct keeper *k)
{
    if (tree_is_empty(k)) {
        machine_event(k, EV_EMPTY);
        return;
    }
    loop_watch(k, FD_LEAF);
    if (k->at[AT_SWEEP] == NEVER)
        k->at[AT_SWEEP] =
            clock_mono_ns() + (k->st.tier == NACRE_TIER_GROUP ? LOOK_NS : k->stray_pause);
    k->stray_pause = STRAY_NS;
}

/* The command first: it may have ended before what is about to be done to it. */
static pid_t reap_one(const struct keeper *k, int *ret_status, struct rusage *ret_usage)
{
    pid_t pid = k->main_reaped ? 0 : wait4(k->main, ret_status, WNOHANG, ret_usage);
    return pid > 0 ? pid : wait4(-1, ret_status, WNOHANG, ret_usage);
}

void tree_reap(struct keeper *k)
{
    bool exited = false;
    pid_t pid = 0;
    for (int i = 0; i < REAPS_PER_TURN; i++) {
        int status;
        struct rusage usage;
        pid = reap_one(k, &status, &usage);
        if (pid == 0 && k->main_reaped && tty_is_over(k)) {
            machine_event(k, EV_EMPTY);
            break;
        }
        if (pid == 0 && k->main_reaped && tty_is_alone(k)) {
            tty_end(k);
            pid = reap_one(k, &status, &usage);
        }
        if (pid <= 0)
            break;
        if (pid == k->leader)
            k->leader = 0;
        if (pid == k->main) {
            note_main_exit(k, status, &usage);
            exited = true;
        }
    }
    if (pid > 0)
        k->at[AT_REAP] = 0;
    else if (pid < 0 && errno == ECHILD && k->main_reaped)
        prove(k);
    if (exited && k->state != ST_DONE)
        publish(k);
}
