/*
 * What a shell printed, and when, as a recording that terminal players show: asciicast version 3.
 * The sizes of its terminal are in it, and when a person came, typed and left.
 */
#pragma once

#include <nacre/nacre.h>

/* Writes it to stdout: a status, with a sentence said unless it is STATUS_OK. */
int cast_print(nacre_session *session, const nacre_id *id);
