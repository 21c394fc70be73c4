/*
 * How often the default summary of a real failure shows its cause, against what else the same
 * number of bytes could be spent on: the end of the output, its beginning, both, and the lines that
 * grep finds. Both halves of tests/corpus: what rules were made on, and what they are judged on.
 */
#include "bench.h"

#include "../tests/unit/corpus.h"

#define BUDGET ((size_t)NACRE_VIEW_BUDGET)

enum policy { TAIL, HEAD, BOTH_ENDS, GREP, POLICIES };

struct tally {
    unsigned cases, shown, lifted, stray, plain[POLICIES];
};

/* All that was printed, stdout first. */
static char *whole_text(const struct corpus_case *c, size_t *ret_size)
{
    size_t out = c->streams[0].size, err = c->streams[1].size;
    char *text = malloc(out + err + 1);
    if (!text)
        die("memory", NULL);
    if (out > 0)
        memcpy(text, c->streams[0].data, out);
    if (err > 0)
        memcpy(text + out, c->streams[1].data, err);
    *ret_size = out + err;
    return text;
}

static bool is_found(const char *text, size_t size, const char *cause)
{
    return memmem(text, size, cause, strlen(cause)) != NULL;
}

static bool has_failure_word(const char *line, size_t size)
{
    static const char *const words[] = {"error", "fail", "fatal", "panic", "exception"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (size_t at = 0, n = strlen(words[i]); at + n <= size; at++)
            if (strncasecmp(line + at, words[i], n) == 0)
                return true;
    return false;
}

/* The first lines with a word of failures, as many as fit. */
static bool grep_shows(const char *text, size_t size, const char *cause)
{
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        const char *stop = memchr(text + at, '\n', size - at);
        size_t n = stop ? (size_t)(stop + 1 - (text + at)) : size - at;
        if (has_failure_word(text + at, n)) {
            used += n;
            if (used > BUDGET)
                return false;
            if (is_found(text + at, n, cause))
                return true;
        }
        at += n;
    }
    return false;
}

static bool plain_shows(enum policy policy, const char *text, size_t size, const char *cause)
{
    size_t n = MIN(size, BUDGET), half = MIN(size, BUDGET / 2);
    switch (policy) {
    case TAIL:
        return is_found(text + size - n, n, cause);
    case HEAD:
        return is_found(text, n, cause);
    case BOTH_ENDS:
        return is_found(text, half, cause) || is_found(text + size - half, half, cause);
    default:
        return grep_shows(text, size, cause);
    }
}

static void tally_case(struct corpus_case *c, void *self)
{
    struct tally *t = &((struct tally *)self)[corpus_half_of(c)];
    char *summary = corpus_summary(c);
    if (!summary)
        die("summary", NULL);
    struct corpus_verdict v = corpus_judge(c, summary);
    size_t size;
    char *text = whole_text(c, &size);
    t->cases++;
    t->shown += v.shown;
    t->lifted += v.lifted_lines;
    t->stray += v.stray;
    for (int policy = 0; policy < POLICIES; policy++)
        t->plain[policy] += plain_shows((enum policy)policy, text, size, c->cause.data);
    free(text);
    free(summary);
}

int main(void)
{
    static const char *const halves[] = {"the half rules were made on",
                                         "the half they are judged on"};
    struct tally tallies[2] = {0};
    char what[96], measured[96];
    corpus_each(CORPUS_DIR, tally_case, tallies);
    for (int half = 0; half < 2; half++) {
        const struct tally *t = &tallies[half];
        snprintf(what, sizeof what, "causes shown, %s", halves[half]);
        snprintf(measured, sizeof measured, "%u of %u (tail %u, head %u, both %u, grep %u)",
                 t->shown, t->cases, t->plain[TAIL], t->plain[HEAD], t->plain[BOTH_ENDS],
                 t->plain[GREP]);
        row(what, measured, 100.0 * t->shown / t->cases, " %", 95, 1);
        snprintf(what, sizeof what, "stray lifted lines, %s", halves[half]);
        snprintf(measured, sizeof measured, "%u of %u", t->stray, t->lifted);
        row(what, measured, 100.0 * t->stray / t->lifted, " %", 25, 0);
    }
    return 0;
}
