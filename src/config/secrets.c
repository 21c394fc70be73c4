#include "config/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/defs.h"
#include "base/text.h"

#define NAME_LONGEST  255
#define HARMLESS_MOST 19

enum where { ANYWHERE, AT_THE_END, ALONE };

/* What gives a secret away, and the words that contain it by chance. */
struct stem {
    const char *text;
    enum where where;                        /* in a word */
    const char *harmless[HARMLESS_MOST + 1]; /* ends with NULL */
};

static const struct stem stems[] = {
    {"KEY",
     ANYWHERE,
     {"KEYBIND*", "KEYBOARD*", "KEYCLOAK", "KEYCODE*", "KEYMAP*", "KEYNOTE", "KEYPAD*", "KEYSTONE",
      "KEYSYM*", "KEYTIMEOUT", "KEYWORD*", "DONKEY*", "HOCKEY*", "HOTKEY*", "JOCKEY*", "MICKEY*",
      "MONKEY*", "TURKEY*", "WHISKEY*"}},
    {"SECRET", ANYWHERE, {"SECRETARY", "SECRETARIES"}},
    {"TOKEN", ANYWHERE, {"TOKENIZ*", "TOKENIS*"}},
    {"PASS",
     ANYWHERE,
     {"PASSAGE*", "PASSED", "PASSENGER*", "PASSES", "PASSING", "PASSIVE*", "PASSTHROUGH",
      "PASSTHRU", "BYPASS*", "COMPASS", "ENCOMPASS*", "OVERPASS*", "SURPASS*", "TRESPASS*",
      "UNDERPASS*"}},
    {"CRED", ANYWHERE, {"ACCREDIT*", "DISCREDIT*", "INCREDI*", "SACRED*"}},
    {"AUTH",
     ANYWHERE,
     {"AUTHENTIC", "AUTHOR", "AUTHORED", "AUTHORITIES", "AUTHORITY", "AUTHORS", "AUTHORSHIP",
      "COAUTHOR*"}},
    {"PWD", AT_THE_END, {NULL}},
    {"JWT", ANYWHERE, {NULL}},
    {"PAT", ALONE, {NULL}}, /* personal access token */
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

static bool in_word(char c)
{
    c = text_upper(c);
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

#define PAIR(a, b) ((unsigned)(unsigned char)(a) << 8 | (unsigned char)(b))

/* Whether some stem may begin with these two letters: most pairs of most names begin none, and a
 * hundred variables are looked at for every command. */
static bool may_begin_stem(char a, char b)
{
    switch (PAIR(text_upper(a), text_upper(b))) {
    case PAIR('A', 'U'):
    case PAIR('C', 'R'):
    case PAIR('J', 'W'):
    case PAIR('K', 'E'):
    case PAIR('P', 'A'):
    case PAIR('P', 'W'):
    case PAIR('S', 'E'):
    case PAIR('T', 'O'):
        return true;
    default:
        return false;
    }
}

/* The end of a name is no letter, so no comparison goes beyond it. */
static bool begins_with(const char *name, const char *stem)
{
    while (*stem && text_upper(*name) == *stem) {
        name++;
        stem++;
    }
    return *stem == '\0';
}

static bool fits(enum where where, size_t n, size_t length, size_t at)
{
    return where == ANYWHERE || (at + n == length && (where == AT_THE_END || at == 0));
}

/* Whether one of the stems begins at this place of a word and means what it says. The word is in
 * upper case. */
static bool tells(const char *word, size_t length, size_t at)
{
    for (size_t i = 0; i < ARRAY_SIZE(stems); i++) {
        const struct stem *stem = &stems[i];
        if (begins_with(word + at, stem->text) &&
            fits(stem->where, strlen(stem->text), length, at) &&
            !is_listed(stem->harmless, word, length))
            return true;
    }
    return false;
}

/* The same for a place of a name. Words are what stands between other characters than letters and
 * digits. */
static bool tells_in(const char *name, size_t at)
{
    char word[NAME_LONGEST + 1];
    size_t start = at, length = 0;
    while (start > 0 && in_word(name[start - 1]))
        start--;
    for (; in_word(name[start + length]); length++)
        word[length] = text_upper(name[start + length]);
    word[length] = '\0';
    return tells(word, length, at - start);
}

static bool is_harmless_name(const char *name, size_t length)
{
    char upper[NAME_LONGEST];
    for (size_t i = 0; i < length; i++)
        upper[i] = text_upper(name[i]);
    return is_listed(harmless_names, upper, length);
}

static bool sounds_secret(const char *name, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (may_begin_stem(name[at], name[at + 1]) && tells_in(name, at))
            return !is_harmless_name(name, length);
    return is_listed(secret_names, name, length);
}

enum secret secrets_is_secret(const char *name, const struct secret_rules *rules)
{
    size_t length = strcspn(name, "=");
    if (rules && is_listed(rules->deny, name, length))
        return SECRET_DENIED;
    if (rules && is_listed(rules->allow, name, length))
        return SECRET_NOT;
    return length > NAME_LONGEST || sounds_secret(name, length) ? SECRET_BY_NAME : SECRET_NOT;
}
