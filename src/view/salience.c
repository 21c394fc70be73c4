#include "view/salience.h"

#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/ascii.h"
#include "base/assert.h"
#include "base/defs.h"
#include "view/salience_table.h"

const char *salience_word(size_t i)
{
    return i < salience_word_count ? salience_words[i].text : NULL;
}

static bool is_word(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

/* -- The prefilter ------------------------------------------------------------------------------
 * Every second group of three bytes is looked up, folded to five bits a byte so that case does not
 * matter. Of the four letters of a key one of the two groups begins at such a byte; then the words
 * with that key are compared. */

static uint32_t fold(uint32_t bytes)
{
    return ((bytes & 0x1f) << 10) | ((bytes >> 3) & 0x3e0) | ((bytes >> 16) & 0x1f);
}

static uint32_t load3(const char *at)
{
    return (uint32_t)(uint8_t)at[0] | (uint32_t)(uint8_t)at[1] << 8 |
           (uint32_t)(uint8_t)at[2] << 16;
}

static void add_key(struct salience_filter *f, uint16_t number, uint16_t word, uint8_t back)
{
    uint16_t *first = &f->wanted[fold(load3(salience_words[word].text + back))];
    f->keys[number] = (struct salience_key){.word = word, .back = back, .next = *first};
    *first = number;
}

/* How common bytes with these low bits are in logs, in thousandths. */
static const uint8_t common[32] = {120, 60, 12, 25, 30, 80, 15, 15, 25, 50, 5,  8, 35, 25, 60, 60,
                                   35,  17, 60, 60, 70, 35, 18, 22, 15, 22, 10, 8, 5,  5,  5,  5};
#define ANYTHING     1017 /* all of them together */

#define BEYOND_ASCII 7  /* the group of keys that begin with a byte beyond ASCII */
#define LONGEST      16 /* of longer words there is enough to choose from */

static bool is_beyond_ascii(char c)
{
    return (uint8_t)c >= 0x80;
}

/* Of each group and each byte of its keys: how common the bytes there are together. */
struct grouping {
    uint32_t sums[8][SALIENCE_DEPTH];
};

static uint64_t chance(const uint32_t sums[SALIENCE_DEPTH])
{
    uint64_t product = 1;
    for (size_t k = 0; k < SALIENCE_DEPTH; k++)
        product *= sums[k];
    return product;
}

/* The sums of a group if a key was in it. A short key has anything behind it. */
static void sums_with(const struct salience_filter *f, const struct grouping *g, unsigned group,
                      const char *key, size_t size, uint32_t ret[SALIENCE_DEPTH])
{
    for (size_t k = 0; k < SALIENCE_DEPTH; k++) {
        uint8_t c = k < size ? (uint8_t)key[k] & 0x1f : 0;
        bool there = f->groups[k][c] >> group & 1;
        ret[k] = k >= size ? ANYTHING : g->sums[group][k] + (there ? 0 : common[c]);
    }
}

/* The group that a key makes worse the least, and how much that is. Those beyond ASCII have one. */
static unsigned best_group(const struct salience_filter *f, const struct grouping *g,
                           const char *key, size_t size, uint64_t *ret_worse)
{
    unsigned best = BEYOND_ASCII;
    uint32_t sums[SALIENCE_DEPTH];
    *ret_worse = is_beyond_ascii(key[0]) ? 0 : UINT64_MAX;
    for (unsigned group = 0; group<BEYOND_ASCII && * ret_worse> 0; group++) {
        sums_with(f, g, group, key, size, sums);
        uint64_t worse = chance(sums) - chance(g->sums[group]);
        if (worse < *ret_worse) {
            *ret_worse = worse;
            best = group;
        }
    }
    return best;
}

static void add_to_group(struct salience_filter *f, struct grouping *g, unsigned group,
                         const char *key, size_t size)
{
    uint32_t sums[SALIENCE_DEPTH];
    sums_with(f, g, group, key, size, sums);
    memcpy(g->sums[group], sums, sizeof sums);
    for (size_t k = 0; k < SALIENCE_DEPTH; k++)
        for (uint8_t c = 0; c < 32; c++)
            if (k >= size || c == ((uint8_t)key[k] & 0x1f))
                f->groups[k][c] |= (uint8_t)(1u << group);
}

/* Which four bytes of a word are its key: those that many words have are best. */
static void choose_key(struct salience_filter *f, struct grouping *g, size_t word)
{
    const char *text = salience_words[word].text;
    uint64_t worse, least = UINT64_MAX;
    unsigned best = 0;
    for (size_t at = 0; least > 0 && text[at + SALIENCE_DEPTH - 1]; at++) {
        unsigned group = best_group(f, g, text + at, SALIENCE_DEPTH, &worse);
        if (worse < least) {
            least = worse;
            best = group;
            f->key[word] = (uint8_t)at;
        }
    }
    add_to_group(f, g, best, text + f->key[word], SALIENCE_DEPTH);
}

/* The beginnings come first, since the short ones are the worst company; then the words of which
 * there is least to choose from. */
static void make_groups(struct salience_filter *f)
{
    struct grouping g = {0};
    uint64_t worse;
    for (size_t i = 0; i < salience_beginning_count; i++) {
        const char *text = salience_beginnings[i].text;
        size_t size = MIN(strlen(text), (size_t)SALIENCE_DEPTH);
        add_to_group(f, &g, best_group(f, &g, text, size, &worse), text, size);
    }
    for (size_t size = SALIENCE_DEPTH; size <= LONGEST; size++)
        for (size_t i = 0; i < salience_word_count; i++)
            if (MIN(strlen(salience_words[i].text), (size_t)LONGEST) == size)
                choose_key(f, &g, i);
}

/* The first two letters of a word, as one number. */
static size_t pair_of(const char *text)
{
    uint32_t first = (uint8_t)ascii_lower(text[0]), second = (uint8_t)ascii_lower(text[1]);
    return (first * 37 + second) % SALIENCE_PAIRS;
}

static struct salience_filter the_filter;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_filter(void)
{
    struct salience_filter *filter = &the_filter;
    must(salience_word_count <= SALIENCE_WORDS);
    make_groups(filter);
    uint16_t number = 1;
    for (size_t n = 0; n < salience_word_count; n++) {
        uint16_t i = (uint16_t)n;
        add_key(filter, number++, i, filter->key[i]);
        add_key(filter, number++, i, filter->key[i] + 1);
        size_t pair = pair_of(salience_words[i].text);
        filter->next[i] = filter->first[pair];
        filter->first[pair] = i + 1;
        filter->length[i] = (uint8_t)strlen(salience_words[i].text);
    }
    for (size_t i = 0; i < salience_beginning_count; i++)
        filter->begins[(uint8_t)salience_beginnings[i].text[0]] = true;
}

const struct salience_filter *salience_filter(void)
{
    pthread_once(&made, make_filter);
    return &the_filter;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t blanks(const char *line, size_t size)
{
    size_t n = 0;
    while (n < size && is_blank(line[n]))
        n++;
    return n;
}

static bool begins(const char *line, size_t size, const char *text)
{
    size_t n = strlen(text);
    return size >= n && memcmp(line, text, n) == 0;
}

static enum salience beginning_salience(const char *line, size_t size)
{
    for (size_t i = 0; i < salience_beginning_count; i++)
        if (line[0] == salience_beginnings[i].text[0] &&
            begins(line, size, salience_beginnings[i].text))
            return salience_beginnings[i].salience;
    return SALIENCE_NONE;
}

/* Whether a word with this key really stands there. */
static bool stands_there(const struct salience_filter *f, const char *line, size_t size, size_t at)
{
    uint16_t number = f->wanted[fold(load3(line + at))];
    for (; number; number = f->keys[number].next) {
        const struct salience_key *key = &f->keys[number];
        const char *text = salience_words[key->word].text;
        if (at < key->back || ascii_lower(line[at - key->back]) != text[0])
            continue;
        size_t n = strlen(text);
        if (size - (at - key->back) >= n && ascii_is_same(line + at - key->back, text, n))
            return true;
    }
    return false;
}

bool salience_possible(const struct salience_filter *f, const char *line, size_t size)
{
    size = MIN(size, (size_t)SALIENCE_LOOK);
    size_t skip = blanks(line, size);
    if (skip < size && f->begins[(uint8_t)line[skip]] &&
        beginning_salience(line + skip, size - skip) != SALIENCE_NONE)
        return true;
    size_t i = 0;
    for (; i + 4 <= size; i += 2) {
        uint32_t bytes;
        memcpy(&bytes, line + i, sizeof bytes);
        if (__builtin_expect(f->wanted[fold(bytes)], 0) && stands_there(f, line, size, i))
            return true;
    }
    return i + 3 <= size && stands_there(f, line, size, i);
}

/* Whether only blanks stand between the beginning of a line and this byte. */
static bool begins_line(const char *text, size_t at)
{
    while (at > 0 && is_blank(text[at - 1]))
        at--;
    return at == 0 || text[at - 1] == '\n';
}

static bool is_there(const struct salience_filter *f, const char *text, size_t size, size_t at)
{
    return stands_there(f, text, size, at) ||
           (f->begins[(uint8_t)text[at]] && begins_line(text, at) &&
            beginning_salience(text + at, size - at) != SALIENCE_NONE);
}

/* Eight groups of keys at once: of each position, the groups of which a key may stand there. */
static uint8_t groups_at(const struct salience_filter *f, const char *at)
{
    uint8_t groups = is_beyond_ascii(at[0]) ? 0xff : (1 << BEYOND_ASCII) - 1;
    for (size_t k = 0; k < SALIENCE_DEPTH; k++)
        groups &= f->groups[k][(uint8_t)at[k] & 0x1f];
    return groups;
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

/* The groups of the bytes at 32 positions: one table for either value of the fifth bit. */
AVX2 static inline __m256i groups_of_32(const uint8_t groups[32], const char *at)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)at);
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)groups));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(groups + 16)));
    __m256i nibbles = _mm256_and_si256(bytes, _mm256_set1_epi8(0x0f));
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(low, nibbles), _mm256_shuffle_epi8(high, nibbles),
                              _mm256_slli_epi16(bytes, 3));
}

/* Looks at 32 positions at a time from *at on; true if it is at *at then. */
AVX2 static bool next_wide(const struct salience_filter *f, const char *text, size_t size,
                           size_t *at)
{
    for (; *at + 32 + SALIENCE_DEPTH <= size; *at += 32) {
        const char *s = text + *at;
        __m256i found = _mm256_and_si256(
            _mm256_and_si256(groups_of_32(f->groups[0], s), groups_of_32(f->groups[1], s + 1)),
            _mm256_and_si256(groups_of_32(f->groups[2], s + 2), groups_of_32(f->groups[3], s + 3)));
        __m256i first = _mm256_loadu_si256((const __m256i *)s);
        __m256i beyond = _mm256_cmpgt_epi8(_mm256_setzero_si256(), first);
        found = _mm256_and_si256(
            found, _mm256_or_si256(beyond, _mm256_set1_epi8((1 << BEYOND_ASCII) - 1)));
        __m256i nothing = _mm256_cmpeq_epi8(found, _mm256_setzero_si256());
        for (uint32_t bits = ~(uint32_t)_mm256_movemask_epi8(nothing); bits; bits &= bits - 1) {
            size_t position = *at + (size_t)__builtin_ctz(bits);
            if (is_there(f, text, size, position)) {
                *at = position;
                return true;
            }
        }
    }
    return false;
}
#endif

size_t salience_next(const struct salience_filter *f, const char *text, size_t size)
{
    size_t at = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && next_wide(f, text, size, &at))
        return at;
#endif
    for (; at + SALIENCE_DEPTH <= size; at++)
        if (groups_at(f, text + at) && is_there(f, text, size, at))
            return at;
    return size;
}

/* -- The judgement ----------------------------------------------------------------------------- */

/* Characters that make one name of what stands on both sides of them: paths, options, members. */
static bool is_joint(char c)
{
    return c && strchr("-./\\$@", c);
}

static bool word_begins(const char *line, size_t at)
{
    if (at == 0)
        return true;
    if (is_word(line[at - 1]))
        return false;
    bool dots = at >= 2 && line[at - 1] == '.' && line[at - 2] == '.';
    return dots || !is_joint(line[at - 1]);
}

static bool word_ends(const char *line, size_t size, size_t end)
{
    if (end >= size || !is_word(line[end - 1]))
        return true;
    if (is_word(line[end]) || line[end] == '(')
        return false;
    return !(is_joint(line[end]) && end + 1 < size && is_word(line[end + 1]));
}

/* Whether the word before this byte says that there is none of what follows. */
static bool is_negated(const char *line, size_t at)
{
    static const char *const none[] = {"0",   "no", "zero", "without", "any",   "if", "on",
                                       "non", "as", "or",   "for",     "never", "not"};
    while (at > 0 && (is_blank(line[at - 1]) || line[at - 1] == '-'))
        at--;
    size_t end = at;
    while (at > 0 && is_word(line[at - 1]))
        at--;
    for (size_t i = 0; i < ARRAY_SIZE(none); i++)
        if (end - at == strlen(none[i]) && ascii_is_same(line + at, none[i], end - at))
            return true;
    return false;
}

/* Whether a value ends here: "null pointer" is not "null". */
static bool ends_value(const char *rest, size_t size)
{
    if (size > 1 && rest[0] == ' ' && (rest[1] == '(' || memchr(rest, '=', size)))
        return true;
    return size == 0 || strchr(",;.)]}|\"'", rest[0]);
}

/* Whether a value says that there is nothing, and no more: "0", "0.0", "none", "null", "[]". */
static bool is_nothing(const char *value, size_t size)
{
    static const char *const nothing[] = {"none", "null",  "nil", "false", "[]",
                                          "{}",   "<nil>", "ok",  "n/a",   "\"\""};
    size_t zeros = 0;
    while (zeros < size && (value[zeros] == '0' || (zeros > 0 && value[zeros] == '.')))
        zeros++;
    if (zeros > 0 && (zeros == size || !is_word(value[zeros])))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
        size_t n = strlen(nothing[i]);
        if (size >= n && ascii_is_same(value, nothing[i], n) && ends_value(value + n, size - n))
            return true;
    }
    return false;
}

static size_t skip_over(const char *line, size_t size, size_t at, const char *signs)
{
    while (at < size && line[at] && strchr(signs, line[at]))
        at++;
    return at;
}

/* "errors: 0", "failures=0", "\"error\":null", "error rate 0.0", "error none" */
static bool is_none_of(const char *line, size_t size, size_t end)
{
    static const char *const measures[] = {"rate", "count", "list", "total", "ratio", "code"};
    size_t at = skip_over(line, size, end, " \t");
    for (size_t i = 0; i < ARRAY_SIZE(measures); i++) {
        size_t n = strlen(measures[i]);
        if (size - at >= n && ascii_is_same(line + at, measures[i], n))
            at += n;
    }
    at = skip_over(line, size, at, "\"':= \t");
    return at > end && is_nothing(line + at, size - at);
}

static bool is_shouted(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            return false;
    return true;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);
    return size > n && memcmp(text + size - n, end, n) == 0;
}

/* Where a word stands by itself; size if nowhere. */
static size_t find_word(const char *line, size_t size, const char *word)
{
    size_t n = strlen(word);
    for (size_t at = 0; at + n <= size; at++)
        if (ascii_lower(line[at]) == word[0] && ascii_is_same(line + at, word, n) &&
            (at == 0 || !is_word(line[at - 1])) && (at + n == size || !is_word(line[at + n])))
            return at;
    return size;
}

/* Whether a line that says what was wanted says what came instead, too. */
static bool says_what_came(const char *line, size_t size)
{
    static const char *const came[] = {"got",   "but",     "actual", "received",
                                       "found", "instead", "was",    "found:"};
    for (size_t i = 0; i < ARRAY_SIZE(came); i++)
        if (find_word(line, size, came[i]) < size)
            return true;
    return false;
}

static enum salience word_salience(const struct word *word, size_t n, const char *line, size_t size,
                                   size_t at)
{
    if (size - at < n || !ascii_is_same(line + at, word->text, n) ||
        (word->kind != OPEN && !word_ends(line, size, at + n)))
        return SALIENCE_NONE;
    bool countable = word->kind == COUNTABLE;
    if ((countable && is_negated(line, at)) || is_none_of(line, size, at + n))
        return SALIENCE_NONE;
    if (word->kind == PAIRED && !says_what_came(line, size))
        return SALIENCE_NONE;
    if (countable && word->salience == SALIENCE_MENTION && is_shouted(line + at, n))
        return SALIENCE_ERROR;
    return word->salience;
}

/* "ValueError: ...", "java.lang.IllegalStateException": the name of an exception, which says most
 * where it begins the line. */
static enum salience name_salience(const char *line, size_t size, size_t at, bool first)
{
    size_t end = at;
    while (end < size && (is_word(line[end]) || line[end] == '.' || line[end] == '$'))
        end++;
    const char *name = line + at;
    if (!ends_with(name, end - at, "Error") && !ends_with(name, end - at, "Exception"))
        return SALIENCE_NONE;
    bool told = end == size || line[end] == ':' || (end + 1 < size && line[end + 1] == '[');
    return !told || is_none_of(line, size, end) ? SALIENCE_NONE
           : first                              ? SALIENCE_CAUSE
                                                : SALIENCE_ERROR;
}

static bool is_quiet(const char *line, size_t size)
{
    for (size_t i = 0; salience_quiet_beginnings[i]; i++)
        if (begins(line, size, salience_quiet_beginnings[i]))
            return true;
    for (size_t i = 0; salience_quiet_ends[i]; i++) {
        size_t n = strlen(salience_quiet_ends[i]);
        if (size >= n && memcmp(line + size - n, salience_quiet_ends[i], n) == 0)
            return true;
    }
    if (begins(line, size, "not ok ") &&
        (memmem(line, size, "# TODO", 6) || memmem(line, size, "# SKIP", 6)))
        return true;
    return memmem(line, size, " PASSED ", 8) || memmem(line, size, "  Passed  ", 10);
}

/* Whether a line says that what it names was dealt with; "0 ignored" is a count. */
static bool is_dealt_with(const char *line, size_t size)
{
    static const char *const so[] = {"handled",    "ignored",    "ignoring", "recovered",
                                     "suppressed", "successful", "success",  "succeeded"};
    for (size_t i = 0; i < ARRAY_SIZE(so); i++) {
        size_t at = find_word(line, size, so[i]);
        if (at < size && !(at >= 2 && ascii_is_digit(line[at - 2])))
            return true;
    }
    return false;
}

/* Whether a word is the label of its line: "warning: ...", "npm WARN ...", "[warn]". */
static bool is_label(const char *line, size_t size, size_t at)
{
    size_t end = at;
    while (end < size && (is_word(line[end]) || is_beyond_ascii(line[end])))
        end++;
    return end < size && (line[end] == ':' || line[end] == ']' || is_shouted(line + at, end - at));
}

/* The salience of the word that begins here. */
static enum salience salience_at(const struct salience_filter *f, const char *line, size_t size,
                                 size_t at)
{
    bool begun = !is_blank(line[at]) && word_begins(line, at);
    enum salience best = begun ? name_salience(line, size, at, at == 0) : SALIENCE_NONE;
    if (size - at < SALIENCE_DEPTH)
        return best;
    for (uint16_t i = f->first[pair_of(line + at)]; i; i = f->next[i - 1]) {
        const struct word *word = &salience_words[i - 1];
        if (!begun && word->kind != ANYWHERE)
            continue;
        enum salience found = word_salience(word, f->length[i - 1], line, size, at);
        best = MAX(best, found);
    }
    return best;
}

enum salience salience_of(const struct salience_filter *f, const char *line, size_t size,
                          size_t *ret_at)
{
    bool warned = false;
    size = MIN(size, (size_t)SALIENCE_LOOK);
    size_t skip = blanks(line, size);
    line += skip;
    size -= skip;
    *ret_at = skip;
    if (size == 0 || is_quiet(line, size))
        return SALIENCE_NONE;
    enum salience best = beginning_salience(line, size);
    for (size_t at = 0; at < size && best < SALIENCE_CAUSE; at++) {
        enum salience found = salience_at(f, line, size, at);
        warned |= found == SALIENCE_WARNING && best <= found && is_label(line, size, at);
        if (found > best) {
            best = found;
            *ret_at = skip + at;
        }
    }
    if (warned && best < SALIENCE_CAUSE)
        return SALIENCE_WARNING;
    return best > SALIENCE_WARNING && is_dealt_with(line, size) ? best - 1 : best;
}
