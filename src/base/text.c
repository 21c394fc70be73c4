#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"

bool text_same(const char *a, const char *b)
{
    while (*a && text_upper(*a) == text_upper(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

size_t text_distance(const char *a, const char *b)
{
    enum { LONGEST = 31 };
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST)
        return LONGEST;
    uint8_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= m; i++)
        d[i][0] = (uint8_t)i;
    for (size_t j = 0; j <= n; j++)
        d[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= m; i++) {
        for (size_t j = 1; j <= n; j++) {
            uint8_t best = (uint8_t)(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            best = MIN(best, (uint8_t)(MIN(d[i - 1][j], d[i][j - 1]) + 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, (uint8_t)(d[i - 2][j - 2] + 1));
            d[i][j] = best;
        }
    }
    return d[m][n];
}

bool text_is_near(const char *word, const char *name)
{
    size_t length = strlen(word);
    if (length >= 2 && strncmp(word, name, length) == 0)
        return true;
    return length >= 2 && text_distance(word, name) <= MAX(length / 3, (size_t)1);
}

/* Each star first stands for nothing; where the rest does not fit, the last star takes one byte
 * more. Earlier stars never need to: what they let through would fit as well. */
bool text_matches(const char *pattern, const char *text, size_t length)
{
    const char *star = NULL;
    size_t at = 0, resume = 0;
    while (at < length) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = at;
        } else if (*pattern && *pattern == text[at]) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star;
            at = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

size_t text_whole(const char *text, size_t size)
{
    size_t lead = size;
    while (lead > 0 && size - lead < 4 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0)
        return size;
    unsigned char first = (unsigned char)text[lead - 1];
    size_t want = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return size - (lead - 1) < want ? lead - 1 : size;
}

uint64_t text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}
