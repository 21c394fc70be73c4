/* How a command ended, as ACP says it. */
#ifndef NACRE_ACP_EXIT_STATUS_H
#define NACRE_ACP_EXIT_STATUS_H

#include <nacre/record.h>

#include "base/buf.h"

/* Appends {"exitCode":...,"signal":...}; what does not hold is null. 0 or -errno. */
int acp_append_exit_status(struct buf *b, const nacre_record *record);

#endif
