/* Telling the keeper of a run what was denied to its command. */
#pragma once

#include <nacre/id.h>

/* By its door, without waiting; a run that is not there, or does not listen, is not told. */
void denied_tell(const nacre_id *run, const char *target, const char *why);
