/* What the processes of a run use now: those that are alive, by /proc, and the cgroup's word on all
 * that ever ran in it. */
#include "base/err.h"
#include "home/home.h"
#include "home/sweep.h"
#include "sys/cgroup.h"
#include "sys/ports.h"
#include "sys/proc.h"

#define TREE_MAX 4096

/* Ports are kept in order; if there are too many, the highest are left out. */
static void add_port(nacre_usage *usage, uint16_t port)
{
    for (size_t i = 0; i < NACRE_USAGE_PORTS_MAX && port != 0; i++) {
        uint16_t here = usage->ports[i];
        if (here == port)
            return;
        if (here == 0 || here > port) {
            usage->ports[i] = port;
            port = here;
        }
    }
}

static void add_process(const struct proc_ref *ref, nacre_usage *usage)
{
    struct proc_stat stat;
    uint16_t ports[NACRE_USAGE_PORTS_MAX];
    if (proc_stat(ref->pid, &stat) < 0 || stat.ref.start != ref->start || !stat.alive)
        return;
    usage->processes++;
    usage->cpu_ms += (int64_t)(stat.cpu_ms + stat.waited_ms);
    usage->memory_bytes += stat.memory_bytes;
    size_t count = ports_of(ref->pid, ports, ARRAY_SIZE(ports));
    for (size_t i = 0; i < count; i++)
        add_port(usage, ports[i]);
}

/* What the keeper waited for was the command, or had lost its parent. */
static int measure_tree(const struct run_state *state, nacre_usage *usage, nacre_error *err)
{
    struct proc_stat keeper;
    cleanup_free struct proc_ref *refs = calloc(TREE_MAX, sizeof *refs);
    if (!refs)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    size_t count = proc_tree(state->keeper_pid, refs, TREE_MAX, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        if (refs[i].pid != state->leader_pid)
            add_process(&refs[i], usage);
    int64_t cpu_ms = state->cgroup[0] ? cgroup_cpu_ms(state->cgroup) : -ENOENT;
    if (cpu_ms >= 0)
        usage->cpu_ms = cpu_ms;
    else if (proc_stat(state->keeper_pid, &keeper) == 0)
        usage->cpu_ms += (int64_t)keeper.waited_ms;
    return 0;
}

int home_usage(nacre_home *h, const nacre_id *id, nacre_usage *ret_usage, nacre_error *err)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    nacre_usage usage = NACRE_USAGE_INIT;
    int r = home_open_run(h, id, &run, err);
    if (r == 0)
        r = sweep_peek(&run, &state, err);
    if (r < 0)
        return r;
    if (state.tier == NACRE_TIER_CLIENT)
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s runs in a terminal of an ACP client; what it uses is not known",
                       nacre_id_short(id).s);
    if (state.tree == NACRE_TREE_EMPTY)
        usage.cpu_ms = state.cpu_us / 1000;
    else if (!sweep_is_here(&state))
        return err_set(err, NACRE_EUNSUPPORTED,
                       "shell %s runs in another pid namespace; what it uses cannot be seen here",
                       nacre_id_short(id).s);
    else
        r = measure_tree(&state, &usage, err);
    if (r == 0)
        *ret_usage = usage;
    return r;
}
