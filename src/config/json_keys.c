#include "config/json_keys.h"

#include <string.h>

static bool is_before_end(const struct json_keys *keys)
{
    return keys->at < keys->end;
}

static bool stands_at(const struct json_keys *keys, const char *any)
{
    return is_before_end(keys) && *keys->at && strchr(any, *keys->at);
}

static void skip_any(struct json_keys *keys, const char *any)
{
    for (; stands_at(keys, any); keys->at++)
        keys->line += *keys->at == '\n';
}

static void skip_string(struct json_keys *keys)
{
    for (keys->at++; is_before_end(keys) && *keys->at != '"'; keys->at++)
        if (*keys->at == '\\' && keys->end - keys->at > 1)
            keys->at++;
    if (is_before_end(keys))
        keys->at++;
}

/* To the end of a value: a string, what brackets enclose, or a word. */
static void skip_value(struct json_keys *keys)
{
    size_t depth = 0;
    do {
        if (stands_at(keys, "\"")) {
            skip_string(keys);
            continue;
        }
        if (depth == 0 && stands_at(keys, ",} \t\r\n"))
            return;
        if (stands_at(keys, "{["))
            depth++;
        else if (stands_at(keys, "}]"))
            depth--;
        else if (stands_at(keys, "\n"))
            keys->line++;
        keys->at++;
    } while (is_before_end(keys));
}

struct json_keys json_keys_begin(const char *text, size_t size)
{
    struct json_keys keys = {.at = text, .end = text + size, .line = 1};
    skip_any(&keys, " \t\r\n");
    if (is_before_end(&keys))
        keys.at++; /* the brace */
    return keys;
}

bool json_keys_next(struct json_keys *keys, struct json_key *ret_key)
{
    skip_any(keys, ", \t\r\n");
    if (!stands_at(keys, "\""))
        return false;
    ret_key->line = keys->line;
    skip_string(keys);
    skip_any(keys, ": \t\r\n");
    ret_key->value = keys->at;
    if (is_before_end(keys))
        skip_value(keys);
    ret_key->length = (size_t)(keys->at - ret_key->value);
    return true;
}
