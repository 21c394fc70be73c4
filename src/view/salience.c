#include "view/salience.h"

#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/ascii.h"
#include "base/defs.h"

enum word_kind {
    PLAIN,
    COUNTABLE, /* means nothing after "0" or "no"; in capitals it is an error */
    OPEN,      /* the beginning of a longer word */
};

/*
 * Words anywhere in a line, in any case. key is where the four letters begin by which the
 * prefilter finds the word: the rarest ones.
 */
struct word {
    const char *text;
    enum salience salience;
    uint8_t key;
    enum word_kind kind;
};

static const struct word words[] = {
    /* compilers, interpreters, package managers: the message itself */
    {"error:", SALIENCE_ERROR, 1, PLAIN},
    {"error[", SALIENCE_ERROR, 1, PLAIN},
    {"error ts", SALIENCE_ERROR, 1, OPEN},
    {"error  ", SALIENCE_ERROR, 1, PLAIN}, /* a column of its own: linters */
    {"err!", SALIENCE_ERROR, 0, PLAIN},
    {"fatal:", SALIENCE_ERROR, 0, PLAIN},
    {"fatal error", SALIENCE_ERROR, 0, PLAIN},
    {"undefined:", SALIENCE_ERROR, 6, PLAIN},
    {"undefined name", SALIENCE_ERROR, 3, PLAIN},
    {"undefined variable", SALIENCE_ERROR, 12, PLAIN},
    {"declared and not used", SALIENCE_ERROR, 0, PLAIN},
    {"imported and not used", SALIENCE_ERROR, 0, PLAIN},
    {"missing return", SALIENCE_ERROR, 0, PLAIN},
    {"cannot use", SALIENCE_ERROR, 1, PLAIN},
    {"syntax error", SALIENCE_ERROR, 4, PLAIN},
    {"mismatched types", SALIENCE_ERROR, 1, PLAIN},
    {"no module named", SALIENCE_ERROR, 5, PLAIN},
    {"unmet dependencies", SALIENCE_ERROR, 0, PLAIN},
    {"unable to locate", SALIENCE_ERROR, 0, PLAIN},
    {"conflict (", SALIENCE_ERROR, 2, PLAIN},
    /* linkers and make */
    {"undefined reference", SALIENCE_CAUSE, 11, PLAIN},
    {"undefined symbol", SALIENCE_CAUSE, 11, PLAIN},
    {"cannot find", SALIENCE_ERROR, 1, PLAIN},
    {"multiple definition", SALIENCE_ERROR, 3, PLAIN},
    {"*** [", SALIENCE_ERROR, 0, PLAIN},
    {"*** no rule", SALIENCE_ERROR, 1, PLAIN},
    {"*** missing separator", SALIENCE_ERROR, 1, PLAIN},
    /* runtimes and test runners */
    {"traceback (most", SALIENCE_ERROR, 10, PLAIN},
    {"panicked at", SALIENCE_CAUSE, 2, PLAIN},
    {"panic:", SALIENCE_CAUSE, 2, PLAIN},
    {"exception in thread", SALIENCE_CAUSE, 13, PLAIN},
    {"unhandled", SALIENCE_ERROR, 0, PLAIN},
    {"uncaught", SALIENCE_ERROR, 1, PLAIN},
    {"caused by:", SALIENCE_CAUSE, 0, PLAIN},
    {"assertion", SALIENCE_ERROR, 0, PLAIN},
    {"_test.go:", SALIENCE_ERROR, 0, OPEN}, /* found by name_salience() */
    {"assert failed", SALIENCE_ERROR, 0, PLAIN},
    {"timed out", SALIENCE_ERROR, 1, PLAIN},
    {"deadlock", SALIENCE_ERROR, 2, PLAIN},
    /* the system and its shells */
    {"no such file or directory", SALIENCE_ERROR, 3, PLAIN},
    {"permission denied", SALIENCE_ERROR, 12, PLAIN},
    {"command not found", SALIENCE_ERROR, 12, PLAIN},
    {"not found", SALIENCE_ERROR, 4, PLAIN},
    {"unbound variable", SALIENCE_ERROR, 0, PLAIN},
    {"bad substitution", SALIENCE_ERROR, 9, PLAIN},
    {"bad interpreter", SALIENCE_ERROR, 7, PLAIN},
    {"segmentation fault", SALIENCE_CAUSE, 1, PLAIN},
    {"segfault", SALIENCE_CAUSE, 1, PLAIN},
    {"sigsegv", SALIENCE_CAUSE, 1, PLAIN},
    {"sigabrt", SALIENCE_CAUSE, 3, PLAIN},
    {"core dumped", SALIENCE_CAUSE, 6, PLAIN},
    {"bus error", SALIENCE_CAUSE, 0, PLAIN},
    {"out of memory", SALIENCE_CAUSE, 7, PLAIN},
    {"oom-kill", SALIENCE_CAUSE, 2, PLAIN},
    {"bad_alloc", SALIENCE_CAUSE, 1, PLAIN},
    {"no space left", SALIENCE_CAUSE, 9, PLAIN},
    {"connection refused", SALIENCE_ERROR, 12, PLAIN},
    {"could not", SALIENCE_ERROR, 0, PLAIN},
    {"couldn't", SALIENCE_ERROR, 3, PLAIN},
    {"cannot", SALIENCE_MENTION, 1, PLAIN},
    {"can't", SALIENCE_MENTION, 1, PLAIN},
    {"unable to", SALIENCE_MENTION, 0, PLAIN},
    {"does not exist", SALIENCE_ERROR, 9, PLAIN},
    /* words that may be about anything */
    {"failed to", SALIENCE_ERROR, 0, PLAIN},
    {"error", SALIENCE_MENTION, 1, COUNTABLE},
    {"errors", SALIENCE_MENTION, 1, COUNTABLE},
    {"fatal", SALIENCE_MENTION, 0, COUNTABLE},
    {"fail", SALIENCE_MENTION, 0, COUNTABLE},
    {"failed", SALIENCE_MENTION, 0, COUNTABLE},
    {"failing", SALIENCE_MENTION, 0, COUNTABLE},
    {"failure", SALIENCE_MENTION, 0, COUNTABLE},
    {"failures", SALIENCE_MENTION, 0, COUNTABLE},
    {"exception", SALIENCE_MENTION, 1, COUNTABLE},
    {"aborted", SALIENCE_MENTION, 0, COUNTABLE},
    {"rejected", SALIENCE_MENTION, 0, COUNTABLE},
    {"killed", SALIENCE_MENTION, 0, COUNTABLE},
    {"mismatch", SALIENCE_MENTION, 1, COUNTABLE},
    {"unexpected", SALIENCE_MENTION, 0, PLAIN},
    {"invalid", SALIENCE_MENTION, 0, COUNTABLE},
    {"warning", SALIENCE_WARNING, 0, COUNTABLE},
    {"warnings", SALIENCE_WARNING, 0, COUNTABLE},
    {"warn", SALIENCE_WARNING, 0, COUNTABLE},
    {"deprecated", SALIENCE_WARNING, 0, COUNTABLE},
    {"imported but unused", SALIENCE_WARNING, 13, PLAIN},
};

/* Beginnings of a line, blanks aside, as they stand. */
struct beginning {
    const char *text;
    enum salience salience;
};

static const struct beginning beginnings[] = {
    {"E   ", SALIENCE_CAUSE}, /* pytest */
    {"E: ", SALIENCE_CAUSE},  /* apt */
    {"ERROR: ", SALIENCE_CAUSE},
    {"ERROR ", SALIENCE_CAUSE},
    {"FAIL: ", SALIENCE_CAUSE},
    {"FAIL ", SALIENCE_CAUSE},
    {"FAILED ", SALIENCE_CAUSE},
    {"FAILED: ", SALIENCE_CAUSE},
    {"--- FAIL: ", SALIENCE_CAUSE},
    {"not ok ", SALIENCE_CAUSE},
    {"npm ERR! ", SALIENCE_ERROR},
    {"npm error ", SALIENCE_ERROR},
    {"CMake Error", SALIENCE_CAUSE},
    {"collect2: error", SALIENCE_ERROR},
    {"terminate called ", SALIENCE_CAUSE},
    {"Killed", SALIENCE_CAUSE},
    {"Aborted", SALIENCE_CAUSE},
    {"! [", SALIENCE_ERROR},           /* git push */
    {"\xe2\x97\x8f ", SALIENCE_CAUSE}, /* jest: a black circle */
    {"\xe2\x9c\x95 ", SALIENCE_CAUSE}, /* a multiplication x */
    {"\xe2\x9c\x96 ", SALIENCE_CAUSE}, /* a heavy one */
    {"\xe2\x9c\x97 ", SALIENCE_CAUSE}, /* a ballot x */
    {"\xc3\x97 ", SALIENCE_CAUSE},     /* a multiplication sign */
};

/* What begins like this went well, or only names things: words in it mean nothing. */
static const char *const quiet_beginnings[] = {
    "ok ",          "PASS",       "--- PASS",     "=== RUN",     "\xe2\x9c\x93",
    "\xe2\x9c\x94", "Compiling ", "Downloading ", "Downloaded ", "Unpacking ",
    "Setting up ",  "Get:",       "Selecting ",   "Preparing ",
};

static const char *const quiet_ends[] = {" ok", " OK", " PASSED", " passed", " Passed", " PASS"};

const char *salience_word(size_t i)
{
    return i < ARRAY_SIZE(words) ? words[i].text : NULL;
}

static bool is_word(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

/* -- The prefilter ------------------------------------------------------------------------------
 * Every second group of three bytes is looked up, folded to five bits a byte so that case does not
 * matter. Of the four letters of a key one of the two groups begins at such a place; then the words
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

_Static_assert(2 * ARRAY_SIZE(words) < SALIENCE_KEYS, "keys have numbers of one byte");

static void add_key(struct salience_filter *f, uint8_t number, uint8_t word, uint8_t back)
{
    uint8_t *first = &f->wanted[fold(load3(words[word].text + back))];
    f->keys[number] = (struct salience_key){.word = word, .back = back, .next = *first};
    *first = number;
}

/* How common bytes with these low bits are in logs, in thousandths. */
static const uint8_t common[32] = {120, 60, 12, 25, 30, 80, 15, 15, 25, 50, 5,  8, 35, 25, 60, 60,
                                   35,  17, 60, 60, 70, 35, 18, 22, 15, 22, 10, 8, 5,  5,  5,  5};
#define ANYTHING 1017 /* all of them together */

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

/* Adds a key to the group that it makes worse the least. */
static void add_to_group(struct salience_filter *f, struct grouping *g, const char *key,
                         size_t size)
{
    unsigned best = 0;
    uint64_t least = UINT64_MAX;
    uint32_t sums[SALIENCE_DEPTH];
    for (unsigned group = 0; group < ARRAY_SIZE(g->sums); group++) {
        sums_with(f, g, group, key, size, sums);
        uint64_t worse = chance(sums) - chance(g->sums[group]);
        if (worse < least) {
            least = worse;
            best = group;
        }
    }
    sums_with(f, g, best, key, size, g->sums[best]);
    for (size_t k = 0; k < SALIENCE_DEPTH; k++)
        for (uint8_t c = 0; c < 32; c++)
            if (k >= size || c == ((uint8_t)key[k] & 0x1f))
                f->groups[k][c] |= (uint8_t)(1u << best);
}

/* The beginnings come first: the short ones are the worst company. */
static void make_groups(struct salience_filter *f)
{
    struct grouping g = {0};
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
        add_to_group(f, &g, beginnings[i].text,
                     MIN(strlen(beginnings[i].text), (size_t)SALIENCE_DEPTH));
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        add_to_group(f, &g, words[i].text + words[i].key, SALIENCE_DEPTH);
}

static struct salience_filter the_filter;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_filter(void)
{
    struct salience_filter *filter = &the_filter;
    make_groups(filter);
    uint8_t number = 1;
    for (size_t n = 0; n < ARRAY_SIZE(words); n++) {
        uint8_t i = (uint8_t)n;
        add_key(filter, number++, i, words[i].key);
        add_key(filter, number++, i, words[i].key + 1);
        uint8_t letter = (uint8_t)words[i].text[0];
        filter->next[i] = filter->first[letter];
        filter->first[letter] = i + 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
        filter->begins[(uint8_t)beginnings[i].text[0]] = true;
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
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
        if (line[0] == beginnings[i].text[0] && begins(line, size, beginnings[i].text))
            return beginnings[i].salience;
    return SALIENCE_NONE;
}

/* Whether a word with this key really stands there. */
static bool stands_there(const struct salience_filter *f, const char *line, size_t size, size_t at)
{
    uint8_t number = f->wanted[fold(load3(line + at))];
    for (; number; number = f->keys[number].next) {
        const struct salience_key *key = &f->keys[number];
        const char *text = words[key->word].text;
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

/* Whether only blanks stand between the beginning of a line and this place. */
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

/* Eight groups of keys at once: of each place, the groups of which a key may stand there. */
static uint8_t groups_at(const struct salience_filter *f, const char *at)
{
    uint8_t groups = 0xff;
    for (size_t k = 0; k < SALIENCE_DEPTH; k++)
        groups &= f->groups[k][(uint8_t)at[k] & 0x1f];
    return groups;
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

/* The groups of the bytes at 32 places: one table for either value of the fifth bit. */
AVX2 static inline __m256i look_up(const uint8_t groups[32], const char *at)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)at);
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)groups));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(groups + 16)));
    __m256i nibbles = _mm256_and_si256(bytes, _mm256_set1_epi8(0x0f));
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(low, nibbles), _mm256_shuffle_epi8(high, nibbles),
                              _mm256_slli_epi16(bytes, 3));
}

/* Looks at 32 places at a time from *at on; true if it is at *at then. */
AVX2 static bool next_wide(const struct salience_filter *f, const char *text, size_t size,
                           size_t *at)
{
    for (; *at + 32 + SALIENCE_DEPTH <= size; *at += 32) {
        const char *s = text + *at;
        __m256i found = _mm256_and_si256(
            _mm256_and_si256(look_up(f->groups[0], s), look_up(f->groups[1], s + 1)),
            _mm256_and_si256(look_up(f->groups[2], s + 2), look_up(f->groups[3], s + 3)));
        __m256i nothing = _mm256_cmpeq_epi8(found, _mm256_setzero_si256());
        for (uint32_t bits = ~(uint32_t)_mm256_movemask_epi8(nothing); bits; bits &= bits - 1) {
            size_t place = *at + (size_t)__builtin_ctz(bits);
            if (is_there(f, text, size, place)) {
                *at = place;
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

/* -- The judgement ------------------------------------------------------------------------------
 */

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

/* Whether the word before this place says that there is none of what follows. */
static bool is_negated(const char *line, size_t at)
{
    static const char *const none[] = {"0", "no", "zero", "without", "any", "if", "on", "non"};
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

/* "errors: 0", "failures=0" */
static bool is_none_of(const char *line, size_t size, size_t end)
{
    if (end < size && (line[end] == ':' || line[end] == '='))
        end++;
    else if (line[end - 1] != ':')
        return false;
    while (end < size && is_blank(line[end]))
        end++;
    return end < size && line[end] == '0' && (end + 1 == size || !is_word(line[end + 1]));
}

static bool is_shouted(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            return false;
    return true;
}

static enum salience word_salience(const struct word *word, const char *line, size_t size,
                                   size_t at)
{
    size_t n = strlen(word->text);
    if (size - at < n || !ascii_is_same(line + at, word->text, n) ||
        (word->kind != OPEN && !word_ends(line, size, at + n)))
        return SALIENCE_NONE;
    bool countable = word->kind == COUNTABLE;
    if ((countable && is_negated(line, at)) || is_none_of(line, size, at + n))
        return SALIENCE_NONE;
    if (countable && word->salience == SALIENCE_MENTION && is_shouted(line + at, n))
        return SALIENCE_ERROR;
    return word->salience;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);
    return size > n && memcmp(text + size - n, end, n) == 0;
}

/* "ValueError: ...", "java.lang.IllegalStateException": the name of an exception, which says most
 * where it begins the line. "a_test.go:93: ...": what a test in Go has to say. */
static enum salience name_salience(const char *line, size_t size, size_t at, bool first)
{
    size_t end = at;
    while (end < size && (is_word(line[end]) || line[end] == '.' || line[end] == '$'))
        end++;
    const char *name = line + at;
    if (ends_with(name, end - at, "_test.go") && end < size && line[end] == ':')
        return SALIENCE_ERROR;
    if (!ends_with(name, end - at, "Error") && !ends_with(name, end - at, "Exception"))
        return SALIENCE_NONE;
    bool told = end == size || line[end] == ':' || (end + 1 < size && line[end + 1] == '[');
    return !told ? SALIENCE_NONE : first ? SALIENCE_CAUSE : SALIENCE_ERROR;
}

static bool is_quiet(const char *line, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(quiet_beginnings); i++)
        if (begins(line, size, quiet_beginnings[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(quiet_ends); i++) {
        size_t n = strlen(quiet_ends[i]);
        if (size >= n && memcmp(line + size - n, quiet_ends[i], n) == 0)
            return true;
    }
    return memmem(line, size, " PASSED ", 8) || memmem(line, size, "  Passed  ", 10);
}

/* The salience of the word that begins here. */
static enum salience salience_at(const struct salience_filter *f, const char *line, size_t size,
                                 size_t at)
{
    enum salience best = name_salience(line, size, at, at == 0);
    for (uint8_t i = f->first[(uint8_t)ascii_lower(line[at])]; i; i = f->next[i - 1]) {
        enum salience found = word_salience(&words[i - 1], line, size, at);
        best = MAX(best, found);
    }
    return best;
}

enum salience salience_of(const struct salience_filter *f, const char *line, size_t size)
{
    size = MIN(size, (size_t)SALIENCE_LOOK);
    size_t skip = blanks(line, size);
    line += skip;
    size -= skip;
    if (size == 0 || is_quiet(line, size))
        return SALIENCE_NONE;
    enum salience best = beginning_salience(line, size);
    for (size_t at = 0; at < size && best < SALIENCE_CAUSE; at++) {
        if (is_blank(line[at]) || !word_begins(line, at))
            continue;
        enum salience found = salience_at(f, line, size, at);
        best = MAX(best, found);
    }
    return best;
}
