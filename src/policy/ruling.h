/* What the rules say of a text that was read. */
#pragma once

#include "policy/rules.h"

struct ruling {
    nacre_verdict verdict;
    const struct rule *rule; /* NULL = it is the default, or a doubt */
    const char *doubt;       /* NULL = none; else no rule can allow it */
    const char *sandbox;     /* the mode that it shall run in; NULL = no rule says */
};

/* Of one command. */
struct ruling rule_on_command(const struct rules *rules, const struct script_command *command);

/* Of all of them: the strictest, and the first of those. *ret_command is its place in the list;
 * script->count = the text as a whole. */
struct ruling rule_on_script(const struct rules *rules, const struct script *script,
                             size_t *ret_command);

/* A set of NACRE_CLASS_... */
unsigned classes_of(const struct script_command *command);

/* Whether it changes nothing but the shell that runs it. */
bool is_of_shell(const struct script_command *command);
