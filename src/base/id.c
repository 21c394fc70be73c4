/* Ids as text. */
#include <nacre/id.h>

#include <nacre/error.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

nacre_id_text nacre_id_format(const nacre_id *id)
{
    nacre_id_text text;
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        text.s[2 * i] = digits[id->bytes[i] >> 4];
        text.s[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text.s[NACRE_ID_DIGITS] = '\0';
    return text;
}

nacre_id_text nacre_id_short(const nacre_id *id)
{
    nacre_id_text text = nacre_id_format(id);
    text.s[NACRE_ID_SHORT_DIGITS] = '\0';
    return text;
}

int nacre_id_parse(const char *text, nacre_id *ret_id)
{
    if (!text || strlen(text) != NACRE_ID_DIGITS || strspn(text, digits) != NACRE_ID_DIGITS)
        return NACRE_EINVAL;
    for (size_t i = 0; i < sizeof ret_id->bytes; i++) {
        size_t hi = (size_t)(strchr(digits, text[2 * i]) - digits);
        size_t lo = (size_t)(strchr(digits, text[2 * i + 1]) - digits);
        ret_id->bytes[i] = (uint8_t)(hi << 4 | lo);
    }
    return NACRE_OK;
}

int nacre_id_equal(const nacre_id *a, const nacre_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

const char *nacre_version(void)
{
    return NACRE_VERSION;
}
