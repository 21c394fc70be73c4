/*
 * How long SQLite waits for others: no longer than we do, whatever it waits for. Its busy timeout
 * is for locks; who finds that somebody else is to put the shared index in order, and never does,
 * it lets sleep a hundred times, ten seconds in all. A command can hold that lock.
 */
#pragma once

/* The name of a VFS that is SQLite's own but for its sleep; NULL if there is none to be had. */
const char *patience_vfs(void);

/* From now on this thread sleeps in it for so long in all, and then not at all. */
void patience_begin(int ms);
