#include "serve/token.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "serve/secret_file.h"
#include "sys/host.h"

int token_make(struct token *t)
{
    unsigned char bytes[TOKEN_SIZE / 2];
    int r = host_random(bytes, sizeof bytes);
    for (size_t i = 0; r == 0 && i < sizeof bytes; i++)
        snprintf(t->text + 2 * i, 3, "%02x", bytes[i]);
    return r;
}

static bool is_token_text(const char *text, size_t size)
{
    return size == TOKEN_SIZE && strspn(text, "0123456789abcdef") == TOKEN_SIZE;
}

static int read_token(const char *path, struct token *ret, nacre_error *err)
{
    char text[TOKEN_SIZE + 3];
    ssize_t n = secret_file_read(path, text, sizeof text, err);
    if (n < 0)
        return (int)n;
    if (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (!is_token_text(text, (size_t)n))
        return err_set(err, NACRE_EINVAL,
                       "%s holds no token: remove it, and a new one is made; clients have to be "
                       "told",
                       path);
    memcpy(ret->text, text, TOKEN_SIZE + 1);
    return 0;
}

int token_load(const char *path, bool renew, struct token *ret, nacre_error *err)
{
    char line[TOKEN_SIZE + 2];
    int r = renew ? NACRE_ENOTFOUND : read_token(path, ret, err);
    if (r != NACRE_ENOTFOUND)
        return r;
    r = token_make(ret);
    snprintf(line, sizeof line, "%s\n", ret->text);
    if (r == 0)
        r = secret_file_write(path, line, strlen(line));
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "open", "cannot write %s", path) : 0;
}

bool token_is(const struct token *t, const char *shown, size_t size)
{
    unsigned char differs = size != TOKEN_SIZE;
    for (size_t i = 0; i < TOKEN_SIZE; i++)
        differs |= (unsigned char)(t->text[i] ^ (size == TOKEN_SIZE ? shown[i] : ' '));
    return differs == 0;
}
