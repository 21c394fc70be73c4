/* The messages by which an agent of ACP's second version shows its own shells. */
#include <nacre/acp.h>

#include <stdbool.h>
#include <string.h>

#include "acp/client_exit.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "rpc/message.h"
#include "text/utf8.h"

#define CHUNK_DEFAULT ((size_t)48 * 1024)

/* Text from outside, made valid. */
static int append_text(struct buf *b, const char *text)
{
    struct buf clean cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    int r = utf8_clean(&clean, text, strlen(text));
    return r < 0 ? r : rpc_append_string(b, clean.data ? clean.data : "", clean.len);
}

/* Everything up to the fields of the update. */
static int begin_update(struct buf *b, const char *session_id, const char *kind, const nacre_id *id)
{
    int r =
        buf_str(b, "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":");
    if (r == 0)
        r = append_text(b, session_id);
    return r < 0 ? r
                 : buf_printf(b, ",\"update\":{\"sessionUpdate\":\"%s\",\"terminalId\":\"%s\"",
                              kind, nacre_id_format(id).s);
}

static int finish_message(struct buf *b, int r, char **ret_message, nacre_error *err)
{
    if (r == 0)
        r = buf_str(b, "}}}");
    *ret_message = r == 0 ? buf_take(b) : NULL;
    if (*ret_message)
        return 0;
    return r == -E2BIG ? err_set(err, NACRE_ELIMIT, "the message would be over 64 MiB")
                       : err_set(err, NACRE_ENOMEM, "out of memory");
}

static int append_state(struct buf *b, const nacre_record *record)
{
    int r = buf_str(b, ",\"command\":");
    if (r == 0)
        r = append_text(b, record->command);
    if (r == 0)
        r = buf_str(b, ",\"cwd\":");
    if (r == 0)
        r = append_text(b, record->cwd);
    if (r < 0)
        return r;
    if (record->outcome == NACRE_RUNNING)
        return buf_str(b, ",\"capabilities\":{\"cancel\":{}}");
    r = buf_str(b, ",\"capabilities\":null,\"exitStatus\":");
    return r < 0 ? r : acp_append_exit_status(b, record);
}

int nacre_acp_v2_update(nacre_session *session, const nacre_id *id, const char *session_id,
                        char **ret_message, nacre_error *reterr)
{
    struct buf message cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (!session_id)
        return err_set(reterr, NACRE_EINVAL, "the session_id is NULL");
    int r = nacre_get(session, id, &record, reterr);
    if (r < 0)
        return r;
    r = begin_update(&message, session_id, "terminal_update", id);
    if (r == 0)
        r = append_state(&message, &record);
    return finish_message(&message, r, ret_message, reterr);
}

int64_t nacre_acp_v2_chunk(nacre_session *session, const nacre_id *id, const char *session_id,
                           uint64_t *cursor, size_t max, char **ret_message, nacre_error *reterr)
{
    struct buf message cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    nacre_piece piece = {0};
    max = max ? max : CHUNK_DEFAULT;
    *ret_message = NULL;
    cleanup_free char *bytes = malloc(max);
    if (!session_id || !bytes)
        return err_set(reterr, session_id ? NACRE_ENOMEM : NACRE_EINVAL,
                       session_id ? "out of memory" : "the session_id is NULL");
    uint64_t at = *cursor;
    int64_t n = nacre_read(session, id, &at, NACRE_BOTH, bytes, max, &piece, reterr);
    if (n <= 0)
        return n;
    bool anew = piece.gap_bytes > 0;
    int r =
        begin_update(&message, session_id, anew ? "terminal_update" : "terminal_output_chunk", id);
    if (r == 0)
        r = buf_str(&message, anew ? ",\"output\":{\"data\":\"" : ",\"data\":\"");
    if (r == 0)
        r = base64_append(&message, bytes, (size_t)n);
    if (r == 0)
        r = buf_str(&message, anew ? "\"}" : "\"");
    r = finish_message(&message, r, ret_message, reterr);
    if (r < 0)
        return r;
    *cursor = at;
    return n;
}
