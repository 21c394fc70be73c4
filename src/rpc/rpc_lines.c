#include "rpc/rpc_lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/defs.h"
#include "sys/fd.h"

#define CHUNK     65536
#define KEEP_SIZE ((size_t)256 << 10) /* an empty buffer larger than this is given back */

void rpc_reader_init(struct rpc_reader *r, int fd, size_t max)
{
    *r = (struct rpc_reader){.fd = fd, .max = max, .in = BUF_UP_TO(max + CHUNK + 1)};
}

void rpc_reader_done(struct rpc_reader *r)
{
    buf_done(&r->in);
}

/* What was handed out makes room. */
static void drop_taken(struct rpc_reader *r)
{
    must(r->at <= r->looked && r->looked <= r->in.len);
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
    drop_taken(r);
    size_t size = (size_t)n;
    const char *from = r->skipping ? pass_over(r, chunk, &size) : chunk;
    int e = buf_append(&r->in, from, size);
    return e < 0 ? e : (int)n;
}

/* The line from at up to the newline at end. */
static bool take_to_newline(struct rpc_reader *r, const char *end, const char **ret_line,
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
        if (end && take_to_newline(r, end, ret_line, ret_size))
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

/* -- Writing ----------------------------------------------------------------------------------- */

struct rpc_chunk {
    struct rpc_chunk *next;
    uint64_t ticket;
    size_t size;
    size_t written;
    char *data;
};

/* A description of our own of the same pipe: its flags are nobody else's. */
static int open_own_end(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return own < 0 ? -EBADF : fd_lift_consume(own);
}

void rpc_writer_init(struct rpc_writer *w, int fd, size_t max)
{
    struct stat st;
    *w = (struct rpc_writer){.fd = fd, .own_fd = -EBADF, .max = max, .next = 1};
    w->last = &w->first;
    if (fstat(fd, &st) < 0)
        return;
    w->is_socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode))
        return;
    w->own_fd = open_own_end(fd);
    if (w->own_fd < 0)
        fd_set_nonblock(fd); /* another user's pipe: it cannot be opened again */
}

static void remove_first(struct rpc_writer *w)
{
    struct rpc_chunk *chunk = w->first;
    must(chunk->written <= chunk->size && w->queued >= chunk->size - chunk->written);
    w->first = chunk->next;
    if (!w->first)
        w->last = &w->first;
    w->queued -= chunk->size - chunk->written;
    free(chunk->data);
    free(chunk);
}

void rpc_writer_done(struct rpc_writer *w)
{
    while (w->first)
        remove_first(w);
    must(w->queued == 0);
    close_fd(&w->own_fd);
}

int rpc_writer_fd(const struct rpc_writer *w)
{
    return w->own_fd >= 0 ? w->own_fd : w->fd;
}

static ssize_t write_now(const struct rpc_writer *w, const char *data, size_t size)
{
    int fd = rpc_writer_fd(w);
    ssize_t n = w->is_socket ? RETRY(send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL))
                             : RETRY(write(fd, data, size));
    return n < 0 ? -errno : n;
}

int rpc_writer_flush(struct rpc_writer *w)
{
    while (w->first && w->error == 0) {
        struct rpc_chunk *chunk = w->first;
        ssize_t n = write_now(w, chunk->data + chunk->written, chunk->size - chunk->written);
        if (n == -EAGAIN)
            return 0;
        if (n < 0) {
            w->error = (int)n;
            break;
        }
        chunk->written += (size_t)n;
        w->queued -= (size_t)n;
        if (chunk->written == chunk->size)
            remove_first(w);
    }
    return w->error;
}

int rpc_writer_send(struct rpc_writer *w, struct buf *message, uint64_t *ret_ticket)
{
    if (w->error < 0)
        return w->error;
    int r = buf_append(message, "\n", 1);
    if (r < 0)
        return r;
    if (message->len > w->max - MIN(w->queued, w->max))
        return -ENOBUFS;
    struct rpc_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    chunk->ticket = w->next++;
    chunk->size = message->len;
    chunk->data = TAKE_PTR(message->data);
    buf_done(message);
    *w->last = chunk;
    w->last = &chunk->next;
    w->queued += chunk->size;
    if (ret_ticket)
        *ret_ticket = chunk->ticket;
    return rpc_writer_flush(w);
}

bool rpc_writer_has_left(const struct rpc_writer *w, uint64_t ticket)
{
    return ticket < w->next && (!w->first || w->first->ticket > ticket);
}

bool rpc_writer_drop(struct rpc_writer *w, uint64_t ticket)
{
    struct rpc_chunk **at = &w->first;
    while (*at && (*at)->ticket != ticket)
        at = &(*at)->next;
    struct rpc_chunk *chunk = *at;
    if (!chunk || chunk->written > 0)
        return false;
    *at = chunk->next;
    if (!chunk->next)
        w->last = at;
    w->queued -= chunk->size;
    free(chunk->data);
    free(chunk);
    return true;
}
