#include "text/strange.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "text/utf8.h"

#define SAMPLE        ((size_t)8000) /* as git looks for a zero */
#define STRANGE_LEAST 32

/* Controls that no text has, and what is not UTF-8. */
static bool is_strange(uint32_t point)
{
    bool control = point < 0x20 && (point == 0 || !strchr("\t\n\r\b\f\a\x1b", (int)point));
    return point == UTF8_INVALID || point == 0x7f || control;
}

void strange_take(struct strange_sample *sample, const char *data, size_t size)
{
    if (sample->looked >= SAMPLE)
        return;
    size_t most = MIN(size, SAMPLE - sample->looked);
    /* A character that began in the piece before was counted there as none. */
    size_t torn = sample->looked > 0 ? utf8_torn(data, size) : 0;
    for (size_t at = torn, n; at < most; at += n) {
        uint32_t point;
        n = utf8_next(data + at, size - at, &point);
        if (n == 0)
            break;
        sample->strange += is_strange(point) ? n : 0;
    }
    sample->looked += most;
}

bool strange_is_binary(const struct strange_sample *sample)
{
    return sample->strange >= STRANGE_LEAST && sample->strange > sample->looked / 8;
}
