/* Errors: every code has a name of its own, and every text fits where it is put. */
#include "unit.h"

#include "base/err.h"

static void codes_have_names_of_their_own(void **state)
{
    (void)state;
    for (int code = NACRE_EFORBIDDEN; code <= NACRE_OK; code++) {
        assert_string_not_equal(nacre_code_name(code), "unknown");
        assert_true(strlen(nacre_code_name(code)) > 0);
        for (int other = NACRE_EFORBIDDEN; other < code; other++)
            assert_string_not_equal(nacre_code_name(code), nacre_code_name(other));
    }
    assert_string_equal(nacre_code_name(NACRE_ENOTFOUND), "not found");
    assert_string_equal(nacre_code_name(NACRE_EPERM), "not permitted");
    assert_string_equal(nacre_code_name(NACRE_EBACKEND), "backend failure");
    assert_string_equal(nacre_code_name(1), "unknown");
    assert_string_equal(nacre_code_name(NACRE_EFORBIDDEN - 1), "unknown");
    assert_string_equal(nacre_code_name(INT_MIN), "unknown");
}

static void set_fills_everything(void **state)
{
    (void)state;
    nacre_error err;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(err_set(&err, NACRE_EINVAL, "the %s is %d", "timeout", -1), NACRE_EINVAL);
    assert_int_equal(err.code, NACRE_EINVAL);
    assert_int_equal(err.sys_errno, 0);
    assert_string_equal(err.stage, "");
    assert_string_equal(err.msg, "the timeout is -1");
}

static void sys_appends_the_cause(void **state)
{
    (void)state;
    nacre_error err;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(err_sys(&err, NACRE_ESTART, ENOENT, "chdir", "cannot use \"%s\"", "/x"),
                     NACRE_ESTART);
    assert_int_equal(err.code, NACRE_ESTART);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_string_equal(err.stage, "chdir");
    assert_string_equal(err.msg, "cannot use \"/x\": No such file or directory");
    err_sys(&err, NACRE_EIO, 0, "state", "damaged");
    assert_string_equal(err.msg, "damaged");
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, NACRE_EBUSY, "%s", "x"), NACRE_EBUSY);
    assert_int_equal(err_sys(NULL, NACRE_EIO, EIO, "x", "%s", "x"), NACRE_EIO);
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[600];
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = '\0';
    for (size_t length = 200; length < 300; length++) {
        struct {
            nacre_error err;
            char guard[16];
        } box;
        memset(&box, 0x5a, sizeof box);
        err_sys(&box.err, NACRE_EIO, ENOSPC, text, "%.*s", (int)length, text);
        assert_int_equal(strlen(box.err.stage), sizeof box.err.stage - 1);
        size_t whole = length + strlen(": No space left on device");
        size_t fits = sizeof box.err.msg - 1;
        assert_int_equal(strlen(box.err.msg), whole < fits ? whole : fits);
        assert_int_equal(box.err.sys_errno, ENOSPC);
        for (size_t i = 0; i < sizeof box.guard; i++)
            assert_int_equal(box.guard[i], 0x5a);
    }
}

static void texts_of_errno_do_not_follow_the_locale(void **state)
{
    (void)state;
    assert_string_equal(err_text(EACCES), "Permission denied");
    assert_string_equal(err_text(0), "Success");
    assert_string_equal(err_text(-1), "unknown error");
    assert_string_equal(err_text(1 << 20), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names_of_their_own),
        cmocka_unit_test(set_fills_everything),
        cmocka_unit_test(sys_appends_the_cause),
        cmocka_unit_test(nobody_has_to_listen),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(texts_of_errno_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
