/*
 * The tests of /proc once more, on a kernel that does not list the children of a process: the file
 * is looked for under a name that there is not.
 */
#define CHILDREN "no-such-file"
#include "sys/proc.c"

#include "test_proc.c"
