/*
 * A pattern and lines, both arbitrary: nothing crashes or reads beyond, a match never leaves its
 * line, a literal is found in just the lines that a plain search finds it in, and a search in the
 * whole text agrees with one line by line.
 *
 * The input: a byte of flags, the length of the pattern, the pattern, the lines.
 */
#include "fuzz.h"

#include "base/clock.h"
#include "recall/pattern.h"

#define LINES_MAX 256

/* Which lines match; the count. -1 if the search had to end. */
static int matching(struct pattern *p, const char *data, size_t size, bool *ret_lines)
{
    struct text text = {.data = data, .size = size};
    size_t line = 0, counted = 0;
    int count = 0;
    pattern_begin(p, &text);
    for (size_t from = 0; from < size;) {
        struct hit hit;
        int r = pattern_find(p, &text, from, &hit, NULL);
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        MUST(hit.start >= from && hit.start <= hit.end && hit.end <= size);
        MUST(!memchr(data + hit.start, '\n', hit.end - hit.start));
        for (; counted < hit.start; counted++)
            line += data[counted] == '\n';
        if (line < LINES_MAX)
            ret_lines[line] = true;
        count++;
        const char *end = memchr(data + hit.start, '\n', size - hit.start);
        from = end ? (size_t)(end + 1 - data) : size;
    }
    return count;
}

static void check_literal(const char *needle, const char *data, size_t size, const bool *lines)
{
    size_t line = 0;
    for (size_t at = 0; at < size && line < LINES_MAX; line++) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at;
        MUST(lines[line] == (memmem(data + at, length, needle, strlen(needle)) != NULL));
        at += length + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct input in = {input, size};
    struct watchdog dog = {.deadline_ns = clock_deadline(1000)};
    uint8_t flags = take8(&in);
    size_t length = take8(&in) % 64;
    bool literal = flags & 1, fold = flags & 2;
    char needle[64] = "";
    take(&in, needle, length);
    struct pattern *whole = NULL, *single = NULL;
    if (pattern_new(needle, literal, fold, &dog, &whole, NULL) < 0)
        return 0;
    MUST(pattern_new(needle, literal, fold, &dog, &single, NULL) == 0);
    pattern_force_lines(single);
    bool found[LINES_MAX] = {0}, expected[LINES_MAX] = {0};
    char *data = malloc(in.left ? in.left : 1);
    memcpy(data, in.at, in.left);
    int a = matching(whole, data, in.left, found);
    int b = matching(single, data, in.left, expected);
    if (a >= 0 && literal && !fold)
        check_literal(needle, data, in.left, found);
    /* PCRE2's own start-up guesses differ for odd assertions; literals have none. */
    if (a >= 0 && b >= 0 && literal)
        MUST(memcmp(found, expected, sizeof found) == 0);
    free(data);
    pattern_free(whole);
    pattern_free(single);
    return 0;
}
