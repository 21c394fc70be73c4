/* nacre doctor --env: what commands do not inherit, and how to let it pass. */
#pragma once

#include <stdbool.h>

/* Returns the status to exit with. */
int doctor_env(bool json);
