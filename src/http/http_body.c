#include "http/http_body.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"

#define DIGITS_MAX  15
#define TRAILER_MAX 8192

void body_init(struct http_body *b, bool chunked, uint64_t length, bool passed_on)
{
    *b = (struct http_body){.state = BODY_OVER, .passed_on = passed_on};
    if (chunked) {
        b->state = BODY_SIZE;
    } else if (length > 0) {
        b->state = BODY_BYTES;
        b->left = length;
    }
}

/* As many bytes as belong together. */
static size_t take_payload(struct http_body *b, const char *data, size_t size, char **to)
{
    size_t n = b->left < size ? (size_t)b->left : size;
    bool chunk = b->state == BODY_CHUNK, framed = chunk && b->passed_on;
    if (framed)
        *to += snprintf(*to, BODY_FRAMES / 2, "%zx\r\n", n);
    memcpy(*to, data, n);
    *to += n;
    if (framed) {
        memcpy(*to, "\r\n", 2);
        *to += 2;
    }
    b->left -= n;
    if (b->left == 0)
        b->state = chunk ? BODY_CHUNK_CR : BODY_OVER;
    return n;
}

static int digit_of(char c)
{
    char low = ascii_lower(c);
    return ascii_is_digit(c) ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static int take_size(struct http_body *b, char c)
{
    int digit = digit_of(c);
    if (digit >= 0 && b->digits < DIGITS_MAX) {
        b->left = b->left * 16 + (uint64_t)digit;
        b->digits++;
        return 0;
    }
    if (c != '\r' || b->digits == 0)
        return -EPROTO;
    b->digits = 0;
    b->state = BODY_SIZE_LF;
    return 0;
}

/* In each of these states one byte is good, and leads on. */
static int take_end(struct http_body *b, char c)
{
    static const struct {
        char byte;
        enum body_state next;
    } ends[] = {
        [BODY_CHUNK_CR] = {'\r', BODY_CHUNK_LF},
        [BODY_CHUNK_LF] = {'\n', BODY_SIZE},
        [BODY_LINE_LF] = {'\n', BODY_LINE},
        [BODY_LAST_LF] = {'\n', BODY_OVER},
    };
    bool empty = b->left == 0;
    if (b->state == BODY_SIZE_LF) {
        b->state = empty ? BODY_LINE : BODY_CHUNK;
        return c == '\n' ? 0 : -EPROTO;
    }
    if (c != ends[b->state].byte)
        return -EPROTO;
    b->state = ends[b->state].next;
    return 0;
}

static int take_trailer(struct http_body *b, char c)
{
    bool at_begin = b->state == BODY_LINE;
    if (++b->trailer > TRAILER_MAX || c == '\n' || c == '\0')
        return -EPROTO;
    b->state = c != '\r' ? BODY_IN_LINE : at_begin ? BODY_LAST_LF : BODY_LINE_LF;
    return 0;
}

static int take_byte(struct http_body *b, char c)
{
    switch (b->state) {
    case BODY_SIZE:
        return take_size(b, c);
    case BODY_LINE:
    case BODY_IN_LINE:
        return take_trailer(b, c);
    default:
        return take_end(b, c);
    }
}

ssize_t body_take(struct http_body *b, const char *data, size_t size, char *to, size_t *ret_used)
{
    static const char last[] = "0\r\n\r\n";
    char *begin = to;
    size_t i = 0;
    while (i < size && b->state != BODY_OVER) {
        if (b->state == BODY_BYTES || b->state == BODY_CHUNK) {
            i += take_payload(b, data + i, size - i, &to);
            continue;
        }
        int r = take_byte(b, data[i++]);
        if (r < 0)
            return r;
        if (b->state == BODY_OVER && b->passed_on) {
            memcpy(to, last, sizeof last - 1);
            to += sizeof last - 1;
        }
    }
    if (ret_used)
        *ret_used = i;
    return to - begin;
}
