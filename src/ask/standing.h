/* Who may answer for a person: a process of the same user that no run has started. A command must
 * not say yes to itself; what else the user runs outside of a sandbox is the user. */
#pragma once

#include <nacre/error.h>
#include <stdbool.h>

/* Whether the other side of a connection may: 0, or NACRE_EPERM. */
int standing_check(int sock, nacre_error *err);

/* Whether the other side belongs to a run. */
bool standing_is_within(int sock);
