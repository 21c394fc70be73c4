/* The verbs, each in a file of its own; main.c has the table. */
#pragma once

#include "console/verb.h"

extern const struct verb verb_run, verb_start, verb_list, verb_top, verb_open, verb_output,
    verb_wait, verb_input, verb_kill, verb_adopt, verb_recall, verb_log, verb_rm, verb_gc,
    verb_sessions, verb_show, verb_screen, verb_attach, verb_config, verb_doctor, verb_sandbox,
    verb_policy, verb_pending, verb_allow, verb_deny, verb_mcp, verb_serve, verb_acp_terminals,
    verb_acp_proxy, verb_completion;

/* All of them; ends with NULL. */
extern const struct verb *const verb_table[];

/* The one of that name, or that has it as another word for its own; or NULL. */
const struct verb *verb_find(const char *name);
