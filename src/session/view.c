/* What a model sees of a session's shells: their output, how far it was read, and their end. */
#include <nacre/completion.h>
#include <nacre/reader.h>
#include <nacre/view.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "session/refusals.h"
#include "session/session.h"
#include "text/brief.h"
#include "view/ending_words.h"
#include "view/limit_words.h"
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

/* Of a shell whose record is here: whose it is was asked then. */
static int64_t read_log(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                        nacre_piece *ret_piece)
{
    struct log_reader *r = self;
    int64_t n = home_read(r->session->home, r->id, cursor, streams, buf, size, ret_piece, r->error);
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
    return home_reader(r->session->home, r->id, &options, &r->reader, r->error);
}

/* One stream from its beginning on, in large blocks and without opening anything again; both of
 * them as they come. */
static int64_t read_stream(void *self, uint64_t *cursor, unsigned streams, void *buf, size_t size,
                           nacre_piece *ret_piece)
{
    struct log_reader *r = self;
    if (streams == NACRE_BOTH)
        return read_log(self, cursor, streams, buf, size, ret_piece);
    nacre_stretch stretches[STRETCHES];
    nacre_block block = NACRE_BLOCK_INIT;
    block.data = buf;
    block.room = size;
    block.stretches = stretches;
    block.stretch_room = STRETCHES;
    int e = *cursor == 0 ? begin_stream(r, streams) : 0;
    if (e == 0)
        e = nacre_reader_read(r->reader, &block, r->error);
    /* What is damaged is missing; the rest is still to be told. */
    e = e == NACRE_EIO ? 0 : e;
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

static int check_view_options(const nacre_view_options *o, nacre_error *err)
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

static int finish_view(int r, const struct log_reader *reader, struct buf *text, char **ret_text,
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
static int resolve_view(const nacre_session *session, const nacre_view_options *options,
                        nacre_view_options *ret, nacre_error *err)
{
    static const nacre_view_options defaults = NACRE_VIEW_OPTIONS_INIT;
    static const nacre_setting lines[] = {
        [NACRE_STDOUT] = NACRE_SETTING_STDOUT_LINES,
        [NACRE_STDERR] = NACRE_SETTING_STDERR_LINES,
    };
    int r = session_check(session, err);
    if (r == 0)
        r = check_view_options(options ? options : &defaults, err);
    if (r < 0)
        return r;
    *ret = options ? *options : defaults;
    if (ret->bytes == 0 && ret->tokens == 0)
        ret->bytes = (uint64_t)session_setting(session, NACRE_SETTING_ANSWER);
    if (ret->compact < 0)
        ret->compact = session_setting(session, NACRE_SETTING_VIEW) == NACRE_VIEW_COMPACT;
    if (ret->merged < 0)
        ret->merged = session_setting(session, NACRE_SETTING_ORDER) == NACRE_ORDER_MERGED;
    for (int s = 0; s < 2; s++)
        if (ret->lines[s] < 0)
            ret->lines[s] = session_setting(session, lines[s]);
    return 0;
}

static int summarize(nacre_session *s, nacre_record *record, const nacre_view_options *view,
                     char **ret_text, nacre_error *err)
{
    struct buf text cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX);
    refusals_find(s, record);
    struct log_reader reader = {
        .session = s,
        .id = &record->id,
        .error = err,
        .end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR],
    };
    int r = finish_view(summary_write(&text, record, view, read_stream, &reader), &reader, &text,
                        ret_text, err);
    nacre_reader_close(reader.reader);
    return r;
}

int view_summary(nacre_session *s, nacre_record *record, const nacre_view_options *options,
                 char **ret_text, nacre_error *err)
{
    nacre_view_options view;
    int r = resolve_view(s, options, &view, err);
    return r < 0 ? r : summarize(s, record, &view, ret_text, err);
}

int nacre_summary(nacre_session *session, const nacre_id *id, const nacre_view_options *options,
                  char **ret_text, nacre_record *ret_record, nacre_error *reterr)
{
    nacre_record own cleanup_record = NACRE_RECORD_INIT;
    nacre_record *record = ret_record ? ret_record : &own;
    nacre_view_options view;
    int r = resolve_view(session, options, &view, reterr);
    if (r == 0)
        r = nacre_get(session, id, record, reterr);
    return r < 0 ? r : summarize(session, record, &view, ret_text, reterr);
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
    int r = resolve_view(session, options, &view, reterr);
    if (r == 0)
        r = check_position(position, record, reterr);
    if (r < 0)
        return r;
    struct buf text cleanup_buf = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX);
    struct log_reader reader = {.session = session, .id = &record->id, .error = reterr};
    nacre_position next = *position;
    uint64_t unread = (uint64_t)session_setting(session, NACRE_SETTING_UNREAD);
    bool is_new = false;
    r = finish_view(view_read(&text, record, &next, &view, unread, read_log, &reader, &is_new),
                    &reader, &text, ret_text, reterr);
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
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (!position)
        return err_set(reterr, NACRE_EINVAL, "the position is NULL");
    int r = session_check(session, reterr);
    if (r == 0)
        r = nacre_get(session, id, &record, reterr);
    return r < 0 ? r : view_news(session, &record, position, options, ret_text, ret_new, reterr);
}

/* -- How far it was read ---------------------------------------------------------------------- */

/* The cursor of a shell that left the list, or was never on it. */
static struct shell remembered(nacre_session *s, const nacre_id *id)
{
    struct shell shell = {.id = *id, .life = SHELL_OVER, .foreign = true};
    struct catalog *catalog;
    cleanup_free struct catalog_run *run = NULL;
    if (session_has_catalog(s) && session_catalog(s, false, &catalog, NULL) == 0 &&
        catalog_get_run(catalog, id, &run, NULL) == 0 && nacre_id_equal(&run->session, &s->id))
        shell.read_to = run->read_to;
    return shell;
}

static struct shell shell_of(nacre_session *s, const nacre_id *id)
{
    struct shell shell;
    if (!registry_get(s->registry, id, &shell)) {
        shell = remembered(s, id);
        registry_add(s->registry, &shell, false);
    }
    return shell;
}

int nacre_get_unread(nacre_session *session, const nacre_id *id, nacre_unread *ret_unread,
                     nacre_error *reterr)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (ret_unread->size != sizeof *ret_unread)
        return err_set(reterr, NACRE_EINVAL, "the unread must start from NACRE_UNREAD_INIT");
    r = session_check_id(session, id, false, reterr);
    if (r == 0)
        r = session_record(session, id, HOME_LIGHT, &record, NULL, reterr);
    if (r < 0)
        return r;
    uint64_t limit = (uint64_t)session_setting(session, NACRE_SETTING_UNREAD);
    uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    uint64_t from = MIN(shell_of(session, id).read_to, end);
    *ret_unread = (nacre_unread){
        .size = sizeof *ret_unread, .from = from, .to = end, .head = end, .tail = end};
    if (end - from > limit) {
        ret_unread->head = from + limit / 2;
        ret_unread->tail = end - limit / 2;
    }
    return 0;
}

/* Of a shell that was just read. An end is told once. */
static int move_cursor(nacre_session *s, const nacre_id *id, uint64_t offset, bool saw_end,
                       nacre_error *err)
{
    struct catalog *catalog;
    struct shell shell = shell_of(s, id);
    int r = saw_end && !shell.end_seen ? completion_told(s, id, err) : 0;
    registry_mark_read(s->registry, id, offset, saw_end && r == 0);
    /* For a person who looks at the list from outside. */
    if (shell.background && offset > shell.read_to && session_catalog(s, true, &catalog, NULL) == 0)
        catalog_set_read(catalog, id, offset, NULL);
    return r;
}

int nacre_mark_read(nacre_session *session, const nacre_id *id, uint64_t offset, int saw_end,
                    nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_check_id(session, id, false, reterr);
    if (r == 0)
        r = home_record(session->home, id, HOME_LIGHT, &record, NULL, reterr);
    return r < 0 ? r : move_cursor(session, id, offset, saw_end != 0, reterr);
}

nacre_position view_position(nacre_session *s, const nacre_id *id)
{
    struct shell shell = shell_of(s, id);
    nacre_position position = NACRE_POSITION_INIT;
    if (shell.position.size > 0 && shell.position.offset >= shell.read_to)
        return shell.position;
    position.offset = shell.read_to;
    return position;
}

int view_mark_read(nacre_session *s, const nacre_id *id, const nacre_position *position,
                   bool saw_end, nacre_error *err)
{
    int r = move_cursor(s, id, position->offset, saw_end, err);
    registry_set_position(s->registry, id, position);
    return r;
}

/* -- The end of a background shell ------------------------------------------------------------ */

#define COMMAND_COLUMNS 200
#define COMMAND_BYTES   400
#define RAW_PER_BYTE    4 /* rendering makes text shorter */
#define OMITTED_MAX     128

/* The text behind the next newline, or its end. */
static const char *next_line(const char *text)
{
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text + strlen(text);
}

/* The last lines that fit; of a single one that does not, its beginning and its end. */
static int append_last(struct buf *out, const char *text, size_t room, bool *ret_cut)
{
    size_t size = strlen(text);
    while (size > room && *next_line(text)) {
        *ret_cut = true;
        text = next_line(text);
        size = strlen(text);
    }
    if (size <= room)
        return buf_append(out, text, size);
    char line[4096];
    uint64_t lost;
    struct cut cut = cut_of(text, size - (text[size - 1] == '\n'), 0);
    *ret_cut = true;
    if (room <= CUT_LEAST)
        return 0;
    return buf_append(out, line, cut_middle(line, MIN(room - 1, sizeof line), &cut, &lost));
}

/* What was not read yet of its output, or the end of that. */
static int append_tail(struct buf *out, nacre_session *s, const nacre_record *record, size_t room,
                       bool *ret_cut, nacre_error *err)
{
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    uint64_t raw = MAX((uint64_t)room * RAW_PER_BYTE, (uint64_t)NACRE_VIEW_BUDGET_MIN);
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    nacre_position position = view_position(s, &record->id);
    cleanup_free char *text = NULL;
    int is_new = 0;
    bool torn = end - MIN(position.offset, end) > raw;
    if (torn) {
        position = (nacre_position)NACRE_POSITION_INIT;
        position.offset = end - raw;
    }
    options.bytes = MIN(8 * raw, (uint64_t)NACRE_VIEW_BUDGET_MAX);
    int r = view_news(s, record, &position, &options, &text, &is_new, err);
    if (r < 0 || !is_new)
        return r;
    const char *body = next_line(text);
    if (torn && *next_line(body))
        body = next_line(body);
    *ret_cut = torn;
    return append_last(out, body, room, ret_cut) < 0 ? err_set(err, NACRE_ENOMEM, "out of memory")
                                                     : 0;
}

/* Who ended it, if it was not this session; and that another one started it. */
static int append_origin(struct buf *out, nacre_session *s, const nacre_record *record)
{
    struct shell shell = {0};
    registry_get(s->registry, &record->id, &shell);
    int r = 0;
    if (record->outcome == NACRE_KILLED && record->reason == NACRE_REASON_KILL && !shell.ended_here)
        r = buf_str(out, ", by somebody outside of this session");
    if (r == 0 && !nacre_id_equal(&record->session, &s->id))
        r = buf_str(out, ", started by an earlier session");
    return r;
}

static int append_facts(struct buf *out, nacre_session *s, const nacre_record *record,
                        bool repeated)
{
    char status[64], code[16] = "none", command[COMMAND_BYTES + 1];
    bool success = record->outcome == NACRE_EXITED && record->exit_code == 0;
    if (record->exit_code >= 0)
        snprintf(code, sizeof code, "%d", record->exit_code);
    int r = buf_printf(out, "[Background task %s completed]%s\nstatus: %s",
                       nacre_id_short(&record->id).s, repeated ? " (repeated)" : "",
                       nacre_status(record, status, sizeof status));
    if (r == 0)
        r = pipeline_words(out, record);
    if (r == 0)
        r = append_origin(out, s, record);
    if (r == 0)
        r = buf_printf(out, "\nexit_code: %s\nsuccess: %s\n", code, success ? "true" : "false");
    if (r == 0)
        r = buf_printf(out, "elapsed_ms: %lld\ncommand: ", (long long)record->elapsed_ms);
    size_t size = text_whole(record->command, MIN(strlen(record->command), sizeof command - 1));
    memcpy(command, record->command, size);
    command[size] = '\0';
    if (r == 0)
        r = brief_line(out, command, COMMAND_COLUMNS);
    if (r == 0)
        r = buf_str(out, "\n");
    if (r == 0)
        r = held_words(out, record);
    return r == 0 ? limit_words(out, record, LIMIT_WORDS_MAX) : r;
}

/* The end of the output is made first: what is said of it comes before it. */
static int write_completion(nacre_session *s, const nacre_record *record, bool repeated,
                            size_t budget, struct buf *out, nacre_error *err)
{
    struct buf tail cleanup_buf = BUF_UP_TO(budget);
    bool cut = false;
    int e = append_facts(out, s, record, repeated);
    size_t used = out->len + OMITTED_MAX;
    int r = e == 0 && used < budget ? append_tail(&tail, s, record, budget - used, &cut, err) : 0;
    if (r < 0)
        return r;
    if (e == 0 && cut)
        e = buf_printf(out, "omitted: what came before; bash_output(id: \"%s\") shows it\n",
                       nacre_id_short(&record->id).s);
    if (e == 0 && tail.len > 0)
        e = buf_printf(out, "\n%s", tail.data);
    return e < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

int nacre_offer_text(const nacre_offer *offer, size_t index, size_t budget, char **ret_text,
                     nacre_error *reterr)
{
    if (!offer || index >= nacre_offer_count(offer))
        return err_set(reterr, NACRE_EINVAL, "there is no completion %zu in the offer", index);
    if (budget < NACRE_VIEW_BUDGET_MIN)
        return err_set(reterr, NACRE_EINVAL, "the budget is too small: at least %d bytes",
                       NACRE_VIEW_BUDGET_MIN);
    nacre_session *s = completion_session(offer);
    nacre_id id = nacre_offer_id(offer, index);
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    struct buf out cleanup_buf = BUF_UP_TO(MIN(budget, (size_t)NACRE_VIEW_BUDGET_MAX));
    int r = session_record(s, &id, HOME_FULL, &record, NULL, reterr);
    if (r < 0)
        return r;
    r = write_completion(s, &record, nacre_offer_repeated(offer, index), out.max, &out, reterr);
    if (r < 0)
        return r;
    *ret_text = buf_take(&out);
    return *ret_text ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}
