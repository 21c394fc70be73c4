/* Readers over the run directories of the local backend. */
#ifndef NACRE_BACKEND_LOCAL_READER_H
#define NACRE_BACKEND_LOCAL_READER_H

#include <nacre/reader.h>

#include "run/rundir.h"

/* Opens a reader, which takes the run's descriptors over on success. */
int local_reader_new(struct run *run, const nacre_reader_options *options,
                     nacre_reader **ret_reader, nacre_error *err);

#endif
