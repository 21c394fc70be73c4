/* The kept end of a terminal's output: every cut, every torn character, every escape. */
#include "unit.h"

#include <jansson.h>

#include "acp/client_tail.h"
#include "text/utf8.h"

static void keep(const char *message, size_t size, void *userdata)
{
    assert_int_equal(buf_append(userdata, message, size), 0);
}

/* What the tail says, as a reader of JSON understands it. What is put around it leaves no trace. */
static char *text_of(struct acp_tail *t, const char *around, size_t *ret_size)
{
    struct buf out cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    struct buf head cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    struct buf end cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    assert_int_equal(buf_printf(&head, "[\"%s\", \"", around), 0);
    assert_int_equal(buf_printf(&end, "\", \"%s\"]", around), 0);
    assert_int_equal(acp_tail_send(t, &head, &end, keep, &out), 0);
    assert_int_equal(t->json.data[t->json.len], 0);
    json_t *list = json_loadb(out.data, out.len, JSON_ALLOW_NUL, NULL);
    assert_non_null(list);
    assert_string_equal(json_string_value(json_array_get(list, 0)), around);
    assert_string_equal(json_string_value(json_array_get(list, 2)), around);
    const json_t *value = json_array_get(list, 1);
    *ret_size = json_string_length(value);
    char *text = malloc(*ret_size + 1);
    memcpy(text, json_string_value(value), *ret_size + 1);
    json_decref(list);
    return text;
}

static void check_text(struct acp_tail *t, const char *want, size_t size)
{
    static const char *const around[] = {"", "a longer one", "b", "the longest one of them all"};
    for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
        size_t got_size;
        char *got = text_of(t, around[i], &got_size);
        assert_int_equal(got_size, size);
        assert_memory_equal(got, want, size);
        assert_int_equal(t->size, size);
        free(got);
    }
}

static const char sample[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8c\"\\\n\t\x01z\xff\xf0\x9f.\0end";

/* What must be kept of bytes: cleaned, the last limit bytes, from a character on. */
static void check_against_whole(const char *bytes, size_t size, size_t piece, size_t limit)
{
    struct acp_tail t;
    struct buf clean cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    acp_tail_init(&t, limit);
    for (size_t i = 0; i < size; i += piece) {
        size_t got_size;
        assert_int_equal(acp_tail_add(&t, NACRE_STDOUT, bytes + i, MIN(piece, size - i)), 0);
        if (i / piece % 4000 == 3)
            free(text_of(&t, "polled", &got_size));
    }
    assert_int_equal(acp_tail_finish(&t), 0);
    assert_int_equal(utf8_clean(&clean, bytes, size), 0);
    size_t skip = clean.len > limit ? clean.len - limit : 0;
    while (skip < clean.len && ((unsigned char)clean.data[skip] & 0xc0) == 0x80)
        skip++;
    check_text(&t, clean.data + skip, clean.len - skip);
    assert_int_equal(t.cut, clean.len > limit);
    acp_tail_done(&t);
}

static void test_every_piece_and_limit(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof sample - 1; piece++)
        for (size_t limit = 0; limit <= sizeof sample + 8; limit++)
            check_against_whole(sample, sizeof sample - 1, piece, limit);
}

static void test_long_streams(void **state)
{
    enum { SIZE = 300000 };
    (void)state;
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = sample[i % (sizeof sample - 1)];
    check_against_whole(bytes, SIZE, 1000, 4096);
    check_against_whole(bytes, SIZE, 65536, 4096);
    check_against_whole(bytes, SIZE, 7, 100000);
    free(bytes);
}

/* A flood through a small window costs the memory of the window. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct acp_tail t;
    acp_tail_init(&t, 1000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(acp_tail_add(&t, NACRE_STDOUT, "\x01\x02\x03\x04 five\n", 10), 0);
    assert_int_equal(t.size, 1000);
    assert_true(t.json.cap < 64000);
    acp_tail_done(&t);
}

static void test_streams_do_not_mix(void **state)
{
    (void)state;
    struct acp_tail t;
    acp_tail_init(&t, 100);
    acp_tail_add(&t, NACRE_STDOUT, "o\xf0\x9f", 3);
    acp_tail_add(&t, NACRE_STDERR, "e\xe2\x82", 3);
    acp_tail_add(&t, NACRE_STDOUT, "\x90\x8c", 2);
    acp_tail_add(&t, NACRE_STDERR, "\xac", 1);
    check_text(&t, "oe\xf0\x9f\x90\x8c\xe2\x82\xac", 9);
    acp_tail_done(&t);
}

static void test_restart_begins_with_a_character(void **state)
{
    (void)state;
    struct acp_tail t;
    acp_tail_init(&t, 100);
    acp_tail_add(&t, NACRE_STDOUT, "gone\xf0", 5);
    acp_tail_restart(&t);
    acp_tail_add(&t, NACRE_STDOUT, "\x9f\x90\x8cnew", 6);
    acp_tail_add(&t, NACRE_STDERR, "\x82\xac too", 6);
    check_text(&t, "new too", 7);
    assert_true(t.cut);
    acp_tail_done(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_piece_and_limit),
        cmocka_unit_test(test_long_streams),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_streams_do_not_mix),
        cmocka_unit_test(test_restart_begins_with_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
