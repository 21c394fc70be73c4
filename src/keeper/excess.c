/*
 * The limits of a run that has begun: what no controller holds is looked at every now and then, and
 * whoever uses more is ended as by any other kill; what controllers held is read from them. A run
 * without limits has no timer, no descriptor and no look of this.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

#define FIRST_LOOK_NS (INT64_C(5) * 1000000) /* and each after twice as long, up to */
#define LOOKS_NS      (INT64_C(100) * 1000000)
#define NEAR_NS       (INT64_C(20) * 1000000) /* where half of a limit is used up */

/* What all processes of the run use together. */
struct tally {
    uint64_t memory, tasks, written;
    int64_t cpu_ms;
    bool writes_known;
    uint64_t largest_bytes;
    char largest[16];
};

static uint64_t bound_of(const struct keeper *k, nacre_limit limit)
{
    return k->spec.bounds[limit];
}

/* Whether it is ours to count. */
static bool is_counted(const struct keeper *k, nacre_limit limit)
{
    return bound_of(k, limit) > 0 && k->st.limits.held[limit] == NACRE_HELD_KEEPER;
}

static bool is_controlled(const struct keeper *k, nacre_limit limit)
{
    return k->st.limits.held[limit] == NACRE_HELD_CGROUP1 ||
           k->st.limits.held[limit] == NACRE_HELD_CGROUP2;
}

/* -- What the kernel counts ------------------------------------------------------------------- */

static void read_group(const struct keeper *k, nacre_limit limit, enum controller which,
                       struct controller_counts *counts)
{
    bool v1 = k->st.limits.held[limit] == NACRE_HELD_CGROUP1;
    int group = v1 ? k->fd[FD_MEMORY + which] : k->fd[FD_CGROUP];
    if (is_controlled(k, limit) && group >= 0)
        controller_read(group, which, v1, counts);
}

static struct controller_counts read_groups(const struct keeper *k)
{
    struct controller_counts counts = {0};
    read_group(k, NACRE_LIMIT_MEMORY, CONTROLLER_MEMORY, &counts);
    read_group(k, NACRE_LIMIT_PROCESSES, CONTROLLER_PIDS, &counts);
    read_group(k, NACRE_LIMIT_CPU, CONTROLLER_CPU, &counts);
    return counts;
}

/* Counts never go down: a group that is gone says nothing. */
static struct controller_counts take_group_counts(struct keeper *k)
{
    struct state_limits *st = &k->st.limits;
    struct controller_counts counts = read_groups(k);
    st->killed = MAX(st->killed, (uint32_t)counts.killed);
    st->refused = MAX(st->refused, (uint32_t)counts.refused);
    st->throttled_ms = MAX(st->throttled_ms, counts.waited_ms);
    if (k->st.limits.ended == NACRE_LIMIT_MEMORY && is_controlled(k, NACRE_LIMIT_MEMORY))
        st->peak = MAX(st->peak, counts.peak);
    return counts;
}

void excess_note(struct keeper *k)
{
    if (spec_is_bounded(&k->spec))
        take_group_counts(k);
}

/* -- What we count ---------------------------------------------------------------------------- */

static int64_t ended_children_ms(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void add_user(struct keeper *k, const struct proc_ref *ref, struct tally *t)
{
    struct proc_stat stat;
    if (proc_stat(ref->pid, &stat) < 0 || stat.ref.start != ref->start)
        return;
    t->tasks += stat.threads;
    if (ref->pid == k->main)
        memcpy(k->session.room->watch.main_name, stat.name, sizeof stat.name);
    t->cpu_ms += (int64_t)(stat.cpu_ms + stat.waited_ms);
    int64_t written = bound_of(k, NACRE_LIMIT_DISK) > 0 ? proc_written(ref->pid) : -1;
    t->written += (uint64_t)MAX(written, INT64_C(0));
    t->writes_known = t->writes_known || written >= 0;
    uint64_t own = bound_of(k, NACRE_LIMIT_MEMORY) > 0 ? proc_own_memory(ref->pid) : 0;
    t->memory += own;
    if (own > t->largest_bytes) {
        t->largest_bytes = own;
        memcpy(t->largest, stat.name, sizeof t->largest);
    }
}

/* Descendants, or all in the leaf; whoever has left both for another namespace is not looked for
 * each time. */
static size_t list_users(struct keeper *k)
{
    if (tree_is_group(k) || k->fd[FD_CGROUP] >= 0)
        return tree_list(k);
    return proc_tree(getpid(), k->session.room->scan, TREE_MAX, NULL, NULL);
}

static struct tally tally_tree(struct keeper *k)
{
    struct tally t = {0};
    size_t count = k->proc_ours ? list_users(k) : 0;
    for (size_t i = 0; i < count; i++)
        add_user(k, &k->session.room->scan[i], &t);
    t.cpu_ms += ended_children_ms() - k->session.room->watch.cpu_ms;
    int64_t written = proc_children_written(getpid());
    if (written > k->session.room->watch.written)
        t.written += (uint64_t)(written - k->session.room->watch.written);
    if (t.largest_bytes > 0) {
        k->session.room->watch.largest_bytes = t.largest_bytes;
        memcpy(k->session.room->watch.largest, t.largest, sizeof t.largest);
    }
    return t;
}

/* The leaf knows it without any controller. */
static int64_t used_cpu_ms(const struct keeper *k, const struct tally *t)
{
    int64_t ms = k->st.cgroup[0] ? cgroup_cpu_ms(k->st.cgroup) : -ENOENT;
    return ms >= 0 ? ms : t->cpu_ms;
}

/*
 * What the file system has lost since the run began, but no more than the run has written: others
 * write there too. In memory nobody counts writes; where it is not known who wrote, it was the run.
 */
static uint64_t taken_disk(const struct keeper *k, const struct tally *t)
{
    struct statfs disk;
    if (k->fd[FD_DISK] < 0 || fstatfs(k->fd[FD_DISK], &disk) < 0)
        return 0;
    uint64_t free_now = (uint64_t)disk.f_bfree * (uint64_t)disk.f_bsize;
    uint64_t lost = k->session.room->watch.disk_free > free_now
                        ? k->session.room->watch.disk_free - free_now
                        : 0;
    return t->writes_known && disk.f_type != TMPFS_MAGIC ? MIN(lost, t->written) : lost;
}

/* -- Ending ----------------------------------------------------------------------------------- */

static void note_excess(struct keeper *k, nacre_limit limit, uint64_t peak)
{
    struct state_limits *st = &k->st.limits;
    st->ended = limit;
    st->value = bound_of(k, limit);
    st->peak = peak;
    st->largest_bytes = k->session.room->watch.largest_bytes;
    memcpy(st->largest, k->session.room->watch.largest, sizeof st->largest);
}

/* Of memory and processes there is more with every moment of a grace. */
static void end_by(struct keeper *k, nacre_limit limit, uint64_t peak)
{
    bool grows = limit == NACRE_LIMIT_MEMORY || limit == NACRE_LIMIT_PROCESSES;
    if (k->state == ST_RUNNING || k->state == ST_LINGERING)
        note_excess(k, limit, peak);
    k->order = (struct kill_order){
        .signal = grows ? SIGKILL : SIGTERM, .grace_ms = -1, .reason = NACRE_REASON_LIMIT};
    machine_event(k, EV_LIMIT);
}

/* Whether any limit is passed; *ret_near: half of one that is ours to count is used up. */
static bool end_if_passed(struct keeper *k, const struct tally *t, bool *ret_near)
{
    const struct {
        nacre_limit limit;
        uint64_t used;
    } uses[] = {
        {NACRE_LIMIT_MEMORY, t->memory},
        {NACRE_LIMIT_PROCESSES, t->tasks},
        {NACRE_LIMIT_CPU_TIME, (uint64_t)t->cpu_ms},
        {NACRE_LIMIT_DISK, t->written},
    };
    for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
        if (!is_counted(k, uses[i].limit))
            continue;
        uint64_t bound = bound_of(k, uses[i].limit);
        *ret_near = *ret_near || uses[i].used > bound / 2;
        if (uses[i].used > bound) {
            end_by(k, uses[i].limit, uses[i].used);
            return true;
        }
    }
    return false;
}

/* -- Looks ------------------------------------------------------------------------------------ */

/* Somebody may want to know while it goes on. */
static void publish_news(struct keeper *k, uint32_t killed, uint32_t refused)
{
    if (k->st.limits.killed != killed || k->st.limits.refused != refused)
        publish(k);
}

/* Of a group that is far from its limit nobody has to know who uses most, but who is in it. */
static bool needs_tally(const struct keeper *k, const struct controller_counts *counts)
{
    static const nacre_limit counted[] = {NACRE_LIMIT_MEMORY, NACRE_LIMIT_PROCESSES,
                                          NACRE_LIMIT_CPU_TIME, NACRE_LIMIT_DISK};
    for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
        if (is_counted(k, counted[i]))
            return true;
    return bound_of(k, NACRE_LIMIT_MEMORY) > 0 &&
           (k->session.room->watch.pause < LOOKS_NS ||
            counts->used > bound_of(k, NACRE_LIMIT_MEMORY) / 2);
}

void excess_look(struct keeper *k)
{
    uint32_t killed = k->st.limits.killed, refused = k->st.limits.refused;
    struct controller_counts counts = take_group_counts(k);
    bool near =
        is_controlled(k, NACRE_LIMIT_MEMORY) && counts.used > bound_of(k, NACRE_LIMIT_MEMORY) / 2;
    if (needs_tally(k, &counts)) {
        struct tally t = tally_tree(k);
        t.cpu_ms = used_cpu_ms(k, &t);
        t.written = taken_disk(k, &t);
        if (end_if_passed(k, &t, &near) && k->state == ST_DONE)
            return;
    }
    publish_news(k, killed, refused);
    k->session.room->watch.pause = MIN(2 * k->session.room->watch.pause, LOOKS_NS);
    k->at[AT_LIMITS] = clock_mono_ns() + (near ? MIN(k->session.room->watch.pause, NEAR_NS)
                                               : k->session.room->watch.pause);
}

/* -- What stderr says ------------------------------------------------------------------------- */

/* The texts of EMFILE, and of EFBIG and SIGXFSZ. */
static const struct {
    nacre_limit limit;
    const char *text;
} messages[] = {
    {NACRE_LIMIT_FILES, "Too many open files"},
    {NACRE_LIMIT_FILE_SIZE, "File too large"},
    {NACRE_LIMIT_FILE_SIZE, "File size limit exceeded"},
};

static void hear_message(struct keeper *k, const char *data, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
        if (bound_of(k, messages[i].limit) > 0 &&
            memmem(data, size, messages[i].text, strlen(messages[i].text)))
            k->st.limits.seen |= 1u << messages[i].limit;
}

/* A message may come in two pieces: the end of what came before stands in front of what comes. */
static void hear(void *userdata, nacre_stream stream, const char *data, size_t size)
{
    struct keeper *k = userdata;
    struct excess_watch *w = &k->session.room->watch;
    char joint[2 * HEARD_MAX];
    if (stream != NACRE_STDERR && !k->is_terminal)
        return;
    size_t more = MIN(size, (size_t)HEARD_MAX);
    memcpy(joint, w->heard, w->heard_size);
    memcpy(joint + w->heard_size, data, more);
    hear_message(k, joint, w->heard_size + more);
    hear_message(k, data, size);
    size_t joined = w->heard_size + more, keep = MIN(joined, (size_t)HEARD_MAX);
    if (size >= HEARD_MAX)
        memcpy(w->heard, data + size - HEARD_MAX, HEARD_MAX);
    else
        memcpy(w->heard, joint + joined - keep, keep);
    w->heard_size = size >= HEARD_MAX ? HEARD_MAX : keep;
}

/* -- The beginning and the end ---------------------------------------------------------------- */

static void open_groups(struct keeper *k)
{
    for (int i = 0; i < CONTROLLER_COUNT; i++)
        if (k->page->group[i][0])
            k->fd[FD_MEMORY + i] =
                open(k->page->group[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The page knows how much was free before the command could write. */
static void open_disk(struct keeper *k)
{
    struct spec spec;
    if (bound_of(k, NACRE_LIMIT_DISK) == 0 || spec_map(k->fd[FD_SPEC], &spec) < 0)
        return;
    k->session.room->watch.disk_free = k->page->disk_free;
    k->fd[FD_DISK] = open(spec_string(&spec, spec.head->cwd), O_PATH | O_DIRECTORY | O_CLOEXEC);
    spec_unmap(&spec);
}

void excess_begin(struct keeper *k)
{
    if (!spec_is_bounded(&k->spec))
        return;
    k->session.room->watch = (struct excess_watch){.pause = FIRST_LOOK_NS,
                                                   .cpu_ms = ended_children_ms(),
                                                   .written = proc_children_written(getpid())};
    open_groups(k);
    open_disk(k);
    if (bound_of(k, NACRE_LIMIT_FILES) > 0 || bound_of(k, NACRE_LIMIT_FILE_SIZE) > 0)
        k->log.hear = hear;
    k->at[AT_LIMITS] = clock_mono_ns() + FIRST_LOOK_NS;
    publish(k);
}

/* Whether a limit of the host's own was not the lower one. */
static bool is_lower_ours(const struct keeper *k, nacre_limit limit, int resource, uint64_t scale)
{
    uint64_t bound = (bound_of(k, limit) + scale - 1) / scale;
    return bound > 0 && bound <= k->spec.limits[resource].soft;
}

static nacre_limit what_killed(const struct keeper *k)
{
    uint64_t cpu_ms = (uint64_t)k->st.cpu_us / 1000, bound = bound_of(k, NACRE_LIMIT_CPU_TIME);
    switch (k->st.signal) {
    case SIGKILL:
        return k->st.limits.killed > 0       ? NACRE_LIMIT_MEMORY
               : bound > 0 && cpu_ms > bound ? NACRE_LIMIT_CPU_TIME
                                             : NACRE_LIMIT_NONE;
    case SIGXCPU:
        return is_lower_ours(k, NACRE_LIMIT_CPU_TIME, RLIMIT_CPU, 1000) ? NACRE_LIMIT_CPU_TIME
                                                                        : NACRE_LIMIT_NONE;
    case SIGXFSZ:
        return is_lower_ours(k, NACRE_LIMIT_FILE_SIZE, RLIMIT_FSIZE, 1) ? NACRE_LIMIT_FILE_SIZE
                                                                        : NACRE_LIMIT_NONE;
    default:
        return NACRE_LIMIT_NONE;
    }
}

void excess_judge_exit(struct keeper *k)
{
    if (!spec_is_bounded(&k->spec))
        return;
    struct controller_counts counts = take_group_counts(k);
    nacre_limit limit = k->state == ST_RUNNING ? what_killed(k) : NACRE_LIMIT_NONE;
    if (limit == NACRE_LIMIT_NONE)
        return;
    if (limit == NACRE_LIMIT_MEMORY) {
        k->session.room->watch.largest_bytes = (uint64_t)k->st.max_rss_kb * 1024;
        memcpy(k->session.room->watch.largest, k->session.room->watch.main_name,
               sizeof k->session.room->watch.largest);
    }
    note_excess(k, limit, limit == NACRE_LIMIT_MEMORY ? counts.peak : 0);
    k->st.reason = NACRE_REASON_LIMIT;
}

void excess_end_rest(struct keeper *k)
{
    if (k->state == ST_LINGERING && k->st.reason == NACRE_REASON_LIMIT)
        end_by(k, (nacre_limit)k->st.limits.ended, k->st.limits.peak);
}

void excess_leave(struct keeper *k)
{
    for (int i = 0; i < CONTROLLER_COUNT && spec_is_bounded(&k->spec); i++) {
        char link[32], path[CGROUP_PATH_MAX] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", k->fd[FD_MEMORY + i]);
        ssize_t n = k->fd[FD_MEMORY + i] < 0 ? 0 : readlink(link, path, sizeof path - 1);
        path[MAX(n, 0)] = '\0';
        if (k->page && k->page->group[i][0])
            snprintf(path, sizeof path, "%s", k->page->group[i]);
        close_fd(&k->fd[FD_MEMORY + i]);
        if (path[0])
            cgroup_remove(path);
    }
}
