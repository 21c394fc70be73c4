/* Adding to lists of the user's configuration file, as a person has decided: everything else in it
 * stays as it is written. */
#pragma once

#include <jansson.h>
#include <nacre/error.h>

/*
 * Adds each item of each list in an object such as {"policy": [{"allow": ["make", "test"]}]} to the
 * list of that name in the file; what is in it already is not added again. The file is made if it
 * is not there, and replaced as a whole or not at all. NACRE_EINVAL if it cannot be understood, or
 * would not be afterwards; NACRE_EIO and others, with what to do.
 */
int config_append(const char *path, const json_t *additions, nacre_error *err);
