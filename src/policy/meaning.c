/* What commands of the shell itself do: run text, set variables, change how text is read. */
#include "policy/reader.h"

#include "base/defs.h"
#include "base/grow.h"

/* What is known of a command of the shell. */
struct builtin {
    const char *name;
    bool (*read)(struct script_reader *r, size_t index);
    const char *doubt; /* instead of reading it */
};

static const struct script_command *command_at(const struct script_reader *r, size_t index)
{
    return &r->script->commands[index];
}

bool command_doubt(struct script_reader *r, size_t index, const char *why)
{
    struct script_command *c = &r->script->commands[index];
    if (!c->doubt)
        c->doubt = why;
    return true;
}

/* -- Text that is run ------------------------------------------------------------------------- */

/* All words from one on, as eval joins them; NULL if one is not literal. */
static const char *eval_text(struct script_reader *r, const struct script_command *c, size_t first)
{
    size_t size = 0;
    for (size_t i = first; i < c->argc; i++) {
        if (c->argv[i].kind != WORD_LITERAL)
            return NULL;
        size += c->argv[i].size + 1;
    }
    char *text = arena_take(&r->script->arena, size + 1), *at = text;
    for (size_t i = first; text && i < c->argc; i++) {
        memcpy(at, c->argv[i].text, c->argv[i].size);
        at += c->argv[i].size;
        *at++ = ' ';
    }
    return text;
}

static bool read_eval(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    size_t first = c->argc > 1 && word_is(&c->argv[1], "--") ? 2 : 1;
    const char *text = eval_text(r, c, first);
    if (!text)
        return command_doubt(r, index, "eval runs text that is known only when it runs");
    r->script->commands[index].starts_others = true;
    return read_inner(r, text, strlen(text), r->dialect, true);
}

static bool read_trap(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    size_t first = c->argc > 1 && word_is(&c->argv[1], "--") ? 2 : 1;
    if (c->argc <= first + 1)
        return c->argc <= first || c->argv[first].kind == WORD_LITERAL ||
               command_doubt(r, index, "trap runs text that is known only when it runs");
    const struct shell_word *action = &c->argv[first];
    if (action->kind != WORD_LITERAL)
        return command_doubt(r, index, "trap runs text that is known only when it runs");
    if (action->text[0] == '-')
        return true;
    return read_inner(r, action->text, action->size, r->dialect, true);
}

/* -- Variables -------------------------------------------------------------------------------- */

static const char NAMES_DOUBT[] = "the variables that it sets are not plain";

static void set_by_word(struct script_reader *r, const struct shell_word *w, size_t size, bool sets)
{
    struct shell_word value = {.kind = w->kind};
    const char *from = w->text + size + 1;
    bool literal = sets && w->kind == WORD_LITERAL && w->text[size] == '=';
    if (literal) {
        value.text = from;
        value.size = w->size - size - 1;
        value.number = value.size > 0;
        for (size_t i = 0; i < value.size; i++)
            value.number = value.number && is_digit(from[i]);
    }
    variable_set(r, w->text, size, literal ? &value : NULL);
}

/* declare and its kin: NAME and NAME=VALUE, behind options. */
static bool read_declaration(struct script_reader *r, size_t index)
{
    const struct script_command c = *command_at(r, index);
    for (size_t i = 1; i < c.argc; i++) {
        const struct shell_word *w = &c.argv[i];
        bool sets, option = w->kind == WORD_LITERAL && (w->text[0] == '-' || w->text[0] == '+');
        size_t size = word_name(w, &sets);
        if (option ? strpbrk(w->text, "in") != NULL : size == 0)
            return command_doubt(r, index, NAMES_DOUBT);
        if (!option && (sets || !word_is(&c.argv[0], "export")))
            set_by_word(r, w, size, sets);
    }
    return true;
}

/* read and its kin: every name is one that is set, and so may be the value of an option. */
static bool read_variable_names(struct script_reader *r, size_t index)
{
    const struct script_command c = *command_at(r, index);
    for (size_t i = 1; i < c.argc; i++) {
        const struct shell_word *w = &c.argv[i];
        bool sets;
        size_t size = word_name(w, &sets);
        if (w->kind != WORD_LITERAL || memchr(w->text, '[', w->size) || sets)
            return command_doubt(r, index, NAMES_DOUBT);
        if (w->text[0] == '-' && strchr(w->text, 'C'))
            return command_doubt(r, index, "it runs text of its own");
        if (size > 0)
            variable_set(r, w->text, size, NULL);
    }
    return true;
}

/* Only with -p, and what it sets then. */
static bool read_wait(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    for (size_t i = 1; i < c->argc; i++) {
        const struct shell_word *w = &c->argv[i];
        bool held = w->number || (w->kind == WORD_ONE && c->argc == 2);
        if (!held && (w->kind != WORD_LITERAL || strchr(w->text, 'p')))
            return command_doubt(r, index, NAMES_DOUBT);
    }
    return true;
}

static bool read_getopts(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    bool sets;
    if (c->argc < 3 || word_name(&c->argv[2], &sets) == 0 || sets)
        return command_doubt(r, index, NAMES_DOUBT);
    variable_set(r, c->argv[2].text, c->argv[2].size, NULL);
    return true;
}

static bool read_printf(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    bool sets;
    if (c->argc > 1 && c->argv[1].kind != WORD_LITERAL)
        return command_doubt(r, index, NAMES_DOUBT);
    if (c->argc < 2 || strncmp(c->argv[1].text, "-v", 2) != 0)
        return true;
    if (c->argv[1].size > 2 || c->argc < 3 || word_name(&c->argv[2], &sets) == 0 || sets)
        return command_doubt(r, index, NAMES_DOUBT);
    variable_set(r, c->argv[2].text, c->argv[2].size, NULL);
    return true;
}

/* -- [ ... ] ---------------------------------------------------------------------------------- */

static bool is_binary(const struct shell_word *w)
{
    static const char *const signs[] = {"=",   "==",  "!=",  "<",   ">",   "-eq", "-ne", "-lt",
                                        "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a",  "-o"};
    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (word_is(w, signs[i]))
            return true;
    return false;
}

static bool is_unary(const struct shell_word *w)
{
    return w->kind == WORD_LITERAL && w->size == 2 && w->text[0] == '-' &&
           !strchr("vR", w->text[1]);
}

static bool asks_for_variable(const struct shell_word *w)
{
    return word_is(w, "-v") || word_is(w, "-R");
}

/* To ask with -v whether a place in an array is there calculates the place. A word that is known
 * only later must stand where it cannot be an operator. */
static bool read_condition(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    size_t end = word_is(&c->argv[0], "[") ? c->argc - 1 : c->argc;
    for (size_t i = 1; i < end; i++) {
        const struct shell_word *w = &c->argv[i];
        bool sets;
        if (i > 1 && asks_for_variable(w - 1) && (word_name(w, &sets) == 0 || sets))
            return command_doubt(r, index, "the variable that is asked for is not plain");
        if (w->kind == WORD_LITERAL || w->number)
            continue;
        bool held = (i > 1 && (is_binary(w - 1) || is_unary(w - 1))) ||
                    (i + 1 < end && is_binary(w + 1)) || end == 2;
        if (w->kind == WORD_ANY || !held)
            return command_doubt(r, index, "it cannot be told what is asked for");
    }
    return true;
}

/* -- How text is read ------------------------------------------------------------------------- */

static bool is_usual_option(const struct shell_word *w)
{
    static const char *const names[] = {"pipefail",  "errexit", "nounset",   "xtrace",  "noglob",
                                        "noclobber", "verbose", "allexport", "errtrace"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (word_is(w, names[i]))
            return true;
    return false;
}

static bool read_set(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    for (size_t i = 1; i < c->argc; i++) {
        const struct shell_word *w = &c->argv[i];
        if (word_is(w, "--") || word_is(w, "-"))
            return true;
        if (w->kind != WORD_LITERAL)
            return command_doubt(r, index, "the options that it sets are not plain");
        if (w->text[0] != '-' && w->text[0] != '+')
            return true;
        if (strspn(w->text + 1, "eEuxfCTvbaho") != w->size - 1)
            return command_doubt(r, index, "it changes how text is read");
        if (!strchr(w->text + 1, 'o'))
            continue;
        if (++i < c->argc && !is_usual_option(&c->argv[i]))
            return command_doubt(r, index, "it changes how text is read");
    }
    return true;
}

static bool read_shopt(struct script_reader *r, size_t index)
{
    static const char *const names[] = {
        "nullglob", "globstar",    "dotglob", "failglob", "inherit_errexit",
        "lastpipe", "nocasematch", "-s",      "-u",       "-q"};
    const struct script_command *c = command_at(r, index);
    for (size_t i = 1; i < c->argc; i++) {
        bool known = false;
        for (size_t k = 0; k < ARRAY_SIZE(names); k++)
            known = known || word_is(&c->argv[i], names[k]);
        if (!known)
            return command_doubt(r, index, "it changes how text is read");
    }
    return true;
}

static bool read_hash(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    return c->argc < 2 || word_is(&c->argv[1], "-r") ||
           command_doubt(r, index, "it changes which programs are found");
}

static bool read_jobs(struct script_reader *r, size_t index)
{
    const struct script_command *c = command_at(r, index);
    bool plain = c->argc < 2 || (c->argv[1].kind == WORD_LITERAL && !strchr(c->argv[1].text, 'x'));
    return plain || command_doubt(r, index, "it runs what is not read here");
}

/* -- All of them ------------------------------------------------------------------------------ */

static const struct builtin builtins[] = {
    {"eval", read_eval, NULL},
    {"trap", read_trap, NULL},
    {"declare", read_declaration, NULL},
    {"typeset", read_declaration, NULL},
    {"local", read_declaration, NULL},
    {"export", read_declaration, NULL},
    {"readonly", read_declaration, NULL},
    {"read", read_variable_names, NULL},
    {"unset", read_variable_names, NULL},
    {"mapfile", read_variable_names, NULL},
    {"readarray", read_variable_names, NULL},
    {"wait", read_wait, NULL},
    {"getopts", read_getopts, NULL},
    {"printf", read_printf, NULL},
    {"test", read_condition, NULL},
    {"[", read_condition, NULL},
    {"set", read_set, NULL},
    {"shopt", read_shopt, NULL},
    {"hash", read_hash, NULL},
    {".", NULL, "it runs a file that is not read here"},
    {"source", NULL, "it runs a file that is not read here"},
    {"let", NULL, "it calculates with what is not read here"},
    {"alias", NULL, "it changes how text is read"},
    {"unalias", NULL, "it changes how text is read"},
    {"enable", NULL, "it changes which commands there are"},
    {"bind", NULL, "it runs text of its own"},
    {"complete", NULL, "it runs text of its own"},
    {"compgen", NULL, "it runs text of its own"},
    {"compopt", NULL, "it runs text of its own"},
    {"fc", NULL, "it runs what was run before"},
    {"history", NULL, "it runs what was run before"},
    {"jobs", read_jobs, NULL},
};

static const struct builtin *find_builtin(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
        if (builtins[i].name[0] == name[0] && strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

static bool read_meaning(struct script_reader *r, size_t index)
{
    const struct shell_word *name = &command_at(r, index)->argv[0];
    if (name->kind != WORD_LITERAL)
        return command_doubt(r, index, "which program it is is known only when it runs");
    if (name->size == 0)
        return true;
    const struct builtin *known = find_builtin(name->text);
    if (!known)
        return read_wrapped(r, index);
    if (known->doubt)
        return command_doubt(r, index, known->doubt);
    return known->read(r, index);
}

bool list_command(struct script_reader *r, struct shell_word *argv, size_t argc, bool writes)
{
    struct script *s = r->script;
    if (s->count >= READ_COMMANDS)
        return reader_give_up(r, "it has too many commands");
    if (GROW(s->commands, s->count, s->room) < 0) {
        r->no_memory = true;
        return reader_give_up(r, "out of memory");
    }
    if (r->depth >= READ_DEPTH)
        return reader_give_up(r, "it is nested too deeply");
    s->commands[s->count++] = (struct script_command){
        .argv = argv, .argc = argc, .writes = writes, .is_started = r->started};
    r->depth++;
    bool ok = read_meaning(r, s->count - 1);
    r->depth--;
    return ok;
}
