/* The keys of a terminal by name, as an xterm sends them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KEY_BYTES 16

/*
 * "up", "f5", "pgdn", "esc", "C-x", "M-x", "S-tab", "C-up", or any single character. Case does not
 * matter but in that. cursor_keys: they are in their other form. Returns how many bytes it sends,
 * 0 if there is no such key.
 */
size_t terminal_key(const char *name, size_t length, bool cursor_keys, char ret[KEY_BYTES]);
