#include "base/find.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"

/*
 * Thirty-two bytes at once: one register where there is AVX2, two of sixteen elsewhere. The same
 * functions are compiled for both; whoever calls them from outside does not know which ones run.
 * Vectors are never passed by value, since how that is done depends on the machine, too.
 */
typedef unsigned char vec __attribute__((vector_size(32)));

#define LANES  sizeof(vec)
#define EIGHTS (LANES / sizeof(uint64_t))
#define STRIDE (4 * LANES)
#define INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#define HAS_WIDE __builtin_cpu_supports("avx2")
#define WIDE     __attribute__((target("avx2")))
#else
#define HAS_WIDE false
#define WIDE
#endif

INLINE void load_lanes(const char *at, vec *ret)
{
    memcpy(ret, at, sizeof *ret);
}

INLINE bool any_lane(const vec *v)
{
    uint64_t eights[EIGHTS];
    memcpy(eights, v, sizeof eights);
    return (eights[0] | eights[1] | eights[2] | eights[3]) != 0;
}

/* How common a byte is in logs: its rank among these, the most common first. */
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

static bool needle_is_at(const struct needle *needle, const char *at)
{
    if (!needle->fold)
        return memcmp(at, needle->text, needle->size) == 0;
    for (size_t i = 0; i < needle->size; i++)
        if (fold_byte((unsigned char)at[i]) != (unsigned char)needle->text[i])
            return false;
    return true;
}

/* Where both bytes are right, for the positions from at on. */
INLINE void pairs(const struct needle *needle, const char *at, bool fold, vec *ret)
{
    vec first, second;
    load_lanes(at + needle->at[0], &first);
    load_lanes(at + needle->at[1], &second);
    if (fold) {
        first |= needle->mask[0];
        second |= needle->mask[1];
    }
    *ret = (vec)(first == needle->byte[0]) & (vec)(second == needle->byte[1]);
}

static bool pair_at(const struct needle *needle, const char *at)
{
    return ((unsigned char)at[needle->at[0]] | needle->mask[0]) == needle->byte[0] &&
           ((unsigned char)at[needle->at[1]] | needle->mask[1]) == needle->byte[1];
}

/* The first of some positions where the needle is; count if there is none. */
static size_t first_match(const struct needle *needle, const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pair_at(needle, at + i) && needle_is_at(needle, at + i))
            return i;
    return count;
}

/* The first position of a stride where the needle is; SIZE_MAX if there is none. */
INLINE size_t look_closer(const struct needle *needle, const char *at, bool fold)
{
    for (size_t i = 0; i < STRIDE; i += LANES) {
        vec found;
        uint64_t eights[EIGHTS];
        pairs(needle, at + i, fold, &found);
        memcpy(eights, &found, sizeof eights);
        for (size_t k = 0; k < EIGHTS; k++) {
            size_t from = i + k * sizeof eights[0];
            size_t hit = eights[k] ? first_match(needle, at + from, sizeof eights[0]) : SIZE_MAX;
            if (hit < sizeof eights[0])
                return from + hit;
        }
    }
    return SIZE_MAX;
}

/* Looks at whole strides from *i on; true if it is at *i then. */
INLINE bool find_strides(const struct needle *needle, const char *hay, size_t *i, size_t end,
                         bool fold)
{
    const struct needle n = *needle;
    for (; *i + STRIDE <= end; *i += STRIDE) {
        const char *at = hay + *i;
        vec a, b, c, d;
        pairs(&n, at, fold, &a);
        pairs(&n, at + LANES, fold, &b);
        pairs(&n, at + 2 * LANES, fold, &c);
        pairs(&n, at + 3 * LANES, fold, &d);
        a = (a | b) | (c | d);
        if (!any_lane(&a))
            continue;
        size_t found = look_closer(&n, at, fold);
        if (found < STRIDE) {
            *i += found;
            return true;
        }
    }
    return false;
}

INLINE bool find_any(const struct needle *needle, const char *hay, size_t *i, size_t end)
{
    return needle->fold ? find_strides(needle, hay, i, end, true)
                        : find_strides(needle, hay, i, end, false);
}

WIDE static bool find_wide(const struct needle *needle, const char *hay, size_t *i, size_t end)
{
    return find_any(needle, hay, i, end);
}

static bool find_narrow(const struct needle *needle, const char *hay, size_t *i, size_t end)
{
    return find_any(needle, hay, i, end);
}

size_t needle_find(const struct needle *needle, const char *hay, size_t from, size_t size)
{
    if (size < needle->size || from > size - needle->size)
        return size;
    size_t end = size - needle->size + 1; /* of where it may begin */
    size_t i = from;
    if (HAS_WIDE ? find_wide(needle, hay, &i, end) : find_narrow(needle, hay, &i, end))
        return i;
    size_t found = first_match(needle, hay + i, end - i);
    return found < end - i ? i + found : size;
}

size_t byte_run_find(const struct byte_run *run, const char *hay, size_t from, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)hay;
    size_t i = from, least = run->least;
    while (size - i >= least) {
        size_t last = i + least - 1;
        if (!run->set[bytes[last]]) {
            i += least;
            continue;
        }
        size_t start = last;
        while (start > i && run->set[bytes[start - 1]])
            start--;
        for (last++; last < size && last - start < least && run->set[bytes[last]]; last++)
            ;
        if (last - start == least)
            return start;
        i = MIN(last + 1, size);
    }
    return size;
}

/* How far no byte is above 0x7f, in whole strides. */
INLINE size_t ascii_strides(const char *data, size_t size)
{
    size_t i = 0;
    for (; i + STRIDE <= size; i += STRIDE) {
        vec a, b, c, d;
        load_lanes(data + i, &a);
        load_lanes(data + i + LANES, &b);
        load_lanes(data + i + 2 * LANES, &c);
        load_lanes(data + i + 3 * LANES, &d);
        a = ((a | b) | (c | d)) & 0x80;
        if (any_lane(&a))
            break;
    }
    return i;
}

WIDE static size_t ascii_wide(const char *data, size_t size)
{
    return ascii_strides(data, size);
}

static size_t ascii_narrow(const char *data, size_t size)
{
    return ascii_strides(data, size);
}

bool bytes_are_ascii(const char *data, size_t size)
{
    size_t i = HAS_WIDE ? ascii_wide(data, size) : ascii_narrow(data, size);
    for (; i < size; i++)
        if ((unsigned char)data[i] >= 0x80)
            return false;
    return true;
}
