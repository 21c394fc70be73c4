#include "view/causes.h"

#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"
#include "text/brief.h"
#include "text/template.h"

/* -- The judgement ----------------------------------------------------------------------------- */

static bool begins_with_word(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    return size >= n && memcmp(text, word, n) == 0;
}

/* What may stand between two parts of a chain of tracebacks. */
static bool is_link(const char *text, size_t size)
{
    return begins_with_word(text, size, "Traceback (most") ||
           begins_with_word(text, size, "During handling of") ||
           begins_with_word(text, size, "The above exception");
}

static enum salience judge_traced(struct causes *c, const char *text, size_t size)
{
    if (begins_with_word(text, size, "Traceback (most")) {
        c->traced = true;
        return SALIENCE_NONE;
    }
    if (!c->traced || text[0] == ' ' || text[0] == '\t' || is_link(text, size))
        return SALIENCE_NONE;
    c->traced = false;
    return SALIENCE_CAUSE;
}

static bool is_foretold(const struct causes *c)
{
    return c->traced || c->announced != SALIENCE_NONE;
}

bool causes_await(const struct causes *c)
{
    return is_foretold(c) || c->open_count > 0;
}

enum salience causes_judge(struct causes *c, const struct salience_filter *filter, const char *text,
                           size_t size, size_t *ret_at)
{
    *ret_at = 0;
    bool possible = salience_possible(filter, text, size);
    if (!possible && !is_foretold(c))
        return SALIENCE_NONE;
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    if (size == 0)
        return SALIENCE_NONE;
    enum salience before = c->announced;
    enum salience salience = possible ? salience_of(filter, text, size, ret_at) : SALIENCE_NONE;
    c->announced = salience >= SALIENCE_ERROR && text[size - 1] == ':' ? salience : SALIENCE_NONE;
    enum salience traced = judge_traced(c, text, size);
    if (traced != SALIENCE_NONE)
        *ret_at = 0;
    salience = MAX(MAX(salience, before), traced);
    c->count[salience] += salience != SALIENCE_NONE;
    return salience;
}

/* -- What is kept ------------------------------------------------------------------------------ */

static void keep_near(struct near_line *to, const struct cause_line *line)
{
    struct cut cut = cut_of(line->text, line->size, line->lost);
    to->raw = line->raw;
    to->size = cut_middle(to->text, sizeof to->text, &cut, &to->lost);
}

static void keep_cause(struct causes *c, struct cause *to, enum salience salience, size_t at,
                       const struct cause_line *line)
{
    struct cut cut = cut_of(line->text, line->size, line->lost);
    to->raw = line->raw;
    to->salience = salience;
    to->size = cut_around(to->text, sizeof to->text, &cut, at, &to->lost);
    to->near_count = c->recent_count;
    memcpy(to->near, c->recent, c->recent_count * sizeof c->recent[0]);
}

/* A slot that gets another cause waits for nothing. */
static void close_cause(struct causes *c, const struct cause *cause)
{
    size_t left = 0;
    for (size_t i = 0; i < c->open_count; i++)
        if (c->open[i].cause != cause)
            c->open[left++] = c->open[i];
    c->open_count = left;
}

/* The line is one after each cause that is open. */
static void note_after(struct causes *c, const struct near_line *line)
{
    size_t left = 0;
    for (size_t i = 0; i < c->open_count; i++) {
        struct open_cause open = c->open[i];
        open.cause->near[open.cause->near_count++] = *line;
        if (++open.after < CAUSE_AFTER)
            c->open[left++] = open;
    }
    c->open_count = left;
}

static void note_recent(struct causes *c, const struct near_line *line)
{
    if (c->recent_count == CAUSE_BEFORE) {
        memmove(&c->recent[0], &c->recent[1], sizeof c->recent - sizeof c->recent[0]);
        c->recent_count--;
    }
    c->recent[c->recent_count++] = *line;
}

/* Which kind goes if there are too many: of those that say the least, the oldest, but neither one
 * of the first half nor one that is known to be frequent, as long as there are others. */
static size_t least_kind(const struct causes *c)
{
    size_t best = 0, worth = SIZE_MAX;
    for (size_t i = 0; i < c->kind_count; i++) {
        const struct cause_kind *kind = &c->kinds[i];
        size_t w = (size_t)kind->salience * 4 + (kind->turn <= CAUSE_KINDS / 2 ? 2 : 0) +
                   (kind->count > 1 ? 1 : 0);
        if (w < worth || (w == worth && kind->turn < c->kinds[best].turn)) {
            best = i;
            worth = w;
        }
    }
    return best;
}

static struct cause_kind *find_kind(struct causes *c, enum salience salience, uint64_t template)
{
    for (size_t i = 0; i < c->kind_count; i++)
        if (c->templates[i] == template)
            return &c->kinds[i];
    size_t at = c->kind_count;
    if (at < CAUSE_KINDS)
        c->kind_count++;
    else if (c->kinds[at = least_kind(c)].salience > salience)
        return NULL;
    for (size_t i = 0; i <= CAUSE_FIRST; i++)
        close_cause(c, &c->kinds[at].kept[i]);
    c->templates[at] = template;
    c->kinds[at].salience = salience;
    c->kinds[at].count = 0;
    c->kinds[at].turn = ++c->begun;
    return &c->kinds[at];
}

/* The word that begins at a byte, in small letters. */
static uint64_t hash_word(const char *text, size_t size, size_t at)
{
    char word[32];
    size_t n = 0;
    while (n < sizeof word && at + n < size &&
           (n == 0 || ascii_is_alnum(text[at + n]) || (uint8_t)text[at + n] >= 0x80)) {
        word[n] = ascii_lower(text[at + n]);
        n++;
    }
    return template_hash(word, n) | 1;
}

/* The slot of a family, or the one that it would get; NULL if all are taken. */
static const struct cause_family *find_family(const struct causes *c, uint64_t word)
{
    for (size_t i = 0; i < CAUSE_FAMILIES; i++) {
        const struct cause_family *family = &c->families[(word + i) % CAUSE_FAMILIES];
        if (family->word == word || family->word == 0)
            return family;
    }
    return NULL;
}

static void count_in_family(struct causes *c, uint64_t word)
{
    struct cause_family *family = (struct cause_family *)find_family(c, word);
    if (!family)
        return;
    family->word = word;
    family->count++;
}

uint64_t causes_in_family(const struct causes *c, const struct cause_kind *kind)
{
    const struct cause_family *family = find_family(c, kind->family);
    return family && family->count > 0 ? family->count : 1;
}

static void add_to_kind(struct causes *c, enum salience salience, size_t at,
                        const struct cause_line *line)
{
    uint64_t family = hash_word(line->text, line->size, at);
    count_in_family(c, family);
    struct cause_kind *kind = find_kind(c, salience, template_hash(line->text, line->size));
    if (!kind)
        return;
    kind->family = family;
    struct cause *to = &kind->kept[MIN(kind->count, (uint64_t)CAUSE_FIRST)];
    kind->count++;
    kind->salience = MAX(kind->salience, salience);
    close_cause(c, to);
    keep_cause(c, to, salience, at, line);
    c->open[c->open_count++] = (struct open_cause){to, 0};
}

void causes_take(struct causes *c, enum salience salience, size_t at, const struct cause_line *line)
{
    struct near_line near;
    keep_near(&near, line);
    note_after(c, &near);
    if (salience != SALIENCE_NONE)
        add_to_kind(c, salience, at, line);
    note_recent(c, &near);
}

size_t causes_kept(const struct cause_kind *kind)
{
    return MIN(kind->count, (uint64_t)CAUSE_FIRST + 1);
}
