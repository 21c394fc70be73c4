#include "base/find.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"

/* The width every 64-bit machine has in one register. */
typedef unsigned char vec __attribute__((vector_size(16)));

#define LANES sizeof(vec)
#define WIDTH 4 /* vectors in flight */

static vec load(const char *at)
{
    vec v;
    memcpy(&v, at, sizeof v);
    return v;
}

static bool any(vec v)
{
    uint64_t words[2];
    memcpy(words, &v, sizeof words);
    return (words[0] | words[1]) != 0;
}

/* One bit for each lane that is not 0. */
static unsigned lanes(vec v)
{
#ifdef __SSE2__
    typedef char signed_vec __attribute__((vector_size(16)));
    return (unsigned)__builtin_ia32_pmovmskb128((signed_vec)v);
#else
    unsigned bits = 0;
    for (size_t i = 0; i < LANES; i++)
        bits |= (unsigned)(v[i] != 0) << i;
    return bits;
#endif
}

/* How common a byte is in logs: its place among these, the most common first. */
static size_t commonness(unsigned char byte)
{
    static const char order[] = " etaoinsrldcumphgf01y2b3.w5v4689-7:k/,_=\"()[]xAESITRCNOLDPj'zq";
    if (byte >= 0x80)
        return 8; /* parts of characters of some script: often the same ones */
    const char *at = byte ? strchr(order, byte) : NULL;
    return at ? ARRAY_SIZE(order) - (size_t)(at - order) : 0;
}

static unsigned char fold_byte(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* The rarest byte that is at least so far from another; that one itself if there is none. */
static size_t rarest(const struct needle *needle, size_t other, size_t least)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < needle->size; i++)
        if (distance(i, other) >= least &&
            (best == SIZE_MAX || commonness((unsigned char)needle->text[i]) <
                                     commonness((unsigned char)needle->text[best])))
            best = i;
    return best == SIZE_MAX ? other : best;
}

void needle_init(struct needle *needle, const char *text, size_t size, bool fold)
{
    *needle = (struct needle){.text = text, .size = size, .fold = fold};
    needle->at[0] = rarest(needle, 0, 0);
    /* Neighbours come together in many words: "ck" is no rarer than "k". */
    needle->at[1] = rarest(needle, needle->at[0], size > 3 ? 2 : 1);
    for (int i = 0; i < 2; i++) {
        unsigned char byte = (unsigned char)text[needle->at[i]];
        needle->byte[i] = byte;
        needle->mask[i] = fold && byte >= 'a' && byte <= 'z' ? 0x20 : 0;
    }
}

static bool is_at(const struct needle *needle, const char *at)
{
    if (!needle->fold)
        return memcmp(at, needle->text, needle->size) == 0;
    for (size_t i = 0; i < needle->size; i++)
        if (fold_byte((unsigned char)at[i]) != (unsigned char)needle->text[i])
            return false;
    return true;
}

/* Where both bytes are right, for the places from at on. */
static vec pairs(const struct needle *needle, const char *at)
{
    vec first = (load(at + needle->at[0]) | needle->mask[0]) == needle->byte[0];
    vec second = (load(at + needle->at[1]) | needle->mask[1]) == needle->byte[1];
    return first & second;
}

static bool pair_at(const struct needle *needle, const char *at)
{
    return ((unsigned char)at[needle->at[0]] | needle->mask[0]) == needle->byte[0] &&
           ((unsigned char)at[needle->at[1]] | needle->mask[1]) == needle->byte[1];
}

/* The first lane where the needle is; LANES if there is none. */
static size_t first_lane(const struct needle *needle, const char *at, vec found)
{
    for (unsigned bits = lanes(found); bits; bits &= bits - 1) {
        size_t lane = (size_t)__builtin_ctz(bits);
        if (is_at(needle, at + lane))
            return lane;
    }
    return LANES;
}

size_t needle_find(const struct needle *needle, const char *hay, size_t from, size_t size)
{
    if (size < needle->size)
        return size;
    size_t end = size - needle->size + 1; /* of where it may begin */
    size_t i = from;
    while (i + WIDTH * LANES <= end) {
        vec found[WIDTH];
        for (size_t k = 0; k < WIDTH; k++)
            found[k] = pairs(needle, hay + i + k * LANES);
        if (any(found[0] | found[1] | found[2] | found[3])) {
            for (size_t k = 0; k < WIDTH; k++) {
                size_t lane = first_lane(needle, hay + i + k * LANES, found[k]);
                if (lane < LANES)
                    return i + k * LANES + lane;
            }
        }
        i += WIDTH * LANES;
    }
    for (; i < end; i++)
        if (pair_at(needle, hay + i) && is_at(needle, hay + i))
            return i;
    return size;
}

bool bytes_are_ascii(const char *data, size_t size)
{
    size_t i = 0;
    for (; i + WIDTH * LANES <= size; i += WIDTH * LANES) {
        vec v = load(data + i) | load(data + i + LANES) | load(data + i + 2 * LANES) |
                load(data + i + 3 * LANES);
        if (any(v & 0x80))
            return false;
    }
    for (; i < size; i++)
        if ((unsigned char)data[i] >= 0x80)
            return false;
    return true;
}
