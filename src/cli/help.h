/* What nacre says about itself, from the table of verbs, within the columns of the narrowest usual
 * terminal. */
#pragma once

#include <stdio.h>

#include "console/verb.h"

void help_all(FILE *file);
void help_verb(const struct verb *verb);
