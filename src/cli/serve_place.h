/* Where a server's token is, for who starts one and for who tells agents of it. */
#pragma once

#include <stddef.h>

#include <nacre/settings.h>

/* STATUS_OK, or the status to exit with after having said why. file: as it was given, or NULL for
 * that of the home, which is made if it is not there. */
int serve_token_path(const char *file, const nacre_settings *settings, char *ret, size_t room);
