/*
 * How wide characters are. From a table that is made of utf8proc's when nacre is built, since the
 * keeper, which has to know it too, is linked with libc alone.
 */
#include "text/utf8.h"
#include "text/width_table.h"

#define WIDE_FROM 0x300 /* nothing before the combining marks is wide or combines */

unsigned utf8_width(uint32_t point)
{
    if (point < WIDE_FROM || point >= WIDTH_POINTS)
        return 1;
    uint8_t four = width_blocks[width_index[point / WIDTH_BLOCK]][point % WIDTH_BLOCK / 4];
    return four >> 2 * (point % 4) & 3u;
}
