/*
 * The number of what run directories hold and what keepers and libraries say to each other. A
 * reader refuses a higher one; a keeper and a library must have the same.
 *
 * FORMAT_PIN() ties a layout to the number it was given out with: whoever changes a layout changes
 * RUN_FORMAT first, then the pins and the tables in docs/architecture.md.
 */
#pragma once

#define RUN_FORMAT 5

#define FORMAT_PIN(number, type, bytes)                               \
    _Static_assert(RUN_FORMAT == (number) && sizeof(type) == (bytes), \
                   #type ": another layout is another RUN_FORMAT")
