/* Whether the user's systemd gives shells a scope of their own, found out by asking for one. */
#pragma once

#include "sys/probe.h"

void trial_of_scope(struct probe_result *ret);
