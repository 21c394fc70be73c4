/* What commands of a session run in, for who explains it, and for who looks what of a wish is
 * granted already: nothing is started for that. */
#pragma once

#include <nacre/session.h>

#include "fence/fence_plan.h"

/* Composes anew the fence of a command that asks for this sandbox, or for none (NULL). The wish
 * says its mode and what of it the settings say; where that is FENCE_OFF the plan is empty. The
 * plan is the caller's, who ends it with fence_plan_done(). */
int session_compose_fence(nacre_session *s, const char *sandbox, struct fence_wish *ret_wish,
                          struct fence_plan *ret_plan, nacre_error *err);
