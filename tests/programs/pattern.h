/*
 * The bytes of flood: each is computed from its position and stream, so that any part of them
 * can be checked without the rest. With lines, every 64th byte is a newline; the others never
 * are.
 */
#ifndef TESTS_PATTERN_H
#define TESTS_PATTERN_H

#include <stdint.h>

static inline unsigned char pattern_byte(uint64_t position, int stream, int lines)
{
    uint64_t x = position * 0x9e3779b97f4a7c15u + (uint64_t)stream * 0x517cc1b727220a95u;

    if (lines && position % 64 == 63)
        return '\n';
    x ^= x >> 29;
    return (unsigned char)(' ' + (x * 0xbf58476d1ce4e5b9u >> 57) % 94);
}

#endif
