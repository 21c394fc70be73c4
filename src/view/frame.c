#include "view/frame.h"

#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "view/utf8.h"

/* How lines of ours begin. Whoever prints a new kind of line to a model adds it here. */
static const char *const beginnings[] = {
    /* the first line of a summary */
    "Exit code: ",
    "Signal: ",
    "Timed out after ",
    "Running | ",
    "Killed | ",
    "Cancelled | ",
    "Lost | ",
    "Unknown | ",
    /* its other lines */
    "Left out: ",
    "Left running: ",
    "--- stderr (",
    "--- stdout (",
    "[repeated ",
    /* reads of a shell */
    "[shell ",
    "(no new output)",
    /* completions */
    "[Background task ",
    "(repeated)",
    "status:",
    "exit_code:",
    "success:",
    "elapsed_ms:",
    "command:",
    "omitted:",
    /* answers of tools */
    "killed background shell ",
    "no running background shell ",
    "no background shell",
    "Started background shell ",
    "Still running after ",
    "[nacre",
};

const char *frame_entry(size_t i)
{
    return i < ARRAY_SIZE(beginnings) ? beginnings[i] : NULL;
}

/* White space, and what takes no room: a reader does not see it. */
static bool is_invisible(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x09, 0x0d},     {0x20, 0x20},     {0xa0, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},
        {0x61c, 0x61c},   {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
        {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000},
        {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

/* Where the first thing a reader sees begins, backslashes aside. */
static size_t skip_lead(const char *line, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint32_t point;
        size_t n = utf8_next(line + at, size - at, &point);
        if (n == 0 || !(point == '\\' || is_invisible(point)))
            break;
        at += n;
    }
    return at;
}

bool frame_is_ours(const char *line, size_t size)
{
    size_t at = skip_lead(line, size);
    line += at;
    size -= at;
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        /* White space at the end of a beginning may be missing or of another kind. */
        size_t n = strlen(beginnings[i]);
        n -= beginnings[i][n - 1] == ' ';
        if (size >= n && ascii_is_same(line, beginnings[i], n))
            return true;
    }
    return false;
}

/* The bytes up to and with the next line separator, or all of them. */
static size_t segment(const char *line, size_t size)
{
    const char *at = line;
    while ((at = memchr(at, 0xe2, size - (size_t)(at - line)))) {
        size_t left = size - (size_t)(at - line);
        if (left >= 3 && (uint8_t)at[1] == 0x80 && ((uint8_t)at[2] & 0xfe) == 0xa8)
            return (size_t)(at - line) + 3;
        at++;
    }
    return size;
}

size_t frame_size(const char *line, size_t size)
{
    size_t sum = size;
    while (size > 0) {
        size_t n = segment(line, size);
        sum += frame_is_ours(line, n);
        line += n;
        size -= n;
    }
    return sum;
}

int frame_write(struct buf *out, const char *line, size_t size)
{
    int r = 0;
    while (r == 0 && size > 0) {
        size_t n = segment(line, size);
        if (frame_is_ours(line, n))
            r = buf_str(out, "\\");
        if (r == 0)
            r = buf_append(out, line, n);
        line += n;
        size -= n;
    }
    return r;
}
