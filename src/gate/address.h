/* Which addresses are not for everybody: those of this machine, of a network of one's own, of none.
 */
#pragma once

#include <stdint.h>

#include "run/hosts.h"

/* NULL for one of the public internet, or what it is: "private", "loopback", ... An address that
 * carries one of IPv4 inside is also what that one is. */
const char *address_class(const uint8_t address[HOST_BYTES]);
