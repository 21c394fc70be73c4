/*
 * The filter of system calls of a fenced command: what neither mounts nor Landlock hold. Written
 * for the native interface; calls of others (32 bit, x32) do not exist behind it. Functions return
 * >= 0 or -errno.
 */
#pragma once

#include <stdbool.h>

/*
 * For this thread and all it starts; needs no_new_privs. Each connect() waits for who holds the
 * descriptor that is returned, and so does who wants to change priority, processors or limits of
 * another process.
 */
int filter_enter(void);

/* The same program without entering it, for who wants to look at it: its length and instructions
 * (struct sock_filter). */
int filter_program(const void **ret_program);
