/* Arbitrary bytes as a stream of messages, in pieces of any size, and as text of a string. */
#include "fuzz.h"

#include <fcntl.h>

#include "acp/proxy_lines.h"
#include "rpc/message.h"
#include "rpc/rpc_lines.h"
#include "text/utf8.h"

#define LINE_MAX_SIZE 200

/* What is an answer to anything is a message itself. */
static void check_answer(const struct rpc_message *m, const struct rpc_fault *fault)
{
    struct buf b;
    struct rpc_fault none;
    struct rpc_message again;
    b = BUF_UP_TO(1 << 20);
    MUST(fault->code <= -32600 && fault->code >= -32700);
    MUST(rpc_append_error(&b, m->id, fault->code, fault->text, NULL) == 0);
    MUST(!memchr(b.data, '\n', b.len));
    json_t *value = json_loadb(b.data, b.len, JSON_ALLOW_NUL, NULL);
    MUST(value);
    MUST(!m->id || (rpc_read(value, &again, &none) == 0 && json_equal(again.id, m->id)));
    json_decref(value);
    buf_done(&b);
}

static void check_line(const char *line, size_t size)
{
    struct rpc_fault fault = {0};
    struct rpc_message m = {0};
    json_t *value = rpc_decode(line, size, &fault);
    if (!value || rpc_read(value, &m, &fault) < 0)
        check_answer(&m, &fault);
    else
        MUST(m.kind == RPC_RESPONSE || m.method);
    json_decref(value);
}

static void check_stream(const uint8_t *data, size_t size)
{
    int fds[2];
    struct rpc_reader reader;
    size_t step = size > 0 ? data[0] % 64 + 1u : 1;
    MUST(pipe2(fds, O_CLOEXEC) == 0);
    rpc_reader_init(&reader, fds[0], LINE_MAX_SIZE);
    for (size_t at = 0; at < size; at += step) {
        const char *line;
        size_t length, n = size - at < step ? size - at : step;
        int r;
        MUST(write(fds[1], data + at, n) == (ssize_t)n);
        MUST(rpc_reader_fill(&reader) == (int)n);
        while ((r = rpc_reader_next(&reader, &line, &length)) != 0) {
            if (r < 0)
                continue;
            MUST(length > 0 && length <= LINE_MAX_SIZE && !memchr(line, '\n', length));
            check_line(line, length);
        }
        MUST(reader.in.len <= 65536 + LINE_MAX_SIZE + 1);
    }
    rpc_reader_done(&reader);
    close(fds[0]);
    close(fds[1]);
}

/* What is only passed on: all lines and the rest are the stream, byte by byte. */
static void check_lines(const uint8_t *data, size_t size)
{
    int fds[2];
    struct acp_lines lines;
    const char *line;
    size_t length, seen = 0;
    size_t step = size > 0 ? data[size - 1] % 64 + 1u : 1;
    MUST(pipe2(fds, O_CLOEXEC) == 0);
    acp_lines_init(&lines, fds[0]);
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        MUST(write(fds[1], data + at, n) == (ssize_t)n);
        MUST(acp_lines_fill(&lines) == (int)n);
        while (acp_lines_next(&lines, &line, &length)) {
            MUST(seen + length < at + n && memcmp(data + seen, line, length) == 0);
            MUST(!memchr(line, '\n', length) && data[seen + length] == '\n');
            seen += length + 1;
        }
    }
    length = acp_lines_rest(&lines, &line);
    MUST(seen + length == size && !memchr(line, '\n', length));
    MUST(length == 0 || memcmp(data + seen, line, length) == 0);
    acp_lines_done(&lines);
    close(fds[0]);
    close(fds[1]);
}

static void check_string(const char *text, size_t size)
{
    struct buf clean, b;
    clean = BUF_UP_TO(1 << 24);
    b = BUF_UP_TO(1 << 26);
    MUST(utf8_clean(&clean, text, size) == 0);
    MUST(rpc_append_string(&b, clean.data ? clean.data : "", clean.len) == 0);
    json_t *value = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    MUST(value && json_string_length(value) == clean.len);
    MUST(clean.len == 0 || memcmp(json_string_value(value), clean.data, clean.len) == 0);
    json_decref(value);
    buf_done(&clean);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_stream(data, size);
    check_lines(data, size);
    check_string((const char *)data, size);
    return 0;
}
