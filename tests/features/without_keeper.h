/*
 * The tests of the tools with the small backend instead of keepers: the same sources, compiled with
 * SMALL_BACKEND. What cannot hold there is listed here with its reason, and nowhere else.
 */
#ifndef TESTS_WITHOUT_KEEPER_H
#define TESTS_WITHOUT_KEEPER_H

#include "small_backend.h"

static const struct {
    const char *test, *why;
} needs_keeper[] = {
    {"command_of_a_mebibyte", "an argument of sh is not longer than 128 KiB"},
    {"cancelled_foreground_command_is_ended_with_its_tree", "setsid leaves the group"},
    {"kept_shell_survives", "nobody is left to keep it"},
    {"limits_of_a_call", "nobody is there to hold limits"},
    {"a_limit_in_a_completion", "nobody is there to hold limits"},
    {"kill_says_what_it_did", "a group is signalled as one, and nobody counts"},
    {"kill_of_the_stubborn_does_not_stop_the_loop", "likewise of SIGKILL"},
};

__attribute__((unused)) static nacre_session *open_small(const char *test,
                                                         const char *const *settings)
{
    nacre_backend backend;
    for (size_t i = 0; i < sizeof needs_keeper / sizeof needs_keeper[0]; i++)
        if (strcmp(needs_keeper[i].test, test + strlen("test_")) == 0)
            SKIP(needs_keeper[i].why);
    CHECK_OK(small_backend_new(&backend));
    return open_tool_on(&backend, settings);
}

#define open_tool(settings) open_small(__func__, settings)

#endif
