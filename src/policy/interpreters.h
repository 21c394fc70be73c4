/* Programs that run whatever text or file they are given: to allow one by its words is to allow
 * what somebody writes into that file tomorrow. */
#pragma once

#include "policy/script.h"

/* Whether a command is one of them, or does nothing but start others. */
bool runs_anything(const struct script_command *command);
