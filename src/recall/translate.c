#include "recall/translate.h"

#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"

#define DEPTH_MAX    100
#define NEVER_LF     "(?:(?!\\n)" /* and what it holds for, and ")" */
#define LINE_END     "(?=\\r?$)"
#define GOOD_LITERAL 3  /* from this size on, fewer literals are better than longer ones */
#define GOOD_RUN     6  /* from this size on, a run of a class is rare in most logs, ... */
#define SMALL_CLASS  24 /* ... if the class has no more characters of ASCII than this */
#define RUN_MAX      ((size_t)64) /* a longer one is taken as this long, or somewhat longer */

struct parser {
    const char *at;
    const char *end;
    struct buf *out;
    int depth;
    bool plain;     /* nothing but literals and "|" so far */
    bool fold_seen; /* the case of letters is not the same everywhere */
    int error;
};

/* What every match of a part of the pattern contains. */
struct known {
    struct literals literals;
    struct byte_run run;
};

/* What is known of the branch being read. */
struct branch {
    struct known best;
    struct literal run; /* literal characters up to here */
    size_t last_char;   /* the size of the last of them, 0 = the run just began */
};

static void emit(struct parser *p, const char *text, size_t size)
{
    int e = buf_append(p->out, text, size);
    if (e < 0 && p->error == 0)
        p->error = e == -E2BIG ? -ENOTSUP : e;
}

static void emit_str(struct parser *p, const char *text)
{
    emit(p, text, strlen(text));
}

static void not_supported(struct parser *p)
{
    if (p->error == 0)
        p->error = -ENOTSUP;
}

static bool has_more(const struct parser *p)
{
    return p->error == 0 && p->at < p->end;
}

static int peek_at(const struct parser *p, size_t ahead)
{
    return (size_t)(p->end - p->at) > ahead ? (unsigned char)p->at[ahead] : -1;
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* -- Literals ---------------------------------------------------------------------------------- */

static size_t shortest(const struct literals *set)
{
    size_t size = SIZE_MAX;
    for (size_t i = 0; i < set->count; i++)
        size = MIN(size, set->items[i].size);
    return set->count > 0 ? size : 0;
}

/* Long enough is long enough: then one literal is faster to look for than several. */
static bool is_better(const struct literals *a, const struct literals *b)
{
    size_t x = shortest(a), y = shortest(b);
    if (MIN(x, y) >= GOOD_LITERAL && a->count != b->count)
        return a->count < b->count;
    return x != y ? x > y : a->count < b->count;
}

static void offer(struct branch *b, const struct literals *set)
{
    if (set->count > 0 && is_better(set, &b->best.literals))
        b->best.literals = *set;
}

/* The run ends here; what was read of it is certain. */
static void end_run(struct branch *b)
{
    if (b->run.size > 0) {
        struct literals set = {.count = 1};
        set.items[0] = b->run;
        offer(b, &set);
    }
    b->run.size = b->last_char = 0;
}

static void add_char(struct branch *b, const char *bytes, size_t size)
{
    if (b->run.size + size > LITERAL_SIZE_MAX)
        end_run(b);
    memcpy(b->run.text + b->run.size, bytes, size);
    b->run.size += size;
    b->last_char = size;
}

/* A quantifier follows the last character: it is no longer certain, or not how often. */
static void requantify(struct branch *b, bool optional)
{
    size_t last = b->last_char;
    if (!optional) {
        end_run(b);
        return;
    }
    b->run.size -= last;
    end_run(b);
}

static bool join_literals(struct literals *all, const struct literals *set)
{
    if (set->count == 0 || all->count + set->count > LITERALS_MAX)
        return false;
    memcpy(&all->items[all->count], set->items, set->count * sizeof set->items[0]);
    all->count += set->count;
    return true;
}

static void offer_run(struct branch *b, const struct byte_run *run)
{
    if (run->least > b->best.run.least)
        b->best.run = *run;
}

/* -- Quantifiers ------------------------------------------------------------------------------- */

/* The length of a quantifier here, 0 if there is none. */
static size_t quantifier(const struct parser *p, bool *ret_optional)
{
    int c = peek_at(p, 0);
    size_t n = 1;
    *ret_optional = c == '*' || c == '?';
    if (c == '{') {
        if (!ascii_is_digit(peek_at(p, n)))
            return 0;
        *ret_optional = true;
        for (; ascii_is_digit(peek_at(p, n)); n++)
            *ret_optional &= peek_at(p, n) == '0';
        if (peek_at(p, n) == ',')
            for (n++; ascii_is_digit(peek_at(p, n)); n++)
                ;
        if (peek_at(p, n++) != '}')
            return 0;
    } else if (c != '*' && c != '+' && c != '?') {
        return 0;
    }
    return n + (peek_at(p, n) == '?' || peek_at(p, n) == '+');
}

/* How often what stands before this point must be there at least. */
static size_t least_count(const struct parser *p)
{
    bool optional;
    if (quantifier(p, &optional) == 0 || peek_at(p, 0) == '+')
        return 1;
    size_t count = 0;
    for (size_t n = 1; ascii_is_digit(peek_at(p, n)) && count < RUN_MAX; n++)
        count = count * 10 + (size_t)(peek_at(p, n) - '0');
    return optional ? 0 : count;
}

/* Copies a quantifier, if there is one. True if what stands before it need not be there. */
static bool take_quantifier(struct parser *p, struct branch *b)
{
    bool optional;
    size_t n = quantifier(p, &optional);
    if (n == 0)
        return false;
    emit(p, p->at, n);
    p->at += n;
    p->plain = false;
    if (b)
        requantify(b, optional);
    return optional;
}

/* Something that is no literal character. */
static void other(struct parser *p, struct branch *b, const char *text, size_t size)
{
    p->plain = false;
    end_run(b);
    emit(p, text, size);
    take_quantifier(p, b);
}

static void wrapped(struct parser *p, struct branch *b, const char *text, size_t size)
{
    p->plain = false;
    end_run(b);
    emit_str(p, NEVER_LF);
    emit(p, text, size);
    emit_str(p, ")");
    take_quantifier(p, b);
}

static size_t char_size(const struct parser *p)
{
    size_t n = 1;
    if ((unsigned char)*p->at >= 0xc0)
        while (n < 4 && (peek_at(p, n) & 0xc0) == 0x80 && peek_at(p, n) >= 0)
            n++;
    return n;
}

static void take_char(struct parser *p, struct branch *b, const char *written, size_t written_size,
                      const char *bytes, size_t size)
{
    emit(p, written, written_size);
    add_char(b, bytes, size);
    take_quantifier(p, b);
}

/* -- Escapes ----------------------------------------------------------------------------------- */

/* \xHH and \x{H...}: the length, 0 if it could be a newline or is anything else. */
static size_t hex_escape(const struct parser *p)
{
    bool braces = peek_at(p, 2) == '{';
    size_t n = braces ? 3 : 2, digits = 0;
    unsigned long value = 0;
    for (; digits < 8; n++, digits++) {
        int c = peek_at(p, n) | 0x20;
        int digit = ascii_is_digit(peek_at(p, n)) ? peek_at(p, n) - '0'
                    : c >= 'a' && c <= 'f'        ? c - 'a' + 10
                                                  : -1;
        if (digit < 0 || (!braces && digits == 2))
            break;
        value = value * 16 + (unsigned long)digit;
    }
    if (braces && peek_at(p, n++) != '}')
        return 0;
    return digits > 0 && value != '\n' ? n : 0;
}

/* \p{...}, \P{...}, \pL: the length. */
static size_t property_escape(const struct parser *p)
{
    if (peek_at(p, 2) != '{')
        return peek_at(p, 2) >= 0 ? 3 : 0;
    const char *close = memchr(p->at, '}', (size_t)(p->end - p->at));
    return close ? (size_t)(close + 1 - p->at) : 0;
}

static void sized_escape(struct parser *p, struct branch *b, size_t size, bool wrap)
{
    if (size == 0) {
        not_supported(p);
        return;
    }
    const char *text = p->at;
    p->at += size;
    if (wrap)
        wrapped(p, b, text, size);
    else
        other(p, b, text, size);
}

/* \Q...\E: each character is itself. */
static void quoted(struct parser *p, struct branch *b)
{
    p->at += 2;
    while (has_more(p) && !(peek_at(p, 0) == '\\' && peek_at(p, 1) == 'E')) {
        char escaped[2] = {'\\', *p->at};
        size_t size = char_size(p);
        bool ascii = size == 1 && !is_letter(peek_at(p, 0)) && !ascii_is_digit(peek_at(p, 0)) &&
                     peek_at(p, 0) < 0x80;
        emit(p, ascii ? escaped : p->at, ascii ? 2 : size);
        add_char(b, p->at, size);
        p->at += size;
    }
    p->at += MIN((size_t)2, (size_t)(p->end - p->at));
    take_quantifier(p, b);
}

/* What was just read is one of these characters of ASCII, or beyond it; its quantifier follows. */
static void note_run(const struct parser *p, struct branch *b, const struct byte_run *class)
{
    struct byte_run run = *class;
    size_t members = 0;
    for (int c = 0; c < 0x80; c++)
        members += run.set[c];
    memset(run.set + 0x80, true, sizeof run.set - 0x80);
    run.least = least_count(p);
    if (run.least >= GOOD_RUN && members <= SMALL_CLASS)
        offer_run(b, &run);
}

static void add_range(struct byte_run *class, int first, int last)
{
    for (int c = first; c <= last; c++)
        class->set[c] = true;
}

static void digit_escape(struct parser *p, struct branch *b)
{
    struct byte_run digits = {.least = 0};
    add_range(&digits, '0', '9');
    p->at += 2;
    note_run(p, b, &digits);
    other(p, b, "\\d", 2);
}

static void parse_escape(struct parser *p, struct branch *b)
{
    int c = peek_at(p, 1);
    const char *text = NULL;
    switch (c) {
    case 'd':
        digit_escape(p, b);
        return;
    case 'w':
    case 'h':
    case 'S':
    case 'V':
    case 'b':
    case 'B':
    case 't':
    case 'r':
    case 'f':
    case 'e':
    case 'a':
        sized_escape(p, b, 2, false);
        return;
    case 's':
        text = "[^\\S\\n]";
        break;
    case 'D':
        text = "[^\\d\\n]";
        break;
    case 'W':
        text = "[^\\w\\n]";
        break;
    case 'H':
        text = "[^\\h\\n]";
        break;
    case 'A':
        text = "^";
        break;
    case 'Z':
    case 'z':
        text = LINE_END;
        break;
    case 'x':
        sized_escape(p, b, hex_escape(p), false);
        return;
    case 'p':
    case 'P':
        sized_escape(p, b, property_escape(p), true);
        return;
    case 'Q':
        quoted(p, b);
        return;
    default:
        if (c >= '1' && c <= '9' && !ascii_is_digit(peek_at(p, 2))) {
            sized_escape(p, b, 2, false);
            return;
        }
        if (c < 0 || c >= 0x80 || ascii_is_digit(c) || is_letter(c)) {
            not_supported(p);
            return;
        }
        p->at += 2;
        take_char(p, b, p->at - 2, 2, p->at - 1, 1);
        return;
    }
    p->at += 2;
    other(p, b, text, strlen(text));
}

/* -- Classes ----------------------------------------------------------------------------------- */

/* Names of POSIX classes without a newline in them. */
static bool is_safe_name(const char *name, size_t size)
{
    static const char *const names[] = {"alpha",  "digit", "alnum", "upper", "lower", "punct",
                                        "xdigit", "word",  "blank", "graph", "print", "ascii"};
    for (size_t i = 0; i + 1 < ARRAY_SIZE(names); i++) /* ascii has one, and is last */
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
            return true;
    return false;
}

/* One item of a class; sets *safe to false if a newline could be in it. Returns its length, 0 if
 * the class cannot be read. */
static size_t class_item(const char *at, const char *end, bool *safe)
{
    size_t left = (size_t)(end - at);
    if (left >= 2 && at[0] == '[' && at[1] == ':') {
        const char *close = memmem(at, left, ":]", 2);
        if (close) {
            *safe &= is_safe_name(at + 2, (size_t)(close - at) - 2);
            return (size_t)(close + 2 - at);
        }
    }
    if (at[0] == '\\') {
        if (left < 2 || at[1] == 'Q' || at[1] == 'E')
            return 0;
        bool letter = is_letter(at[1]) || ascii_is_digit(at[1]) || (unsigned char)at[1] >= 0x80;
        *safe &= !letter || strchr("dwhS", at[1]) != NULL;
        return 2;
    }
    *safe &= (unsigned char)at[0] >= 0x20;
    return 1;
}

/* The characters between the brackets, if they are of the simplest kinds. */
static bool simple_class(const char *at, const char *end, struct byte_run *ret)
{
    *ret = (struct byte_run){.least = 0};
    while (at < end) {
        size_t left = (size_t)(end - at);
        if (left >= 2 && at[0] == '\\' && at[1] == 'd') {
            add_range(ret, '0', '9');
            at += 2;
            continue;
        }
        if (!is_letter(at[0]) && !ascii_is_digit(at[0]))
            return false;
        bool range = left >= 3 && at[1] == '-';
        if (range && !is_letter(at[2]) && !ascii_is_digit(at[2]))
            return false;
        add_range(ret, at[0], range ? at[2] : at[0]);
        at += range ? 3 : 1;
    }
    return true;
}

static void class(struct parser *p, struct branch *b)
{
    const char *start = p->at++;
    bool negated = peek_at(p, 0) == '^', safe = true;
    p->at += negated;
    const char *items = p->at;
    if (peek_at(p, 0) == ']')
        p->at++;
    while (p->at < p->end && *p->at != ']') {
        size_t n = class_item(p->at, p->end, &safe);
        if (n == 0)
            break;
        p->at += n;
    }
    if (p->at >= p->end || *p->at != ']') {
        not_supported(p);
        return;
    }
    struct byte_run set;
    bool simple = !negated && simple_class(items, p->at, &set);
    p->at++;
    p->plain = false;
    end_run(b);
    if (simple)
        note_run(p, b, &set);
    if (negated) {
        emit_str(p, *items == ']' ? "[^\\n\\" : "[^\\n");
        emit(p, items, (size_t)(p->at - items));
        take_quantifier(p, b);
    } else if (safe) {
        other(p, b, start, (size_t)(p->at - start));
    } else {
        wrapped(p, b, start, (size_t)(p->at - start));
    }
}

/* -- Groups and branches ----------------------------------------------------------------------- */

static void alternatives(struct parser *p, struct known *ret);

/* The opening of a group: its length; 0 if it is none we know. */
static size_t group_opening(struct parser *p, bool *ret_looks)
{
    *ret_looks = false;
    if (peek_at(p, 1) == '*')
        return 0;
    if (peek_at(p, 1) != '?')
        return 1;
    int c = peek_at(p, 2);
    if (c == ':' || c == '>')
        return 3;
    if (c == '=' || c == '!') {
        *ret_looks = true;
        return 3;
    }
    if (c == 'i' && peek_at(p, 3) == ':') {
        p->fold_seen = true;
        return 4;
    }
    if (c == '<' && (peek_at(p, 3) == '=' || peek_at(p, 3) == '!')) {
        *ret_looks = true;
        return 4;
    }
    size_t n = c == 'P' ? 4 : 3;
    if ((c == '<' || (c == 'P' && peek_at(p, 3) == '<')) && is_letter(peek_at(p, n))) {
        while (is_letter(peek_at(p, n)) || ascii_is_digit(peek_at(p, n)) || peek_at(p, n) == '_')
            n++;
        return peek_at(p, n) == '>' ? n + 1 : 0;
    }
    return 0;
}

static void group(struct parser *p, struct branch *b)
{
    bool looks;
    size_t n = group_opening(p, &looks);
    if (n == 0 || ++p->depth > DEPTH_MAX) {
        not_supported(p);
        return;
    }
    struct known inner;
    p->plain = false;
    end_run(b);
    emit(p, p->at, n);
    p->at += n;
    alternatives(p, &inner);
    if (peek_at(p, 0) != ')') {
        not_supported(p);
        return;
    }
    p->at++;
    p->depth--;
    emit_str(p, ")");
    if (!take_quantifier(p, NULL) && !looks) {
        offer(b, &inner.literals);
        offer_run(b, &inner.run);
    }
}

static void one(struct parser *p, struct branch *b)
{
    switch (*p->at) {
    case '\\':
        parse_escape(p, b);
        return;
    case '[':
        class(p, b);
        return;
    case '(':
        if (peek_at(p, 1) == '?' && peek_at(p, 2) == 'i' && peek_at(p, 3) == ')') {
            p->fold_seen = true;
            p->at += 4;
            other(p, b, "(?i)", 4);
            return;
        }
        group(p, b);
        return;
    case '$':
        p->at++;
        other(p, b, LINE_END, strlen(LINE_END));
        return;
    case '{': /* none of the quantifiers that are known, but later PCRE2 know more of them */
        requantify(b, true);
        p->at++;
        other(p, b, "{", 1);
        return;
    case '^':
    case '.':
    case '*':
    case '+':
    case '?':
        p->at++;
        other(p, b, p->at - 1, 1);
        return;
    default: {
        const char *text = p->at;
        size_t size = char_size(p);
        p->at += size;
        take_char(p, b, text, size, text, size);
    }
    }
}

static void branch(struct parser *p, struct known *ret)
{
    struct branch b = {.last_char = 0};
    while (has_more(p) && *p->at != '|' && *p->at != ')')
        one(p, &b);
    end_run(&b);
    *ret = b.best;
}

/* Branches up to a closing parenthesis or the end. Of several, only literals are known. */
static void alternatives(struct parser *p, struct known *ret)
{
    struct literals all = {0};
    bool known = true, single = true;
    for (;; single = false) {
        branch(p, ret);
        known = known && join_literals(&all, &ret->literals);
        if (!has_more(p) || *p->at != '|')
            break;
        emit(p, p->at++, 1);
    }
    ret->literals.count = 0;
    if (known)
        ret->literals = all;
    if (!single)
        ret->run.least = 0;
}

/* Literals that are on most lines cost more than they save. */
static bool are_rare(const struct literals *set)
{
    return shortest(set) >= GOOD_LITERAL;
}

int translate(const char *pattern, size_t size, struct translation *ret)
{
    *ret = (struct translation){.text = BUF_UP_TO(TRANSLATION_MAX)};
    struct parser p = {.at = pattern, .end = pattern + size, .out = &ret->text, .plain = true};
    struct known known;
    alternatives(&p, &known);
    ret->literals = known.literals;
    ret->run = known.run;
    if (p.error == 0 && p.at < p.end)
        not_supported(&p);
    /* A literal of the greatest size may be a part of a longer one. */
    for (size_t i = 0; i < ret->literals.count; i++)
        p.plain &= ret->literals.items[i].size < LITERAL_SIZE_MAX / 2;
    ret->is_literal = p.plain && ret->literals.count > 0;
    if (p.fold_seen || (!ret->is_literal && !are_rare(&ret->literals)))
        ret->literals.count = ret->is_literal = 0;
    if (p.fold_seen || ret->literals.count > 0)
        ret->run.least = 0;
    return p.error;
}

void translation_done(struct translation *translation)
{
    buf_done(&translation->text);
}
