/* Lists, pipelines, compound commands and simple ones, as bash reads them. */
#include "policy/reader.h"

#include "base/defs.h"

/* What may end a list. */
enum stop {
    STOP_END = 1,
    STOP_PARENTHESIS = 2,
    STOP_CLAUSE = 4, /* ;; ;& ;;& */
    STOP_THEN = 8,
    STOP_ELIF = 16,
    STOP_ELSE = 32,
    STOP_FI = 64,
    STOP_DO = 128,
    STOP_DONE = 256,
    STOP_ESAC = 512,
    STOP_BRACE = 1024
};

static const struct {
    const char *word;
    enum stop stop;
} stop_words[] = {
    {"then", STOP_THEN}, {"elif", STOP_ELIF}, {"else", STOP_ELSE}, {"fi", STOP_FI},
    {"do", STOP_DO},     {"done", STOP_DONE}, {"esac", STOP_ESAC}, {"}", STOP_BRACE},
};

static bool read_list(struct script_reader *r, unsigned stops, enum stop *ret_stop);
static bool read_any_command(struct script_reader *r);

bool reader_give_up(struct script_reader *r, const char *why)
{
    reader_doubt(r, why);
    r->at = r->end;
    return false;
}

void reader_doubt(struct script_reader *r, const char *why)
{
    struct script *s = r->script;
    if (s->doubt)
        return;
    s->doubt = why;
    if (r->nested)
        return;
    s->line = 1;
    for (const char *p = r->begin; p < r->at; p++)
        s->line += *p == '\n' ? 1 : 0;
}

/* -- Small things ----------------------------------------------------------------------------- */

/* The bare word at the beginning of a command. */
static bool sees_reserved(const struct script_reader *r, const char *word)
{
    size_t size = strlen(word);
    return reader_sees_text(r, word, size) && (r->at + size == r->end || is_meta(r->at[size]));
}

static bool take_reserved(struct script_reader *r, const char *word)
{
    if (!sees_reserved(r, word))
        return false;
    r->at += strlen(word);
    return true;
}

static bool want_reserved(struct script_reader *r, const char *word)
{
    return take_reserved(r, word) || reader_give_up(r, "its parts do not fit together");
}

/* A newline, with the here-documents behind it. */
static bool take_newline(struct script_reader *r)
{
    r->at++;
    return r->heredoc_count == 0 || read_heredocs(r);
}

static bool skip_newlines(struct script_reader *r)
{
    for (;;) {
        skip_blanks(r);
        if (!reader_sees(r, '\n'))
            return true;
        if (!take_newline(r))
            return false;
    }
}

static bool enter(struct script_reader *r)
{
    if (r->depth >= READ_DEPTH)
        return reader_give_up(r, "it is nested too deeply");
    r->depth++;
    return true;
}

/* -- Redirections ----------------------------------------------------------------------------- */

struct redirection {
    const char *sign;
    bool writes, document, bash_only;
};

/* The longest first. */
static const struct redirection redirections[] = {
    {"&>>", true, false, true}, {"<<<", false, false, true}, {"<<-", false, true, false},
    {"&>", true, false, true},  {">>", true, false, false},  {">&", true, false, false},
    {">|", true, false, false}, {"<<", false, true, false},  {"<&", false, false, false},
    {"<>", true, false, false}, {">", true, false, false},   {"<", false, false, false},
};

static const char *behind_digits(const struct script_reader *r)
{
    const char *p = r->at;
    while (p < r->end && is_digit(*p))
        p++;
    return p;
}

/* At one, with or without the number of a descriptor; not at the < of a process. */
static bool sees_redirection(const struct script_reader *r)
{
    const char *p = behind_digits(r);
    if (p + 1 < r->end && *p == '&' && p[1] == '>' && p == r->at)
        return true;
    return p < r->end && (*p == '<' || *p == '>') && !(p + 1 < r->end && p[1] == '(');
}

static bool add_heredoc(struct script_reader *r, const struct shell_word *delimiter, bool strip)
{
    if (delimiter->kind != WORD_LITERAL || memchr(delimiter->text, '\n', delimiter->size))
        return reader_give_up(r, "the end of a here-document is not plain");
    if (r->heredoc_count == READ_HEREDOCS)
        return reader_give_up(r, "there are too many here-documents in one line");
    struct shell_word *copy = arena_take(&r->script->arena, sizeof *copy);
    if (!copy) {
        r->no_memory = true;
        return reader_give_up(r, "out of memory");
    }
    *copy = *delimiter;
    r->heredocs[r->heredoc_count++] = (struct heredoc){copy, strip};
    return true;
}

static bool is_discarding(const struct shell_word *target)
{
    return word_is(target, "/dev/null") || word_is(target, "/dev/stderr") ||
           word_is(target, "/dev/stdout") || word_is(target, "/dev/tty") || word_is(target, "-") ||
           (target->kind == WORD_LITERAL && target->number);
}

/* Behind >& and <& bash expands what the word has become once more, whatever was quoted in it. */
static bool is_expanded_once(const struct shell_word *target)
{
    return target->kind == WORD_LITERAL && !strpbrk(target->text, "$`<>\\'\"");
}

static bool read_redirection(struct script_reader *r, bool *writes)
{
    const struct redirection *found = NULL;
    struct shell_word target;
    r->at = behind_digits(r);
    for (size_t i = 0; i < ARRAY_SIZE(redirections) && !found; i++)
        if (reader_sees_text(r, redirections[i].sign, strlen(redirections[i].sign)))
            found = &redirections[i];
    if (!found || (found->bash_only && r->dialect == DIALECT_SH))
        return reader_give_up(r, "a redirection is not plain");
    r->at += strlen(found->sign);
    while (reader_sees(r, ' ') || reader_sees(r, '\t'))
        r->at++;
    if (found->sign[1] == '&' && reader_sees(r, '-')) {
        r->at++; /* whatever follows, that was all: >&-rm runs rm */
        return r->dialect == DIALECT_BASH || r->at == r->end || is_meta(*r->at) ||
               reader_give_up(r, "a redirection is not plain");
    }
    if (!read_word(r, &target))
        return false;
    if (found->sign[1] == '&' && !is_expanded_once(&target))
        return reader_give_up(r, "what a descriptor is copied from may be expanded twice");
    *writes = *writes || (found->writes && !is_discarding(&target));
    return !found->document || add_heredoc(r, &target, found->sign[2] == '-');
}

static bool read_redirections(struct script_reader *r)
{
    bool ignored = false;
    for (;;) {
        skip_blanks(r);
        if (!sees_redirection(r))
            return true;
        if (!read_redirection(r, &ignored))
            return false;
    }
}

/* -- Simple commands -------------------------------------------------------------------------- */

struct words {
    struct shell_word *items;
    size_t count, room;
};

static bool add_word(struct script_reader *r, struct words *words, const struct shell_word *w)
{
    if (words->count == words->room) {
        size_t room = words->room ? words->room * 2 : 8;
        struct shell_word *more = arena_take(&r->script->arena, room * sizeof *more);
        if (!more) {
            r->no_memory = true;
            return reader_give_up(r, "out of memory");
        }
        if (words->count > 0)
            memcpy(more, words->items, words->count * sizeof *more);
        words->items = more;
        words->room = room;
    }
    words->items[words->count++] = *w;
    return true;
}

static bool declares(const struct words *words)
{
    static const char *const names[] = {"declare", "local", "export", "readonly", "typeset"};
    for (size_t i = 0; words->count > 0 && i < ARRAY_SIZE(names); i++)
        if (word_is(&words->items[0], names[i]))
            return true;
    return false;
}

/* NAME=(...) behind declare and its kin. */
static bool sees_array(const struct script_reader *r)
{
    size_t size = variable_name_length(r->at, r->end);
    const char *p = r->at + size;
    p += size > 0 && p < r->end && *p == '+' ? 1 : 0;
    return size > 0 && r->end - p > 1 && p[0] == '=' && p[1] == '(';
}

static bool read_argument(struct script_reader *r, struct words *words)
{
    struct shell_word w = {.kind = WORD_ONE};
    const char *from = r->at;
    if (declares(words) && sees_array(r)) {
        if (read_assignment(r) < 0)
            return false;
        w.size = (size_t)(r->at - from);
        w.text = arena_copy(&r->script->arena, from, w.size);
        return w.text ? add_word(r, words, &w) : reader_give_up(r, "out of memory");
    }
    if (!read_word(r, &w))
        return false;
    bool named = w.bare && w.text[0] == '{' && w.size > 2 && w.text[w.size - 1] == '}';
    if (named && (reader_sees(r, '<') || reader_sees(r, '>')))
        return reader_give_up(r, "a redirection is not plain");
    return add_word(r, words, &w);
}

static bool read_function_body(struct script_reader *r)
{
    static const char *const begins[] = {"{",     "if",   "for",    "while",
                                         "until", "case", "select", "[["};
    if (!skip_newlines(r))
        return false;
    bool compound = reader_sees(r, '(');
    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        compound = compound || sees_reserved(r, begins[i]);
    return compound ? read_any_command(r) : reader_give_up(r, "a function has no plain body");
}

/* At the parenthesis behind its name. */
static bool read_function(struct script_reader *r)
{
    r->at++;
    skip_blanks(r);
    if (!reader_sees(r, ')'))
        return reader_give_up(r, "a parenthesis is where none is expected");
    r->at++;
    return read_function_body(r);
}

static bool read_prefix(struct script_reader *r, bool *writes, bool *separators)
{
    int set = 1;
    *separators = false;
    while (set > 0) {
        skip_blanks(r);
        r->in_prefix = true;
        r->sets_separators = false;
        set = sees_redirection(r) ? (read_redirection(r, writes) ? 1 : -1) : read_assignment(r);
        *separators = *separators || r->sets_separators;
    }
    r->in_prefix = false;
    return set == 0;
}

static bool ends_command(const struct script_reader *r)
{
    if (r->at >= r->end || *r->at == '\n' || *r->at == ';' || *r->at == '|' || *r->at == ')')
        return true;
    return *r->at == '&' && !sees_redirection(r);
}

static bool read_simple(struct script_reader *r)
{
    struct words words = {0};
    bool writes = false, separators;
    const char *from = r->at;
    if (!read_prefix(r, &writes, &separators))
        return false;
    bool prefixed = r->at > from;
    while (!ends_command(r)) {
        bool ok;
        if (sees_redirection(r))
            ok = read_redirection(r, &writes);
        else if (reader_sees(r, '('))
            return words.count == 1 && words.items[0].bare && !prefixed &&
                           words.items[0].kind == WORD_LITERAL
                       ? read_function(r)
                       : reader_give_up(r, "a parenthesis is where none is expected");
        else
            ok = read_argument(r, &words);
        if (!ok)
            return false;
        skip_blanks(r);
    }
    if (separators && !(words.count > 0 && word_is(&words.items[0], "read")))
        reader_doubt(r, "IFS is set, which changes what commands do");
    if (words.count == 0)
        return r->at > from || reader_give_up(r, "a command is missing");
    return list_command(r, words.items, words.count, writes);
}

/* -- Compound commands ------------------------------------------------------------------------ */

static bool read_if(struct script_reader *r)
{
    enum stop stop;
    do {
        if (!read_list(r, STOP_THEN, &stop) ||
            !read_list(r, STOP_ELIF | STOP_ELSE | STOP_FI, &stop))
            return false;
    } while (stop == STOP_ELIF);
    return stop == STOP_FI || read_list(r, STOP_FI, &stop);
}

static bool read_while(struct script_reader *r)
{
    enum stop stop;
    return read_list(r, STOP_DO, &stop) && read_list(r, STOP_DONE, &stop);
}

static bool read_loop_body(struct script_reader *r)
{
    enum stop stop;
    if (!skip_newlines(r))
        return false;
    return want_reserved(r, "do") && read_list(r, STOP_DONE, &stop);
}

static bool read_loop_words(struct script_reader *r, const char *name, size_t size)
{
    static const struct shell_word number = {.number = true};
    bool numbers = true;
    for (;;) {
        struct shell_word w;
        skip_blanks(r);
        if (reader_sees(r, ';') || reader_sees(r, '\n'))
            break;
        if (!read_word(r, &w))
            return false;
        numbers = numbers && w.number;
    }
    variable_set(r, name, size, numbers ? &number : NULL);
    return reader_sees(r, ';') ? (r->at++, true) : take_newline(r);
}

static bool read_for(struct script_reader *r, bool select)
{
    skip_blanks(r);
    if (reader_sees_text(r, "((", 2)) {
        if (select || r->dialect == DIALECT_SH)
            return reader_give_up(r, "a loop is not plain");
        if (!read_parenthesized_arithmetic(r))
            return false;
        skip_blanks(r);
        r->at += reader_sees(r, ';') ? 1 : 0;
        return read_loop_body(r);
    }
    const char *name = r->at;
    size_t size = variable_name_length(r->at, r->end);
    r->at += size;
    if (size == 0 || r->at >= r->end || !is_meta(*r->at))
        return reader_give_up(r, "the variable of a loop is not plain");
    if (!skip_newlines(r))
        return false;
    if (take_reserved(r, "in")) {
        if (!read_loop_words(r, name, size))
            return false;
    } else {
        variable_set(r, name, size, NULL);
        r->at += reader_sees(r, ';') ? 1 : 0;
    }
    return read_loop_body(r);
}

/* The patterns before a parenthesis. */
static bool read_patterns(struct script_reader *r)
{
    struct shell_word w;
    for (;;) {
        skip_blanks(r);
        if (!read_word(r, &w))
            return false;
        skip_blanks(r);
        if (reader_sees(r, ')')) {
            r->at++;
            return true;
        }
        if (!reader_sees(r, '|') || reader_sees_text(r, "||", 2))
            return reader_give_up(r, "the patterns of a case are not plain");
        r->at++;
    }
}

static bool read_case(struct script_reader *r)
{
    struct shell_word w;
    enum stop stop = STOP_CLAUSE;
    skip_blanks(r);
    if (!read_word(r, &w) || !skip_newlines(r) || !want_reserved(r, "in"))
        return false;
    while (stop == STOP_CLAUSE) {
        if (!skip_newlines(r))
            return false;
        if (take_reserved(r, "esac"))
            return true;
        r->at += reader_sees(r, '(') ? 1 : 0;
        if (!read_patterns(r) || !read_list(r, STOP_CLAUSE | STOP_ESAC, &stop))
            return false;
        if (stop == STOP_CLAUSE)
            r->at += reader_sees_text(r, ";;&", 3) ? 3 : 2;
    }
    return true;
}

static bool read_subshell(struct script_reader *r)
{
    enum stop stop;
    if (reader_sees_text(r, "((", 2))
        return r->dialect == DIALECT_BASH ? read_parenthesized_arithmetic(r)
                                          : reader_give_up(r, "sh does not know ((...))");
    r->at++;
    if (!read_list(r, STOP_PARENTHESIS, &stop))
        return false;
    r->at++;
    return true;
}

static bool read_named_function(struct script_reader *r)
{
    struct shell_word w;
    skip_blanks(r);
    if (!read_word(r, &w))
        return false;
    if (!w.bare || w.kind != WORD_LITERAL)
        return reader_give_up(r, "the name of a function is not plain");
    skip_blanks(r);
    if (!reader_sees(r, '('))
        return read_function_body(r);
    return reader_sees_text(r, "((", 2) ? reader_give_up(r, "a function has no plain body")
                                        : read_function(r);
}

/* -- [[ ... ]] -------------------------------------------------------------------------------- */

static bool compares_numbers(const struct shell_word *w)
{
    static const char *const names[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    for (size_t i = 0; w->bare && i < ARRAY_SIZE(names); i++)
        if (word_is(w, names[i]))
            return true;
    return false;
}

/* What is compared as a number is calculated, and what is asked for by -v, too. */
static bool read_test_word(struct script_reader *r, struct shell_word *last)
{
    struct shell_word w;
    bool regex = last->bare && strcmp(last->text, "=~") == 0;
    bool number = compares_numbers(last);
    bool named = last->bare && (word_is(last, "-v") || word_is(last, "-R"));
    if (!(regex ? read_regex(r, &w) : read_word(r, &w)))
        return false;
    if ((number && !w.number) || (compares_numbers(&w) && last->size > 0 && !last->number))
        return reader_give_up(r, "what is compared may be something else than a number");
    if (named &&
        !(w.kind == WORD_LITERAL && variable_name_length(w.text, w.text + w.size) == w.size))
        return reader_give_up(r, "the variable that is asked for is not plain");
    *last = w;
    return true;
}

static bool read_test(struct script_reader *r)
{
    struct shell_word last = {.text = ""};
    if (r->dialect == DIALECT_SH)
        return reader_give_up(r, "sh does not know [[");
    for (;;) {
        skip_blanks(r);
        bool process = reader_sees_text(r, "<(", 2) || reader_sees_text(r, ">(", 2);
        if (reader_sees(r, '\n') && r->heredoc_count == 0) {
            r->at++;
        } else if (reader_sees_text(r, "&&", 2) || reader_sees_text(r, "||", 2)) {
            r->at += 2;
            last = (struct shell_word){.text = ""};
        } else if (r->at < r->end && strchr("()<>", *r->at) && !process) {
            r->at++;
            last = (struct shell_word){.text = ""};
        } else if (!read_test_word(r, &last)) {
            return false;
        } else if (last.bare && word_is(&last, "]]")) {
            return true;
        }
    }
}

/* -- Commands, pipelines, lists --------------------------------------------------------------- */

static bool read_braces(struct script_reader *r)
{
    enum stop stop;
    return read_list(r, STOP_BRACE, &stop);
}

static bool read_for_in(struct script_reader *r)
{
    return read_for(r, false);
}

static bool read_select(struct script_reader *r)
{
    return r->dialect == DIALECT_BASH ? read_for(r, true)
                                      : reader_give_up(r, "a loop is not plain");
}

static bool read_function_word(struct script_reader *r)
{
    return r->dialect == DIALECT_BASH ? read_named_function(r)
                                      : reader_give_up(r, "sh does not know function");
}

static bool refuse_word(struct script_reader *r)
{
    return reader_give_up(r, "a word of the language is where none is expected");
}

static const struct {
    const char *word;
    bool (*read)(struct script_reader *r);
} compounds[] = {
    {"{", read_braces},      {"if", read_if},       {"for", read_for_in},
    {"while", read_while},   {"until", read_while}, {"case", read_case},
    {"select", read_select}, {"[[", read_test},     {"function", read_function_word},
    {"coproc", refuse_word}, {"!", refuse_word},    {"in", refuse_word},
    {"then", refuse_word},   {"else", refuse_word}, {"elif", refuse_word},
    {"fi", refuse_word},     {"do", refuse_word},   {"done", refuse_word},
    {"esac", refuse_word},   {"}", refuse_word},
};

static bool read_compound(struct script_reader *r, bool (*read)(struct script_reader *r))
{
    bool ok = enter(r) && read(r) && read_redirections(r);
    r->depth--;
    if (ok && !ends_command(r))
        return reader_give_up(r, "its parts do not fit together");
    return ok;
}

static bool read_any_command(struct script_reader *r)
{
    skip_blanks(r);
    if (reader_sees(r, '('))
        return read_compound(r, read_subshell);
    for (size_t i = 0; i < ARRAY_SIZE(compounds); i++)
        if (take_reserved(r, compounds[i].word))
            return read_compound(r, compounds[i].read);
    return read_simple(r);
}

/* "time" and "!" before a pipeline. */
static void read_marks(struct script_reader *r, bool *ret_alone)
{
    *ret_alone = false;
    for (;;) {
        skip_blanks(r);
        if (take_reserved(r, "!")) {
            *ret_alone = false;
        } else if (r->dialect == DIALECT_BASH && take_reserved(r, "time")) {
            skip_blanks(r);
            take_reserved(r, "-p");
            *ret_alone = true;
        } else {
            break;
        }
    }
    *ret_alone = *ret_alone && ends_command(r);
}

static bool read_pipeline(struct script_reader *r)
{
    bool alone;
    read_marks(r, &alone);
    if (alone)
        return true;
    for (;;) {
        if (!read_any_command(r))
            return false;
        skip_blanks(r);
        if (!reader_sees(r, '|') || reader_sees_text(r, "||", 2))
            return true;
        if (reader_sees_text(r, "|&", 2) && r->dialect == DIALECT_SH)
            return reader_give_up(r, "sh does not know |&");
        r->at += reader_sees_text(r, "|&", 2) ? 2 : 1;
        if (!skip_newlines(r))
            return false;
    }
}

static bool read_and_or(struct script_reader *r)
{
    for (;;) {
        if (!read_pipeline(r))
            return false;
        skip_blanks(r);
        if (!reader_sees_text(r, "&&", 2) && !reader_sees_text(r, "||", 2))
            return true;
        r->at += 2;
        if (!skip_newlines(r))
            return false;
    }
}

static enum stop find_stop(struct script_reader *r)
{
    if (r->at >= r->end)
        return STOP_END;
    if (reader_sees(r, ')'))
        return STOP_PARENTHESIS;
    if (reader_sees_text(r, ";;", 2) || reader_sees_text(r, ";&", 2))
        return STOP_CLAUSE;
    for (size_t i = 0; i < ARRAY_SIZE(stop_words); i++)
        if (take_reserved(r, stop_words[i].word))
            return stop_words[i].stop;
    return 0;
}

/* Behind a command: whether the list goes on. */
static bool take_separator(struct script_reader *r)
{
    skip_blanks(r);
    if (r->at >= r->end || reader_sees(r, ')') || reader_sees_text(r, ";;", 2) ||
        reader_sees_text(r, ";&", 2))
        return true;
    if (reader_sees(r, '\n'))
        return take_newline(r);
    if (!reader_sees(r, ';') && !reader_sees(r, '&'))
        return reader_give_up(r, "its parts do not fit together");
    r->at++;
    return true;
}

static bool read_list(struct script_reader *r, unsigned stops, enum stop *ret_stop)
{
    bool ok = enter(r);
    while (ok) {
        if (!skip_newlines(r))
            break;
        enum stop stop = find_stop(r);
        if (stop) {
            r->depth--;
            *ret_stop = stop;
            return (stops & stop) != 0 || reader_give_up(r, "its parts do not fit together");
        }
        ok = read_and_or(r) && take_separator(r);
    }
    return false;
}

bool read_list_to_end(struct script_reader *r)
{
    enum stop stop;
    return read_list(r, STOP_END, &stop);
}

bool read_list_to_parenthesis(struct script_reader *r)
{
    enum stop stop;
    return read_list(r, STOP_PARENTHESIS, &stop);
}
