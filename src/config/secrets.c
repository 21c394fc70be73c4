#include "config/secrets.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"
#include "base/text.h"

#define NAME_LONGEST  255
#define HARMLESS_MOST 19

enum stem_position { ANYWHERE, AT_THE_END, ALONE };

/* What gives a secret away, and the words that contain it by chance. */
struct stem {
    const char *text;                        /* one of several words may stand anywhere only */
    enum stem_position where;                /* in a word; digits behind it do not count */
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
     {"PASSAGE*", "PASSED", "PASSENGER*", "PASSENV", "PASSES", "PASSING", "PASSIVE*", "PASSTHROUGH",
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
    {"PW", ALONE, {NULL}},
    {"PEM", ALONE, {NULL}},
    {"PSK", AT_THE_END, {NULL}},
    {"DSN", AT_THE_END, {NULL}},
    {"COOKIE", ANYWHERE, {"COOKIECUTTER*"}},
    {"BEARER", ANYWHERE, {NULL}},
    {"WEBHOOK", ANYWHERE, {NULL}},
    {"CONNECTION_STRING", ANYWHERE, {NULL}},
    {"CONNECTIONSTRING", ANYWHERE, {NULL}},
    {"CONN_STR", ANYWHERE, {NULL}},
    {"CONNSTR", ANYWHERE, {NULL}},
    /* Most seeds are for random numbers, and a command that misses one of those does not say so:
     * only what sounds like a wallet counts. */
    {"MNEMONIC", ANYWHERE, {NULL}},
    {"SEED_PHRASE", ANYWHERE, {NULL}},
    {"SEEDPHRASE", ANYWHERE, {NULL}},
    {"SEED_WORD", ANYWHERE, {NULL}},
    {"SEEDWORD", ANYWHERE, {NULL}},
    {"WALLET_SEED", ANYWHERE, {NULL}},
    {"MASTER_SEED", ANYWHERE, {NULL}},
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

static bool matches_any(const char *const *patterns, const char *name, size_t length)
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
    case PAIR('B', 'E'):
    case PAIR('C', 'O'):
    case PAIR('C', 'R'):
    case PAIR('D', 'S'):
    case PAIR('J', 'W'):
    case PAIR('K', 'E'):
    case PAIR('M', 'A'):
    case PAIR('M', 'N'):
    case PAIR('P', 'A'):
    case PAIR('P', 'E'):
    case PAIR('P', 'S'):
    case PAIR('P', 'W'):
    case PAIR('S', 'E'):
    case PAIR('T', 'O'):
    case PAIR('W', 'A'):
    case PAIR('W', 'E'):
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

/* A word of a name, in upper case. Words are what stands between other characters than letters
 * and digits. */
struct name_word {
    char text[NAME_LONGEST + 1];
    size_t length;
    size_t bare; /* without the digits at its end */
    size_t at;   /* the place in it that was asked for */
};

static void word_around(const char *name, size_t at, struct name_word *ret)
{
    size_t start = at;
    while (start > 0 && in_word(name[start - 1]))
        start--;
    ret->at = at - start;
    ret->bare = 0;
    for (ret->length = 0; in_word(name[start + ret->length]); ret->length++) {
        ret->text[ret->length] = text_upper(name[start + ret->length]);
        if (ret->text[ret->length] > '9')
            ret->bare = ret->length + 1;
    }
    ret->text[ret->length] = '\0';
}

static bool fits(const struct stem *stem, const struct name_word *word)
{
    if (stem->where == ANYWHERE)
        return true;
    return word->at + strlen(stem->text) == word->bare &&
           (stem->where == AT_THE_END || word->at == 0);
}

/* Whether one of the stems begins here in a name and means what it says. */
static bool tells(const char *name, size_t at)
{
    for (size_t i = 0; i < ARRAY_SIZE(stems); i++) {
        if (!begins_with(name + at, stems[i].text))
            continue;
        struct name_word word;
        word_around(name, at, &word);
        if (fits(&stems[i], &word) && !matches_any(stems[i].harmless, word.text, word.length))
            return true;
    }
    return false;
}

static bool is_harmless_name(const char *name, size_t length)
{
    char upper[NAME_LONGEST];
    for (size_t i = 0; i < length; i++)
        upper[i] = text_upper(name[i]);
    return matches_any(harmless_names, upper, length);
}

static bool sounds_secret(const char *name, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (may_begin_stem(name[at], name[at + 1]) && tells(name, at))
            return !is_harmless_name(name, length);
    return matches_any(secret_names, name, length);
}

/* -- Values ----------------------------------------------------------------------------------- */

/* What follows the "://" of a URL, as far as it may go: whether a password stands in it, that is
 * something between a ':' and an '@' before any path. A host's port is no password, whatever comes
 * behind it; a slash or a question mark in a password that nobody escaped is part of it. */
static bool has_password(const char *authority)
{
    size_t size = strcspn(authority, " \t\r\n\"'<>");
    const char *end = authority + size;
    const char *colon = authority + strcspn(authority, ":/?#@[");
    while (colon < end && *colon == ':') {
        const char *behind = colon + 1 + strspn(colon + 1, "0123456789");
        if (*behind == ',') /* one host of several */
            colon = behind + strcspn(behind, ":/?#@[");
        else if (behind == end || strchr("/?#", *behind))
            return false;
        else
            return colon[1] != '@' && memchr(behind, '@', (size_t)(end - behind));
    }
    return false;
}

static bool is_scheme_letter(char c)
{
    return in_word(c) || c == '+' || c == '.' || c == '-';
}

/* Whether a URL with a password stands anywhere in it. Hardly a value has an '@', which is found
 * fastest. */
static bool shows_password(const char *value)
{
    if (!strchr(value, '@'))
        return false;
    for (const char *at = value; (at = strstr(at, "://")); at += 3)
        if (at > value && is_scheme_letter(at[-1]) && has_password(at + 3))
            return true;
    return false;
}

enum secret secrets_is_secret(const char *name, const struct secret_rules *rules)
{
    size_t length = strcspn(name, "=");
    if (rules && matches_any(rules->deny, name, length))
        return SECRET_DENIED;
    if (rules && matches_any(rules->allow, name, length))
        return SECRET_NOT;
    if (length > NAME_LONGEST || sounds_secret(name, length))
        return SECRET_BY_NAME;
    return name[length] && shows_password(name + length + 1) ? SECRET_BY_VALUE : SECRET_NOT;
}
