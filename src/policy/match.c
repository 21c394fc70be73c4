#include "policy/match.h"

#include <string.h>

#include "base/defs.h"

#define CLUSTER_MAX 3 /* letters behind one dash that are options of their own */

/* Options that stand before a subcommand and do not change what it does. */
static const struct {
    const char *program, *option;
    bool valued;
} before_subcommand[] = {
    {"git", "-C", true},
    {"git", "--no-pager", false},
    {"git", "-P", false},
    {"git", "--no-optional-locks", false},
    {"git", "--literal-pathspecs", false},
    {"npm", "--silent", false},
    {"npm", "--prefix", true},
    {"pnpm", "-C", true},
    {"yarn", "--cwd", true},
    {"cargo", "-q", false},
    {"cargo", "--quiet", false},
    {"go", "-C", true},
    {"docker", "--context", true},
    {"kubectl", "-n", true},
    {"kubectl", "--namespace", true},
    {"kubectl", "--context", true},
    {"systemctl", "--user", false},
    {"systemctl", "--no-pager", false},
    {"gh", "-R", true},
    {"gh", "--repo", true},
    {"make", "-s", false},
};

/* A program without its directory may lie in one of these to be the one that a rule names. */
static const char *const system_directories[] = {"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/",
                                                 "/usr/sbin/"};

static bool has_choice(const struct pattern_word *p, const char *text)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->choices[i], text) == 0)
            return true;
    return false;
}

static bool is_rest(const struct pattern_word *p)
{
    return has_choice(p, "**");
}

static bool is_one(const struct pattern_word *p)
{
    return has_choice(p, "*");
}

static bool is_option(const char *text)
{
    return text[0] == '-' && text[1];
}

static bool is_cluster(const char *text)
{
    return is_option(text) && text[1] != '-';
}

/* -- Open ------------------------------------------------------------------------------------- */

static bool names_options(const struct pattern_word *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (!is_option(p->choices[i]))
            return false;
    return true;
}

/* Every letter in some word of letters. */
static bool has_letters(const char *letters, const struct shell_word *argv, size_t argc)
{
    for (; *letters; letters++) {
        bool found = false;
        for (size_t i = 1; i < argc && !found; i++)
            found = argv[i].kind == WORD_LITERAL && is_cluster(argv[i].text) &&
                    strchr(argv[i].text + 1, *letters);
        if (!found)
            return false;
    }
    return true;
}

/* --force, --force=VALUE, and what programs take for it: --forc. */
static bool is_long(const char *option, const char *text)
{
    size_t size = strlen(option), length = strcspn(text, "=");
    return (length == size || (length > 3 && length < size)) && strncmp(option, text, length) == 0;
}

static bool has_option(const char *option, const struct shell_word *argv, size_t argc)
{
    bool letters = is_cluster(option) && strlen(option + 1) <= CLUSTER_MAX;
    for (size_t i = 1; i < argc; i++) {
        if (argv[i].kind != WORD_LITERAL)
            continue;
        if (strcmp(argv[i].text, option) == 0 ||
            (!is_cluster(option) && is_long(option, argv[i].text)))
            return true;
    }
    return letters && has_letters(option + 1, argv, argc);
}

static enum word_match match_option(const struct pattern_word *p, const struct shell_word *argv,
                                    size_t argc)
{
    for (size_t i = 0; i < p->count; i++)
        if (has_option(p->choices[i], argv, argc))
            return MATCH_YES;
    for (size_t i = 1; i < argc; i++)
        if (argv[i].kind != WORD_LITERAL)
            return MATCH_MAYBE;
    return MATCH_NO;
}

/* The next word that is no option. Whether an option has a value behind it is not known, so that
 * what follows one may be either. */
static enum word_match match_next(const struct pattern_word *p, const struct shell_word *argv,
                                  size_t argc, size_t *at)
{
    bool behind_option = false;
    for (; *at < argc; ++*at) {
        const struct shell_word *w = &argv[*at];
        if (w->kind != WORD_LITERAL)
            return MATCH_MAYBE;
        if (is_option(w->text)) {
            behind_option = !strchr(w->text, '=');
        } else if (is_one(p) || has_choice(p, w->text)) {
            ++*at;
            return MATCH_YES;
        } else if (behind_option) {
            behind_option = false;
        } else {
            return MATCH_NO;
        }
    }
    return MATCH_NO;
}

static enum word_match match_program(const struct pattern_word *p, const struct shell_word *program)
{
    if (is_one(p))
        return MATCH_YES;
    if (program->kind != WORD_LITERAL)
        return MATCH_MAYBE;
    const char *base = program_name(program->text);
    if (has_choice(p, program->text) || has_choice(p, base))
        return MATCH_YES;
    for (size_t i = 0; i < p->count; i++)
        if (strchr(p->choices[i], '/') && strcmp(program_name(p->choices[i]), base) == 0)
            return MATCH_MAYBE;
    return MATCH_NO;
}

enum word_match match_open(const struct word_pattern *p, const struct shell_word *argv, size_t argc)
{
    enum word_match whole = match_program(&p->words[0], &argv[0]);
    size_t at = 1;
    bool certain = true;
    for (size_t i = 1; i < p->count && whole != MATCH_NO; i++) {
        const struct pattern_word *word = &p->words[i];
        enum word_match one = MATCH_YES;
        if (names_options(word))
            one = match_option(word, argv, argc);
        else if (!is_rest(word))
            one = certain ? match_next(word, argv, argc, &at) : MATCH_MAYBE;
        certain = certain && one == MATCH_YES;
        whole = one < whole ? one : whole;
    }
    return whole;
}

/* -- Closed ----------------------------------------------------------------------------------- */

static bool is_named_program(const struct pattern_word *p, const struct shell_word *program)
{
    if (program->kind != WORD_LITERAL)
        return false;
    if (is_one(p) || has_choice(p, program->text))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(system_directories); i++) {
        size_t size = strlen(system_directories[i]);
        if (strncmp(program->text, system_directories[i], size) == 0)
            return has_choice(p, program->text + size);
    }
    return false;
}

/* Behind the program and what may stand before its subcommand. */
static size_t behind_program(const struct shell_word *argv, size_t argc)
{
    const char *program = program_name(argv[0].text);
    size_t at = 1;
    for (size_t i = 0; at < argc && i < ARRAY_SIZE(before_subcommand);) {
        bool valued = before_subcommand[i].valued;
        if (strcmp(before_subcommand[i].program, program) == 0 &&
            word_is(&argv[at], before_subcommand[i].option) &&
            (!valued || (at + 1 < argc && argv[at + 1].kind != WORD_ANY))) {
            at += valued ? 2 : 1;
            i = 0;
        } else {
            i++;
        }
    }
    return at;
}

bool match_closed(const struct word_pattern *p, const struct shell_word *argv, size_t argc)
{
    if (!is_named_program(&p->words[0], &argv[0]))
        return false;
    size_t at = p->count > 1 && !is_rest(&p->words[1]) && !names_options(&p->words[1])
                    ? behind_program(argv, argc)
                    : 1;
    for (size_t i = 1; i < p->count; i++) {
        const struct pattern_word *word = &p->words[i];
        if (is_rest(word))
            return true;
        if (at >= argc || argv[at].kind == WORD_ANY)
            return false;
        if (!is_one(word) && (argv[at].kind != WORD_LITERAL || !has_choice(word, argv[at].text)))
            return false;
        at++;
    }
    return at == argc;
}
