/*
 * The sign on the door of a keeper: an abstract name that says of which home its run is, for as
 * long as that is not over. A command may take its directory away before anybody has a row for it;
 * whoever looks at the home reads the signs, and knocks where the files are missing. A home is
 * known there by a number that is made of its path.
 */
#pragma once

#include <nacre/id.h>
#include <stdint.h>
#include <stdio.h>

#define SIGN_MAX (sizeof "home-01234567/" + NACRE_ID_DIGITS)

/* Of a run; id = "" for what all those of a home begin with. */
static inline void sign_format(uint32_t home, const char *id, char ret_name[SIGN_MAX])
{
    snprintf(ret_name, SIGN_MAX, "home-%08x/%s", home, id);
}
