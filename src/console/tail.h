/* Where the last lines of a log begin, found from its end: only as much is read as is needed. */
#pragma once

#include <nacre/nacre.h>

/* The offset from which on the streams have so many lines before end. */
int tail_start(nacre_session *session, const nacre_id *id, unsigned streams, uint64_t end,
               uint64_t lines, uint64_t *ret_offset, nacre_error *reterr);
