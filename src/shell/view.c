/* What a model sees of a session's shells. */
#include <nacre/reader.h>
#include <nacre/view.h>

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "shell/session.h"
#include "view/read.h"
#include "view/summary.h"

#define STRETCHES 512

struct log_reader {
    nacre_session *session;
    const nacre_id *id;
    nacre_error *error;
    bool failed;          /* the error says why */
    nacre_reader *reader; /* of one stream, once it is read by itself, ... */
    uint64_t end;         /* ... up to here */
};

static int64_t read_log(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                        nacre_piece *ret_piece)
{
    struct log_reader *r = self;
    int64_t n = nacre_read(r->session, r->id, cursor, streams, buf, size, ret_piece, r->error);
    r->failed = n < 0;
    return n;
}

static int begin_stream(struct log_reader *r, unsigned streams)
{
    nacre_reader_options options = NACRE_READER_OPTIONS_INIT;
    options.stream = streams == NACRE_ERR ? NACRE_STDERR : NACRE_STDOUT;
    options.end = r->end;
    nacre_reader_close(r->reader);
    r->reader = NULL;
    return nacre_reader_open(r->session, r->id, &options, &r->reader, r->error);
}

/* One stream from its beginning on, in large blocks and without opening anything again. */
static int64_t read_stream(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                           nacre_piece *ret_piece)
{
    struct log_reader *r = self;
    nacre_stretch stretches[STRETCHES];
    nacre_block block = NACRE_BLOCK_INIT;
    block.data = buf;
    block.room = size;
    block.stretches = stretches;
    block.stretch_room = STRETCHES;
    int e = *cursor == 0 ? begin_stream(r, streams) : 0;
    if (e == 0)
        e = nacre_reader_read(r->reader, &block, r->error);
    r->failed = e < 0;
    if (e < 0 || block.bytes == 0)
        return e;
    const nacre_stretch *last = &stretches[block.stretch_count - 1];
    *cursor = last->offset + (block.bytes - last->at);
    *ret_piece = (nacre_piece){
        .stream = streams == NACRE_ERR ? NACRE_STDERR : NACRE_STDOUT,
        .offset = stretches[0].offset,
        .size = block.bytes,
        .time_ms = stretches[0].time_ms,
        .gap_bytes = block.gap_bytes,
    };
    return (int64_t)block.bytes;
}

static int check_options(const nacre_view_options *o, nacre_error *err)
{
    if (o->size != sizeof *o)
        return err_set(err, NACRE_EINVAL,
                       "the view options have another size: start from NACRE_VIEW_OPTIONS_INIT");
    if (o->bytes > 0 && o->tokens > 0)
        return err_set(err, NACRE_EINVAL, "give the budget in bytes or in tokens, not in both");
    if (summary_budget(o) < NACRE_VIEW_BUDGET_MIN)
        return err_set(err, NACRE_EINVAL, "the budget is too small: at least %d bytes or %d tokens",
                       NACRE_VIEW_BUDGET_MIN, NACRE_VIEW_BUDGET_MIN / NACRE_TOKEN_BYTES);
    if (!(o->streams & NACRE_BOTH))
        return err_set(err, NACRE_EINVAL, "no stream to show");
    return 0;
}

static int finish(int r, const struct log_reader *reader, struct buf *text, char **ret_text,
                  nacre_error *err)
{
    if (r < 0 && reader->failed)
        return r;
    char *result = r == 0 ? buf_take(text) : NULL;
    if (!result)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *ret_text = result;
    return 0;
}

uint64_t nacre_tokens(uint64_t bytes)
{
    return bytes / NACRE_TOKEN_BYTES + (bytes % NACRE_TOKEN_BYTES >= NACRE_TOKEN_BYTES / 2);
}

/* The options with what they leave open filled in from the session's settings. */
static int resolve(const nacre_session *session, const nacre_view_options *options,
                   nacre_view_options *ret, nacre_error *err)
{
    static const nacre_view_options defaults = NACRE_VIEW_OPTIONS_INIT;
    static const nacre_setting lines[] = {
        [NACRE_STDOUT] = NACRE_SETTING_STDOUT_LINES,
        [NACRE_STDERR] = NACRE_SETTING_STDERR_LINES,
    };
    int r = session_check(session, err);
    if (r == 0)
        r = check_options(options ? options : &defaults, err);
    if (r < 0)
        return r;
    *ret = options ? *options : defaults;
    if (ret->bytes == 0 && ret->tokens == 0)
        ret->bytes = (uint64_t)session_setting(session, NACRE_SETTING_ANSWER);
    if (ret->compact < 0)
        ret->compact = session_setting(session, NACRE_SETTING_VIEW) == NACRE_VIEW_COMPACT;
    for (int s = 0; s < 2; s++)
        if (ret->lines[s] < 0)
            ret->lines[s] = session_setting(session, lines[s]);
    return 0;
}

static int summarize(nacre_session *s, const nacre_record *record, const nacre_view_options *view,
                     char **ret_text, nacre_error *err)
{
    struct buf text cleanup_buf;
    buf_init(&text, NACRE_VIEW_BUDGET_MAX);
    struct log_reader reader = {
        .session = s,
        .id = &record->id,
        .error = err,
        .end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR],
    };
    int r = finish(summary_write(&text, record, view, read_stream, &reader), &reader, &text,
                   ret_text, err);
    nacre_reader_close(reader.reader);
    return r;
}

int view_summary(nacre_session *s, const nacre_record *record, const nacre_view_options *options,
                 char **ret_text, nacre_error *err)
{
    nacre_view_options view;
    int r = resolve(s, options, &view, err);
    return r < 0 ? r : summarize(s, record, &view, ret_text, err);
}

int nacre_summary(nacre_session *session, const nacre_id *id, const nacre_view_options *options,
                  char **ret_text, nacre_record *ret_record, nacre_error *reterr)
{
    nacre_record own = NACRE_RECORD_INIT;
    nacre_record *record = ret_record ? ret_record : &own;
    nacre_view_options view;
    int r = resolve(session, options, &view, reterr);
    if (r == 0)
        r = nacre_get(session, id, record, reterr);
    if (r == 0)
        r = summarize(session, record, &view, ret_text, reterr);
    nacre_record_done(&own);
    return r;
}

static int check_position(const nacre_position *position, const nacre_record *record,
                          nacre_error *err)
{
    if (position->size != sizeof *position)
        return err_set(err, NACRE_EINVAL,
                       "the position has another size: start from NACRE_POSITION_INIT");
    bool inside = position->offset <= record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    for (int s = 0; s < 2; s++)
        inside = inside && position->open_offset[s] <= position->offset;
    return inside ? 0
                  : err_set(err, NACRE_EINVAL, "the position is not one of this shell's output");
}

int view_news(nacre_session *session, const nacre_record *record, nacre_position *position,
              const nacre_view_options *options, char **ret_text, int *ret_new, nacre_error *reterr)
{
    nacre_view_options view;
    int r = resolve(session, options, &view, reterr);
    if (r == 0)
        r = check_position(position, record, reterr);
    if (r < 0)
        return r;
    struct buf text cleanup_buf;
    buf_init(&text, NACRE_VIEW_BUDGET_MAX);
    struct log_reader reader = {.session = session, .id = &record->id, .error = reterr};
    nacre_position next = *position;
    uint64_t unread = (uint64_t)session_setting(session, NACRE_SETTING_UNREAD);
    bool is_new = false;
    r = finish(view_read(&text, record, &next, &view, unread, read_log, &reader, &is_new), &reader,
               &text, ret_text, reterr);
    if (r < 0)
        return r;
    *position = next;
    if (ret_new)
        *ret_new = is_new;
    return 0;
}

int nacre_view_read(nacre_session *session, const nacre_id *id, nacre_position *position,
                    const nacre_view_options *options, char **ret_text, int *ret_new,
                    nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    if (!position)
        return err_set(reterr, NACRE_EINVAL, "the position is NULL");
    int r = session_check(session, reterr);
    if (r == 0)
        r = nacre_get(session, id, &record, reterr);
    if (r == 0)
        r = view_news(session, &record, position, options, ret_text, ret_new, reterr);
    nacre_record_done(&record);
    return r;
}
