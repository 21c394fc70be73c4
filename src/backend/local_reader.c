#include "backend/local_reader.h"

#include <stdlib.h>

#include <nacre/backend.h>

#include "backend/report.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/stream.h"

#define MARKS 512

struct local_reader {
    struct run run;
    struct run_state state; /* for the time it was started */
    struct log_stream stream;
    struct log_mark marks[MARKS];
};

static void reader_free(void *self)
{
    struct local_reader *reader = self;
    log_stream_done(&reader->stream);
    run_close(&reader->run);
    free(reader);
}

static int damaged(const struct local_reader *reader, int e, nacre_error *err)
{
    return err_sys(err, NACRE_EIO, -e, "log", "the log of shell %s is damaged",
                   nacre_id_short(&reader->run.id).s);
}

static int reader_read(void *self, nacre_block *block, nacre_error *err)
{
    struct local_reader *reader = self;
    struct log_block log = {.data = block->data,
                            .room = block->room,
                            .marks = reader->marks,
                            .mark_room = MIN(block->stretch_room, (size_t)MARKS)};
    int e = log_stream_read(&reader->stream, &log);
    if (e < 0)
        return damaged(reader, e, err);
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

static const nacre_reader_ops reader_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof reader_ops,
    .read = reader_read,
    .close = reader_free,
};

/* Microseconds from the start of the run to a moment; 0 if it was before. */
static int64_t since_us(const struct run_state *state, int64_t since_ms)
{
    int64_t started_ms = state->started_ns / NS_PER_MS;
    if (since_ms <= started_ms)
        return 0;
    int64_t us;
    return __builtin_mul_overflow(since_ms - started_ms, INT64_C(1000), &us) ? INT64_MAX : us;
}

static int begin(struct local_reader *reader, const nacre_reader_options *options, nacre_error *err)
{
    const struct run *run = &reader->run;
    int r = run_read_state(run, &reader->state, err);
    if (r < 0)
        return r;
    int e =
        log_stream_init(&reader->stream, run->dir, run->state_fd, options->stream, options->end);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "log", "cannot open the log of shell %s",
                       nacre_id_short(&run->id).s);
    e = log_stream_seek(&reader->stream, options->line,
                        since_us(&reader->state, options->since_ms));
    if (e == 0)
        return 0;
    log_stream_done(&reader->stream);
    return damaged(reader, e, err);
}

int local_reader_new(struct run *run, const nacre_reader_options *options,
                     nacre_reader **ret_reader, nacre_error *err)
{
    struct local_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    reader->run = *run;
    int r = begin(reader, options, err);
    if (r < 0) {
        free(reader);
        return r;
    }
    *ret_reader = nacre_reader_new(&reader_ops, reader);
    *run = RUN_NONE;
    if (*ret_reader)
        return 0;
    reader_free(reader);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}
