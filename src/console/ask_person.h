/* Asking whoever sits at the terminal, whatever stdin and stdout are. */
#pragma once

#include <nacre/session.h>

/* For nacre_options.ask. Answered when it returns. */
nacre_ask_fn ask_person_at_terminal;
