/* The growing buffer: its ceiling, its invariants, and what a failed append leaves. */
#include "unit.h"

#include "base/buf.h"

static void check_invariants(const struct buf *b)
{
    assert_true(b->len <= b->max);
    if (!b->data) {
        assert_int_equal(b->len, 0);
        assert_int_equal(b->cap, 0);
        return;
    }
    assert_true(b->len < b->cap);
    assert_int_equal(b->data[b->len], '\0');
}

static void grows_byte_by_byte(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(5000);
    check_invariants(&b);
    for (size_t i = 0; i < 5000; i++) {
        char c = (char)('a' + i % 26);
        assert_int_equal(buf_append(&b, &c, 1), 0);
        check_invariants(&b);
        assert_int_equal(b.len, i + 1);
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    buf_done(&b);
}

static void ceiling_is_exact(void **state)
{
    (void)state;
    for (size_t max = 0; max < 70; max++) {
        char text[128];
        memset(text, 'x', sizeof text);
        struct buf b = BUF_UP_TO(max);
        assert_int_equal(buf_append(&b, text, max + 1), -E2BIG);
        assert_null(b.data);
        assert_int_equal(buf_append(&b, text, max), 0);
        assert_int_equal(b.len, max);
        check_invariants(&b);
        assert_int_equal(buf_append(&b, text, 1), -E2BIG);
        assert_int_equal(buf_append(&b, text, 0), 0);
        assert_int_equal(b.len, max);
        check_invariants(&b);
        buf_done(&b);
    }
}

static void failed_append_changes_nothing(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(100);
    assert_int_equal(buf_str(&b, "kept"), 0);
    struct buf before = b;
    char big[200];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_int_equal(buf_append(&b, big, sizeof big), -E2BIG);
    assert_int_equal(buf_append(&b, big, SIZE_MAX), -E2BIG);
    assert_int_equal(buf_append(&b, big, SIZE_MAX - 3), -E2BIG);
    assert_int_equal(buf_str(&b, big), -E2BIG);
    assert_int_equal(buf_printf(&b, "%s", big), -E2BIG);
    assert_memory_equal(&b, &before, sizeof b);
    assert_string_equal(b.data, "kept");
    buf_done(&b);
}

static void out_of_memory_changes_nothing(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(SIZE_MAX - 16);
    assert_int_equal(buf_str(&b, "kept"), 0);
    struct buf before = b;
    /* More than any allocator gives; the sanitizers' would abort instead of returning NULL. */
    if (!SANITIZED)
        assert_int_equal(buf_append(&b, "", SIZE_MAX / 2), -ENOMEM);
    assert_memory_equal(&b, &before, sizeof b);
    assert_string_equal(b.data, "kept");
    buf_done(&b);
}

static void nul_bytes_are_bytes(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(10);
    assert_int_equal(buf_append(&b, "a\0b", 3), 0);
    assert_int_equal(buf_append(&b, "\0", 1), 0);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "a\0b\0\0", 5);
    buf_done(&b);
}

static void formats(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(1000);
    assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), 0);
    assert_int_equal(buf_printf(&b, "%s", ""), 0);
    assert_int_equal(buf_printf(&b, "%0*d", 300, 7), 0);
    assert_int_equal(b.len, 304);
    check_invariants(&b);
    assert_memory_equal(b.data, "42-x0", 5);
    assert_int_equal(b.data[303], '7');
    /* The last byte that fits, and one more. */
    assert_int_equal(buf_printf(&b, "%0*d", 697, 1), -E2BIG);
    assert_int_equal(buf_printf(&b, "%0*d", 696, 1), 0);
    assert_int_equal(b.len, 1000);
    check_invariants(&b);
    buf_done(&b);
}

static void take_gives_the_string_away(void **state)
{
    (void)state;
    struct buf b = BUF_UP_TO(20);
    char *empty = buf_take(&b);
    assert_non_null(empty);
    assert_string_equal(empty, "");
    free(empty);
    assert_int_equal(buf_str(&b, "hello"), 0);
    char *s = buf_take(&b);
    assert_string_equal(s, "hello");
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 20);
    check_invariants(&b);
    /* It goes on as a new one, and does not touch what was taken. */
    assert_int_equal(buf_str(&b, "again"), 0);
    assert_string_equal(s, "hello");
    assert_string_equal(b.data, "again");
    free(s);
    buf_done(&b);
    check_invariants(&b);
    buf_done(&b);
}

static void scope_frees(void **state)
{
    (void)state;
    /* The sanitizer's leak check is the witness. */
    struct buf b cleanup_buf = BUF_UP_TO(20);
    assert_int_equal(buf_str(&b, "freed"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_byte_by_byte),
        cmocka_unit_test(ceiling_is_exact),
        cmocka_unit_test(failed_append_changes_nothing),
        cmocka_unit_test(out_of_memory_changes_nothing),
        cmocka_unit_test(nul_bytes_are_bytes),
        cmocka_unit_test(formats),
        cmocka_unit_test(take_gives_the_string_away),
        cmocka_unit_test(scope_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
