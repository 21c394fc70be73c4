#include "text/frame.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "base/ascii.h"
#include "text/utf8.h"

/* How lines of ours begin. Whoever prints a new kind of line to a model adds it here. */
static const char *const our_beginnings[] = {
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
    "Perhaps lost: what its",
    "Left out: ",
    "No line looks like the cause. ",
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
    "background shell ",
    "no shell has the id or name ",
    "no background shell",
    "Started background shell ",
    "Still running after ",
    "[nacre",
};

const char *frame_entry(size_t i)
{
    return i < ARRAY_SIZE(our_beginnings) ? our_beginnings[i] : NULL;
}

#define BEGINNING_MAX 32     /* characters of a line that are compared */
#define FOLDED_MAX    24     /* that one character may stand for */
#define OTHER         '\x7f' /* no character of ours */

/* A character as what it is to a reader: in lower case, a full-width or otherwise dressed up letter
 * as the letter. Appends to a text that holds BEGINNING_MAX and returns its new length. */
static size_t fold_into(char *text, size_t length, uint32_t point)
{
    utf8proc_int32_t folded[FOLDED_MAX];
    int state = 0;
    utf8proc_ssize_t n = 1;
    if (point < 0x80)
        folded[0] = (unsigned char)ascii_lower((char)point);
    else
        n = utf8proc_decompose_char((utf8proc_int32_t)point, folded, FOLDED_MAX,
                                    UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD,
                                    &state);
    if (n < 0 || n > FOLDED_MAX) {
        folded[0] = OTHER;
        n = 1;
    }
    for (utf8proc_ssize_t i = 0; i < n && length < BEGINNING_MAX; i++)
        if (!utf8_is_invisible((uint32_t)folded[i]) && !(length == 0 && folded[i] == '\\'))
            text[length++] = folded[i] > ' ' && folded[i] < OTHER ? (char)folded[i] : OTHER;
    return length;
}

/* What a reader sees of the beginning of a line, without any blank, and backslashes before it. */
static size_t fold_beginning(const char *line, size_t size, char text[BEGINNING_MAX])
{
    size_t length = 0;
    for (size_t at = 0, n; at < size && length < BEGINNING_MAX; at += n) {
        uint32_t point;
        n = utf8_next(line + at, size - at, &point);
        if (n == 0 || point == UTF8_INVALID) {
            text[length++] = OTHER;
            return length;
        }
        if (!utf8_is_invisible(point))
            length = fold_into(text, length, point);
    }
    return length;
}

/* Whether a text that was folded begins like an entry, blanks of which do not count either. */
static bool begins_like(const char *text, size_t length, const char *entry)
{
    size_t at = 0;
    for (; *entry; entry++) {
        if (*entry == ' ')
            continue;
        if (at == length || text[at] != ascii_lower(*entry))
            return false;
        at++;
    }
    return true;
}

bool frame_is_ours(const char *line, size_t size)
{
    char text[BEGINNING_MAX];
    size_t length = fold_beginning(line, size, text);
    for (size_t i = 0; i < ARRAY_SIZE(our_beginnings); i++)
        if (begins_like(text, length, our_beginnings[i]))
            return true;
    return false;
}

/* The bytes up to and with the next line separator, or all of them. Who takes it for no separator
 * sees nothing of it, so what comes after it counts for the beginning, too. */
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
        sum += frame_is_ours(line, size);
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
        if (frame_is_ours(line, size))
            r = buf_str(out, "\\");
        if (r == 0)
            r = buf_append(out, line, n);
        if (r == 0)
            utf8_upright(out->data + out->len - n, n);
        line += n;
        size -= n;
    }
    return r;
}
