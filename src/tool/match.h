/*
 * A regular expression of a caller's, over output. Costly ones end with an error. It matches within
 * a line, unless it has a newline in it and was made to span: then it may match across lines.
 */
#ifndef NACRE_TOOL_MATCH_H
#define NACRE_TOOL_MATCH_H

#include <nacre/error.h>
#include <stdbool.h>
#include <stddef.h>

struct match;

/* field is the argument it came in, for what is said of a wrong one; borrowed. NACRE_EINVAL. */
int match_new(const char *field, const char *pattern, bool may_span, struct match **ret,
              nacre_error *err);
bool match_spans(const struct match *m);
void match_free(struct match *m);

/* Whether it matches in a text: 1, 0, or NACRE_ELIMIT. */
int match_find(struct match *m, const char *text, size_t size, nacre_error *err);

#endif
