/* What the fence of a run refused, from the file that its keeper wrote. */
#pragma once

#include <nacre/record.h>

/* Fills in the denials of a record of a run whose directory is open; there may be none. A file that
 * makes no sense is as good as none. 0 or -ENOMEM. */
int denials_read(int dir, nacre_record *record);

/* Adds one; what is there already is not added again. 0 or -ENOMEM. */
int denials_add(nacre_record *record, const nacre_denial *denial);
