/* Splitting a stream at its newlines and nowhere else. */
#include "acp/proxy_lines.h"

#include <string.h>

#include "base/defs.h"

#define CHUNK 65536

void acp_lines_init(struct acp_lines *l, int fd)
{
    *l = (struct acp_lines){.fd = fd, .in = BUF_UP_TO(ACP_LINE_MAX + CHUNK)};
}

void acp_lines_done(struct acp_lines *l)
{
    buf_done(&l->in);
}

static void drop_handed_out(struct acp_lines *l)
{
    if (l->at == 0)
        return;
    l->in.len -= l->at;
    l->looked -= l->at;
    memmove(l->in.data, l->in.data + l->at, l->in.len + 1);
    l->at = 0;
}

int acp_lines_fill(struct acp_lines *l)
{
    char chunk[CHUNK];
    drop_handed_out(l);
    if (l->in.len > ACP_LINE_MAX)
        return -E2BIG;
    ssize_t n = RETRY(read(l->fd, chunk, sizeof chunk));
    if (n <= 0)
        return n < 0 ? -errno : 0;
    int r = buf_append(&l->in, chunk, (size_t)n);
    return r < 0 ? r : (int)n;
}

int acp_lines_next(struct acp_lines *l, const char **ret_line, size_t *ret_size)
{
    const char *end =
        l->looked < l->in.len ? memchr(l->in.data + l->looked, '\n', l->in.len - l->looked) : NULL;
    if (!end) {
        l->looked = l->in.len;
        return 0;
    }
    *ret_line = l->in.data + l->at;
    *ret_size = (size_t)(end - *ret_line);
    l->at = l->looked = (size_t)(end + 1 - l->in.data);
    return 1;
}

size_t acp_lines_rest(const struct acp_lines *l, const char **ret_rest)
{
    *ret_rest = l->in.data ? l->in.data + l->at : "";
    return l->in.len - l->at;
}
