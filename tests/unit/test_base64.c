/* Base64: the examples of its standard, every byte, and sizes around what is written at once. */
#include "unit.h"

#include "base/base64.h"

static void check(const char *bytes, const char *want)
{
    struct buf b cleanup_buf = BUF_UP_TO(100);
    assert_int_equal(base64_append(&b, bytes, strlen(bytes)), 0);
    assert_string_equal(b.data ? b.data : "", want);
}

static void test_examples(void **state)
{
    (void)state;
    check("", "");
    check("f", "Zg==");
    check("fo", "Zm8=");
    check("foo", "Zm9v");
    check("foob", "Zm9vYg==");
    check("fooba", "Zm9vYmE=");
    check("foobar", "Zm9vYmFy");
    check("\xff\xfe\xfb", "//77");
}

static int value_of(char c)
{
    return c >= 'a'   ? c - 'a' + 26
           : c >= 'A' ? c - 'A'
           : c == '+' ? 62
           : c == '/' ? 63
                      : c - '0' + 52;
}

static void test_bytes_come_back(void **state)
{
    unsigned char bytes[800];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t size = 760; size <= sizeof bytes; size++) {
        struct buf b cleanup_buf = BUF_UP_TO(2000);
        assert_int_equal(base64_append(&b, bytes, size), 0);
        assert_int_equal(b.len, (size + 2) / 3 * 4);
        for (size_t i = 0; i < size; i++) {
            const char *group = b.data + i / 3 * 4;
            unsigned first = (unsigned)value_of(group[i % 3]);
            unsigned second = (unsigned)value_of(group[i % 3 + 1]);
            unsigned char got =
                (unsigned char)(first << (2 + 2 * (i % 3)) | second >> (4 - 2 * (i % 3)));
            assert_int_equal(got, bytes[i]);
        }
    }
}

static void test_decoding(void **state)
{
    static const struct {
        const char *text;
        const char *bytes; /* NULL: it is none */
    } rows[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zg", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYmFy", "foobar"},
        {"//77", "\xff\xfe\xfb"},
        {"Z", NULL},
        {"Zh", NULL},
        {"Zg=", NULL},
        {"Zg===", NULL},
        {"=", NULL},
        {"====", NULL},
        {"Zm9v\n", NULL},
        {"Zm 9v", NULL},
        {"Zm-v", NULL},
        {"Zm9vYmFyYg", NULL}, /* seven bytes */
    };
    char out[6];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ssize_t size = base64_decode(rows[i].text, strlen(rows[i].text), out, sizeof out);
        if (!rows[i].bytes) {
            assert_int_equal(size, -EINVAL);
            continue;
        }
        assert_int_equal(size, strlen(rows[i].bytes));
        assert_memory_equal(out, rows[i].bytes, (size_t)size);
    }
    assert_int_equal(base64_decode("Zm\0v", 4, out, sizeof out), -EINVAL);
}

static void test_ceiling(void **state)
{
    struct buf b cleanup_buf = BUF_UP_TO(7);
    (void)state;
    assert_int_equal(base64_append(&b, "foobar", 6), -E2BIG);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_bytes_come_back),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
