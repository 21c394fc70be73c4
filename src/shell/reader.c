/*
 * Readers of any backend: the public functions, and a reader in terms of nacre_read() for
 * backends that have none of their own. That one counts newlines itself.
 */
#include <nacre/reader.h>

#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"
#include "shell/session.h"

struct nacre_reader {
    nacre_reader_ops ops;
    void *self;
};

nacre_reader *nacre_reader_new(const nacre_reader_ops *ops, void *self)
{
    if (ops->version != NACRE_BACKEND_VERSION || ops->size < sizeof *ops)
        return NULL;
    nacre_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->ops = *ops;
    reader->self = self;
    return reader;
}

int nacre_reader_read(nacre_reader *reader, nacre_block *block, nacre_error *reterr)
{
    nacre_error spare;
    if (!block || block->size != sizeof *block)
        return err_set(reterr, NACRE_EINVAL, "the block must start from NACRE_BLOCK_INIT");
    if (!block->data || block->room == 0 || !block->stretches || block->stretch_room == 0)
        return err_set(reterr, NACRE_EINVAL, "the block has no room for bytes or for stretches");
    return reader->ops.read(reader->self, block, reterr ? reterr : &spare);
}

void nacre_reader_close(nacre_reader *reader)
{
    if (!reader)
        return;
    reader->ops.close(reader->self);
    free(reader);
}

/* -- By means of nacre_read() --------------------------------------------------------------------
 */

struct plain {
    nacre_session *session;
    nacre_id id;
    nacre_stream stream;
    uint64_t cursor;
    uint64_t end;
    uint64_t line;
};

/* Lines that a gap took along; what the backend knows of it is all there is. */
static uint64_t lines_dropped(const struct plain *plain)
{
    nacre_record record = NACRE_RECORD_INIT;
    if (nacre_get(plain->session, &plain->id, &record, NULL) < 0)
        return 0;
    uint64_t lines = record.dropped_lines[plain->stream];
    nacre_record_done(&record);
    return lines;
}

static int plain_read(void *self, nacre_block *block, nacre_error *err)
{
    struct plain *plain = self;
    nacre_piece piece = {0};
    block->bytes = block->stretch_count = 0;
    block->gap_bytes = 0;
    int64_t n = plain->cursor >= plain->end
                    ? 0
                    : nacre_read(plain->session, &plain->id, &plain->cursor, 1u << plain->stream,
                                 block->data, block->room, &piece, err);
    if (n < 0)
        return (int)n;
    if (n == 0 || piece.offset >= plain->end)
        return 0;
    block->bytes = (size_t)MIN((uint64_t)n, plain->end - piece.offset);
    block->gap_bytes = piece.gap_bytes;
    if (piece.gap_bytes > 0)
        plain->line += lines_dropped(plain);
    block->stretches[0] = (nacre_stretch){.offset = piece.offset, .time_ms = piece.time_ms};
    block->stretch_count = 1;
    block->line = plain->line;
    plain->line += log_count_newlines(block->data, block->bytes);
    block->end_line = plain->line;
    return 0;
}

static const nacre_reader_ops plain_ops = {
    .version = NACRE_BACKEND_VERSION,
    .size = sizeof plain_ops,
    .read = plain_read,
    .close = free,
};

/* It begins at the beginning: that is before any line and any moment. */
static int plain_open(nacre_session *session, const nacre_id *id,
                      const nacre_reader_options *options, nacre_reader **ret_reader,
                      nacre_error *err)
{
    struct plain *plain = malloc(sizeof *plain);
    *ret_reader = plain ? nacre_reader_new(&plain_ops, plain) : NULL;
    if (!*ret_reader) {
        free(plain);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    *plain = (struct plain){
        .session = session, .id = *id, .stream = options->stream, .end = options->end, .line = 1};
    return 0;
}

int nacre_reader_open(nacre_session *session, const nacre_id *id,
                      const nacre_reader_options *options, nacre_reader **ret_reader,
                      nacre_error *reterr)
{
    nacre_error spare;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!id || !options || options->size != sizeof *options)
        return err_set(reterr, NACRE_EINVAL,
                       "the id is NULL, or the options do not start from "
                       "NACRE_READER_OPTIONS_INIT");
    if (options->stream != NACRE_STDOUT && options->stream != NACRE_STDERR)
        return err_set(reterr, NACRE_EINVAL, "the stream of a reader is stdout or stderr");
    if ((r = scope_check(session, id, false, reterr)) < 0)
        return r;
    if (!session->ops.reader)
        return plain_open(session, id, options, ret_reader, reterr);
    return session->ops.reader(session->self, id, options, ret_reader, reterr ? reterr : &spare);
}
