#include "base/number.h"

#include "base/ascii.h"

/* Appends a digit; false if it does not fit. */
static bool push_digit(uint64_t *value, char digit)
{
    return !__builtin_mul_overflow(*value, 10u, value) &&
           !__builtin_add_overflow(*value, (uint64_t)(digit - '0'), value);
}

bool number_parse(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text; text++)
        if (!ascii_is_digit(*text) || !push_digit(&value, *text))
            return false;
    *ret = value;
    return true;
}

/* The part behind the point, in units of the scale: each digit stands for a tenth of the one
 * before. What is left over of a unit is carried exactly, as a remainder. */
static uint64_t fraction_of(const char *digits, size_t count, uint64_t scale)
{
    uint64_t value = 0;
    bool more = false;
    for (size_t i = count; i > 0; i--) {
        uint64_t sum = (uint64_t)(digits[i - 1] - '0') * scale + value;
        more |= sum % 10 != 0;
        value = sum / 10;
    }
    return value + more;
}

bool number_parse_scaled(const char *text, size_t length, uint64_t scale, uint64_t max,
                         uint64_t *ret)
{
    uint64_t whole = 0;
    size_t i = 0;
    for (; i < length && ascii_is_digit(text[i]); i++)
        if (!push_digit(&whole, text[i]))
            return false;
    size_t digits = i, point = i;
    if (i < length && text[i] == '.')
        for (i++; i < length && ascii_is_digit(text[i]); i++)
            digits++;
    uint64_t value;
    if (digits == 0 || i != length || __builtin_mul_overflow(whole, scale, &value))
        return false;
    if (digits > point &&
        __builtin_add_overflow(value, fraction_of(text + point + 1, digits - point, scale), &value))
        return false;
    if (value > max)
        return false;
    *ret = value;
    return true;
}
