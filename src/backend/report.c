#include "backend/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/rundir.h"
#include "sys/proc.h"

static int fill_strings(const struct spec *spec, nacre_record *record, nacre_error *err)
{
    if (!spec) {
        record->command = strdup("");
        record->cwd = strdup("");
        record->name = strdup("");
        record->description = strdup("");
    } else {
        const struct spec_head *head = spec->head;
        record->command = run_command_text(spec);
        record->cwd = strdup(spec_string(spec, head->cwd));
        record->name = strdup(spec_string(spec, head->name));
        record->description = strdup(spec_string(spec, head->description));
        record->timeout_ms = head->timeout_ms;
        record->input = (nacre_stdin)head->input;
    }
    if (!record->command || !record->cwd || !record->name || !record->description) {
        nacre_record_done(record);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    return 0;
}

static void fill_counts(const struct log_index *x, nacre_record *record)
{
    for (int i = 0; i < 2; i++) {
        record->bytes[i] = x->bytes[i];
        record->lines[i] = x->newlines[i] + x->unfinished[i];
        record->dropped_bytes[i] = x->dropped_bytes[i];
        record->dropped_lines[i] = x->dropped_newlines[i];
    }
    record->dropped_errno = x->dropped_errno;
}

int64_t report_time_ms(const struct run_state *state, int64_t when_us)
{
    return state->started_ns / NS_PER_MS + when_us / 1000;
}

/* From one moment to another, both from a file: never negative, never an overflow. */
static int64_t between_ms(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? to_ns / NS_PER_MS - from_ns / NS_PER_MS : 0;
}

static void fill_times(const struct run_state *state, nacre_record *record)
{
    record->started_ms = state->started_ns / NS_PER_MS;
    record->exited_ms = state->exited_ns / NS_PER_MS;
    if (state->elapsed_ns > 0 || state->outcome == NACRE_EXITED)
        record->elapsed_ms = state->elapsed_ns / NS_PER_MS;
    else if (state->exited_ns > 0)
        record->elapsed_ms = between_ms(state->started_ns, state->exited_ns);
    else
        record->elapsed_ms = between_ms(state->started_ns, clock_real_ns());
    record->cpu_ms = state->cpu_us / 1000;
    record->max_rss_kb = state->max_rss_kb;
}

/* A subshell of the command shows what its shell has in place of the text. */
static void name_subshell(nacre_process *process)
{
    char *option = strstr(process->command, " -c ");
    if (!option || !spec_is_stand_in(option + strlen(" -c ")))
        return;
    char *end = strchr(process->command, ' ');
    snprintf(end, sizeof process->command - (size_t)(end - process->command),
             " (a subshell of the command)");
}

/* What is alive besides the command, if these pids mean anything here. */
static void fill_leftover(const struct run_state *state, nacre_record *record)
{
    struct proc_ref refs[NACRE_LEFTOVER_MAX + 1];
    if (state->tree == NACRE_TREE_EMPTY || state->tier == NACRE_TIER_CLIENT ||
        !sweep_is_here(state))
        return;
    size_t count = state->tier == NACRE_TIER_GROUP
                       ? proc_group(state->main_pid, refs, ARRAY_SIZE(refs))
                       : proc_tree(state->keeper_pid, refs, ARRAY_SIZE(refs), NULL, NULL);
    for (size_t i = 0; i < count && record->leftover_count < NACRE_LEFTOVER_MAX; i++) {
        nacre_process *process = &record->leftover[record->leftover_count];
        if (refs[i].pid == state->main_pid)
            continue;
        memset(process, 0, sizeof *process);
        process->pid = refs[i].pid;
        if (proc_cmdline(refs[i].pid, process->command, sizeof process->command) < 0)
            continue;
        name_subshell(process);
        proc_listen_ports(refs[i].pid, process->ports, NACRE_PORTS_MAX);
        record->leftover_count++;
    }
}

static void fill_pipestatus(const struct run_state *state, nacre_record *record)
{
    record->pipestatus_count = MIN(state->pipestatus_count, NACRE_PIPESTATUS_MAX);
    for (int i = 0; i < record->pipestatus_count; i++)
        record->pipestatus[i] = state->pipestatus[i];
}

void report_state(const struct run_state *state, nacre_record *ret_record)
{
    nacre_record_done(ret_record);
    *ret_record = (nacre_record){
        .size = sizeof *ret_record,
        .id = state->id,
        .session = state->session,
        .outcome = (nacre_outcome)state->outcome,
        .tree = (nacre_tree)state->tree,
        .tier = (nacre_tier)state->tier,
        .reason = (nacre_reason)state->reason,
        .exit_code = state->exit_code,
        .signal = state->signal,
        .core_dumped = (int)state->core_dumped,
        .signalled = state->signalled,
        .force_killed = state->force_killed,
        .survivors = state->survivors,
        .pid = state->main_pid,
        .lifetime = state->kept ? NACRE_LIFE_KEEP : NACRE_LIFE_SESSION,
        .background = state->background != 0,
    };
    fill_counts(&state->log, ret_record);
    fill_times(state, ret_record);
    fill_pipestatus(state, ret_record);
}

static int check_size(const nacre_record *record, nacre_error *err)
{
    return record->size == sizeof *record
               ? 0
               : err_set(err, NACRE_EINVAL, "the record must start from NACRE_RECORD_INIT");
}

int report_fill_plain(const struct run_state *state, const struct spec *spec,
                      nacre_record *ret_record, nacre_error *err)
{
    int r = check_size(ret_record, err);
    if (r < 0)
        return r;
    report_state(state, ret_record);
    return fill_strings(spec, ret_record, err);
}

int report_fill(const struct run_state *state, const struct spec *spec, nacre_record *ret_record,
                nacre_error *err)
{
    int r = report_fill_plain(state, spec, ret_record, err);
    if (r == 0)
        fill_leftover(state, ret_record);
    return r;
}
