/* Lines out of a stream, each within a limit. */
#include "rpc/reader.h"

#include <string.h>

#include "base/defs.h"

#define CHUNK     65536
#define KEEP_SIZE ((size_t)256 << 10) /* an empty buffer larger than this is given back */

void rpc_reader_init(struct rpc_reader *r, int fd, size_t max)
{
    *r = (struct rpc_reader){.fd = fd, .max = max};
    buf_init(&r->in, max + CHUNK + 1);
}

void rpc_reader_done(struct rpc_reader *r)
{
    buf_done(&r->in);
}

/* What was handed out makes room. */
static void compact(struct rpc_reader *r)
{
    if (r->at == 0)
        return;
    r->in.len -= r->at;
    r->looked -= r->at;
    memmove(r->in.data, r->in.data + r->at, r->in.len + 1);
    if (r->in.len == 0 && r->in.cap > KEEP_SIZE)
        buf_done(&r->in);
    r->at = 0;
}

/* The part of a chunk that is not the rest of a line too long. */
static const char *pass_over(struct rpc_reader *r, const char *chunk, size_t *size)
{
    const char *end = memchr(chunk, '\n', *size);
    if (!end) {
        *size = 0;
        return chunk;
    }
    r->skipping = false;
    r->too_long = true;
    *size -= (size_t)(end + 1 - chunk);
    return end + 1;
}

/* Nothing but one unfinished line is left, and it is too long already. */
static void check_length(struct rpc_reader *r)
{
    if (r->looked < r->in.len || r->in.len - r->at <= r->max)
        return;
    r->skipping = true;
    r->at = r->looked = 0;
    buf_done(&r->in);
}

int rpc_reader_fill(struct rpc_reader *r)
{
    char chunk[CHUNK];
    ssize_t n = RETRY(read(r->fd, chunk, sizeof chunk));
    if (n <= 0)
        return n < 0 ? -errno : 0;
    compact(r);
    size_t size = (size_t)n;
    const char *from = r->skipping ? pass_over(r, chunk, &size) : chunk;
    int e = buf_append(&r->in, from, size);
    return e < 0 ? e : (int)n;
}

/* The line from at up to the newline at end. */
static bool take_line(struct rpc_reader *r, const char *end, const char **ret_line,
                      size_t *ret_size)
{
    const char *line = r->in.data + r->at;
    size_t size = (size_t)(end - line);
    r->at = r->looked = (size_t)(end + 1 - r->in.data);
    if (size > r->max) {
        r->too_long = true;
        return false;
    }
    if (size > 0 && line[size - 1] == '\r')
        size--;
    *ret_line = line;
    *ret_size = size;
    return size > 0;
}

int rpc_reader_next(struct rpc_reader *r, const char **ret_line, size_t *ret_size)
{
    while (!r->too_long && r->looked < r->in.len) {
        const char *from = r->in.data + r->looked;
        const char *end = memchr(from, '\n', r->in.len - r->looked);
        if (end && take_line(r, end, ret_line, ret_size))
            return 1;
        if (!end)
            r->looked = r->in.len;
    }
    if (r->too_long) {
        r->too_long = false;
        return -E2BIG;
    }
    check_length(r);
    return 0;
}
