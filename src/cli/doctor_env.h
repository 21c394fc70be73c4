/* nacre doctor --env: what commands do not inherit, and how to let it pass. */
#ifndef NACRE_CLI_DOCTOR_ENV_H
#define NACRE_CLI_DOCTOR_ENV_H

#include <stdbool.h>

/* Returns the status to exit with. */
int doctor_env(bool json);

#endif
