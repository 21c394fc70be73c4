/* Sending the messages of a host through a writer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/rpc_lines.h"

#define WIRE_QUEUE_MAX ((size_t)512 << 20)
#define WIRE_QUEUE_LOW ((size_t)1 << 20) /* nothing more is read while more than this waits */

/* One message, copied: a line without its newline. A writer that failed keeps its error. */
void wire_send(struct rpc_writer *w, const char *message, size_t size);

/* Whether the other side keeps up, so that more may be read for it. */
bool wire_has_room(const struct rpc_writer *w);

/* Writes what is left, waiting up to that long. */
void wire_drain(struct rpc_writer *w, int64_t ms);
