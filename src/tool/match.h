/* A regular expression of a caller's, over lines of output. Costly ones end with an error. */
#ifndef NACRE_TOOL_MATCH_H
#define NACRE_TOOL_MATCH_H

#include <nacre/error.h>
#include <stddef.h>

struct match;

/* field is the argument it came in, for what is said of a wrong one; borrowed. NACRE_EINVAL. */
int match_new(const char *field, const char *pattern, struct match **ret, nacre_error *err);
void match_free(struct match *m);

/* Whether it matches within one of the lines of a text: 1, 0, or NACRE_ELIMIT. */
int match_find(struct match *m, const char *text, size_t size, nacre_error *err);

#endif
