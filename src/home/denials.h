/* What the fence of a run, or the rules, refused, from the file that its keeper wrote. */
#pragma once

#include <nacre/record.h>

#include "run/spec.h"

/* Whether there may be any; spec NULL = it is not known. */
bool denials_are_kept(const struct spec *spec);

/* Fills in the denials of a record of a run whose directory is open; there may be none. A file that
 * makes no sense is as good as none. 0 or -ENOMEM. */
int denials_read(int dir, const struct spec *spec, nacre_record *record);

/* Adds one; what is there already is not added again. 0 or -ENOMEM. */
int denials_add(nacre_record *record, const nacre_denial *denial);
