#include "gate/address.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"

struct address_block {
    uint8_t bytes[16];
    unsigned bits;
    const char *what; /* NULL: look at the address of IPv4 that is inside, at this byte */
    unsigned inner;
};

static const struct address_block fours[] = {
    {{0}, 8, "unspecified", 0},
    {{10}, 8, "private", 0},
    {{100, 64}, 10, "carrier-grade NAT", 0},
    {{127}, 8, "loopback", 0},
    {{169, 254}, 16, "link-local", 0},
    {{172, 16}, 12, "private", 0},
    {{192, 0, 0}, 24, "reserved", 0},
    {{192, 0, 2}, 24, "reserved", 0},
    {{192, 88, 99}, 24, "reserved", 0},
    {{192, 168}, 16, "private", 0},
    {{198, 18}, 15, "reserved", 0},
    {{198, 51, 100}, 24, "reserved", 0},
    {{203, 0, 113}, 24, "reserved", 0},
    {{224}, 4, "multicast", 0},
    {{240}, 4, "reserved", 0},
};

/* The first that fits counts. */
static const struct address_block sixes[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, NULL, 12},         /* mapped */
    {{[8] = 0xff, [9] = 0xff}, 96, NULL, 12},           /* translated */
    {{[15] = 1}, 128, "loopback", 0},                   /* before ::/96 */
    {{0}, 96, NULL, 12},                                /* compatible; :: is 0.0.0.0 */
    {{0x00, 0x64, 0xff, 0x9b}, 96, NULL, 12},           /* NAT64 */
    {{0x00, 0x64, 0xff, 0x9b, 0, 1}, 48, "private", 0}, /* NAT64 of one network */
    {{0xfc}, 7, "private", 0},                          /* unique local */
    {{0xfe, 0x80}, 10, "link-local", 0},
    {{0xfe, 0xc0}, 10, "private", 0}, /* site-local */
    {{0xff}, 8, "multicast", 0},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "reserved", 0}, /* documentation */
    {{0x20, 0x01}, 23, "reserved", 0},             /* Teredo and others of the protocols */
    {{0x20, 0x02}, 16, NULL, 2},                   /* 6to4 */
    {{0x3f, 0xff}, 20, "reserved", 0},             /* documentation */
    {{0x20}, 3, "", 0},                            /* what is given out */
    {{0}, 0, "reserved", 0},
};

static bool is_in(const struct address_block *block, const uint8_t *address)
{
    unsigned whole = block->bits / 8, rest = block->bits % 8;
    if (memcmp(block->bytes, address, whole) != 0)
        return false;
    unsigned mask = 0xff00u >> rest & 0xff;
    return rest == 0 || ((block->bytes[whole] ^ address[whole]) & mask) == 0;
}

static const char *class_of_four(const uint8_t *address)
{
    for (size_t i = 0; i < ARRAY_SIZE(fours); i++)
        if (is_in(&fours[i], address))
            return fours[i].what;
    return NULL;
}

/* The tunnels inside a network write the address of IPv4 behind 0:5efe. */
static const char *class_of_tail(const uint8_t *address)
{
    static const uint8_t mark[3] = {0x00, 0x5e, 0xfe};
    bool tunnel = (address[8] & ~2u) == 0 && memcmp(address + 9, mark, sizeof mark) == 0;
    return tunnel ? class_of_four(address + 12) : NULL;
}

const char *address_class(const uint8_t address[HOST_BYTES])
{
    const struct address_block *block = sixes;
    while (!is_in(block, address))
        block++;
    if (!block->what)
        return class_of_four(address + block->inner);
    return block->what[0] ? block->what : class_of_tail(address);
}
