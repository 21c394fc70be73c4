/* SHA-256 and HMAC against the values that their documents have. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static void to_hex(const uint8_t sum[SHA256_SIZE], char *ret)
{
    for (int i = 0; i < SHA256_SIZE; i++)
        sprintf(ret + 2 * i, "%02x", sum[i]);
}

/* In pieces of every size, since blocks must not matter. */
static void check_sum(const char *text, size_t size, const char *wanted)
{
    for (size_t piece = 1; piece <= 130; piece += 43) {
        struct sha256 s;
        uint8_t sum[SHA256_SIZE];
        char hex[2 * SHA256_SIZE + 1];

        sha256_begin(&s);
        for (size_t at = 0; at < size; at += piece)
            sha256_take(&s, text + at, size - at < piece ? size - at : piece);
        sha256_end(&s, sum);
        to_hex(sum, hex);
        assert_string_equal(hex, wanted);
    }
}

static void test_sums(void **state)
{
    (void)state;
    char a[1000];

    check_sum("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sum("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(a, 'a', sizeof a);
    check_sum(a, sizeof a, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

static void test_codes_under_a_key(void **state)
{
    (void)state;
    uint8_t key[SHA256_SIZE] = {0}, sum[SHA256_SIZE], other[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];

    /* RFC 4231, case 2: a shorter key is one with zeros behind it. */
    memcpy(key, "Jefe", 4);
    hmac_sha256(key, "what do ya want for nothing?", 28, sum);
    to_hex(sum, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_true(sha256_is_same(sum, sum));
    key[31] ^= 1;
    hmac_sha256(key, "what do ya want for nothing?", 28, other);
    assert_false(sha256_is_same(sum, other));
    memcpy(other, sum, sizeof other);
    other[31] ^= 0x80;
    assert_false(sha256_is_same(sum, other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_codes_under_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
