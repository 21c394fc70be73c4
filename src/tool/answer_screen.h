/* The screen of a shell in an answer. */
#pragma once

#include "tool/answer.h"

/*
 * A line with its status, size and cursor, its rows, each framed as all output is, and notes on
 * what stands out. Rows that have no room are left out, from the top, and counted. Nothing counts
 * as read by that.
 */
int answer_screen(struct answer *a, const nacre_record *record, nacre_error *err);
