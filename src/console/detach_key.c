#include "console/detach_key.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "tool/terminal_keys.h"

/* For people: "Ctrl-] d". */
static void add_name(struct detach_key *key, const char *name, size_t length)
{
    bool control = length > 2 && (name[0] == 'C' || name[0] == 'c') && name[1] == '-';
    size_t used = strlen(key->name), skip = control ? 2 : 0;
    snprintf(key->name + used, sizeof key->name - used, "%s%s%.*s", used > 0 ? " " : "",
             control ? "Ctrl-" : "", (int)(length - skip), name + skip);
}

bool detach_key_parse(struct detach_key *key, const char *text)
{
    static const char gaps[] = " ,";
    *key = (struct detach_key){0};
    if (strcmp(text, "none") == 0)
        return true;
    for (const char *at = text + strspn(text, gaps); *at;) {
        char bytes[KEY_BYTES];
        size_t length = strcspn(at, gaps), size = terminal_key(at, length, false, bytes);
        if (size == 0 || key->size + size > sizeof key->bytes)
            return false;
        memcpy(key->bytes + key->size, bytes, size);
        add_name(key, at, length);
        if (key->size == 0)
            key->first = size;
        key->size += size;
        at += length;
        at += strspn(at, gaps);
    }
    return key->size > 0;
}

/* It was another key: what was held back is for the program, but for a first one that came twice.
 */
static void pass_held(struct detach_key *key, char byte, struct buf *out)
{
    bool twice = key->matched == key->first && byte == key->bytes[0] && key->first == 1;
    buf_append(out, key->bytes, key->matched);
    key->matched = 0;
    if (!twice && byte == key->bytes[0])
        key->matched = 1;
    else if (!twice)
        buf_append(out, &byte, 1);
}

bool detach_key_feed(struct detach_key *key, const char *bytes, size_t size, struct buf *out)
{
    for (size_t i = 0; i < size; i++) {
        if (key->size == 0 || (key->matched == 0 && bytes[i] != key->bytes[0])) {
            buf_append(out, &bytes[i], 1);
        } else if (bytes[i] != key->bytes[key->matched]) {
            pass_held(key, bytes[i], out);
        } else if (++key->matched == key->size) {
            key->matched = 0;
            return true;
        }
    }
    return false;
}
