/* The operations of sessions, for tests that step them. Their header calls a run directory what the
 * harness calls a command with its output. */
#ifndef TESTS_SESSION_OPS_H
#define TESTS_SESSION_OPS_H

#include <limits.h>
#include <pthread.h>
#include <sys/types.h>

#define run run_directory
#include "backend/op.h"
#include "session/session.h"
#undef run

#endif
