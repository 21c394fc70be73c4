#include "base/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/defs.h"

#define GROUPS 256 /* that are appended at once */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(const unsigned char *in, size_t size, char *out)
{
    must(size >= 1 && size <= 3);
    uint32_t bits = (uint32_t)in[0] << 16;
    if (size > 1)
        bits |= (uint32_t)in[1] << 8;
    if (size > 2)
        bits |= in[2];
    out[0] = base64_digits[bits >> 18];
    out[1] = base64_digits[bits >> 12 & 63];
    out[2] = '=';
    out[3] = '=';
    if (size > 1)
        out[2] = base64_digits[bits >> 6 & 63];
    if (size > 2)
        out[3] = base64_digits[bits & 63];
}

int base64_append(struct buf *b, const void *bytes, size_t size)
{
    const unsigned char *in = bytes;
    int r = 0;
    while (r == 0 && size > 0) {
        char out[4 * GROUPS];
        size_t groups = 0;
        for (; groups < GROUPS && size > 0; groups++) {
            size_t n = MIN(size, (size_t)3);
            encode(in, n, out + 4 * groups);
            in += n;
            size -= n;
        }
        r = buf_append(b, out, 4 * groups);
    }
    return r;
}

ssize_t base64_decode(const char *text, size_t size, void *ret, size_t max)
{
    unsigned char *out = ret;
    size_t done = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    for (int i = 0; i < 2 && size > 0 && size % 4 == (unsigned)(-i & 3) && text[size - 1] == '=';
         i++)
        size--;
    for (size_t i = 0; i < size; i++) {
        const char *digit = text[i] ? strchr(base64_digits, text[i]) : NULL;
        if (!digit)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)(digit - base64_digits);
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (done == max)
            return -EINVAL;
        out[done++] = (unsigned char)(bits >> held);
    }
    /* What is left over of the last digit says nothing. */
    return held >= 6 || (bits & ((1u << held) - 1)) ? -EINVAL : (ssize_t)done;
}
