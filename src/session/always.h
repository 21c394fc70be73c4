/*
 * What a person allows for always: lines of their own configuration, shown to them letter by letter
 * before they say so, and in force for the session from then on. A line allows exactly what was
 * asked about: word for word, never a program that runs whatever it is given, and nothing that is
 * in doubt.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "policy/rules.h"
#include "session/policy.h"

/* The rules of a session, with the text that they were read from. Those that others may still look
 * at stay until it is closed. */
struct session_rules {
    struct session_rules *before;
    struct rules rules;
    char text[];
};

/* The rules that a session begins with: 0, NACRE_ENOMEM or NACRE_EINVAL. */
int always_begin(nacre_session *s, nacre_error *err);
void always_end(nacre_session *s);

/* Writes the lines that would allow a command, with what it wants, with "\n" between them; false if
 * there are none. */
bool always_for_command(nacre_session *s, const nacre_command *command,
                        const struct permissions *wanted, const struct deliberation *d,
                        struct buf *lines);

/* Writes such lines into the configuration, and has the session go by them. */
int always_make(nacre_session *s, const char *lines, nacre_error *err);
