/*
 * Which files a sandbox refused, as far as what a command printed tells of it: a message that names
 * a path and says that it cannot be written is told as the sandbox's work only if the sandbox
 * refuses that path, and this user could have written it otherwise.
 */
#pragma once

#include <nacre/record.h>

#include "session/session.h"

/* Adds what is found to the denials of the record. Without memory or output, nothing is. */
void refusals_find(nacre_session *s, nacre_record *record);
