#include "base/sha256.h"

#include <string.h>

#define BLOCK 64

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void expand_block(const uint8_t *block, uint32_t w[64])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
}

static void take_block(struct sha256 *s, const uint8_t *block)
{
    uint32_t w[64], v[8];
    expand_block(block, w);
    memcpy(v, s->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25);
        uint32_t one = v[7] + e + ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + w[i];
        uint32_t a = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22);
        uint32_t two = a + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        s->state[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
    static const uint32_t begin[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, begin, sizeof begin);
    s->size = 0;
}

void sha256_take(struct sha256 *s, const void *data, size_t size)
{
    const uint8_t *p = data;
    while (size > 0) {
        size_t held = s->size % BLOCK, n = BLOCK - held < size ? BLOCK - held : size;
        memcpy(s->block + held, p, n);
        s->size += n;
        p += n;
        size -= n;
        if (s->size % BLOCK == 0)
            take_block(s, s->block);
    }
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_SIZE])
{
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = s->size * 8;
    uint8_t length[8];
    size_t held = s->size % BLOCK;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_take(s, padding, (held < 56 ? 56 : 120) - held);
    sha256_take(s, length, sizeof length);
    for (int i = 0; i < SHA256_SIZE; i++)
        ret[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_sha256(const uint8_t key[SHA256_SIZE], const void *data, size_t size,
                 uint8_t ret[SHA256_SIZE])
{
    struct sha256 s;
    uint8_t inner[BLOCK], outer[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        uint8_t k = i < SHA256_SIZE ? key[i] : 0;
        inner[i] = k ^ 0x36;
        outer[i] = k ^ 0x5c;
    }
    sha256_begin(&s);
    sha256_take(&s, inner, sizeof inner);
    sha256_take(&s, data, size);
    sha256_end(&s, ret);
    sha256_begin(&s);
    sha256_take(&s, outer, sizeof outer);
    sha256_take(&s, ret, SHA256_SIZE);
    sha256_end(&s, ret);
}

bool sha256_is_same(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE])
{
    unsigned differs = 0;
    for (int i = 0; i < SHA256_SIZE; i++)
        differs |= (unsigned)(a[i] ^ b[i]);
    return differs == 0;
}
