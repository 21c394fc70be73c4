/*
 * Who reads the input of the command: whose processes sleep in a read of its terminal or pipe, or
 * wait for it and for nothing that comes from elsewhere; with a terminal, of the group in its
 * foreground. It is decided by what the kernel shows of them and by the modes of the terminal,
 * never by what was printed. We are their ancestor, and may look at them where others may not.
 *
 * Looks are taken only while somebody waits for what they show. It counts if two agree.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"

#define SILENT_NS     (INT64_C(50) * 1000000)  /* after output, before a look */
#define AGREE_NS      (INT64_C(100) * 1000000) /* between two looks that have to agree */
#define LISTENS_NS    (INT64_C(1) * 1000000000)
#define PAUSE_MOST    (INT64_C(1) * 1000000000)
#define FORGET_NS     (2 * PAUSE_MOST) /* what was seen so long ago agrees with nothing */
#define COST_SHARE    20               /* a look takes at most one part in so many of the time */
#define LOOKS_MOST    3                /* of one who takes any answer: by then nothing agrees */

#define PROCESSES_MAX 1024 /* that are looked at */
#define TASKS_MAX     2048

/* What a process does, the least that says something first. */
enum attention {
    IGNORES,
    HIDDEN, /* it sleeps, and may not be looked at */
    LISTENS,
    READS,
};

struct glance {
    struct keeper *k;
    struct foreign_file input;
    pid_t group; /* in the foreground; 0 = everybody counts */
    pid_t pid;   /* of who is looked at, */
    enum attention pays;
    int tasks;
    enum attention most; /* of all who were, and by whom */
    struct proc_stat who;
};

/* -- One task --------------------------------------------------------------------------------- */

static bool is_input(const struct glance *l, int fd)
{
    struct foreign_file file;
    if (opened_look(l->pid, fd, &file) < 0)
        return false;
    if (l->group > 0 && file.special == makedev(5, 0))
        return true; /* /dev/tty: who is in the foreground has ours */
    return file.device == l->input.device && file.inode == l->input.inode;
}

/* Whether it waits for the input, and for what else. */
static enum attention judge_waiting(const struct glance *l, const struct asleep_fds *fds)
{
    enum attention pays = IGNORES;
    bool input[ASLEEP_FDS] = {false};
    for (size_t i = 0; i < fds->count; i++)
        if ((input[i] = is_input(l, fds->fd[i])))
            pays = READS;
    for (size_t i = 0; pays == READS && i < fds->count; i++)
        if (!input[i] && !opened_is_own(l->pid, fds->fd[i]))
            pays = LISTENS;
    return pays;
}

static void look_at_task(struct glance *l, pid_t task)
{
    struct asleep_fds fds;
    enum attention pays = IGNORES;
    switch (asleep_look(l->pid, task, &fds)) {
    case ASLEEP_READS:
    case ASLEEP_POLLS:
        pays = judge_waiting(l, &fds);
        break;
    case ASLEEP_HIDDEN:
        pays = HIDDEN;
        break;
    case ASLEEP_NOT:
    case ASLEEP_ELSE:
        break;
    }
    l->pays = MAX(l->pays, pays);
}

static int look_at_named_task(const char *name, void *userdata)
{
    struct glance *l = userdata;
    long task = fd_parse_number(name);
    if (task > 0)
        look_at_task(l, (pid_t)task);
    return l->pays == READS || ++l->tasks > TASKS_MAX;
}

/* -- One process ------------------------------------------------------------------------------ */

static void note_process(struct glance *l, const struct proc_stat *stat)
{
    if (l->pays <= l->most)
        return;
    l->most = l->pays;
    l->who = *stat;
}

static void glance_at(struct glance *l, const struct proc_ref *ref)
{
    struct proc_stat stat;
    if (ref->pid == l->k->leader || proc_stat(ref->pid, &stat) < 0 ||
        stat.ref.start != ref->start || (l->group > 0 && stat.group != l->group))
        return;
    l->pid = ref->pid;
    l->pays = IGNORES;
    if (stat.threads == 1) {
        look_at_task(l, ref->pid);
        l->tasks++;
    } else {
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/task", ref->pid);
        cleanup_close int tasks = fd_open_dir_at(AT_FDCWD, path);
        if (tasks >= 0)
            fd_walk(tasks, look_at_named_task, l);
    }
    note_process(l, &stat);
}

/* Where /proc hides the processes of other users, one of them is known by its number only. */
static int look_at_child(pid_t pid, void *userdata)
{
    struct glance *l = userdata;
    struct proc_stat stat;
    bool counts = l->group == 0 || getpgid(pid) == l->group;
    if (counts && pid != l->k->leader && proc_is_hidden(pid)) {
        stat = (struct proc_stat){.ref = {.pid = pid}};
        l->pays = HIDDEN;
        note_process(l, &stat);
    }
    return 0;
}

static bool others_are_hidden(void)
{
    struct stat st;
    return stat("/proc/1", &st) < 0;
}

static void look_at_all(struct glance *l)
{
    struct proc_ref *scan = l->k->session.room->scan;
    size_t count = proc_tree(getpid(), scan, PROCESSES_MAX, NULL, NULL);
    bool hidden = others_are_hidden();
    if (hidden)
        proc_each_child(getpid(), look_at_child, l);
    for (size_t i = 0; i < count && l->most < READS && l->tasks < TASKS_MAX; i++) {
        glance_at(l, &scan[i]);
        if (hidden)
            proc_each_child(scan[i].pid, look_at_child, l);
    }
}

/* -- The verdict ------------------------------------------------------------------------------ */

/* Whether there is anything to look at, and where. */
static bool find_input(struct keeper *k, struct glance *l)
{
    struct stat st;
    if (k->fd[FD_IN] < 0)
        return false;
    if (k->is_terminal) {
        l->input = k->input;
        return !k->hung_up && ioctl(k->fd[FD_OUT], TIOCGPGRP, &l->group) == 0 && l->group > 0;
    }
    if (fstat(k->fd[FD_IN], &st) < 0)
        return false;
    l->input = (struct foreign_file){.device = st.st_dev, .inode = st.st_ino};
    return true;
}

/* The modes say more of who may not be looked at: nobody but who asks for a password hides what is
 * typed, and yet wants lines. */
static enum wire_reads judge(const struct glance *l, const struct wire_looked *modes)
{
    bool hides = modes->terminal && modes->lines && !modes->echo;
    switch (l->most) {
    case READS:
        return hides ? READS_PASSWORD : modes->lines ? READS_LINE : READS_KEYS;
    case LISTENS:
        return READS_LISTENS;
    case HIDDEN:
        return hides ? READS_PASSWORD : READS_UNKNOWN;
    case IGNORES:
        break;
    }
    return READS_NO;
}

/* Whether something was typed that nobody has taken: whoever reads is about to wake up. The
 * terminal is there, since somebody is in its foreground: to open it revives nothing. */
static bool has_unread(const struct keeper *k)
{
    int count = 0;
    if (!k->is_terminal)
        return ioctl(k->fd[FD_IN], FIONREAD, &count) == 0 && count > 0;
    cleanup_close int slave =
        fd_lift_consume(ioctl(k->fd[FD_OUT], TIOCGPTPEER, O_RDONLY | O_NOCTTY | O_CLOEXEC));
    return slave >= 0 && ioctl(slave, FIONREAD, &count) == 0 && count > 0;
}

static struct wire_looked look(struct keeper *k)
{
    struct glance l = {.k = k};
    struct wire_looked seen = {.terminal = k->is_terminal, .echo = true, .lines = true};
    struct termios modes;
    if (!find_input(k, &l) || has_unread(k))
        return seen;
    if (k->is_terminal && tcgetattr(k->fd[FD_OUT], &modes) == 0) {
        seen.echo = (modes.c_lflag & ECHO) != 0;
        seen.lines = (modes.c_lflag & ICANON) != 0;
    }
    if (k->proc_ours)
        look_at_all(&l);
    else
        l.most = HIDDEN;
    seen.reads = judge(&l, &seen);
    if (seen.reads == READS_NO)
        return seen;
    seen.pid = l.who.ref.pid;
    seen.start = l.who.ref.start;
    snprintf(seen.name, sizeof seen.name, "%s", l.who.name);
    return seen;
}

/* -- For whom --------------------------------------------------------------------------------- */

static bool agree(const struct wire_looked *a, const struct wire_looked *b)
{
    return a->reads == b->reads && a->pid == b->pid && a->start == b->start;
}

static bool is_what_it_waits_for(const struct reads_watch *w, const struct conn *c)
{
    if (c->look_for == 0)
        return w->seen.reads == READS_NO || w->looked - w->since >= AGREE_NS;
    /* Who listens may have other things to do, which show in what is printed. */
    bool listens = (w->seen.reads & (READS_LISTENS | READS_UNKNOWN)) != 0;
    int64_t least = MAX(c->look_held, listens ? LISTENS_NS : AGREE_NS);
    return (w->seen.reads & c->look_for) != 0 && w->looked - MAX(w->since, w->heard) >= least;
}

static void tell_one(struct keeper *k, struct conn *c)
{
    static const struct wire_looked nobody = {.reads = READS_NO};
    const struct reads_watch *w = &k->reads;
    c->looks++;
    if (is_what_it_waits_for(w, c))
        ctl_tell_reads(k, c, &w->seen);
    else if (c->look_for == 0 && c->looks >= LOOKS_MOST)
        ctl_tell_reads(k, c, &nobody);
}

static bool somebody_waits(const struct keeper *k)
{
    for (int i = 0; i < CONN_MAX; i++)
        if (k->conns[i].fd >= 0 && k->conns[i].look_waits)
            return true;
    return false;
}

void reads_begin(struct keeper *k)
{
    k->reads.pause = AGREE_NS;
    k->at[AT_READS] = clock_mono_ns();
}

void reads_hear(struct keeper *k)
{
    k->reads.heard = clock_mono_ns();
    k->reads.pause = AGREE_NS;
    k->at[AT_READS] = k->reads.heard + SILENT_NS;
}

/* Who read before may be busy with it. */
void reads_forget(struct keeper *k)
{
    k->reads.looked = 0;
}

void reads_look(struct keeper *k)
{
    struct reads_watch *w = &k->reads;
    if (!somebody_waits(k))
        return;
    int64_t began = clock_mono_ns();
    struct wire_looked seen = look(k);
    bool same = w->looked > 0 && began - w->looked < FORGET_NS && agree(&seen, &w->seen);
    w->since = same ? w->since : began;
    w->looked = began;
    w->seen = seen;
    w->seen.since_ms = (began - w->since) / NS_PER_MS;
    for (int i = 0; i < CONN_MAX; i++)
        if (k->conns[i].fd >= 0 && k->conns[i].look_waits)
            tell_one(k, &k->conns[i]);
    if (!somebody_waits(k))
        return;
    int64_t now = clock_mono_ns();
    k->at[AT_READS] = now + MAX(w->pause, COST_SHARE * (now - began));
    w->pause = seen.reads == READS_NO ? MIN(2 * w->pause, PAUSE_MOST) : AGREE_NS;
}
