/* Finds where the keys of an object stand in JSON that a parser has already found to be right: the
 * parser knows what stands there, but not where. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct json_keys {
    const char *at;
    const char *end;
    size_t line; /* from 1 on */
};

struct json_key {
    size_t line;       /* of the key */
    const char *value; /* as it is written */
    size_t length;
};

/* Over text whose outermost value is an object. */
struct json_keys json_keys_begin(const char *text, size_t size);

/* The next key of that object; false if there is none. Never leaves the text, whatever it is. */
bool json_keys_next(struct json_keys *keys, struct json_key *ret_key);
