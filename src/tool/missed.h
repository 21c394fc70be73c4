/* What a command may have failed for want of: a variable that was withheld from it, a terminal. */
#pragma once

#include <nacre/record.h>

#include "tool/answer.h"

/*
 * Notes which of the variables that its text names were withheld as secrets; of a failure, once in
 * a session, which were withheld at all. env: what the call set, as "NAME=value", or NULL.
 */
void missed_variables(struct answer *a, const nacre_record *record, const char *const *env);

/* Notes the line of what it printed that asks for a terminal, if it failed or is not done. */
void missed_terminal(struct answer *a, const nacre_record *record);
