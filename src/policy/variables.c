/*
 * What a text does to variables. To calculate with one runs what its value says, if that is the
 * place in an array: x='a[$(reboot)]'; echo $((x)). So a text may only calculate with what it sets
 * itself, and only to numbers. And there are variables that change what commands do.
 */
#include "policy/reader.h"

#include <stdio.h>

#include "base/defs.h"

/* A name, or with a * at its end the beginning of names. */
static const char *const delicate[] = {
    "PATH",         "IFS",         "ENV",        "PS4",          "PROMPT_COMMAND",
    "SHELLOPTS",    "BASHOPTS",    "SHELL",      "HOME",         "POSIXLY_CORRECT",
    "BASH_*",       "LD_*",        "GIT_*",      "XDG_CONFIG_*", "CDPATH",
    "PYTHON*",      "PERL*",       "RUBY*",      "NODE_*",       "LUA_*",
    "JAVA_*",       "_JAVA_*",     "JDK_JAVA_*", "npm_config_*", "NPM_CONFIG_*",
    "LESSOPEN",     "LESSCLOSE",   "PAGER",      "MANPAGER",     "MANOPT",
    "EDITOR",       "VISUAL",      "BROWSER",    "MAKEFLAGS",    "GNUMAKEFLAGS",
    "MFLAGS",       "TAR_OPTIONS", "RSYNC_RSH",  "CVS_RSH",      "SSH_ASKPASS*",
    "SUDO_ASKPASS", "GCONV_PATH",  "LOCPATH",    "NLSPATH",      "LANGUAGE",
    "LC_*",         "LANG",        "NACRE_*",    "RUSTC_*",      "CARGO_*",
    "AWKPATH",      "AWKLIBPATH",  "MANPATH",    "GREP_OPTIONS", "ZDOTDIR",
    "WGETRC",       "CURL_HOME",   "INPUTRC",    "FCEDIT",       "HISTFILE",
    "EXECIGNORE",   "GLOBIGNORE",  "FIGNORE",    "OPTIND",       "DOCKER_*",
};

/* Values that do nothing. */
static const char *const harmless_values[] = {
    "PAGER=cat",
    "PAGER=",
    "PAGER=less",
    "GIT_PAGER=cat",
    "GIT_PAGER=",
    "MANPAGER=cat",
    "EDITOR=true",
    "GIT_EDITOR=true",
    "GIT_EDITOR=:",
    "EDITOR=:",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "CARGO_TERM_COLOR=never",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONIOENCODING=utf-8",
    "PYTHONUTF8=1",
    "NODE_ENV=test",
    "NODE_ENV=production",
    "NODE_ENV=development",
    "RUST_BACKTRACE=1",
    "CARGO_INCREMENTAL=0",
    "PYTHONHASHSEED=0",
};

/* Names that begin like delicate ones, and say who somebody is. */
static const char *const plain[] = {
    "GIT_AUTHOR_NAME",    "GIT_AUTHOR_EMAIL",    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
};

/* Set by the shell itself, to numbers. */
static const char *const numbers[] = {"RANDOM", "SRANDOM", "SECONDS", "LINENO",       "UID",
                                      "EUID",   "PPID",    "BASHPID", "EPOCHSECONDS", "OPTIND"};

static bool is_entry(const char *entry, const char *name, size_t size)
{
    size_t length = strlen(entry);
    if (length > 0 && entry[length - 1] == '*')
        return size >= length - 1 && memcmp(entry, name, length - 1) == 0;
    return size == length && memcmp(entry, name, size) == 0;
}

static bool is_listed_name(const char *const *list, size_t count, const char *name, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (list[i][0] == name[0] && is_entry(list[i], name, size))
            return true;
    return false;
}

static bool word_ends_with(const struct shell_word *w, const char *end)
{
    size_t size = strlen(end);
    return w->size >= size && strcmp(w->text + w->size - size, end) == 0;
}

/* One in which a blank is a blank. */
static bool is_usual_locale(const struct shell_word *value)
{
    return word_is(value, "C") || word_is(value, "POSIX") || word_is(value, "") ||
           word_ends_with(value, ".UTF-8") || word_ends_with(value, ".utf8") ||
           word_ends_with(value, ".UTF8");
}

static bool is_harmless_value(const char *name, size_t size, const struct shell_word *value)
{
    bool locale = is_entry("LC_*", name, size) || is_entry("LANG", name, size);
    if (!value || value->kind != WORD_LITERAL)
        return false;
    if (locale)
        return is_usual_locale(value);
    for (size_t i = 0; i < ARRAY_SIZE(harmless_values); i++)
        if (strncmp(harmless_values[i], name, size) == 0 && harmless_values[i][size] == '=' &&
            strcmp(harmless_values[i] + size + 1, value->text ? value->text : "") == 0)
            return true;
    return false;
}

bool variable_is_delicate(const char *name, size_t size, const struct shell_word *value)
{
    return size > 0 && is_listed_name(delicate, ARRAY_SIZE(delicate), name, size) &&
           !is_listed_name(plain, ARRAY_SIZE(plain), name, size) &&
           !is_harmless_value(name, size, value);
}

/* -- Of one text ------------------------------------------------------------------------------ */

static const char *say(struct script_reader *r, const char *name, size_t size, const char *what)
{
    char text[160];
    int n = snprintf(text, sizeof text, "%.*s %s", (int)MIN(size, (size_t)64), name, what);
    const char *said = arena_copy(&r->script->arena, text, (size_t)n);
    return said ? said : what;
}

static struct variable *variable_of(struct script_reader *r, const char *name, size_t size)
{
    for (size_t i = 0; i < r->variable_count; i++)
        if (r->variables[i].size == size && memcmp(r->variables[i].name, name, size) == 0)
            return &r->variables[i];
    if (r->variable_count == READ_NAMES) {
        reader_doubt(r, "it has too many variables");
        return NULL;
    }
    const char *copy = arena_copy(&r->script->arena, name, size);
    if (!copy) {
        r->no_memory = true;
        return NULL;
    }
    struct variable *v = &r->variables[r->variable_count++];
    *v = (struct variable){.name = copy, .size = size};
    return v;
}

void variable_set(struct script_reader *r, const char *name, size_t size,
                  const struct shell_word *value)
{
    struct variable *v = variable_of(r, name, size);
    bool separators = size == 3 && memcmp(name, "IFS", 3) == 0;
    if (separators && r->in_prefix)
        r->sets_separators = true;
    else if (variable_is_delicate(name, size, value))
        reader_doubt(r, say(r, name, size, "is set, which changes what commands do"));
    if (!v)
        return;
    v->set = true;
    v->set_otherwise = v->set_otherwise || !value || !value->number;
}

void variable_calculated(struct script_reader *r, const char *name, size_t size)
{
    struct variable *v = variable_of(r, name, size);
    if (v)
        v->calculated = true;
}

void variables_judge(struct script_reader *r)
{
    for (size_t i = 0; i < r->variable_count; i++) {
        const struct variable *v = &r->variables[i];
        bool known = v->set ? !v->set_otherwise
                            : is_listed_name(numbers, ARRAY_SIZE(numbers), v->name, v->size);
        if (v->calculated && !known)
            reader_doubt(r, say(r, v->name, v->size,
                                "is calculated with, and it may be something else than a number"));
    }
}
