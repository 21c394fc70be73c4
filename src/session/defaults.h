/* What is used where the settings say nothing, for who shows them. */
#pragma once

#include <limits.h>

/* The home, and the keeper that comes with this library, into a buffer of PATH_MAX; "" if there is
 * none. */
void defaults_home(char ret_path[PATH_MAX]);
void defaults_keeper(char ret_path[PATH_MAX]);
