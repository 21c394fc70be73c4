#include "view/cut.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "view/utf8.h"

#define NOTICE     "[... %llu bytes left out ...]"
#define NOTICE_MAX (sizeof NOTICE + 20)

_Static_assert(NOTICE_MAX < CUT_LEAST, "there is always room for the notice");

static size_t notice(char buf[NOTICE_MAX], uint64_t bytes)
{
    return (size_t)snprintf(buf, NOTICE_MAX, NOTICE, (unsigned long long)bytes);
}

struct cut cut_of(const char *text, size_t size, uint64_t lost)
{
    struct cut cut = {.text = text, .size = size};
    char words[NOTICE_MAX];
    size_t n = notice(words, lost);
    const char *at = lost > 0 ? memmem(text, size, words, n) : NULL;
    if (at) {
        cut.head = (size_t)(at - text);
        cut.skip = n;
        cut.lost = lost;
    }
    return cut;
}

static size_t back_to_character(const char *s, size_t at)
{
    while (at > 0 && ((uint8_t)s[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static size_t put(char *to, size_t at, const char *from, size_t size)
{
    if (to && size > 0)
        memcpy(to + at, from, size);
    return at + size;
}

size_t cut_middle(char *to, size_t max, const struct cut *cut, uint64_t *ret_lost)
{
    *ret_lost = cut->lost;
    if (cut->size <= max && (cut->lost == 0 || cut->skip > 0))
        return put(to, 0, cut->text, cut->size);

    char words[NOTICE_MAX];
    uint64_t all = cut->size - cut->skip + cut->lost;
    size_t room = max - notice(words, all);
    size_t head = MIN(room / 2, cut->lost > 0 ? cut->head : cut->size);
    size_t behind = cut->lost > 0 ? cut->head + cut->skip : head;
    size_t tail = MIN(room - room / 2, cut->size - behind);
    if (head < cut->size)
        head = back_to_character(cut->text, head);
    size_t from = cut->size - tail;
    from += utf8_torn(cut->text + from, tail);
    tail = cut->size - from;

    *ret_lost = all - head - tail;
    size_t size = notice(words, *ret_lost);
    size_t at = put(to, 0, cut->text, head);
    at = put(to, at, words, size);
    return put(to, at, cut->text + from, tail);
}
