/* Text, the end of file, signals and sizes for a shell, as a part of a call: one word at a time,
 * given up when nothing of it is taken for two seconds. */
#pragma once

#include <nacre/backend.h>
#include <nacre/tool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/op.h"

/* Zeroed = nothing was begun. */
struct feeding {
    nacre_op *op; /* of the word that is under way, or NULL */
    nacre_id id;
    bool signals;
    size_t size, taken; /* of the last text */
    int64_t patient_ns; /* until when nothing may be taken */
};

/*
 * Begins a word; the one before must be done. TOOL_DONE, TOOL_WAIT or an error. data is borrowed
 * until it is done.
 */
int feeding_write(struct feeding *f, nacre_call *c, const nacre_id *id, const void *data,
                  size_t size, bool eof, nacre_error *err);
int feeding_signal(struct feeding *f, nacre_call *c, const nacre_id *id, int signal,
                   nacre_error *err);
int feeding_resize(struct feeding *f, nacre_call *c, const nacre_id *id, int columns, int rows,
                   nacre_error *err);

/*
 * Goes on: TOOL_WAIT after having said what to wait for, TOOL_DONE, or an error; taken is true in
 * any case. NACRE_ETIMEOUT: the shell took nothing for two seconds, and is given up.
 */
int feeding_step(struct feeding *f, nacre_call *c, nacre_error *err);

/* What was not taken by then is never written. */
static inline void feeding_done(struct feeding *f)
{
    op_end(&f->op);
}
