#include "serve/token.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "sys/fd.h"
#include "sys/host.h"

#define NEW_SUFFIX ".new"

static int make_token(struct token *t)
{
    unsigned char bytes[TOKEN_SIZE / 2];
    int r = host_random(bytes, sizeof bytes);
    for (size_t i = 0; r == 0 && i < sizeof bytes; i++)
        snprintf(t->text + 2 * i, 3, "%02x", bytes[i]);
    return r;
}

/* Whole, or not at all: it is written beside and takes the name then. */
static int write_token(const char *path, const struct token *t)
{
    char temporary[4096], line[TOKEN_SIZE + 2];
    int n = snprintf(temporary, sizeof temporary, "%s" NEW_SUFFIX, path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return -ENAMETOOLONG;
    unlink(temporary);
    int fd cleanup_close =
        open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    snprintf(line, sizeof line, "%s\n", t->text);
    int r = fd_write_all(fd, line, strlen(line));
    if (r == 0 && (fchmod(fd, 0600) < 0 || rename(temporary, path) < 0))
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

static bool is_token_text(const char *text, size_t size)
{
    return size == TOKEN_SIZE && strspn(text, "0123456789abcdef") == TOKEN_SIZE;
}

static int read_token(const char *path, int fd, struct token *ret, nacre_error *err)
{
    struct stat st;
    char text[TOKEN_SIZE + 2] = "";
    if (fstat(fd, &st) < 0)
        return err_sys(err, NACRE_EIO, errno, "fstat", "cannot look at %s", path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(err, NACRE_EFORBIDDEN,
                       "%s must be a file of yours that nobody else can read: chmod 600 it, or "
                       "remove it and have a new token made",
                       path);
    ssize_t n = fd_read_all(fd, text, sizeof text - 1);
    if (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (n < 0 || !is_token_text(text, (size_t)n))
        return err_set(err, NACRE_EINVAL,
                       "%s holds no token: remove it, and a new one is made; clients have to be "
                       "told",
                       path);
    memcpy(ret->text, text, TOKEN_SIZE + 1);
    return 0;
}

int token_load(const char *path, bool renew, struct token *ret, nacre_error *err)
{
    int fd cleanup_close =
        renew ? -ENOENT : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        return read_token(path, fd, ret, err);
    if (!renew && errno != ENOENT)
        return err_sys(err, NACRE_EIO, errno, "open", "cannot open %s", path);
    int r = make_token(ret);
    if (r == 0)
        r = write_token(path, ret);
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "open", "cannot write %s", path) : 0;
}

bool token_is(const struct token *t, const char *shown, size_t size)
{
    unsigned char differs = size != TOKEN_SIZE;
    for (size_t i = 0; i < TOKEN_SIZE; i++)
        differs |= (unsigned char)(t->text[i] ^ (size == TOKEN_SIZE ? shown[i] : ' '));
    return differs == 0;
}
