/* What stands for something else: parameters, calculations, the output of commands. */
#include "policy/reader.h"

#include "base/defs.h"

static void becomes(struct shell_word *w, bool quoted, bool list)
{
    w->bare = w->number = false;
    if (w->kind != WORD_ANY)
        w->kind = !quoted || list ? WORD_ANY : WORD_ONE;
}

static void becomes_number(struct shell_word *w)
{
    w->bare = false;
    w->size++;
    if (w->kind == WORD_LITERAL)
        w->kind = WORD_ONE;
}

/* -- Calculations ----------------------------------------------------------------------------- */

static bool is_arithmetic(char c)
{
    return is_variable_byte(c) || (c && strchr(" \t+-*/%<>=!&|^~?:,()[]#${}", c));
}

/* Where it ends: before the "))" that belongs to the "((" before `at`; NULL if it is something
 * else, or cannot be told from something else. */
static const char *arithmetic_end(const struct script_reader *r, const char *at, bool three_parts)
{
    int depth = 0;
    for (; at < r->end && (is_arithmetic(*at) || (three_parts && *at == ';')); at++) {
        depth += *at == '(' ? 1 : 0;
        if (*at == ')' && depth == 0)
            return at + 1 < r->end && at[1] == ')' ? at : NULL;
        depth -= *at == ')' ? 1 : 0;
    }
    return NULL;
}

/* At a $ in it: where it goes on; NULL if it cannot be followed. */
static const char *calculate_dollar(struct script_reader *r, const char *at, const char *end)
{
    const char *p = at + 1;
    bool braced = p < end && *p == '{', length = false;
    if (end - p > 1 && p[0] == '(' && p[1] == '(') {
        const char *inner = arithmetic_end(r, p + 2, false);
        if (!inner || inner + 2 > end || !read_arithmetic(r, p + 2, (size_t)(inner - p - 2)))
            return NULL;
        return inner + 2;
    }
    p += braced ? 1 : 0;
    if (p < end && strchr("#?$", *p) && (!braced || (p + 1 < end && p[1] == '}')))
        return p + (braced ? 2 : 1);
    length = braced && p < end && *p == '#';
    p += length ? 1 : 0;
    size_t size = variable_name_length(p, end);
    if (size == 0 || (braced && (p + size >= end || p[size] != '}')))
        return NULL;
    if (!length)
        variable_calculated(r, p, size);
    return p + size + (braced ? 1 : 0);
}

static void calculate_name(struct script_reader *r, const char *at, size_t size, const char *end)
{
    static const struct shell_word number = {.number = true};
    const char *p = at + size;
    while (p < end && is_shell_blank(*p))
        p++;
    bool set = p < end && *p == '=' && (p + 1 >= end || p[1] != '=');
    if (set)
        variable_set(r, at, size, &number);
    variable_calculated(r, at, size);
}

bool read_arithmetic(struct script_reader *r, const char *at, size_t size)
{
    const char *end = at + size;
    if (r->depth >= READ_DEPTH)
        return reader_give_up(r, "it is nested too deeply");
    r->depth++;
    while (at && at < end) {
        size_t name = variable_name_length(at, end);
        if (name > 0) {
            calculate_name(r, at, name, end);
            at += name;
        } else if (is_digit(*at)) {
            while (at < end && is_variable_byte(*at))
                at++;
        } else if (*at == '$') {
            at = calculate_dollar(r, at, end);
        } else {
            at = is_arithmetic(*at) && *at != '{' && *at != '}' ? at + 1
                 : *at == ';'                                   ? at + 1
                                                                : NULL;
        }
    }
    r->depth--;
    return at || reader_give_up(r, "a calculation is not plain");
}

bool read_parenthesized_arithmetic(struct script_reader *r)
{
    const char *from = r->at + 2, *end = arithmetic_end(r, from, true);
    if (!end)
        return reader_give_up(r, "a calculation is not plain");
    r->at = end + 2;
    return read_arithmetic(r, from, (size_t)(end - from));
}

/* -- ${...} ----------------------------------------------------------------------------------- */

/* A quote within braces means different things at different places; it is followed if nothing in it
 * does. */
static bool skip_plain_quote(struct script_reader *r)
{
    char quote = *r->at++;
    while (r->at < r->end && *r->at != quote && !strchr("}$\\`'\"\n", *r->at))
        r->at++;
    if (!reader_sees(r, quote))
        return reader_give_up(r, "quotes within ${...} are not plain");
    r->at++;
    return true;
}

/* The word behind an operator, and the brace that ends it. */
static bool read_operand(struct script_reader *r)
{
    struct shell_word ignored = {0};
    while (r->at < r->end && *r->at != '}') {
        char c = *r->at;
        bool ok = true;
        if (c == '$')
            ok = read_dollar(r, true, &ignored);
        else if (c == '\'' || c == '"')
            ok = skip_plain_quote(r);
        else if (strchr("\\`{<>\n", c))
            ok = reader_give_up(r, "what is within ${...} is not plain");
        else
            r->at++;
        if (!ok)
            return false;
    }
    if (r->at >= r->end)
        return reader_give_up(r, "${ is not closed");
    r->at++;
    return true;
}

/* Up to the brace, which is taken, it is calculated. */
static bool read_calculated(struct script_reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && is_arithmetic(*r->at) && *r->at != '}' && *r->at != '{')
        r->at++;
    if (!reader_sees(r, '}'))
        return reader_give_up(r, "what is within ${...} is not plain");
    r->at++;
    return read_arithmetic(r, from, (size_t)(r->at - from - 1));
}

/* [...] behind a name, if there is one. */
static bool read_brackets(struct script_reader *r, bool *ret_list)
{
    if (!reader_sees(r, '['))
        return true;
    const char *from = ++r->at;
    if (r->end - from > 1 && (*from == '@' || *from == '*') && from[1] == ']') {
        *ret_list = *from == '@';
        r->at += 2;
        return true;
    }
    while (r->at < r->end && is_arithmetic(*r->at) && !strchr("[]{}", *r->at))
        r->at++;
    if (!reader_sees(r, ']') || r->at == from)
        return reader_give_up(r, "the place in a list is not plain");
    r->at++;
    return read_arithmetic(r, from, (size_t)(r->at - from - 1));
}

static bool read_operator(struct script_reader *r, const char *name, size_t size)
{
    char c = *r->at, next = r->at + 1 < r->end ? r->at[1] : '\0';
    char last = r->end - r->at > 2 ? r->at[2] : '\0';
    if (c == '}') {
        r->at++;
        return true;
    }
    if (c == '@') {
        if (!next || !strchr("QEAaUuLKk", next) || last != '}')
            return reader_give_up(r, "${...@...} may be run as a prompt is");
        r->at += 3;
        return true;
    }
    if (c == ':' && (!next || !strchr("-=?+", next))) {
        r->at++;
        return read_calculated(r);
    }
    if (!strchr(":-=?+#%/^,", c))
        return reader_give_up(r, "what is within ${...} is not plain");
    if ((c == '=' || (c == ':' && next == '=')) && size > 0)
        variable_set(r, name, size, NULL);
    r->at += c == ':' ? 2 : 1;
    return read_operand(r);
}

/* What is behind "${!": the names of variables or of places, not the value of a name's value. */
static bool read_indirect(struct script_reader *r, bool quoted, struct shell_word *w)
{
    size_t size = variable_name_length(r->at, r->end);
    r->at += size;
    bool plain = size > 0 && (reader_sees_text(r, "[@]}", 4) || reader_sees_text(r, "[*]}", 4) ||
                              reader_sees_text(r, "@}", 2) || reader_sees_text(r, "*}", 2));
    if (!plain)
        return reader_give_up(r, "${!...} takes the name of a variable from another one");
    while (*r->at != '}')
        r->at++;
    r->at++;
    becomes(w, quoted, true);
    return true;
}

static bool read_length(struct script_reader *r, struct shell_word *w)
{
    bool list = false;
    size_t size = variable_name_length(r->at, r->end);
    r->at += size > 0 ? size : r->at < r->end && strchr("@*?$!", *r->at) ? 1 : 0;
    if (!read_brackets(r, &list))
        return false;
    if (!reader_sees(r, '}'))
        return reader_give_up(r, "what is within ${...} is not plain");
    r->at++;
    becomes_number(w);
    return true;
}

static bool read_braced(struct script_reader *r, bool quoted, struct shell_word *w)
{
    bool list = false;
    char c = r->at < r->end ? *r->at : '\0', next = r->end - r->at > 1 ? r->at[1] : '\0';
    if (c == '!' && next != '}') {
        r->at++;
        return read_indirect(r, quoted, w);
    }
    if (c == '#' && next && (is_name_start(next) || strchr("}@*?$!", next))) {
        r->at++;
        return read_length(r, w);
    }
    const char *name = r->at;
    size_t size = variable_name_length(r->at, r->end);
    if (size > 0) {
        r->at += size;
    } else if (is_digit(c)) {
        while (r->at < r->end && is_digit(*r->at))
            r->at++;
    } else if (c && strchr("@*?$!-", c)) {
        list = c == '@';
        r->at++;
    } else {
        return reader_give_up(r, "what is within ${...} is not plain");
    }
    if (!read_brackets(r, &list))
        return false;
    becomes(w, quoted, list);
    return r->at < r->end ? read_operator(r, name, size) : reader_give_up(r, "${ is not closed");
}

/* -- $'...' ----------------------------------------------------------------------------------- */

static bool read_digits(struct script_reader *r, int base, int most, unsigned *ret)
{
    int count = 0;
    *ret = 0;
    while (count < most && r->at < r->end) {
        char c = *r->at;
        int digit = is_digit(c)                          ? c - '0'
                    : base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : base == 16 && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                         : base;
        if (digit >= base)
            break;
        *ret = *ret * (unsigned)base + (unsigned)digit;
        count++;
        r->at++;
    }
    return count > 0 && *ret > 0 && *ret < 0x80;
}

/* Behind the backslash: the byte; 0 if it is not certain. */
static char read_escape(struct script_reader *r)
{
    static const char names[] = "abeEfnrtv\\'\"?", bytes[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
    unsigned value;
    char c = *r->at;
    const char *found = strchr(names, c);
    if (c && found) {
        r->at++;
        return bytes[found - names];
    }
    if (c >= '0' && c <= '7')
        return read_digits(r, 8, 3, &value) ? (char)value : '\0';
    r->at++;
    return c == 'x' && read_digits(r, 16, 2, &value) ? (char)value : '\0';
}

static bool read_ansi(struct script_reader *r, struct shell_word *w)
{
    w->bare = false;
    while (r->at < r->end && *r->at != '\'') {
        char c = *r->at++;
        if (c == '\\' && r->at < r->end && !(c = read_escape(r)))
            return reader_give_up(r, "an escape within $'...' is not plain");
        if (!reader_add(r, w, c))
            return false;
    }
    if (r->at >= r->end)
        return reader_give_up(r, "a quote is not closed");
    r->at++;
    return true;
}

/* -- Commands within words -------------------------------------------------------------------- */

/* Behind the parenthesis; the one that closes it is taken. */
static bool read_substitution(struct script_reader *r)
{
    const char *from = r->at;
    size_t waiting = r->heredoc_count;
    if (!read_list_to_parenthesis(r))
        return false;
    if (r->heredoc_count != waiting || (waiting > 0 && memchr(from, '\n', (size_t)(r->at - from))))
        return reader_give_up(r, "a here-document is not where it can be told what it belongs to");
    r->at++;
    return true;
}

bool read_process(struct script_reader *r)
{
    if (r->dialect == DIALECT_SH)
        return reader_give_up(r, "sh does not know <(...)");
    r->at += 2;
    return read_substitution(r);
}

bool read_backquotes(struct script_reader *r)
{
    const char *from = ++r->at;
    while (r->at < r->end && *r->at != '`' && *r->at != '\\')
        r->at++;
    if (!reader_sees(r, '`'))
        return reader_give_up(r, r->at < r->end ? "there is a backslash within backquotes"
                                                : "a backquote is not closed");
    r->at++;
    return read_inner(r, from, (size_t)(r->at - from - 1), r->dialect, false);
}

static bool read_in_parentheses(struct script_reader *r, bool quoted, struct shell_word *w)
{
    const char *end =
        r->at + 1 < r->end && r->at[1] == '(' ? arithmetic_end(r, r->at + 2, false) : NULL;
    if (end) {
        const char *from = r->at + 2;
        r->at = end + 2;
        becomes_number(w);
        return read_arithmetic(r, from, (size_t)(end - from));
    }
    if (reader_sees_text(r, "((", 2))
        return reader_give_up(r, "$(( may begin a calculation or a command");
    r->at++;
    becomes(w, quoted, false);
    return read_substitution(r);
}

bool read_dollar(struct script_reader *r, bool quoted, struct shell_word *w)
{
    char c = r->end - r->at > 1 ? r->at[1] : '\0';
    r->at++;
    size_t size = variable_name_length(r->at, r->end);
    if (size > 0) {
        r->at += size;
        becomes(w, quoted, false);
        return true;
    }
    if (c == '(')
        return read_in_parentheses(r, quoted, w);
    if (c == '{') {
        r->at++;
        return read_braced(r, quoted, w);
    }
    if (c == '\'' && !quoted) {
        r->at++;
        return r->dialect == DIALECT_BASH ? read_ansi(r, w)
                                          : reader_give_up(r, "sh does not know $'...'");
    }
    if (c == '[' || (c == '"' && !quoted) || (c == '\\' && r->end - r->at > 1 && r->at[1] == '\n'))
        return reader_give_up(r, "what follows a $ is not plain");
    if (c && strchr("#?$!", c)) {
        r->at++;
        becomes_number(w);
        w->kind = c == '!' && !quoted ? WORD_ANY : w->kind; /* there may be none */
        return true;
    }
    if (c && (is_digit(c) || strchr("@*-", c))) {
        r->at++;
        becomes(w, quoted, c == '@');
        return true;
    }
    return reader_add(r, w, '$');
}
