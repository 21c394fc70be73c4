#include "config/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "base/text.h"

#define NAME_LONGEST  255
#define HARMLESS_MOST 19

/* What gives a secret away, and the words that contain it by chance. */
struct stem {
    const char *text;
    bool alone;                              /* only as a whole word */
    const char *harmless[HARMLESS_MOST + 1]; /* ends with NULL */
};

static const struct stem stems[] = {
    {"KEY",
     false,
     {"KEYBIND*", "KEYBOARD*", "KEYCLOAK", "KEYCODE*", "KEYMAP*", "KEYNOTE", "KEYPAD*", "KEYSTONE",
      "KEYSYM*", "KEYTIMEOUT", "KEYWORD*", "DONKEY*", "HOCKEY*", "HOTKEY*", "JOCKEY*", "MICKEY*",
      "MONKEY*", "TURKEY*", "WHISKEY*"}},
    {"SECRET", false, {"SECRETARY", "SECRETARIES"}},
    {"TOKEN", false, {"TOKENIZ*", "TOKENIS*"}},
    {"PASS",
     false,
     {"PASSAGE*", "PASSED", "PASSENGER*", "PASSES", "PASSING", "PASSIVE*", "PASSTHROUGH",
      "PASSTHRU", "BYPASS*", "COMPASS", "ENCOMPASS*", "OVERPASS*", "SURPASS*", "TRESPASS*",
      "UNDERPASS*"}},
    {"CRED", false, {"ACCREDIT*", "DISCREDIT*", "INCREDI*", "SACRED*"}},
    {"AUTH",
     false,
     {"AUTHENTIC", "AUTHOR", "AUTHORED", "AUTHORITIES", "AUTHORITY", "AUTHORS", "AUTHORSHIP",
      "COAUTHOR*"}},
    {"PWD", false, {NULL}},
    {"JWT", false, {NULL}},
    {"PAT", true, {NULL}}, /* personal access token */
};

/* Names that sound secret and are not: sockets, files of the desktop, directories, amounts. */
static const char *const harmless_names[] = {
    "SSH_AUTH_SOCK", "XAUTHORITY", "ICEAUTHORITY", "GNOME_KEYRING_*", "LESSKEY*",       "PWD",
    "OLDPWD",        "MAX_TOKENS", "MAX_*_TOKENS", "*_MAX_TOKENS",    "*_MAX_*_TOKENS", NULL,
};

/* Names that do not sound secret and are: what a host talks to its own services with. */
static const char *const secret_names[] = {
    "CLAUDE_CODE_MESSAGING_*",
    "ANTHROPIC_CUSTOM_HEADERS",
    "OTEL_EXPORTER_OTLP*_HEADERS",
    NULL,
};

static bool is_listed(const char *const *patterns, const char *name, size_t length)
{
    for (; patterns && *patterns; patterns++)
        if (text_matches(*patterns, name, length))
            return true;
    return false;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The first letters of the stems, as bits: most letters of most names begin none of them. */
static bool may_begin_stem(char c)
{
    static const uint32_t first = 1u << ('A' - 'A') | 1u << ('C' - 'A') | 1u << ('J' - 'A') |
                                  1u << ('K' - 'A') | 1u << ('P' - 'A') | 1u << ('S' - 'A') |
                                  1u << ('T' - 'A');
    return c >= 'A' && c <= 'Z' && (first >> (c - 'A') & 1u);
}

/* Whether one of the stems begins at this place of a word and means what it says. */
static bool tells(const char *word, size_t length, size_t at)
{
    for (size_t i = 0; i < ARRAY_SIZE(stems); i++) {
        const struct stem *stem = &stems[i];
        size_t n = strlen(stem->text);
        if (n <= length - at && word[at] == stem->text[0] &&
            memcmp(word + at, stem->text, n) == 0 && (!stem->alone || n == length) &&
            !is_listed(stem->harmless, word, length))
            return true;
    }
    return false;
}

static bool is_secret_word(const char *word, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (may_begin_stem(word[at]) && tells(word, length, at))
            return true;
    return false;
}

/* name is in upper case; words are what stands between other characters than letters and
 * digits. */
static bool sounds_secret(const char *name, size_t length)
{
    for (size_t start = 0, end; start < length; start = end + 1) {
        for (end = start; end < length && is_letter_or_digit(name[end]);)
            end++;
        if (is_secret_word(name + start, end - start))
            return !is_listed(harmless_names, name, length);
    }
    return is_listed(secret_names, name, length);
}

enum secret secrets_is_secret(const char *name, const struct secret_rules *rules)
{
    char upper[NAME_LONGEST];
    size_t length = strcspn(name, "=");
    if (rules && is_listed(rules->deny, name, length))
        return SECRET_DENIED;
    if (rules && is_listed(rules->allow, name, length))
        return SECRET_NOT;
    if (length > sizeof upper)
        return SECRET_BY_NAME;
    for (size_t i = 0; i < length; i++)
        upper[i] = text_upper(name[i]);
    return sounds_secret(upper, length) ? SECRET_BY_NAME : SECRET_NOT;
}
