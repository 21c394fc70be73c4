/* One text out of the snapshots of a client, and the directories of a workspace. */
#include "unit.h"

#include "acp/agent.h"
#include "base/defs.h"

struct rebuilt {
    struct acp_text text;
    struct buf seen; /* with a '#' for each gap */
};

static void begin(struct rebuilt *r)
{
    *r = (struct rebuilt){0};
    r->seen = BUF_UP_TO(SIZE_MAX / 2);
}

static void take(struct rebuilt *r, const char *snapshot, size_t size, bool truncated)
{
    bool gap;
    size_t from = acp_text_take(&r->text, snapshot, size, truncated, &gap);
    assert_true(from <= size);
    if (gap)
        assert_int_equal(buf_append(&r->seen, "#", 1), 0);
    assert_int_equal(buf_append(&r->seen, snapshot + from, size - from), 0);
    assert_int_equal(r->text.end, r->seen.len);
}

static void take_text(struct rebuilt *r, const char *snapshot, bool truncated)
{
    /* As jansson has it: aligned, and nothing behind it. */
    size_t size = strlen(snapshot);
    char *copy = malloc(size + 1);
    memcpy(copy, snapshot, size + 1);
    take(r, copy, size, truncated);
    free(copy);
}

static void check(struct rebuilt *r, const char *want)
{
    assert_string_equal(r->seen.data ? r->seen.data : "", want);
    buf_done(&r->seen);
}

static void it_grows(void **state)
{
    (void)state;
    struct rebuilt r;
    begin(&r);
    take_text(&r, "", false);
    take_text(&r, "one\n", false);
    take_text(&r, "one\n", false);
    take_text(&r, "one\ntwo\n", false);
    take_text(&r, "", false);
    take_text(&r, "one\ntwo\nthree", false);
    check(&r, "one\ntwo\nthree");
}

static void its_beginning_is_cut(void **state)
{
    (void)state;
    struct rebuilt r;
    begin(&r);
    take_text(&r, "abcd", false);
    take_text(&r, "abcdefgh", true);
    take_text(&r, "abcdefgh", true);
    take_text(&r, "abcdefghij", true);
    check(&r, "abcdefghij");
}

static void more_was_cut_than_seen(void **state)
{
    (void)state;
    struct rebuilt r;
    begin(&r);
    take_text(&r, "the beginning", false);
    take_text(&r, "something else", true);
    take_text(&r, "something else, and more", true);
    check(&r, "the beginning#something else, and more");
    begin(&r);
    take_text(&r, "cut from the first", true);
    check(&r, "#cut from the first");
}

/* A client that shows a screen rewrites its lines: what is there then follows behind a gap. */
static void it_is_rewritten(void **state)
{
    (void)state;
    struct rebuilt r;
    begin(&r);
    take_text(&r, "10%", false);
    take_text(&r, "50%", false);
    take_text(&r, "50%", false);
    take_text(&r, "5", false);
    check(&r, "10%#50%#5");
}

/* The same again is nothing new, even if it could be something new. */
static void it_repeats_itself(void **state)
{
    (void)state;
    struct rebuilt r;
    char text[4096];
    begin(&r);
    memset(text, 'y', sizeof text);
    take(&r, text, 1001, true);
    assert_int_equal(r.seen.len, 1002);
    for (int i = 0; i < 10; i++)
        take(&r, text, 1001, true);
    assert_int_equal(r.seen.len, 1002);
    text[1000] = 'z';
    take(&r, text, 1001, true);
    /* At least what is new is there. */
    assert_int_equal(r.seen.data[r.seen.len - 1], 'z');
    buf_done(&r.seen);
}

/* A stream of which a client keeps the end, looked at now and then: all of it, in its order. */
static void random_streams(void **state)
{
    (void)state;
    enum { SIZE = 20000, KEPT = 3000 };
    struct unit_random random = {11};
    char *stream = malloc(SIZE);
    for (int round = 0; round < 50; round++) {
        struct rebuilt r;
        begin(&r);
        for (size_t i = 0; i < SIZE; i++)
            stream[i] = (char)(' ' + unit_below(&random, 90));
        for (size_t end = 0; end < SIZE;) {
            size_t step = unit_below(&random, KEPT - ACP_OVERLAP);
            end = MIN(end + step, (size_t)SIZE);
            size_t start = end > KEPT ? end - KEPT : 0;
            char *copy = malloc(end - start + 1);
            memcpy(copy, stream + start, end - start);
            take(&r, copy, end - start, start > 0);
            free(copy);
        }
        assert_int_equal(r.seen.len, SIZE);
        assert_memory_equal(r.seen.data, stream, SIZE);
        buf_done(&r.seen);
    }
    free(stream);
}

static void normal_paths(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/", "/"},
        {"/a", "/a"},
        {"/a/", "/a"},
        {"//a//b/", "/a/b"},
        {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"/..", "/"},
        {"/../../a", "/a"},
        {"/a/b/../..", "/"},
        {"/a/...", "/a/..."},
        {"/a/.b/..c", "/a/.b/..c"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *got = acp_place_normal(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

static void within(void **state)
{
    (void)state;
    char work[] = "/no/such/work", other[] = "/no/such/other", root[] = "/";
    char *list[] = {work, other, NULL};
    char *all[] = {root, NULL};
    assert_int_equal(acp_place_is_within("/no/such/work", list), 1);
    assert_int_equal(acp_place_is_within("/no/such/work/a/b", list), 1);
    assert_int_equal(acp_place_is_within("/no/such/other/", list), 1);
    assert_int_equal(acp_place_is_within("/no/such/work/../other", list), 1);
    assert_int_equal(acp_place_is_within("/no/such/workshop", list), 0);
    assert_int_equal(acp_place_is_within("/no/such", list), 0);
    assert_int_equal(acp_place_is_within("/no/such/work/../x", list), 0);
    assert_int_equal(acp_place_is_within("/tmp", list), 0);
    assert_int_equal(acp_place_is_within("/anything", all), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows),
        cmocka_unit_test(its_beginning_is_cut),
        cmocka_unit_test(more_was_cut_than_seen),
        cmocka_unit_test(it_is_rewritten),
        cmocka_unit_test(it_repeats_itself),
        cmocka_unit_test(random_streams),
        cmocka_unit_test(normal_paths),
        cmocka_unit_test(within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
