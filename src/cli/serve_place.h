/* Where a server's token is, for who starts one and for who tells agents of it. */
#pragma once

#include <stddef.h>

#include <nacre/settings.h>

/* The home, which is made if it is not there. STATUS_OK, or the status to exit with after having
 * said why. settings may be NULL. */
int serve_home(const nacre_settings *settings, char *ret, size_t room);

/* Likewise. file: as it was given, or NULL for
 * that of the home. */
int serve_token_path(const char *file, const nacre_settings *settings, char *ret, size_t room);
