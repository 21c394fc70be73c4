/* The words in which people and models ask: moments and ranges of lines. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A moment, in ms since the epoch: "90s", "10m", "2h", "1d" before now, or a time such as
 * "2026-11-15", "2026-11-15T14:30" or "2026-11-15 14:30:05", local unless "Z" or an offset such as
 * "+01:00" follows. false if text is anything else.
 */
bool parse_moment(const char *text, int64_t now_ms, int64_t *ret_ms);

/*
 * A range as nacre_recall_query has it: "120-160", "120-" to the end, "-50" the last fifty, "120"
 * one line. false if text is anything else.
 */
bool parse_lines(const char *text, int64_t *ret_from, int64_t *ret_to);

#define MOMENT_HINT "90s, 10m, 2h, 1d, or a time such as 2026-11-15T14:30"
#define LINES_HINT  "120-160, 120-, 120, or -50 for the last fifty"
