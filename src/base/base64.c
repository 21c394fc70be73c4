#include "base/base64.h"

#include <stdint.h>

#include "base/defs.h"

#define GROUPS 256 /* that are appended at once */

static void encode(const unsigned char *in, size_t size, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)in[0] << 16;
    if (size > 1)
        bits |= (uint32_t)in[1] << 8;
    if (size > 2)
        bits |= in[2];
    out[0] = digits[bits >> 18];
    out[1] = digits[bits >> 12 & 63];
    out[2] = '=';
    out[3] = '=';
    if (size > 1)
        out[2] = digits[bits >> 6 & 63];
    if (size > 2)
        out[3] = digits[bits & 63];
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
