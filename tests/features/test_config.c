/*
 * Settings as sessions take them, and secrets of a real parent that a real child must not get:
 * not in its environment, not from its keeper, not in any file of the home.
 */
#include "harness/harness.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE "v4lue-that-is-nowhere-else"

static void set_secrets(void)
{
    setenv("OPENAI_API_KEY", VALUE, 1);
    setenv("MY_SECRET", VALUE, 1);
    setenv("GITHUB_TOKEN", VALUE, 1);
    setenv("SSH_AUTH_SOCK", "/run/agent.sock", 1);
}

static bool has_line(const struct run *run, const char *line)
{
    return strstr(format("\n%s", run->out), format("\n%s\n", line)) != NULL;
}

static int files_seen, files_with_value;

static int look_into(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    size_t size = 0;
    (void)st;
    (void)ftw;
    if (kind != FTW_F)
        return 0;
    char *text = slurp(path, &size);
    files_seen++;
    files_with_value += text && memmem(text, size, VALUE, strlen(VALUE)) != NULL;
    free(text);
    return 0;
}

/* How many files of the home hold the value. */
static int files_that_tell(void)
{
    files_seen = files_with_value = 0;
    CHECK(nftw(test_home(), look_into, 16, FTW_PHYS) == 0);
    CHECK(files_seen >= 3);
    return files_with_value;
}

/* X1 */
TEST(secrets_stay_with_the_host)
{
    set_secrets();
    nacre_session *s = open_session();
    for (int round = 0; round < 2; round++) { /* by a new keeper, and by a warm one */
        struct run run = run_text(s, "env; tr '\\0' '\\n' </proc/$PPID/environ");
        CHECK_EQ_INT(0, run.record.exit_code);
        CHECK(!strstr(run.out, VALUE));
        CHECK(!strstr(run.out, "OPENAI_API_KEY") && !strstr(run.out, "MY_SECRET"));
        CHECK(has_line(&run, "SSH_AUTH_SOCK=/run/agent.sock"));
        run_done(&run);
    }
    CHECK_EQ_INT(0, files_that_tell());
    close_session(s);
}

TEST(an_allowed_name_passes)
{
    set_secrets();
    setenv("NACRE_ENV_ALLOW", "GITHUB_TOKEN", 1);
    setenv("NACRE_ENV_DENY", "SSH_*", 1);
    nacre_session *s = open_session();
    struct run run = run_text(s, "env");
    CHECK(has_line(&run, "GITHUB_TOKEN=" VALUE));
    CHECK(!strstr(run.out, "OPENAI_API_KEY") && !strstr(run.out, "SSH_AUTH_SOCK"));
    run_done(&run);
    CHECK(files_that_tell() > 0); /* the search finds what is there */
    close_session(s);
}

TEST(what_the_call_sets_is_passed_on)
{
    set_secrets();
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    static const char *const env[] = {"MY_SECRET=given", "OPENAI_API_KEY", NULL};
    command.text = "env";
    command.env = env;
    struct run run = run_command(s, &command);
    CHECK(has_line(&run, "MY_SECRET=given"));
    CHECK(!strstr(run.out, VALUE) && !strstr(run.out, "OPENAI_API_KEY"));
    run_done(&run);
    close_session(s);
}

/* The environment counts as it is at each start, not at the first. */
TEST(each_start_looks_again)
{
    nacre_session *s = open_session();
    unsetenv("LATE_TOKEN");
    struct run run = run_text(s, "env");
    run_done(&run);
    setenv("LATE_TOKEN", VALUE, 1);
    setenv("LATE_PLAIN", "here", 1);
    run = run_text(s, "env");
    CHECK(has_line(&run, "LATE_PLAIN=here"));
    CHECK(!strstr(run.out, "LATE_TOKEN"));
    run_done(&run);
    CHECK_EQ_INT(0, files_that_tell());
    close_session(s);
}

TEST(settings_reach_the_command)
{
    nacre_settings *settings = NULL;
    nacre_options options = NACRE_OPTIONS_INIT;
    CHECK_OK(nacre_settings_load("", &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "shell", "sh", NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "tier", "group", NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "quota", "256KiB", NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "grace", "200ms", NULL, ERR));
    options.settings = settings;
    nacre_session *s = open_options(&options);
    nacre_settings_free(settings); /* the session has its own */
    CHECK_EQ_INT(200, nacre_settings_number(nacre_session_settings(s), NACRE_SETTING_GRACE));

    struct run run = run_text(s, "echo \"$0\"");
    CHECK_TEXT(run.out, "sh\n");
    CHECK_EQ_INT(NACRE_TIER_GROUP, run.record.tier);
    run_done(&run);
    run = run_text(s, "head -c 1000000 /dev/zero");
    CHECK(run.record.dropped_bytes[NACRE_STDOUT] > 700000);
    run_done(&run);

    nacre_id id = start_text(s, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "ready"), 5000));
    int64_t begin = now_ms();
    kill_shell(s, &id, -1);
    CHECK_RANGE(190, now_ms() - begin, soon(1500));
    close_session(s);
}

TEST(options_have_the_last_word)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    const char *path;
    setenv("NACRE_SHELL", "no-such-shell", 1);
    setenv("NACRE_HOME", format("%s/not-this", test_base()), 1);
    options.home = format("%s/this", test_base());
    nacre_session *s = open_options(&options);
    CHECK_OK(nacre_session_home(s, &path, NULL, ERR));
    CHECK_TEXT(path, options.home);
    command.text = "echo \"$0\"";
    nacre_id id;
    CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &id, NULL, ERR));
    CHECK_STR(harness_error.msg, "no-such-shell");
    command.shell = "sh";
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "sh\n");
    run_done(&run);
    close_session(s);
}

TEST(a_broken_file_opens_nothing)
{
    static const char text[] = "{\n  \"timeout\": 5,\n  \"grace\": \"soon\"\n}\n";
    nacre_session *s = NULL;
    const char *path = format("%s/config.json", test_base());
    spit(path, text, sizeof text - 1);
    CHECK(chmod(path, 0600) == 0);
    setenv("NACRE_CONFIG", path, 1);
    int fds = fd_count();
    CHECK_CODE(NACRE_EINVAL, nacre_open(NULL, &s, ERR));
    CHECK(!s);
    CHECK_STR(harness_error.msg, format("%s:3: grace takes a time", path));
    CHECK_EQ_INT(fds, fd_count());
    CHECK(access(test_home(), F_OK) < 0);

    /* Who brings settings along does not depend on the file. */
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings = NULL;
    CHECK_OK(nacre_settings_load("", &settings, ERR));
    options.settings = settings;
    s = open_options(&options);
    nacre_settings_free(settings);
    close_session(s);
}
