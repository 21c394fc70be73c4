/* SHA-256, and HMAC with it (FIPS 180-4, RFC 2104): to know again what we gave out ourselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

struct sha256 {
    uint32_t state[8];
    uint64_t size; /* of all that was taken */
    uint8_t block[64];
};

void sha256_begin(struct sha256 *s);
void sha256_take(struct sha256 *s, const void *data, size_t size);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_SIZE]);

/* The code of a message under a key of SHA256_SIZE bytes. */
void hmac_sha256(const uint8_t key[SHA256_SIZE], const void *data, size_t size,
                 uint8_t ret[SHA256_SIZE]);

/* In a time that does not tell where they differ. */
bool sha256_is_same(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE]);
