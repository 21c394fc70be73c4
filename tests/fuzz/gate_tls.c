/* Arbitrary bytes as a ClientHello, whole and in other records. */
#include "fuzz.h"

#include "gate/client_hello.h"

#define RECORD 5

/* The handshake bytes of a good input once more, in records of so many bytes. */
static size_t cut_anew(const uint8_t *data, size_t size, size_t step, uint8_t *to)
{
    uint8_t *message = malloc(size);
    size_t have = 0, out = 0;
    for (size_t at = 0; at + RECORD < size;) {
        size_t n = (size_t)data[at + 3] << 8 | data[at + 4];
        at += RECORD;
        n = n < size - at ? n : size - at;
        memcpy(message + have, data + at, n);
        have += n;
        at += n;
        size_t want = have < 4 ? have + 1 : 4u + (message[1] << 16 | message[2] << 8 | message[3]);
        if (have >= want)
            break;
    }
    for (size_t at = 0; at < have; at += step) {
        size_t n = have - at < step ? have - at : step;
        uint8_t head[RECORD] = {TLS_HANDSHAKE, 3, 1, (uint8_t)(n >> 8), (uint8_t)n};
        memcpy(to + out, head, RECORD);
        memcpy(to + out + RECORD, message + at, n);
        out += RECORD + n;
    }
    free(message);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello hello, again;
    int r = client_hello_read(data, size, &hello);
    if (r <= 0 || size > 4096)
        return 0;
    for (size_t i = 0; i < size; i++) {
        int cut = client_hello_read(data, i, &again);
        MUST(cut >= 0);
        MUST(cut == 0 || again.named == hello.named);
    }
    for (size_t step = 1; step < size; step = step * 3 + 1) {
        uint8_t *other = malloc(size * (RECORD + 1));
        size_t n = cut_anew(data, size, step, other);
        MUST(client_hello_read(other, n, &again) == 1 && again.named == hello.named);
        MUST(!hello.named || net_host_is_same(&hello.host, &again.host));
        free(other);
    }
    return 0;
}
