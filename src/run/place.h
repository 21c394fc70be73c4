/*
 * Places in the directory of a run, and that directory itself. A command may have put anything
 * there: nothing of it is followed, opened or waited for, only taken away. Returns >= 0 or -errno.
 */
#pragma once

#define PLACE_TRIES 4 /* somebody may put things there while we take them away */

/* Takes away what lies where something of ours belongs; a directory that is not empty gets another
 * name. */
int place_clear(int dir, const char *name);

/* The directory in a place, made if there is none; one of ours that somebody put there will do. A
 * descriptor to close. */
int place_open(int above, const char *name);
