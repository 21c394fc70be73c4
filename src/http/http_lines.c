#include "http/http_lines.h"

#include <errno.h>
#include <string.h>

#include "base/ascii.h"

#define LENGTH_DIGITS 18

static bool is_token_byte(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool is_token(struct stretch s)
{
    for (size_t i = 0; i < s.size; i++)
        if (!is_token_byte(s.at[i]))
            return false;
    return s.size > 0;
}

bool is_spelled(struct stretch s, const char *word)
{
    return s.size == strlen(word) && ascii_is_same(s.at, word, s.size);
}

struct stretch trim(struct stretch s)
{
    while (s.size > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.size--;
    }
    while (s.size > 0 && (s.at[s.size - 1] == ' ' || s.at[s.size - 1] == '\t'))
        s.size--;
    return s;
}

struct stretch cut_at(struct stretch *rest, char byte)
{
    const char *end = memchr(rest->at, byte, rest->size);
    struct stretch part = {rest->at, end ? (size_t)(end - rest->at) : rest->size};
    size_t gone = part.size + (end != NULL);
    rest->at += gone;
    rest->size -= gone;
    return part;
}

/* -- Lines ------------------------------------------------------------------------------------ */

ssize_t http_find_end(const char *data, size_t size)
{
    size_t line = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '\n' && (i == 0 || data[i - 1] != '\r'))
            return -EPROTO;
        if (c == '\r' && i + 1 < size && data[i + 1] != '\n')
            return -EPROTO;
        if ((c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
            return -EPROTO;
        if (c != '\n')
            continue;
        if (i - line == 1)
            return line == 0 ? -EPROTO : (ssize_t)(i + 1);
        line = i + 1;
    }
    return 0;
}

bool http_take_line(struct stretch *rest, struct stretch *ret)
{
    *ret = cut_at(rest, '\n');
    ret->size -= ret->size > 0;
    return ret->size > 0;
}

int http_take_field(struct stretch *rest, struct http_field *ret)
{
    struct stretch line;
    if (!http_take_line(rest, &line))
        return 0;
    if (!memchr(line.at, ':', line.size))
        return -EPROTO;
    ret->name = cut_at(&line, ':');
    ret->value = trim(line);
    return is_token(ret->name) ? 1 : -EPROTO;
}

bool is_visible(struct stretch s)
{
    for (size_t i = 0; i < s.size; i++)
        if (s.at[i] <= ' ' || s.at[i] == 0x7f)
            return false;
    return s.size > 0;
}

bool http_read_length(struct stretch value, uint64_t *ret)
{
    *ret = 0;
    if (value.size == 0 || value.size > LENGTH_DIGITS)
        return false;
    for (size_t i = 0; i < value.size; i++) {
        if (!ascii_is_digit(value.at[i]))
            return false;
        *ret = *ret * 10 + (uint64_t)(value.at[i] - '0');
    }
    return true;
}
