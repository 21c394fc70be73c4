/* What `nacre run` does, for other verbs that run a command in front of people. */
#pragma once

#include "console/fence_args.h"

/* Runs it live, in a sandbox, and says at its end what it was refused. The status to exit with. */
int run_explained(char **words, size_t count, const struct fence_args *fence);
