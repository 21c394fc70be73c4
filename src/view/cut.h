/* Long lines made short: the middle is left out, and in its place stands how much that is. */
#ifndef NACRE_VIEW_CUT_H
#define NACRE_VIEW_CUT_H

#include <stddef.h>
#include <stdint.h>

#define CUT_LEAST 64 /* bytes a line can be cut to: the notice fits, and a little more */

/* A line of valid UTF-8, of which lost bytes may be missing already: those that stood between
 * text[head] and text[head + skip]. skip is the size of a notice that says so; 0 = there is none.
 */
struct cut {
    const char *text;
    size_t size;
    size_t head, skip;
    uint64_t lost;
};

/* A line as it is, or one that was cut before. */
struct cut cut_of(const char *text, size_t size, uint64_t lost);

/* Writes at most max bytes (>= CUT_LEAST) of the line and returns how many. No character is
 * divided; the number in the notice, *ret_lost, counts all missing bytes. to may be NULL. */
size_t cut_middle(char *to, size_t max, const struct cut *cut, uint64_t *ret_lost);

#endif
