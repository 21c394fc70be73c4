#include "cli/cast.h"

#include <string.h>

#include "base/defs.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "session/replay.h"
#include "text/utf8.h"

#define CHUNK 65536

struct cast {
    nacre_session *session;
    nacre_record record;
    struct replay replay;
    size_t mark;   /* the next of its marks */
    int64_t at_ms; /* of the last event, since the start */
    struct torn {
        char bytes[4];
        size_t size;
    } torn[2]; /* the beginning of a character, of either stream */
    char data[sizeof((struct torn *)0)->bytes + CHUNK];
};

/* Intervals are relative to the event before. */
static int put_event(struct cast *c, int64_t ms, char code, const char *text, size_t size)
{
    json_t *value = json_stringn(text, size);
    cleanup_free char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    if (!quoted)
        return failure("out of memory");
    ms = MAX(ms, c->at_ms);
    printf("[%.3f, \"%c\", %s]\n", (double)(ms - c->at_ms) / 1000, code, quoted);
    c->at_ms = ms;
    return ferror(stdout) ? finish_output() : STATUS_OK;
}

static int cast_mark(struct cast *c, const struct run_mark *mark)
{
    static const char *const labels[] = {[MARK_ATTACHED] = "a person came",
                                         [MARK_TYPED] = "a person typed",
                                         [MARK_DETACHED] = "a person left"};
    int64_t ms = (int64_t)(mark->when_us / 1000);
    char size[32];
    if (mark->kind == MARK_SIZE) {
        snprintf(size, sizeof size, "%ux%u", mark->columns, mark->rows);
        return put_event(c, ms, 'r', size, strlen(size));
    }
    if (mark->kind >= ARRAY_SIZE(labels))
        return STATUS_OK;
    return put_event(c, ms, 'm', labels[mark->kind], strlen(labels[mark->kind]));
}

/* Those that were made when no more of the log was there. */
static int put_marks(struct cast *c, uint64_t offset)
{
    int status = STATUS_OK;
    const struct replay *r = &c->replay;
    for (; status == STATUS_OK && c->mark < r->count && r->marks[c->mark].offset <= offset;
         c->mark++)
        status = cast_mark(c, &r->marks[c->mark]);
    return status;
}

/* Pipes have no line discipline that returns the carriage. */
static int return_carriages(const struct buf *text, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < text->len; i++) {
        r = text->data[i] == '\n' ? buf_str(out, "\r") : 0;
        if (r == 0)
            r = buf_append(out, &text->data[i], 1);
    }
    return r;
}

static int cast_text(struct cast *c, int64_t ms, const char *bytes, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2),
                    out cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = utf8_clean(&text, bytes, size);
    if (r == 0 && !c->replay.is_terminal)
        r = return_carriages(&text, &out);
    if (r < 0)
        return failure("out of memory");
    const struct buf *shown = c->replay.is_terminal ? &text : &out;
    return shown->len > 0 ? put_event(c, ms, 'o', shown->data, shown->len) : STATUS_OK;
}

/* How many bytes at the end are a character that goes on. */
static size_t torn_at_end(const char *bytes, size_t size)
{
    uint32_t point;
    for (size_t n = 1; n <= 3 && n <= size; n++)
        if (utf8_next(bytes + size - n, n, &point) == 0)
            return n;
    return 0;
}

/* What was torn off before stands in front of the bytes, where there is room for it. */
static int put_stretch(struct cast *c, const nacre_piece *piece, char *bytes, size_t size)
{
    struct torn *torn = &c->torn[piece->stream];
    char *from = bytes - torn->size;
    memcpy(from, torn->bytes, torn->size);
    size += torn->size;
    torn->size = torn_at_end(from, size);
    memcpy(torn->bytes, from + size - torn->size, torn->size);
    return cast_text(c, piece->time_ms - c->record.started_ms, from, size - torn->size);
}

static int cast_piece(struct cast *c, const nacre_piece *piece, char *bytes, size_t size)
{
    uint64_t offset = piece->offset;
    int status = put_marks(c, offset);
    while (status == STATUS_OK && size > 0) {
        size_t n = size;
        if (c->mark < c->replay.count)
            n = (size_t)MIN((uint64_t)size, c->replay.marks[c->mark].offset - offset);
        /* The bytes before it were written already: their place may be used. */
        status = put_stretch(c, piece, bytes, n);
        bytes += n;
        size -= n;
        offset += n;
        if (status == STATUS_OK)
            status = put_marks(c, offset);
    }
    return status;
}

static int put_pieces(struct cast *c)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_piece piece = {0};
    uint64_t cursor = 0;
    char *bytes = c->data + sizeof c->data - CHUNK;
    int status = STATUS_OK;
    while (status == STATUS_OK) {
        int64_t n = nacre_read(c->session, &c->record.id, &cursor, NACRE_BOTH, bytes, CHUNK, &piece,
                               &error);
        if (n < 0)
            return library_failure(&error);
        if (n == 0)
            break;
        status = cast_piece(c, &piece, bytes, (size_t)n);
    }
    return status;
}

/* The first line. */
static int put_header(const struct cast *c)
{
    const struct terminal *t = grid_terminal(c->replay.grid);
    json_t *header = json_pack("{s:i, s:{s:i, s:i, s:s}, s:I, s:o}", "version", 3, "term", "cols",
                               t->columns, "rows", t->rows, "type", "xterm-256color", "timestamp",
                               (json_int_t)(c->record.started_ms / 1000), "command",
                               json_text(c->record.command, strlen(c->record.command)));
    if (header && *c->record.name)
        json_object_set_new(header, "title", json_text(c->record.name, strlen(c->record.name)));
    cleanup_free char *text = header ? json_dumps(header, 0) : NULL;
    json_decref(header);
    if (!text)
        return failure("out of memory");
    puts(text);
    return STATUS_OK;
}

/* What never became a character, what came after the last output, and how it ended. */
static int put_end(struct cast *c)
{
    int status = STATUS_OK;
    char code[16];
    for (int s = 0; s < 2 && status == STATUS_OK; s++)
        status = cast_text(c, c->at_ms, c->torn[s].bytes, c->torn[s].size);
    if (status == STATUS_OK)
        status = put_marks(c, UINT64_MAX);
    if (status != STATUS_OK || c->record.outcome == NACRE_RUNNING)
        return status;
    snprintf(code, sizeof code, "%d", record_status(&c->record));
    return put_event(c, c->record.elapsed_ms, 'x', code, strlen(code));
}

int cast_print(nacre_session *session, const nacre_id *id)
{
    static struct cast cast;
    struct cast *c = &cast;
    nacre_error error = NACRE_ERROR_INIT;
    *c = (struct cast){.session = session, .record = NACRE_RECORD_INIT, .replay = REPLAY_NONE};
    int status = STATUS_OK;
    if (nacre_get(session, id, &c->record, &error) < 0 ||
        replay_begin(session, id, &c->replay, &error) < 0)
        status = library_failure(&error);
    if (status == STATUS_OK) {
        replay_refresh(&c->replay);
        status = put_header(c);
    }
    if (status == STATUS_OK)
        status = put_pieces(c);
    if (status == STATUS_OK)
        status = put_end(c);
    replay_done(&c->replay);
    nacre_record_done(&c->record);
    return status;
}
