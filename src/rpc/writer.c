/* A queue of messages in front of a descriptor that may not take them. */
#include "rpc/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "sys/fd.h"

struct rpc_chunk {
    struct rpc_chunk *next;
    uint64_t ticket;
    size_t size;
    size_t written;
    char *data;
};

/* A description of our own of the same pipe: its flags are nobody else's. */
static int open_again(int fd)
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
    w->own_fd = open_again(fd);
    if (w->own_fd < 0)
        fd_set_nonblock(fd); /* another user's pipe: it cannot be opened again */
}

static void remove_first(struct rpc_writer *w)
{
    struct rpc_chunk *chunk = w->first;
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
    close_fd(&w->own_fd);
}

int rpc_writer_fd(const struct rpc_writer *w)
{
    return w->own_fd >= 0 ? w->own_fd : w->fd;
}

static ssize_t write_some(const struct rpc_writer *w, const char *data, size_t size)
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
        ssize_t n = write_some(w, chunk->data + chunk->written, chunk->size - chunk->written);
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
