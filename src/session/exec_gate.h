/*
 * The rules on their way to what is executed: keepers get those that forbid and ask, and ask the
 * session about what a person has to be asked about.
 */
#pragma once

#include "ask/desk.h"
#include "session/session.h"

/* Whether rules would be held against what is executed here. */
bool exec_gate_is_wanted(const nacre_settings *settings, const struct rules *rules);

/* For a session that is being opened: its keepers get the rules, if that is wanted and can be. */
int exec_gate_open(nacre_session *s, nacre_error *err);

/* Takes in what keepers ask. */
void exec_gate_hear(nacre_session *s);

/* A question was answered: whoever waits for it hears that, if it was one of ours. */
void exec_gate_answer(nacre_session *s, uint64_t number, nacre_answer_kind kind);

/* Nobody is answered any more. */
void exec_gate_done(nacre_session *s);
