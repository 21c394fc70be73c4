/*
 * A small backend: a recipe for whoever writes one. It runs commands on this machine without
 * keepers, with no more than the contract asks for (<nacre/backend.h>): start, pump and signal, and
 * input, which may be missing. It passes the tests of the tools.
 */
#ifndef TESTS_SMALL_BACKEND_H
#define TESTS_SMALL_BACKEND_H

#include <nacre/backend.h>

/* One for one session, which frees it when it closes. 0, or NACRE_ENOMEM. */
int small_backend_new(nacre_backend *ret_backend);

#endif
