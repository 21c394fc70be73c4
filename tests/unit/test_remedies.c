/* What to do where there is no fence goes by what the machine is like. */
#include <errno.h>
#include <string.h>

#include "local/remedies.h"
#include "unit.h"

static void each_cause_has_its_own(void **state)
{
    (void)state;
    static const struct {
        struct machine_rules around;
        enum fence_step step;
        int error;
        const char *told;
    } rows[] = {
        {{.apparmor = true, .filtered = true}, FENCE_STEP_MAPS, EACCES, "apparmor_restrict"},
        {{.apparmor = true}, FENCE_STEP_LOOPBACK, EPERM, "apparmor_restrict"},
        {{.clone_off = true}, FENCE_STEP_USER_NS, EPERM, "unprivileged_userns_clone=1"},
        {{.none_allowed = true}, FENCE_STEP_USER_NS, ENOSPC, "max_user_namespaces=10000"},
        {{0}, FENCE_STEP_USER_NS, ENOSPC, "max_user_namespaces=10000"},
        {{.filtered = true}, FENCE_STEP_USER_NS, EPERM, "seccomp profile"},
        {{.filtered = true}, FENCE_STEP_MOUNT_NS, EPERM, "seccomp profile"},
        {{.filtered = true}, FENCE_STEP_READ_ONLY, ENOSYS, "seccomp profile"},
        {{.filtered = true}, FENCE_STEP_JOIN, EPERM, "seccomp profile"},
        {{0}, FENCE_STEP_READ_ONLY, ENOSYS, "Linux 5.12"},
        {{0}, FENCE_STEP_PLACE, ENOSPC, "nacre doctor"},
        {{.major = 6, .minor = 1}, FENCE_STEP_LANDLOCK, EOPNOTSUPP, "Linux 6.12 or newer"},
        {{.major = 6, .minor = 18, .landlock_off = true}, FENCE_STEP_LANDLOCK, EOPNOTSUPP, "lsm="},
        {{.major = 6, .minor = 18, .filtered = true},
         FENCE_STEP_LANDLOCK,
         EPERM,
         "seccomp profile"},
        {{.filtered = true}, FENCE_STEP_FILTER, EPERM, "another filter"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *remedy = remedy_for(&rows[i].around, rows[i].step, rows[i].error);
        if (!strstr(remedy, rows[i].told))
            fail_msg("row %zu: %s", i, remedy);
    }
}

/* Property and remedy are in the sentence, whole, whatever the step. */
static void each_step_is_told_whole(void **state)
{
    (void)state;
    static const int errors[] = {EPERM, ENOSYS, ENOSPC, EACCES, EOPNOTSUPP};
    struct machine_rules here = remedy_look_around();
    for (enum fence_step step = FENCE_STEP_RECORD; step < FENCE_STEP_COUNT; step++)
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
            nacre_error err = NACRE_ERROR_INIT;
            assert_int_equal(NACRE_ESTART, fences_failed(step, errors[i], "", &err));
            assert_string_equal("sandbox", err.stage);
            assert_non_null(strstr(err.msg, fence_step_words(step)));
            assert_non_null(strstr(err.msg, remedy_for(&here, step, errors[i])));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cause_has_its_own),
        cmocka_unit_test(each_step_is_told_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
