#include "recall/parse_query.h"

#include <string.h>
#include <time.h>

#include "base/ascii.h"

#define NUMBER_MAX INT64_C(1000000000000)

/* A number in digits; NULL if there is none or it is absurd, else what follows it. */
static const char *number(const char *text, int64_t *ret)
{
    *ret = 0;
    if (!ascii_is_digit(*text))
        return NULL;
    for (; ascii_is_digit(*text); text++) {
        *ret = *ret * 10 + (*text - '0');
        if (*ret > NUMBER_MAX)
            return NULL;
    }
    return text;
}

static bool ago(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    int64_t count;
    const char *unit = number(text, &count);
    int64_t seconds = !unit || !*unit || unit[1] ? 0
                      : *unit == 's'             ? 1
                      : *unit == 'm'             ? 60
                      : *unit == 'h'             ? 3600
                      : *unit == 'd'             ? 86400
                                                 : 0;
    if (seconds == 0 || count > NUMBER_MAX / seconds)
        return false;
    *ret_ms = now_ms - count * seconds * 1000;
    return true;
}

/* What may follow a time: nothing, "Z", "+HH:MM". */
static bool zone(const char *text, struct tm *tm, int64_t *ret_ms)
{
    long offset = 0;
    if (*text == '\0') {
        tm->tm_isdst = -1;
        *ret_ms = (int64_t)mktime(tm) * 1000;
        return true;
    }
    if (strcmp(text, "Z") != 0) {
        struct tm shift = {0};
        const char *end = *text == '+' || *text == '-' ? strptime(text + 1, "%H:%M", &shift) : NULL;
        if (!end || *end)
            return false;
        offset = (shift.tm_hour * 60L + shift.tm_min) * (*text == '-' ? -60L : 60L);
    }
    *ret_ms = ((int64_t)timegm(tm) - offset) * 1000;
    return true;
}

bool parse_moment(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                                          "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    if (ago(text, now_ms, ret_ms))
        return true;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct tm tm = {0};
        const char *rest = strptime(text, formats[i], &tm);
        if (rest && zone(rest, &tm, ret_ms))
            return true;
    }
    return false;
}

bool parse_lines(const char *text, int64_t *ret_from, int64_t *ret_to)
{
    int64_t from, to = 0;
    if (*text == '-') {
        const char *end = number(text + 1, &from);
        *ret_from = -from;
        *ret_to = 0;
        return end && !*end && from > 0;
    }
    const char *rest = number(text, &from);
    if (!rest || from == 0)
        return false;
    *ret_from = *ret_to = from;
    if (!*rest)
        return true;
    if (*rest++ != '-')
        return false;
    *ret_to = 0;
    if (!*rest)
        return true;
    rest = number(rest, &to);
    *ret_to = to;
    return rest && !*rest && to >= from;
}
