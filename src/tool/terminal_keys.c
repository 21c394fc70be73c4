#include "tool/terminal_keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/defs.h"
#include "text/utf8.h"

enum modifier { SHIFT = 1, META = 2, CONTROL = 4 };

/* What a key sends alone; with modifiers those that have a final or a number. */
static const struct named_key {
    const char *name;
    const char *text; /* or NULL */
    char final;       /* ESC [ A, or ESC O A in the other form; of f1 to f4 always that */
    int number;       /* ESC [ 5 ~ */
} named_keys[] = {
    {"up", NULL, 'A', 0},     {"down", NULL, 'B', 0},      {"right", NULL, 'C', 0},
    {"left", NULL, 'D', 0},   {"home", NULL, 'H', 0},      {"end", NULL, 'F', 0},
    {"f1", NULL, 'P', 0},     {"f2", NULL, 'Q', 0},        {"f3", NULL, 'R', 0},
    {"f4", NULL, 'S', 0},     {"f5", NULL, 0, 15},         {"f6", NULL, 0, 17},
    {"f7", NULL, 0, 18},      {"f8", NULL, 0, 19},         {"f9", NULL, 0, 20},
    {"f10", NULL, 0, 21},     {"f11", NULL, 0, 23},        {"f12", NULL, 0, 24},
    {"insert", NULL, 0, 2},   {"delete", NULL, 0, 3},      {"del", NULL, 0, 3},
    {"pgup", NULL, 0, 5},     {"pageup", NULL, 0, 5},      {"pgdn", NULL, 0, 6},
    {"pagedown", NULL, 0, 6}, {"enter", "\r", 0, 0},       {"return", "\r", 0, 0},
    {"tab", "\t", 0, 0},      {"space", " ", 0, 0},        {"esc", "\x1b", 0, 0},
    {"escape", "\x1b", 0, 0}, {"backspace", "\x7f", 0, 0}, {"bs", "\x7f", 0, 0},
};

static const struct named_key *find_named(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(named_keys); i++)
        if (strlen(named_keys[i].name) == length &&
            strncasecmp(named_keys[i].name, name, length) == 0)
            return &named_keys[i];
    return NULL;
}

/* Takes "C-", "M-" and "S-" off the front. */
static unsigned take_modifiers(const char **name, size_t *length)
{
    unsigned modifiers = 0;
    for (; *length > 2 && (*name)[1] == '-'; *name += 2, *length -= 2) {
        char c = (*name)[0];
        unsigned one = c == 'C' || c == 'c'   ? CONTROL
                       : c == 'M' || c == 'm' ? META
                       : c == 'S' || c == 's' ? SHIFT
                                              : 0;
        if (one == 0)
            break;
        modifiers |= one;
    }
    return modifiers;
}

static size_t send_named(const struct named_key *key, unsigned modifiers, bool cursor_keys,
                         char *ret)
{
    bool other = cursor_keys || key->final >= 'P';
    int n;
    if (key->final && modifiers)
        n = snprintf(ret, KEY_BYTES, "\x1b[1;%u%c", modifiers + 1, key->final);
    else if (key->final)
        n = snprintf(ret, KEY_BYTES, "\x1b%c%c", other ? 'O' : '[', key->final);
    else if (key->number && modifiers)
        n = snprintf(ret, KEY_BYTES, "\x1b[%d;%u~", key->number, modifiers + 1);
    else if (key->number)
        n = snprintf(ret, KEY_BYTES, "\x1b[%d~", key->number);
    else if (key->text[0] == '\t' && modifiers == SHIFT)
        n = snprintf(ret, KEY_BYTES, "\x1b[Z");
    else if (key->text[0] == ' ' && modifiers == CONTROL)
        return ret[0] = '\0', 1;
    else
        n = snprintf(ret, KEY_BYTES, "%s%s", modifiers & META ? "\x1b" : "", key->text);
    return (size_t)n;
}

/* The control character of a letter or one of @[\]^_?, or -1. */
static int control_of(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 1;
    if (c >= '@' && c <= '_')
        return c - '@';
    return c == '?' ? 0x7f : -1;
}

size_t terminal_key(const char *name, size_t length, bool cursor_keys, char ret[KEY_BYTES])
{
    unsigned modifiers = take_modifiers(&name, &length);
    const struct named_key *key = find_named(name, length);
    if (key)
        return send_named(key, modifiers, cursor_keys, ret);
    uint32_t point;
    size_t n = utf8_next(name, length, &point), meta = modifiers & META ? 1 : 0;
    if (n == 0 || n != length || point == UTF8_INVALID || point <= ' ' || (modifiers & SHIFT))
        return 0;
    ret[0] = '\x1b';
    memcpy(ret + meta, name, n);
    if (!(modifiers & CONTROL))
        return meta + n;
    int control = n == 1 ? control_of(name[0]) : -1;
    ret[meta] = (char)control;
    return control < 0 ? 0 : meta + 1;
}
