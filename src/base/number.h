/* Numbers that people write: whole ones, and decimals with a unit behind them. No locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number in decimal digits that fits; false if text is anything else. */
bool number_parse(const char *text, uint64_t *ret);

/*
 * The first length bytes of text as a decimal such as "2", "1.5" or ".5", times scale, rounded
 * up: the smallest amount is not none at all. false if they are anything else, or the product is
 * above max. scale is at most 10^15.
 */
bool number_parse_scaled(const char *text, size_t length, uint64_t scale, uint64_t max,
                         uint64_t *ret);
