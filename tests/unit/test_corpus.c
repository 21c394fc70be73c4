/*
 * Real logs of real tools, each with the line that a person would look for: it must be in the
 * summary, within the default budget; and what is lifted out must belong to the failure. Prints
 * what each case of the half that rules are made on saves.
 */
#include "corpus.h"
#include "unit.h"

#include "text/utf8.h"

/* What is asked of each half: causes that are shown, and lifted lines that are stray, in percent.
 */
#define SHOWN_LEAST 95
#define STRAY_MOST  20

struct tally {
    unsigned cases, shown, lifted, stray;
};

static bool is_valid(const char *text)
{
    uint32_t point;
    for (size_t size = strlen(text), n; size > 0; text += n, size -= n) {
        n = utf8_next(text, size, &point);
        if (n == 0 || point == UTF8_INVALID)
            return false;
    }
    return true;
}

static void print_case(const struct corpus_case *c, const struct corpus_verdict *v, size_t shown)
{
    size_t in = c->streams[0].size + c->streams[1].size;
    printf("%-26s %8zu bytes in, %6zu shown, %5.1f%% saved, cause %s%s\n", c->name, in, shown,
           100.0 - 100.0 * (double)shown / (double)in,
           v->lifted  ? "lifted out"
           : v->shown ? "among the first or last lines"
                      : "MISSING: ",
           v->shown ? "" : c->cause.data);
}

static void check_case(struct corpus_case *c, void *self)
{
    enum corpus_half half = corpus_half_of(c);
    struct tally *t = &((struct tally *)self)[half];
    assert_true(c->cause.size > 1);
    assert_true(c->streams[0].size + c->streams[1].size > 0);
    char *text = corpus_summary(c);
    assert_non_null(text);
    assert_true(strlen(text) <= NACRE_VIEW_BUDGET);
    assert_true(is_valid(text));
    struct corpus_verdict v = corpus_judge(c, text);
    if (half == CORPUS_MADE_ON)
        print_case(c, &v, strlen(text));
    t->cases++;
    t->shown += v.shown;
    t->lifted += v.lifted_lines;
    t->stray += v.stray;
    free(text);
}

static void the_cause_is_shown(void **state)
{
    (void)state;
    static const char *const names[] = {"made on", "judged on"};
    struct tally tallies[2] = {0};
    assert_true(corpus_each(CORPUS_DIR, check_case, tallies) >= 100);
    for (int half = 0; half < 2; half++) {
        const struct tally *t = &tallies[half];
        printf("%s: %u of %u causes shown, %u of %u lifted lines stray\n", names[half], t->shown,
               t->cases, t->stray, t->lifted);
        assert_true(t->cases >= 40);
        assert_true(100 * t->shown >= SHOWN_LEAST * t->cases);
        assert_true(100 * t->stray <= STRAY_MOST * t->lifted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
