#include "home/report.h"

#include <fcntl.h>
#include <nacre/reader.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "home/home.h"
#include "home/sweep.h"
#include "run/rundir.h"
#include "run/spare.h"
#include "run/stream.h"
#include "sys/fd.h"
#include "sys/members.h"
#include "sys/ports.h"
#include "sys/proc.h"

static void fill_bounds(const struct spec_head *head, nacre_record *record)
{
    const uint64_t *bounds = head->bounds;
    record->limits.in_force = (nacre_limits){
        .memory = bounds[NACRE_LIMIT_MEMORY],
        .processes = bounds[NACRE_LIMIT_PROCESSES],
        .cpu = bounds[NACRE_LIMIT_CPU],
        .cpu_time_ms = bounds[NACRE_LIMIT_CPU_TIME],
        .files = bounds[NACRE_LIMIT_FILES],
        .file_size = bounds[NACRE_LIMIT_FILE_SIZE],
        .disk = bounds[NACRE_LIMIT_DISK],
        .strict = head->strict != 0,
    };
}

static void fill_limits(const struct state_limits *st, nacre_limits_report *ret)
{
    *ret = (nacre_limits_report){
        .ended = (nacre_limit)(st->ended < NACRE_LIMIT_COUNT ? st->ended : NACRE_LIMIT_NONE),
        .peak = st->peak,
        .largest_bytes = st->largest_bytes,
        .killed = st->killed,
        .refused = st->refused,
        .throttled_ms = st->throttled_ms,
        .files_refused = (st->seen >> NACRE_LIMIT_FILES & 1) != 0,
        .file_size_refused = (st->seen >> NACRE_LIMIT_FILE_SIZE & 1) != 0,
    };
    for (int i = 0; i < NACRE_LIMIT_COUNT; i++)
        ret->held[i] = (nacre_holder)MIN(st->held[i], (uint8_t)NACRE_HELD_NICE);
    memcpy(ret->largest, st->largest, sizeof ret->largest);
    ret->largest[sizeof ret->largest - 1] = '\0';
}

static int fill_strings(const struct spec *spec, nacre_record *record, nacre_error *err)
{
    if (!spec) {
        record->command = strdup("");
        record->cwd = strdup("");
        record->name = strdup("");
        record->description = strdup("");
        record->sandbox = strdup("");
    } else {
        const struct spec_head *head = spec->head;
        record->command = run_command_text(spec);
        record->cwd = strdup(spec_string(spec, head->cwd));
        record->name = strdup(spec_string(spec, head->name));
        record->description = strdup(spec_string(spec, head->description));
        record->sandbox = strdup(head->sandbox ? spec_string(spec, head->sandbox) : "");
        record->spare = run_path_is_spare(spec_string(spec, head->run_path));
        record->timeout_ms = head->timeout_ms;
        record->input = (nacre_stdin)head->input;
        fill_bounds(head, record);
    }
    if (!record->command || !record->cwd || !record->name || !record->description ||
        !record->sandbox) {
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

/* When a piece of output was read, in ms since the epoch; any number from a damaged log. */
static int64_t report_time_ms(const struct run_state *state, int64_t when_us)
{
    return state->started_ns / NS_PER_MS + when_us / 1000;
}

nacre_piece report_piece(const struct run_state *state, const struct log_piece *piece)
{
    return (nacre_piece){
        .stream = piece->stream,
        .offset = piece->offset,
        .size = piece->size,
        .time_ms = report_time_ms(state, piece->when_us),
        .gap_bytes = piece->gap,
    };
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

/* Strays are looked for where nobody else is left who would keep the tree alive. */
size_t report_living(const struct run_state *state, struct proc_ref *refs, size_t max)
{
    if (state->tier == NACRE_TIER_GROUP)
        return proc_group(state->main_pid, refs, max);
    size_t count = proc_tree(state->keeper_pid, refs, max, NULL, NULL);
    /* Who leads the session of a terminal belongs to its keeper. */
    for (size_t i = 0; i < count; i++)
        if (refs[i].pid == state->leader_pid)
            refs[i--] = refs[--count];
    if (count > 0 || state->outcome == NACRE_RUNNING)
        return count;
    cleanup_close int leaf =
        state->cgroup[0] ? open(state->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    struct members m = {.run = state->id,
                        .leaf = leaf,
                        .main = state->main_pid,
                        .since = state->keeper_start,
                        .refs = refs,
                        .max = max};
    members_add_strays(&m);
    return m.count;
}

/* What is alive besides the command, if these pids mean anything here. */
static void fill_leftover(const struct run_state *state, nacre_record *record)
{
    struct proc_ref refs[NACRE_LEFTOVER_MAX + 1];
    if (state->tree == NACRE_TREE_EMPTY || state->tier == NACRE_TIER_CLIENT ||
        !sweep_is_here(state))
        return;
    size_t count = report_living(state, refs, ARRAY_SIZE(refs));
    for (size_t i = 0; i < count && record->leftover_count < NACRE_LEFTOVER_MAX; i++) {
        nacre_process *process = &record->leftover[record->leftover_count];
        if (refs[i].pid == state->main_pid)
            continue;
        memset(process, 0, sizeof *process);
        process->pid = refs[i].pid;
        if (proc_cmdline(refs[i].pid, process->command, sizeof process->command) < 0)
            continue;
        name_subshell(process);
        ports_of(refs[i].pid, process->ports, NACRE_PORTS_MAX);
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
        .columns = state->columns,
        .rows = state->rows,
        .viewers = state->viewers,
        .typists = state->typists,
    };
    fill_counts(&state->log, ret_record);
    fill_times(state, ret_record);
    fill_pipestatus(state, ret_record);
    fill_limits(&state->limits, &ret_record->limits);
}

int report_check(const nacre_record *record, nacre_error *err)
{
    return record->size == sizeof *record
               ? 0
               : err_set(err, NACRE_EINVAL, "the record must start from NACRE_RECORD_INIT");
}

int report_fill_plain(const struct run_state *state, const struct spec *spec,
                      nacre_record *ret_record, nacre_error *err)
{
    int r = report_check(ret_record, err);
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

/* -- Readers over one stream of a run --------------------------------------------------------- */

#define MARKS 512

struct nacre_reader {
    struct run run;
    struct run_state state; /* for the time it was started */
    struct log_stream stream;
    struct log_mark marks[MARKS];
};

void nacre_reader_close(nacre_reader *reader)
{
    if (!reader)
        return;
    log_stream_done(&reader->stream);
    run_close(&reader->run);
    free(reader);
}

int nacre_reader_read(nacre_reader *reader, nacre_block *block, nacre_error *reterr)
{
    if (!block || block->size != sizeof *block)
        return err_set(reterr, NACRE_EINVAL, "the block must start from NACRE_BLOCK_INIT");
    if (!block->data || block->room == 0 || !block->stretches || block->stretch_room == 0)
        return err_set(reterr, NACRE_EINVAL, "the block has no room for bytes or for stretches");
    struct log_block log = {.data = block->data,
                            .room = block->room,
                            .marks = reader->marks,
                            .mark_room = MIN(block->stretch_room, (size_t)MARKS)};
    int e = log_stream_read(&reader->stream, &log);
    if (e < 0)
        return run_damaged(&reader->run.id, reader->stream.reader.part, e, reterr);
    for (size_t i = 0; i < log.mark_count; i++)
        block->stretches[i] = (nacre_stretch){
            .at = log.marks[i].at,
            .offset = log.marks[i].offset,
            .time_ms = report_time_ms(&reader->state, log.marks[i].when_us),
        };
    block->bytes = log.size;
    block->stretch_count = log.mark_count;
    block->line = log.newlines + 1;
    block->end_line = log.end_newlines + 1;
    block->gap_bytes = log.gap;
    return 0;
}

/* Microseconds from the start of the run to a moment; 0 if it was before. */
static int64_t since_us(const struct run_state *state, int64_t since_ms)
{
    int64_t started_ms = state->started_ns / NS_PER_MS;
    if (since_ms <= started_ms)
        return 0;
    int64_t us;
    return __builtin_mul_overflow(since_ms - started_ms, INT64_C(1000), &us) ? INT64_MAX : us;
}

static int begin_reading(nacre_reader *reader, const nacre_reader_options *options,
                         nacre_error *err)
{
    const struct run *run = &reader->run;
    int r = run_read_state(run, &reader->state, err);
    if (r < 0)
        return r;
    int e =
        log_stream_init(&reader->stream, run->dir, run->state_fd, options->stream, options->end);
    if (e < 0)
        return run_damaged(&run->id, reader->stream.reader.part, e, err);
    e = log_stream_seek(&reader->stream, options->line,
                        since_us(&reader->state, options->since_ms));
    if (e == 0)
        return 0;
    log_stream_done(&reader->stream);
    return run_damaged(&run->id, reader->stream.reader.part, e, err);
}

int home_reader(nacre_home *h, const nacre_id *id, const nacre_reader_options *options,
                nacre_reader **ret_reader, nacre_error *err)
{
    nacre_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    reader->run = RUN_NONE;
    int r = home_open_run(h, id, &reader->run, err);
    if (r == 0)
        r = begin_reading(reader, options, err);
    if (r < 0) {
        run_close(&reader->run);
        free(reader);
        return r;
    }
    *ret_reader = reader;
    return 0;
}
