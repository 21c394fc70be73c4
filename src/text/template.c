#include "text/template.h"

#include <stdbool.h>

#include "base/ascii.h"

static bool is_hex(char c)
{
    c = ascii_lower(c);
    return ascii_is_digit(c) || (c >= 'a' && c <= 'f');
}

static uint64_t mix(uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

/* Where a number ends that begins here, in digits or in hex with a digit in it; at if there is
 * none. A letter before or behind makes a word of it, of which the digits alone are set aside. */
static size_t number_end(const char *line, size_t size, size_t at)
{
    size_t end = at, digits = 0;
    for (; end < size && is_hex(line[end]); end++)
        digits += ascii_is_digit(line[end]);
    bool prefixed = at >= 2 && line[at - 1] == 'x' && line[at - 2] == '0';
    bool apart = (at == 0 || prefixed || !ascii_is_alnum(line[at - 1])) &&
                 (end == size || !ascii_is_alnum(line[end]));
    if (digits > 0 && apart)
        return end;
    for (end = at; end < size && ascii_is_digit(line[end]);)
        end++;
    return end;
}

uint64_t template_hash(const char *line, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < size;) {
        size_t end = is_hex(line[at]) ? number_end(line, size, at) : at;
        if (end > at) {
            hash = mix(hash, '0');
            at = end;
        } else if (line[at] == ' ' || line[at] == '\t') {
            hash = mix(hash, ' ');
            while (at < size && (line[at] == ' ' || line[at] == '\t'))
                at++;
        } else {
            hash = mix(hash, (uint8_t)line[at++]);
        }
    }
    return hash;
}
