/* Reading and writing single messages. */
#include "rpc/message.h"

#include <endian.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "text/legible.h"

#define ONES                 UINT64_C(0x0101010101010101)
#define HIGHS                UINT64_C(0x8080808080808080)

#define BLOCK                1024 /* bytes that are escaped before they are appended */
#define ESCAPE_MAX           6    /* bytes for one */

#define BAD_REQUEST(f, text) rpc_fail(f, RPC_INVALID_REQUEST, "Invalid Request: " text)

/* -- Reading ---------------------------------------------------------------------------------- */

int rpc_fail(struct rpc_fault *ret, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ret->code = code;
    vsnprintf(ret->text, sizeof ret->text, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

json_t *rpc_decode(const char *line, size_t size, struct rpc_fault *ret_fault)
{
    json_error_t error;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_t *value = json_loadb(line, size, flags, &error);
    if (value)
        return value;
    bool valid = json_error_code(&error) == json_error_duplicate_key;
    rpc_fail(ret_fault, valid ? RPC_INVALID_REQUEST : RPC_PARSE_ERROR, "%s: %.120s at byte %d",
             valid ? "Invalid Request" : "Parse error", error.text, error.position);
    return NULL;
}

const char *rpc_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int read_response(const json_t *value, struct rpc_message *m, struct rpc_fault *f)
{
    m->kind = RPC_RESPONSE;
    m->result = json_object_get(value, "result");
    m->error = json_object_get(value, "error");
    if (!m->result == !m->error)
        return BAD_REQUEST(f, "there must be a method, a result or an error");
    return 0;
}

int rpc_read(json_t *value, struct rpc_message *ret, struct rpc_fault *ret_fault)
{
    *ret = (struct rpc_message){0};
    if (!json_is_object(value))
        return BAD_REQUEST(ret_fault, "a message must be an object");
    json_t *id = json_object_get(value, "id");
    if (id && !json_is_integer(id) && !json_is_string(id))
        return BAD_REQUEST(ret_fault, "id must be a string or an integer");
    ret->id = id;
    const char *version = rpc_text(json_object_get(value, "jsonrpc"));
    if (!version || strcmp(version, "2.0") != 0)
        return BAD_REQUEST(ret_fault, "jsonrpc must be \"2.0\"");
    json_t *method = json_object_get(value, "method");
    if (!method)
        return read_response(value, ret, ret_fault);
    ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
    ret->method = rpc_text(method);
    if (!ret->method)
        return BAD_REQUEST(ret_fault, "method must be a string without NUL");
    ret->params = json_object_get(value, "params");
    if (ret->params && !json_is_object(ret->params) && !json_is_array(ret->params))
        return BAD_REQUEST(ret_fault, "params must be an object");
    return 0;
}

/* -- Writing ---------------------------------------------------------------------------------- */

static int append_piece(const char *piece, size_t size, void *userdata)
{
    return buf_append(userdata, piece, size);
}

int rpc_append_json(struct buf *b, const json_t *value)
{
    size_t before = b->len;
    if (json_dump_callback(value, append_piece, b, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
        return 0;
    if (b->data)
        b->data[b->len = before] = '\0';
    return -ENOMEM;
}

/* How many of the first eight bytes come before a control character, a quote or a backslash; 8 if
 * there is none. A borrow out of such a byte may mark one behind it, but none before it. */
static size_t plain_bytes(const char *s)
{
    uint64_t x;
    memcpy(&x, s, sizeof x);
    x = le64toh(x);
    uint64_t quote = x ^ (ONES * '"'), slash = x ^ (ONES * '\\');
    uint64_t below = (x - ONES * 0x20) | (quote - ONES) | (slash - ONES);
    uint64_t marks = below & ~x & HIGHS;
    return marks ? (size_t)__builtin_ctzll(marks) / 8 : sizeof x;
}

static bool is_special(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static size_t write_escape(char *to, unsigned char c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    static const char digits[] = "0123456789abcdef";
    char letter = c < 0x20 ? letters[c] : (char)c;
    to[0] = '\\';
    to[1] = letter ? letter : 'u';
    if (letter)
        return 2;
    to[2] = to[3] = '0';
    to[4] = digits[c >> 4];
    to[5] = digits[c & 15];
    return ESCAPE_MAX;
}

/* Eight bytes at a time, of which those before the first special one count. Returns what was
 * written. */
static size_t escape_block(char *to, const char *text, size_t size)
{
    size_t n = 0, i = 0;
    while (i + 8 <= size) {
        memcpy(to + n, text + i, 8);
        size_t plain = plain_bytes(text + i);
        i += plain;
        n += plain;
        if (plain < 8)
            n += write_escape(to + n, (unsigned char)text[i++]);
    }
    for (; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (is_special(c))
            n += write_escape(to + n, c);
        else
            to[n++] = (char)c;
    }
    return n;
}

int rpc_append_escaped(struct buf *b, const char *text, size_t size)
{
    char block[BLOCK * ESCAPE_MAX];
    int r = 0;
    for (size_t done = 0, n; r == 0 && done < size; done += n) {
        n = MIN(size - done, (size_t)BLOCK);
        r = buf_append(b, block, escape_block(block, text + done, n));
    }
    return r;
}

int rpc_append_string(struct buf *b, const char *text, size_t size)
{
    int r = buf_append(b, "\"", 1);
    if (r == 0)
        r = rpc_append_escaped(b, text, size);
    return r < 0 ? r : buf_append(b, "\"", 1);
}

int rpc_begin_result(struct buf *b, const json_t *id)
{
    int r = buf_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (r == 0)
        r = rpc_append_json(b, id);
    return r < 0 ? r : buf_str(b, ",\"result\":");
}

/* From the comma behind the id on. The text may quote what came. */
static int append_error(struct buf *b, int code, const char *text, const json_t *data)
{
    struct buf line cleanup_buf = BUF_UP_TO(2 * (size_t)LEGIBLE_MAX);
    int r = legible_write(&line, text, strlen(text));
    if (r == 0)
        r = buf_printf(b, ",\"error\":{\"code\":%d,\"message\":", code);
    if (r == 0)
        r = rpc_append_string(b, line.data ? line.data : "", line.len);
    if (r == 0 && data)
        r = buf_str(b, ",\"data\":");
    if (r == 0 && data)
        r = rpc_append_json(b, data);
    return r < 0 ? r : buf_str(b, "}}");
}

int rpc_append_error(struct buf *b, const json_t *id, int code, const char *text,
                     const json_t *data)
{
    int r = buf_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (r == 0)
        r = id ? rpc_append_json(b, id) : buf_str(b, "null");
    return r < 0 ? r : append_error(b, code, text, data);
}

int rpc_append_error_without_id(struct buf *b, int code, const char *text)
{
    int r = buf_str(b, "{\"jsonrpc\":\"2.0\"");
    return r < 0 ? r : append_error(b, code, text, NULL);
}

int rpc_append_notification(struct buf *b, const char *method, const json_t *params)
{
    int r = buf_printf(b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"", method);
    if (r == 0 && params)
        r = buf_str(b, ",\"params\":");
    if (r == 0 && params)
        r = rpc_append_json(b, params);
    return r < 0 ? r : buf_str(b, "}");
}
