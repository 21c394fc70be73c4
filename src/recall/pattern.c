#include "recall/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/find.h"
#include "recall/translate.h"
#include "text/utf8.h"

/*
 * A match is first tried on small slices with a small limit: a bad pattern then costs little.
 * PCRE2 counts steps for each byte a match may begin at, so the size of a slice is a limit too.
 * What needs more is tried again with callouts, in which the watchdog looks, and a great limit.
 */
#define SLICE         ((size_t)16 * 1024)
#define UNGUARDED_MAX ((size_t)64 * 1024) /* a longer slice, which is one line, is guarded */
#define FAST_LIMIT    20000u
#define GUARDED_LIMIT 5000000u
#define HEAP_LIMIT_KB (16u * 1024)
#define JIT_STACK_MAX ((size_t)1024 * 1024)
#define LOOK_EVERY    64 /* callouts */
#define SLICES_A_LOOK 32

_Static_assert(LITERALS_MAX <= PATTERN_NEEDLES, "a text remembers where each of them is");

/* How the bytes of a text are read. */
enum code_kind { BYTES, UTF, KINDS };

struct pattern {
    char *text;
    size_t size;
    uint32_t options;
    struct watchdog *dog;
    bool literal; /* every byte stands for itself */
    bool fold;
    bool ascii;   /* the pattern is: on ASCII text, BYTES and UTF are the same */
    bool utf;     /* the pattern is valid UTF-8 */
    bool by_line; /* it is looked for as it is, in one line after another */
    bool spans;   /* it is looked for as it is, in all lines together */
    struct translation translation;
    pcre2_code *codes[KINDS][2]; /* fast, guarded */
    bool tried[KINDS][2];
    pcre2_match_data *match;
    pcre2_match_context *contexts[2];
    pcre2_jit_stack *jit_stack;
    unsigned callouts;
    unsigned slices;

    struct needle needles[LITERALS_MAX];
    size_t needle_count;
    bool exact;          /* where a needle is, there is a match */
    struct byte_run run; /* instead of needles; least 0 = none */
};

static int out_of_memory(nacre_error *err)
{
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

/* -- Compiling --------------------------------------------------------------------------------- */

static int guard(pcre2_callout_block *block UNUSED, void *userdata)
{
    struct pattern *p = userdata;
    if (++p->callouts % LOOK_EVERY != 0)
        return 0;
    return watchdog_look(p->dog) != 0 ? PCRE2_ERROR_CALLOUT : 0;
}

static pcre2_code *compile(struct pattern *p, bool original, enum code_kind kind, bool guarded,
                           nacre_error *err)
{
    int code;
    PCRE2_SIZE offset;
    uint32_t options = p->options;
    if (kind == UTF)
        options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (p->literal ? 0 : PCRE2_UCP);
    if (guarded)
        options |= PCRE2_AUTO_CALLOUT;
    if ((!original && !p->literal) || p->spans)
        options |= PCRE2_MULTILINE;
    bool as_it_is = original || p->literal;
    pcre2_code *result =
        pcre2_compile((PCRE2_SPTR)(as_it_is ? p->text : p->translation.text.data),
                      as_it_is ? p->size : p->translation.text.len, options, &code, &offset, NULL);
    if (!result) {
        char words[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)words, sizeof words);
        err_set(err, NACRE_EINVAL,
                "the pattern is no regular expression: %s, at offset %zu; use "
                "the literal mode to search for the text itself",
                words, (size_t)offset);
        return NULL;
    }
    /* Without it, where the system forbids code made at run time, it is only slower. */
    pcre2_jit_compile(result, PCRE2_JIT_COMPLETE);
    return result;
}

static pcre2_code *code_for(struct pattern *p, enum code_kind kind, bool guarded)
{
    if (!p->tried[kind][guarded]) {
        p->tried[kind][guarded] = true;
        p->codes[kind][guarded] = compile(p, p->by_line || p->spans, kind, guarded, NULL);
    }
    return p->codes[kind][guarded];
}

static int make_contexts(struct pattern *p)
{
    p->match = pcre2_match_data_create(1, NULL);
    p->jit_stack = pcre2_jit_stack_create((size_t)32 * 1024, JIT_STACK_MAX, NULL);
    for (int i = 0; i < 2; i++) {
        p->contexts[i] = pcre2_match_context_create(NULL);
        if (!p->contexts[i] || !p->match)
            return -ENOMEM;
        pcre2_set_match_limit(p->contexts[i], i ? GUARDED_LIMIT : FAST_LIMIT);
        pcre2_set_depth_limit(p->contexts[i], i ? GUARDED_LIMIT : FAST_LIMIT);
        pcre2_set_heap_limit(p->contexts[i], HEAP_LIMIT_KB);
        if (p->jit_stack)
            pcre2_jit_stack_assign(p->contexts[i], NULL, p->jit_stack);
    }
    pcre2_set_callout(p->contexts[1], guard, p);
    return 0;
}

/* -- Literals ---------------------------------------------------------------------------------- */

static void lower(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] | 0x20);
}

/* Needles fold ASCII letters alone. */
static void set_needles(struct pattern *p)
{
    struct literals *set = &p->translation.literals;
    if (p->fold && !p->ascii)
        return;
    for (size_t i = 0; i < set->count; i++) {
        struct literal *item = &set->items[i];
        if (p->fold)
            lower(item->text, item->size);
        needle_init(&p->needles[i], item->text, item->size, p->fold);
    }
    p->needle_count = set->count;
    p->exact = p->translation.is_literal;
}

/* Bytes above 0x7f are in the set anyway, so letters that fold into ASCII are, too. */
static void set_run(struct pattern *p)
{
    p->run = p->translation.run;
    for (int c = 'a'; p->fold && c <= 'z'; c++)
        p->run.set[c] = p->run.set[c & ~0x20] = p->run.set[c] || p->run.set[c & ~0x20];
}

/* The whole text of a literal pattern, or the longest beginning of it that fits. */
static void literal_set(struct pattern *p)
{
    struct literals *set = &p->translation.literals;
    set->count = 1;
    set->items[0].size = MIN(p->size, (size_t)LITERAL_SIZE_MAX);
    memcpy(set->items[0].text, p->text, set->items[0].size);
    p->translation.is_literal = p->size <= LITERAL_SIZE_MAX;
}

static int analyse(struct pattern *p, nacre_error *err)
{
    pcre2_code *code = compile(p, true, p->utf ? UTF : BYTES, false, err);
    if (!code)
        return NACRE_EINVAL;
    pcre2_code_free(code);
    if (p->spans)
        return 0;
    if (p->literal) {
        literal_set(p);
    } else {
        int e = translate(p->text, p->size, &p->translation);
        if (e == -ENOMEM)
            return out_of_memory(err);
        p->by_line = e < 0 || !code_for(p, p->utf ? UTF : BYTES, false);
        if (p->by_line) {
            memset(p->tried, 0, sizeof p->tried);
            p->translation.literals.count = p->translation.run.least = 0;
        }
    }
    set_needles(p);
    set_run(p);
    return 0;
}

static int check_text(const char *text, size_t size, bool spans, nacre_error *err)
{
    if (size == 0)
        return err_set(err, NACRE_EINVAL, "the pattern is empty");
    if (size > PATTERN_MAX)
        return err_set(err, NACRE_EINVAL, "the pattern is longer than %d bytes", PATTERN_MAX);
    if (!spans && memchr(text, '\n', size))
        return err_set(err, NACRE_EINVAL,
                       "the pattern has a newline, but lines are searched one by one: search for "
                       "one of its lines");
    return 0;
}

static int make(const char *text, const struct pattern *how, struct pattern **ret, nacre_error *err)
{
    size_t size = strlen(text);
    int r = check_text(text, size, how->spans, err);
    if (r < 0)
        return r;
    struct pattern *p = calloc(1, sizeof *p);
    if (!p)
        return out_of_memory(err);
    *p = *how;
    p->text = strdup(text);
    p->size = size;
    p->ascii = bytes_are_ascii(text, size);
    p->utf = utf8_is_valid(text, size);
    p->options =
        (p->literal ? PCRE2_LITERAL : PCRE2_NEVER_BACKSLASH_C) | (p->fold ? PCRE2_CASELESS : 0);
    r = !p->text || make_contexts(p) < 0 ? out_of_memory(err) : analyse(p, err);
    if (r < 0) {
        pattern_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

int pattern_new(const char *text, bool literal, bool ignore_case, struct watchdog *dog,
                struct pattern **ret, nacre_error *err)
{
    struct pattern how = {.literal = literal, .fold = ignore_case, .dog = dog};
    return make(text, &how, ret, err);
}

int pattern_new_spanning(const char *text, struct watchdog *dog, struct pattern **ret,
                         nacre_error *err)
{
    struct pattern how = {.spans = true, .dog = dog};
    return make(text, &how, ret, err);
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    for (int kind = 0; kind < KINDS; kind++)
        for (int guarded = 0; guarded < 2; guarded++)
            pcre2_code_free(p->codes[kind][guarded]);
    for (int i = 0; i < 2; i++)
        pcre2_match_context_free(p->contexts[i]);
    pcre2_match_data_free(p->match);
    pcre2_jit_stack_free(p->jit_stack);
    translation_done(&p->translation);
    free(p->text);
    free(p);
}

void pattern_force_lines(struct pattern *p)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int guarded = 0; guarded < 2; guarded++)
            pcre2_code_free(TAKE_PTR(p->codes[kind][guarded]));
    memset(p->tried, 0, sizeof p->tried);
    p->by_line = true;
    p->needle_count = p->run.least = 0;
}

/* -- Matching ---------------------------------------------------------------------------------- */

/* A part of a text: one line or more. */
struct slice {
    const char *data;
    size_t size;
    uint32_t options; /* of the match */
};

static int too_costly(nacre_error *err)
{
    return err_set(err, NACRE_ELIMIT,
                   "the pattern takes too many steps on a line; repeat less inside of repeats, or "
                   "search for a literal");
}

static int run_code(struct pattern *p, enum code_kind kind, bool guarded, const struct slice *slice)
{
    const pcre2_code *code = code_for(p, kind, guarded);
    if (!code)
        return PCRE2_ERROR_NOMEMORY;
    return pcre2_match(code, (PCRE2_SPTR)slice->data, slice->size, 0, slice->options, p->match,
                       p->contexts[guarded]);
}

static bool is_limit(int rc)
{
    return rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT ||
           rc == PCRE2_ERROR_HEAPLIMIT || rc == PCRE2_ERROR_JIT_STACKLIMIT;
}

static int match_kind(struct pattern *p, enum code_kind kind, const struct slice *slice,
                      struct hit *ret, nacre_error *err)
{
    int rc = PCRE2_ERROR_MATCHLIMIT;
    if (slice->size <= UNGUARDED_MAX)
        rc = run_code(p, kind, false, slice);
    if (is_limit(rc))
        rc = run_code(p, kind, true, slice);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc == PCRE2_ERROR_CALLOUT)
        return NACRE_EBUSY;
    if (is_limit(rc))
        return too_costly(err);
    if (rc == PCRE2_ERROR_NOMEMORY)
        return out_of_memory(err);
    if (rc < 0)
        return err_set(err, NACRE_ELIMIT, "the pattern cannot be matched: PCRE2 says %d", rc);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(p->match);
    *ret = (struct hit){MIN(found[0], found[1]), MAX(found[0], found[1])};
    return 1;
}

/* Behind the last newline no line begins. */
static bool is_behind(const struct slice *slice, const struct hit *hit)
{
    return hit->start == slice->size && slice->size > 0 && slice->data[slice->size - 1] == '\n';
}

static int match_valid(struct pattern *p, enum code_kind kind, const struct slice *slice,
                       struct hit *ret, nacre_error *err)
{
    int r = match_kind(p, kind, slice, ret, err);
    return r > 0 && is_behind(slice, ret) ? 0 : r;
}

/* One line without its newline, or all of them for a pattern that spans them. */
static int match_line(struct pattern *p, const struct slice *line, struct hit *ret,
                      nacre_error *err)
{
    bool ascii = bytes_are_ascii(line->data, line->size);
    enum code_kind kind = !p->utf || (p->ascii && ascii) ? BYTES : UTF;
    int r = match_kind(p, kind, line, ret, err);
    if (r == 0 && kind == UTF && p->ascii && !utf8_is_valid(line->data, line->size))
        r = match_kind(p, BYTES, line, ret, err);
    return r;
}

/* In its own words "$" does not know of carriage returns. */
static int match_original(struct pattern *p, const struct slice *line, struct hit *ret,
                          nacre_error *err)
{
    struct slice bare = *line;
    if (bare.size > 0 && bare.data[bare.size - 1] == '\r')
        bare.size--;
    int r = match_line(p, &bare, ret, err);
    return r == 0 && bare.size < line->size ? match_line(p, line, ret, err) : r;
}

static int match_by_line(struct pattern *p, const struct slice *slice, struct hit *ret,
                         nacre_error *err)
{
    for (size_t at = 0; at < slice->size;) {
        const char *newline = memchr(slice->data + at, '\n', slice->size - at);
        size_t end = newline ? (size_t)(newline - slice->data) : slice->size;
        struct slice line = {.data = slice->data + at, .size = end - at};
        if (at == 0)
            line.options |= slice->options & PCRE2_NOTBOL;
        if (!newline)
            line.options |= slice->options & PCRE2_NOTEOL;
        int r = p->by_line && !p->literal ? match_original(p, &line, ret, err)
                                          : match_line(p, &line, ret, err);
        if (r > 0)
            *ret = (struct hit){ret->start + at, ret->end + at};
        if (r != 0)
            return r;
        at = end + 1;
    }
    return 0;
}

static int match_slice(struct pattern *p, const struct slice *slice, struct hit *ret,
                       nacre_error *err)
{
    if (++p->slices % SLICES_A_LOOK == 0 && watchdog_look(p->dog) != 0)
        return NACRE_EBUSY;
    if (p->spans)
        return match_line(p, slice, ret, err);
    if (p->by_line)
        return match_by_line(p, slice, ret, err);
    if (!p->utf || (p->ascii && bytes_are_ascii(slice->data, slice->size)))
        return match_valid(p, BYTES, slice, ret, err);
    if (p->ascii && !utf8_is_valid(slice->data, slice->size))
        return match_by_line(p, slice, ret, err);
    return match_valid(p, UTF, slice, ret, err);
}

/* -- Finding ----------------------------------------------------------------------------------- */

void pattern_begin(const struct pattern *p, struct text *text)
{
    memset(text->known, 0, sizeof text->known);
    /* Beyond ASCII there are letters that fold into it: the Kelvin sign is a k. */
    text->has_needles = p->needle_count > 0 ? !p->fold || bytes_are_ascii(text->data, text->size)
                                            : p->run.least > 0;
}

/* The first needle or run at or after from; text->size if there is none. */
static size_t next_needle(const struct pattern *p, struct text *text, size_t from,
                          size_t *ret_which)
{
    size_t first = text->size;
    if (p->run.least > 0)
        return byte_run_find(&p->run, text->data, from, text->size);
    for (size_t i = 0; i < p->needle_count; i++) {
        if (!text->known[i] || text->next[i] < from) {
            text->next[i] = needle_find(&p->needles[i], text->data, from, text->size);
            text->known[i] = true;
        }
        if (text->next[i] < first) {
            first = text->next[i];
            *ret_which = i;
        }
    }
    return first;
}

static size_t line_end(const struct text *text, size_t at)
{
    const char *newline = at < text->size ? memchr(text->data + at, '\n', text->size - at) : NULL;
    return newline ? (size_t)(newline + 1 - text->data) : text->size;
}

static int find_in(struct pattern *p, const struct text *text, size_t start, size_t end,
                   struct hit *ret, nacre_error *err)
{
    struct slice slice = {.data = text->data + start, .size = end - start};
    if (start == 0 && text->cut_start)
        slice.options |= PCRE2_NOTBOL;
    if (end == text->size && text->cut_end)
        slice.options |= PCRE2_NOTEOL;
    int r = match_slice(p, &slice, ret, err);
    if (r > 0)
        *ret = (struct hit){ret->start + start, ret->end + start};
    return r;
}

static int find_by_needle(struct pattern *p, struct text *text, size_t from, struct hit *ret,
                          nacre_error *err)
{
    for (;;) {
        size_t which = 0, at = next_needle(p, text, from, &which);
        if (at == text->size)
            return 0;
        if (p->exact) {
            *ret = (struct hit){at, at + p->needles[which].size};
            return 1;
        }
        const char *newline = memrchr(text->data + from, '\n', at - from);
        size_t start = newline ? (size_t)(newline + 1 - text->data) : from;
        size_t end = line_end(text, at);
        int r = find_in(p, text, start, end, ret, err);
        if (r != 0)
            return r;
        from = end;
    }
}

int pattern_find(struct pattern *p, struct text *text, size_t from, struct hit *ret,
                 nacre_error *err)
{
    if (p->spans)
        return find_in(p, text, from, text->size, ret, err);
    if (text->has_needles)
        return find_by_needle(p, text, from, ret, err);
    while (from < text->size) {
        size_t end = line_end(text, MIN(from + SLICE, text->size) - 1);
        int r = find_in(p, text, from, end, ret, err);
        if (r != 0)
            return r;
        from = end;
    }
    return 0;
}
