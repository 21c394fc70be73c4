/* What commands of a session run in, for who explains it: nothing is started for that. */
#pragma once

#include <nacre/session.h>

#include "fence/fence_plan.h"

/* Composes the fence of the session's own mode anew; *ret_mode is FENCE_OFF and the plan empty if
 * there is none. The plan is the caller's, who ends it with fence_plan_done(). */
int session_explain_fence(nacre_session *s, enum fence_mode *ret_mode, struct fence_plan *ret_plan,
                          nacre_error *err);
