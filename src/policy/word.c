/* Words, quoting, assignments and here-documents. */
#include "policy/reader.h"

#include "base/defs.h"

/* -- The word that is being read -------------------------------------------------------------- */

/* Pieces lie on a stack: a word within a word is read above it. */
static bool add_to_piece(struct script_reader *r, const char *bytes, size_t size)
{
    if (r->piece_room - r->piece_size < size) {
        size_t room = MAX(r->piece_room * 2, r->piece_size + size + 256);
        char *more = realloc(r->piece, room);
        if (!more) {
            r->no_memory = true;
            return reader_give_up(r, "out of memory");
        }
        r->piece = more;
        r->piece_room = room;
    }
    if (size > 0)
        memcpy(r->piece + r->piece_size, bytes, size);
    r->piece_size += size;
    return true;
}

bool reader_add(struct script_reader *r, struct shell_word *w, char c)
{
    bool sign = (c == '-' || c == '+') && w->size == 0;
    w->number = w->number && (is_digit(c) || sign);
    w->size++;
    return add_to_piece(r, &c, 1);
}

static void widen(struct shell_word *w, enum shell_word_kind kind)
{
    w->kind = kind > w->kind ? kind : w->kind;
}

static bool finish_word(struct script_reader *r, struct shell_word *w, size_t start,
                        const char *from)
{
    bool literal = w->kind == WORD_LITERAL;
    size_t size = literal ? r->piece_size - start : (size_t)(r->at - from);
    const char *text = !literal ? from : size > 0 ? r->piece + start : "";
    w->number = w->number && w->size > 0;
    w->size = size;
    w->text = arena_copy(&r->script->arena, text, size);
    r->piece_size = start;
    r->no_memory = r->no_memory || !w->text;
    return w->text || reader_give_up(r, "out of memory");
}

/* -- Quotes ----------------------------------------------------------------------------------- */

static bool read_single(struct script_reader *r, struct shell_word *w)
{
    const char *close = memchr(r->at + 1, '\'', (size_t)(r->end - r->at - 1));
    if (!close)
        return reader_give_up(r, "a quote is not closed");
    for (const char *p = r->at + 1; p < close; p++)
        if (!reader_add(r, w, *p))
            return false;
    r->at = close + 1;
    return true;
}

static bool read_double(struct script_reader *r, struct shell_word *w)
{
    r->at++;
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at, next = r->at + 1 < r->end ? r->at[1] : '\0';
        bool ok = true;
        if (c == '$') {
            ok = read_dollar(r, true, w);
        } else if (c == '`') {
            w->number = false;
            widen(w, WORD_ONE);
            ok = read_backquotes(r);
        } else if (c == '\\' && next == '\n') {
            r->at += 2;
        } else {
            r->at += c == '\\' && next && strchr("$`\"\\", next) ? 1 : 0;
            ok = r->at < r->end && reader_add(r, w, *r->at++);
        }
        if (!ok)
            return false;
    }
    if (r->at >= r->end)
        return reader_give_up(r, "a quote is not closed");
    r->at++;
    return true;
}

/* -- Words ------------------------------------------------------------------------------------ */

/* What a word has had so far that a later character may complete. */
struct opened {
    bool brace, bracket;
};

/* A character that stands for itself, or for files or alternatives. */
static bool read_plain(struct script_reader *r, struct shell_word *w, struct opened *opened,
                       const char *from)
{
    char c = *r->at;
    if (c == '*' || c == '?' || (c == ']' && opened->bracket))
        widen(w, WORD_ANY);
    opened->bracket = opened->bracket || c == '[';
    if (opened->brace && (c == ',' || (c == '.' && r->at[-1] == '.')))
        widen(w, WORD_ANY);
    opened->brace = opened->brace || c == '{';
    if (c == '~' && (r->at == from || r->at[-1] == ':' || r->at[-1] == '='))
        widen(w, WORD_ONE);
    r->at++;
    return reader_add(r, w, c);
}

static bool read_part(struct script_reader *r, struct shell_word *w, struct opened *opened,
                      const char *from)
{
    char c = *r->at;
    if (c == '$')
        return read_dollar(r, false, w);
    if (c == '`') {
        w->number = w->bare = false;
        widen(w, WORD_ANY);
        return read_backquotes(r);
    }
    if (c == '<' || c == '>') {
        w->number = w->bare = false;
        widen(w, WORD_ONE);
        return read_process(r);
    }
    if (c != '\'' && c != '"' && c != '\\')
        return read_plain(r, w, opened, from);
    w->bare = false;
    if (c != '\\')
        return c == '"' ? read_double(r, w) : read_single(r, w);
    if (r->at + 1 >= r->end || r->at[1] == '\n')
        return reader_give_up(r, "a word goes on in the next line");
    r->at += 2;
    return reader_add(r, w, r->at[-1]);
}

/* A backslash before a newline, and a blank behind it: the word has ended. */
static bool sees_continued_blank(const struct script_reader *r)
{
    return reader_sees_text(r, "\\\n", 2) && (r->at + 2 == r->end || is_shell_blank(r->at[2]));
}

bool read_word(struct script_reader *r, struct shell_word *ret_word)
{
    struct shell_word w = {.bare = true, .number = true};
    struct opened opened = {0};
    const char *from = r->at;
    size_t start = r->piece_size;
    while (r->at < r->end) {
        bool process = (*r->at == '<' || *r->at == '>') && r->at + 1 < r->end && r->at[1] == '(';
        if ((is_meta(*r->at) && !process) || sees_continued_blank(r))
            break;
        if (!read_part(r, &w, &opened, from))
            return false;
    }
    if (r->at == from)
        return reader_give_up(r, "a word is missing");
    *ret_word = w;
    return finish_word(r, ret_word, start, from);
}

/* Behind =~ parentheses and bars belong to the word; what is in them must be plain. */
bool read_regex(struct script_reader *r, struct shell_word *ret_word)
{
    struct shell_word w = {.kind = WORD_ONE};
    struct opened opened = {0};
    const char *from = r->at;
    size_t start = r->piece_size;
    int depth = 0;
    while (r->at < r->end && !is_shell_blank(*r->at) && *r->at != '\n') {
        char c = *r->at, next = r->at + 1 < r->end ? r->at[1] : '\0';
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (depth < 0 || c == ';' || c == '&' || c == '<' || c == '>' || c == '`' ||
            (depth > 0 && (c == '\'' || c == '"')))
            return reader_give_up(r, "a regular expression is not plain");
        bool plain = c == '(' || c == ')' || c == '|' ||
                     (c == '$' && (next == ')' || next == '|' || is_shell_blank(next)));
        if (c == '$' && depth > 0 && !plain)
            return reader_give_up(r, "a regular expression is not plain");
        if (plain)
            r->at++;
        else if (!read_part(r, &w, &opened, from))
            return false;
    }
    *ret_word = w;
    return (depth == 0 && r->at > from) ? finish_word(r, ret_word, start, from)
                                        : reader_give_up(r, "a regular expression is not plain");
}

void skip_blanks(struct script_reader *r)
{
    while (r->at < r->end) {
        if (is_shell_blank(*r->at))
            r->at++;
        else if (reader_sees_text(r, "\\\n", 2))
            r->at += 2;
        else
            break;
    }
    if (reader_sees(r, '#')) {
        const char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = line ? line : r->end;
    }
}

/* -- Assignments ------------------------------------------------------------------------------ */

/* The place in an array, without its brackets. */
static bool read_subscript(struct script_reader *r, const char *at, size_t size)
{
    if (size == 1 && (*at == '@' || *at == '*'))
        return true;
    if (size == 0)
        return reader_give_up(r, "the place in a list is not plain");
    return read_arithmetic(r, at, size);
}

static bool read_array(struct script_reader *r)
{
    r->at++;
    for (;;) {
        struct shell_word w;
        skip_blanks(r);
        if (reader_sees(r, '\n')) {
            if (r->heredoc_count > 0)
                return reader_give_up(r, "a list goes on behind a here-document");
            r->at++;
            continue;
        }
        if (reader_sees(r, ')')) {
            r->at++;
            return true;
        }
        if (reader_sees(r, '['))
            return reader_give_up(r, "a list names the places of its elements");
        if (!read_word(r, &w))
            return false;
    }
}

/* Behind the name: the end of [...], or where it would begin; NULL if it is no subscript. */
static const char *behind_subscript(const struct script_reader *r, const char *at)
{
    if (at >= r->end || *at != '[')
        return at;
    while (at < r->end && *at != ']' && !is_meta(*at) && !strchr("'\"\\`{}", *at))
        at++;
    return at < r->end && *at == ']' ? at + 1 : NULL;
}

int read_assignment(struct script_reader *r)
{
    const char *name = r->at;
    size_t size = variable_name_length(r->at, r->end);
    const char *at = size > 0 ? behind_subscript(r, name + size) : NULL;
    if (!at || at >= r->end)
        return 0;
    const char *sign = at;
    at += *at == '+' ? 1 : 0;
    if (at >= r->end || *at != '=')
        return 0;
    if (r->dialect == DIALECT_SH && (sign > name + size || *sign == '+')) {
        reader_give_up(r, "sh knows no lists");
        return -1;
    }
    struct shell_word value = {.text = ""};
    bool list = false, subscripted = sign > name + size;
    bool ok = !subscripted || read_subscript(r, name + size + 1, (size_t)(sign - name) - size - 2);
    r->at = at + 1;
    if (ok && reader_sees(r, '(')) {
        list = true;
        ok = read_array(r);
    } else if (ok && r->at < r->end &&
               (!is_meta(*r->at) || reader_sees_text(r, "<(", 2) || reader_sees_text(r, ">(", 2))) {
        ok = read_word(r, &value);
    }
    if (!ok)
        return -1;
    bool whole = *sign == '=' && !subscripted && !list;
    variable_set(r, name, size, whole ? &value : NULL);
    return 1;
}

size_t word_name(const struct shell_word *w, bool *ret_sets)
{
    const char *end = w->text + w->size;
    size_t size = variable_name_length(w->text, end);
    const char *p = w->text + size;
    *ret_sets = size > 0 && p < end && (*p == '=' || (*p == '+' && p + 1 < end && p[1] == '='));
    return *ret_sets || (w->kind == WORD_LITERAL && p == end) ? size : 0;
}

/* -- Here-documents --------------------------------------------------------------------------- */

static bool is_delimiter(const char *line, size_t size, const struct heredoc *h)
{
    while (h->strip && size > 0 && *line == '\t') {
        line++;
        size--;
    }
    return size == h->delimiter->size && memcmp(line, h->delimiter->text, size) == 0;
}

/* What is not quoted in the text is expanded, but no quotes are. */
static bool read_document(struct script_reader *r, const char *end)
{
    struct shell_word ignored = {0};
    const char *after = r->end;
    bool ok = true;
    r->end = end;
    while (ok && r->at < r->end) {
        if (*r->at == '\\' && r->at + 1 < r->end && r->at[1] == '\n')
            ok = reader_give_up(r, "a here-document has a continued line");
        else if (*r->at == '\\')
            r->at = MIN(r->at + 2, r->end);
        else if (*r->at == '$')
            ok = read_dollar(r, true, &ignored);
        else if (*r->at == '`')
            ok = read_backquotes(r);
        else
            r->at++;
    }
    r->end = after;
    return ok;
}

static bool read_heredoc(struct script_reader *r, const struct heredoc *h)
{
    for (const char *line = r->at; line < r->end;) {
        const char *newline = memchr(line, '\n', (size_t)(r->end - line));
        const char *end = newline ? newline : r->end;
        if (is_delimiter(line, (size_t)(end - line), h)) {
            size_t start = r->piece_size;
            if (h->delimiter->bare && !read_document(r, line))
                return false;
            r->piece_size = start;
            r->at = newline ? newline + 1 : r->end;
            return true;
        }
        line = newline ? newline + 1 : r->end;
    }
    return reader_give_up(r, "a here-document is not ended");
}

bool read_heredocs(struct script_reader *r)
{
    size_t count = r->heredoc_count;
    r->heredoc_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct heredoc h = r->heredocs[i];
        if (!read_heredoc(r, &h))
            return false;
    }
    return true;
}
