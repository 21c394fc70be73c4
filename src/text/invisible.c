/* What a reader does not see: by the properties of characters, which utf8proc has. */
#include <utf8proc.h>

#include "text/utf8.h"

/* Signs without anything to see: joiners, fillers, a cell of Braille without dots, a note without a
 * head, the place of an object that is not there. */
static bool is_blank_sign(uint32_t point)
{
    return point == 0x2800 || point == 0x2d7f || point == 0xfffc || point == 0x1107f ||
           point == 0x16fe4 || point == 0x1d159;
}

/* What is set aside to be invisible, or to be no character, though nothing stands there. */
static bool is_set_aside(uint32_t point)
{
    return point == 0x2065 || (point >= 0xfff0 && point <= 0xfff8) ||
           (point >= 0xe0000 && point <= 0xe0fff) || (point >= 0xfdd0 && point <= 0xfdef) ||
           (point & 0xfffe) == 0xfffe;
}

bool utf8_is_invisible(uint32_t point)
{
    if (point < 0x7f)
        return point <= ' ';
    if (point == UTF8_INVALID)
        return false;
    const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)point);
    switch (property->category) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    default:
        return property->ignorable || is_blank_sign(point) || is_set_aside(point);
    }
}
