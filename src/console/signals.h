/* The signals that mean "stop", collected on a descriptor, and ending by one of them. */
#pragma once

#include <stddef.h>

/* Blocks SIGINT, SIGTERM and SIGHUP and returns a descriptor that is readable when one came; those
 * that were ignored stay so. -errno if that fails. */
int signals_catch(void);

/* The same with others, whatever was done with those before. */
int signals_catch_also(const int *more, size_t count);

/* The next signal that came, or 0. */
int signals_take(int fd);

/* Ends this process the way the signal would have, now that all else is done: a shell that runs
 * us in a loop must see that Ctrl-C was meant for the loop, too. */
void signals_die_by(int number);
