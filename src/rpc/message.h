/*
 * JSON-RPC 2.0: what a line says, and the lines that answer it. Reading is strict: valid UTF-8, no
 * key twice in an object, a bounded depth. What is wrong becomes a fault, which is an error
 * response in the making. Nothing here knows a method.
 */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"

enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603
};

#define RPC_MESSAGE_MAX ((size_t)64 << 20)

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* Everything is borrowed from the value it was read from. */
struct rpc_message {
    enum rpc_kind kind;
    json_t *id;         /* a string or an integer; NULL of a notification */
    const char *method; /* NULL of a response */
    json_t *params;     /* an object or an array, or NULL */
    json_t *result;     /* of a response: this one or the error */
    json_t *error;
};

struct rpc_fault {
    int code;
    char text[200];
};

/* Says what is wrong: -EINVAL. */
int rpc_fail(struct rpc_fault *ret, int code, const char *fmt, ...) PRINTF(3, 4);

/* The value that a line holds, owned by the caller; NULL and a fault if it holds none. */
json_t *rpc_decode(const char *line, size_t size, struct rpc_fault *ret_fault);

/*
 * What a value says: 0, or -EINVAL with a fault. The id is there in either case, if there is one
 * that can be answered to. An array is no message: whether batches are taken is the caller's
 * matter.
 */
int rpc_read(json_t *value, struct rpc_message *ret, struct rpc_fault *ret_fault);

/* The text of a string; NULL for anything else, and for one with a NUL byte inside. */
const char *rpc_text(const json_t *value);

/* -- Writing. All return 0, -ENOMEM, or -E2BIG at the buffer's ceiling. Lines have no newline. - */

int rpc_append_json(struct buf *b, const json_t *value);

/* A string literal of text that is valid UTF-8, fast. */
int rpc_append_string(struct buf *b, const char *text, size_t size);

/* The same without the quotes. */
int rpc_append_escaped(struct buf *b, const char *text, size_t size);

/* {"jsonrpc":"2.0","id":...,"result": and the value has to follow, and a closing brace. */
int rpc_begin_result(struct buf *b, const json_t *id);

/* A whole error response; data may be NULL. An id that could not be read is NULL, and null in the
 * message; who knows messages without one may be sent that instead. */
int rpc_append_error(struct buf *b, const json_t *id, int code, const char *text,
                     const json_t *data);
int rpc_append_error_without_id(struct buf *b, int code, const char *text);

/* A whole notification; params may be NULL. */
int rpc_append_notification(struct buf *b, const char *method, const json_t *params);
