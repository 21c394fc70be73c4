/* Rules as sessions hold them against texts: what is denied is not started, by whatever way it
 * comes, and the log says so. What texts then execute is test_exec_gate.c's. */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char rules[] = "[{\"deny\": [\"touch\"], \"because\": \"nobody touches\"},"
                            " {\"ask\": [\"cat\"]}, {\"allow\": [\"ls\", \"**\"]}]";

static nacre_session *open_with(const char *policy, const char *fallback)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;
    nacre_session *session;
    nacre_error error = NACRE_ERROR_INIT;

    CHECK(nacre_settings_load("", &settings, &error) == 0);
    CHECK(nacre_settings_set(settings, "policy", policy, NULL, &error) == 0);
    CHECK(nacre_settings_set(settings, "policy_default", fallback, NULL, &error) == 0);
    CHECK(nacre_settings_set(settings, "policy_gate", "off", NULL, &error) == 0);
    options.settings = settings;
    CHECK(nacre_open(&options, &session, &error) == 0);
    nacre_settings_free(settings);
    return session;
}

/* The sentence of the refusal; "" = it ran. */
static const char *run_it(nacre_session *session, const nacre_command *command)
{
    static nacre_error error;
    nacre_record record = NACRE_RECORD_INIT;

    memset(&error, 0, sizeof error);
    int r = nacre_run(session, command, -1, &record, &error);
    nacre_record_done(&record);
    if (r == 0)
        return "";
    CHECK(r == NACRE_EPERM);
    CHECK_TEXT(error.stage, "policy");
    return error.msg;
}

static const char *run_line(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    return run_it(session, &command);
}

TEST(what_is_denied_is_not_started)
{
    nacre_session *session = open_with(rules, "allow");

    CHECK_STR(run_line(session, "touch made"), "denied by rule {\"deny\": [\"touch\"]}: nobody");
    CHECK_STR(run_line(session, "true; bash -c 'tou\"ch\" made'"), "denied by rule");
    CHECK_STR(run_line(session, "echo $(touch made)"), "denied by rule");
    CHECK_STR(run_line(session, "cat made"), "they change \"ask\" in it to \"allow\"");
    CHECK_STR(run_line(session, "$X made"), "known only when it runs");
    CHECK(access("made", F_OK) < 0);
    CHECK_STR(run_line(session, "ls; mkdir made"), "");
    CHECK(access("made", F_OK) == 0);
    close_session(session);
}

TEST(words_without_a_shell_are_judged_too)
{
    static const char *const denied[] = {"env", "A=1", "touch", "made", NULL};
    static const char *const allowed[] = {"ls", "touch", NULL};
    nacre_session *session = open_with(rules, "allow");
    nacre_command command = NACRE_COMMAND_INIT;

    command.argv = denied;
    CHECK_STR(run_it(session, &command), "denied by rule");
    command.background = 1;
    CHECK(nacre_start(session, &command, &(nacre_id){{0}}, NULL, NULL) == NACRE_EPERM);
    command.background = 0;
    command.argv = allowed;
    CHECK_TEXT(run_it(session, &command), "");
    CHECK(access("made", F_OK) < 0);
    close_session(session);
}

TEST(variables_of_a_call_are_judged_too)
{
    static const char *const path[] = {"PATH=/nonexistent", NULL};
    static const char *const function[] = {"BASH_FUNC_ls%%=() { touch made; }", NULL};
    static const char *const plain[] = {"CI=1", NULL};
    nacre_session *session = open_with(rules, "allow");
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "ls";
    command.env = path;
    CHECK_STR(run_it(session, &command), "PATH is set");
    command.env = function;
    CHECK_STR(run_it(session, &command), "is set, which changes");
    command.env = plain;
    CHECK_TEXT(run_it(session, &command), "");
    close_session(session);
}

TEST(another_shell_is_in_doubt)
{
    nacre_session *session = open_with(rules, "allow");
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "ls";
    command.shell = "/nonexistent/fish";
    CHECK_STR(run_it(session, &command), "only text for bash and sh is read");
    command.shell = "sh";
    CHECK_TEXT(run_it(session, &command), "");
    close_session(session);
}

TEST(what_no_rule_is_about_goes_by_the_default)
{
    nacre_session *session = open_with(rules, "ask");

    CHECK_TEXT(run_line(session, "cd / && ls"), "");
    CHECK_STR(run_line(session, "mkdir 'a b'"), "\"policy\": [{\"allow\": [\"mkdir\", \"a b\"]}]");
    close_session(session);
    session = open_with(rules, "deny");
    CHECK_STR(run_line(session, "mkdir made"), "denied by policy_default");
    CHECK_TEXT(run_line(session, "ls"), "");
    close_session(session);
    session = open_with("", "allow");
    CHECK_TEXT(run_line(session, "$UNSET true"), "");
    close_session(session);
}

TEST(the_log_has_the_verdicts)
{
    nacre_session *session = open_with(rules, "allow");
    nacre_id id = nacre_session_id(session);
    char *log;

    run_line(session, "touch made");
    run_line(session, "ls");
    close_session(session);
    log = slurp(format("%s/audit/%s.jsonl", test_home(), nacre_id_format(&id).s), NULL);
    CHECK(log);
    CHECK_STR(log, "\"event\":\"denial\"");
    CHECK_STR(log, "\"verdict\":\"deny\"");
    CHECK_STR(log, "\"verdict\":\"allow\"");
    free(log);
}

TEST(a_rule_says_what_the_sandbox_is)
{
    static const char modes[] = "[{\"allow\": [\"mkdir\", \"**\"], \"sandbox\": \"read-only\"}]";
    nacre_session *session = open_with(modes, "allow");
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    command.text = "mkdir made";
    int r = nacre_run(session, &command, -1, &record, ERR);
    if (r == NACRE_ESTART && strcmp(harness_error.stage, "sandbox") == 0) {
        close_session(session);
        SKIP("no sandbox can be made here");
    }
    CHECK_OK(r);
    CHECK(record.exit_code != 0);
    CHECK(access("made", F_OK) < 0);
    nacre_record_done(&record);
    CHECK_TEXT(run_line(session, "mkdi\"r\" made || touch made"), "");
    CHECK(access("made", F_OK) < 0);
    CHECK_TEXT(run_line(session, "touch made"), "");
    CHECK(access("made", F_OK) == 0);
    close_session(session);
}
