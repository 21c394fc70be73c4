/* How a command ended, as ACP says it. */
#pragma once

#include <nacre/record.h>

#include "base/buf.h"

/* Appends {"exitCode":...,"signal":...}; what does not hold is null. 0 or -errno. */
int acp_append_exit_status(struct buf *b, const nacre_record *record);
