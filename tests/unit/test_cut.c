/* Lines cut in the middle, once and again; and what a render says about the raw bytes of a line. */
#include "unit.h"

#include "base/defs.h"
#include "screen/render.h"
#include "text/brief.h"
#include "text/utf8.h"

static void short_lines_stay(void **state)
{
    (void)state;
    char to[CUT_LEAST];
    uint64_t lost = 7;
    struct cut cut = cut_of("short", 5, 0);
    assert_int_equal(cut_middle(to, sizeof to, &cut, &lost), 5);
    assert_memory_equal(to, "short", 5);
    assert_int_equal(lost, 0);
}

/* Cutting twice says the same as cutting once: what is missing is counted in the end. */
static void the_count_is_of_all_that_is_missing(void **state)
{
    (void)state;
    static const char *const kinds[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static char line[4000], once[1024], twice[1024];
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        size_t unit = strlen(kinds[k]), size = 0;
        for (; size + unit <= sizeof line; size += unit)
            memcpy(line + size, kinds[k], unit);
        for (size_t max = CUT_LEAST; max < 400; max++) {
            uint64_t lost;
            struct cut cut = cut_of(line, size, 0);
            size_t n = cut_middle(once, 2 * max, &cut, &lost);
            assert_true(n <= 2 * max);
            assert_int_equal(cut_middle(NULL, 2 * max, &cut, &lost), n);
            cut = cut_of(once, n, lost);
            assert_int_equal(cut.lost, lost);
            n = cut_middle(twice, max, &cut, &lost);
            assert_true(n <= max);
            char notice[64];
            int words = snprintf(notice, sizeof notice, "[... %llu bytes left out ...]",
                                 (unsigned long long)lost);
            assert_non_null(memmem(twice, n, notice, (size_t)words));
            assert_int_equal(n - (size_t)words + lost, size);
            for (size_t at = 0; at < n;) {
                uint32_t point;
                size_t step = utf8_next(twice + at, n - at, &point);
                assert_true(step > 0 && point != UTF8_INVALID);
                at += step;
            }
        }
    }
}

/* -- Offsets ----------------------------------------------------------------------------------- */

struct seen {
    uint64_t line[32], offset[32], lost[32];
    size_t count;
};

static int see(void *self, const struct render_line *line)
{
    struct seen *seen = self;
    assert_true(seen->count < 32);
    seen->line[seen->count] = line->line;
    seen->offset[seen->count] = line->offset;
    seen->lost[seen->count++] = line->lost;
    return 0;
}

static void render_pieces(const char *text, size_t size, size_t step, struct seen *seen)
{
    struct render_options options = {.first_line = 1, .line_max = 128, .fold = true};
    struct render *r cleanup_render = NULL;
    *seen = (struct seen){0};
    assert_int_equal(render_new(&options, see, seen, &r), 0);
    for (size_t at = 0; at < size; at += step)
        assert_int_equal(render_feed(r, text + at, MIN(step, size - at)), 0);
    assert_int_equal(render_finish(r), 0);
}

/* A line begins where the raw stream has its number's line, however it was fed. */
static void offsets_are_those_of_the_raw_lines(void **state)
{
    (void)state;
    static const char text[] = "one\n\x1b[31mtwo\x1b[0m\n\xe2\x82\xac three\r\nsame\nsame\nsame\n"
                               "10%\r20%\n\xe2\x82\nbad\xff\n\x1b]0;title\x07x\nlast";
    for (size_t step = 1; step < sizeof text; step++) {
        struct seen seen;
        render_pieces(text, sizeof text - 1, step, &seen);
        assert_int_equal(seen.count, 9);
        for (size_t i = 0; i < seen.count; i++) {
            uint64_t newlines = 0;
            for (size_t k = 0; k < seen.offset[i]; k++)
                newlines += text[k] == '\n';
            assert_int_equal(seen.line[i], newlines + 1);
            assert_true(seen.offset[i] == 0 || text[seen.offset[i] - 1] == '\n');
        }
    }
}

static void offsets_beyond_the_window_are_right_too(void **state)
{
    (void)state;
    static char text[4096];
    size_t size = 0;
    for (int i = 0; i < 500; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s\n", i % 100 ? "x" : "other");
    for (size_t step = 1; step < size; step = step * 3 + 1) {
        struct seen seen;
        render_pieces(text, size, step, &seen);
        assert_int_equal(seen.count, 10);
        for (size_t i = 0; i < seen.count; i++)
            assert_int_equal(seen.line[i], i / 2 * 100 + 1 + i % 2);
        assert_int_equal(seen.offset[2], 6 + 99 * 2);
        assert_int_equal(seen.offset[9], 4 * (6 + 99 * 2) + 6);
    }
}

static void what_was_cut_is_told(void **state)
{
    (void)state;
    static char text[1000];
    memset(text, 'x', sizeof text);
    struct seen seen;
    render_pieces(text, sizeof text, 100, &seen);
    assert_int_equal(seen.count, 1);
    assert_true(seen.lost[0] > 1000 - 128 && seen.lost[0] < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_lines_stay),
        cmocka_unit_test(the_count_is_of_all_that_is_missing),
        cmocka_unit_test(offsets_are_those_of_the_raw_lines),
        cmocka_unit_test(offsets_beyond_the_window_are_right_too),
        cmocka_unit_test(what_was_cut_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
