/* What a command asks for beyond its sandbox: a person is shown it, and it gets that and no more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "features/fence_world.h"
#include "harness/harness.h"

/* A person, and what they were shown last. */
struct person {
    nacre_answer_kind says;
    bool away;
    int asked;
    char reason[1024], description[256];
};

static int ask_them(nacre_session *session, const nacre_question *q, void *userdata)
{
    struct person *p = userdata;
    p->asked++;
    snprintf(p->reason, sizeof p->reason, "%s", q->reason);
    snprintf(p->description, sizeof p->description, "%s", q->description);
    if (!p->away)
        CHECK_OK(nacre_answer(session, q->number, p->says, ERR));
    return !p->away;
}

static nacre_session *open_asking(struct person *person, const char *mode)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;
    CHECK_OK(nacre_settings_load("", &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "sandbox", mode, NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "sandbox_caches", "off", NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "sandbox_hide", OUTSIDE "/hidden", NULL, ERR));
    options.settings = settings;
    options.ask = ask_them;
    options.ask_userdata = person;
    nacre_session *s = open_options(&options);
    nacre_settings_free(settings);
    return s;
}

/* NULL = it wants nothing of that kind. */
static nacre_command wanting(const char *text, const char *write, const char *host)
{
    static const char *writes[2], *hosts[2];
    nacre_command command = NACRE_COMMAND_INIT;
    writes[0] = write;
    hosts[0] = host;
    command.text = text;
    command.permissions.write = writes;
    command.permissions.hosts = hosts;
    command.justification = "it has to";
    return command;
}

static int begin(nacre_session *s, const nacre_command *command)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = nacre_run(s, command, -1, &record, ERR);
    nacre_record_done(&record);
    return r;
}

static bool is_there(const char *name)
{
    return access(format("%s/%s", OUTSIDE, name), F_OK) == 0;
}

TEST(what_is_allowed_is_had_and_nothing_more)
{
    static const char both[] = "touch $OUT/dir/new; touch $OUT/other";
    struct person p = {.says = NACRE_ANSWER_ONCE};
    world_make();
    CHECK_EQ_INT(0, symlink(OUTSIDE "/dir", "leads"));
    nacre_session *s = open_asking(&p, "workspace-write");
    nacre_command command = wanting(both, "leads", NULL);
    struct run run = run_command(s, &command);
    CHECK(is_there("dir/new") && !is_there("other"));
    CHECK_TEXT(run.record.sandbox, "workspace-write, network off, and more: " OUTSIDE "/dir");
    run_done(&run);
    CHECK_TEXT(p.reason, "it wants more than its sandbox gives: to write " OUTSIDE "/dir");
    CHECK_TEXT(p.description, "it has to");
    CHECK_EQ_INT(0, unlink(OUTSIDE "/dir/new"));
    run = run_text(s, both);
    CHECK(!is_there("dir/new"));
    CHECK_TEXT(run.record.sandbox, "workspace-write, network off");
    run_done(&run);
    close_session(s);
    world_end();
}

TEST(without_a_yes_nothing_starts)
{
    struct person p = {.says = NACRE_ANSWER_NO};
    world_make();
    nacre_session *s = open_asking(&p, "workspace-write");
    nacre_command command = wanting("touch started", OUTSIDE "/dir", "example.org");
    CHECK_CODE(NACRE_EPERM, begin(s, &command));
    CHECK_STR(harness_error.msg, "said no");
    p.away = true;
    CHECK_CODE(NACRE_EPERM, begin(s, &command));
    CHECK_STR(harness_error.msg, "\"sandbox_write\": [\"" OUTSIDE "/dir\"], \"sandbox_network\": "
                                 "[\"example.org\"]");
    command = wanting("touch started", NULL, NULL);
    command.permissions.full = 1;
    CHECK_CODE(NACRE_EPERM, begin(s, &command));
    CHECK_STR(harness_error.msg, "\"sandbox\": \"off\"");
    CHECK_EQ_INT(3, p.asked);
    CHECK(access("started", F_OK) < 0);
    close_session(s);
    world_end();
}

TEST(what_it_has_already_is_not_asked_for)
{
    static const char *const nowhere[] = {"", NULL};
    struct person p = {.says = NACRE_ANSWER_NO};
    world_make();
    nacre_session *s = open_asking(&p, "workspace-write");
    nacre_command command = wanting("true", "mine", NULL);
    CHECK_OK(begin(s, &command));
    static const struct {
        const char *write, *host, *told;
    } rows[] = {{OUTSIDE "/hidden", NULL, "hidden"},
                {".git/hooks", NULL, "protected"},
                {OUTSIDE "/not-there", NULL, "name what is there"},
                {NULL, "*", "hosts: \"*\""},
                {NULL, "a.example\nb.example", "hosts"},
                {NULL, "", "hosts"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        command = wanting("true", rows[i].write, rows[i].host);
        if (begin(s, &command) != NACRE_EINVAL || !strstr(harness_error.msg, rows[i].told))
            FAIL("%s, %s: %s", rows[i].write, rows[i].host, harness_error.msg);
    }
    command = wanting("true", NULL, NULL);
    command.permissions.sockets = nowhere;
    CHECK_CODE(NACRE_EINVAL, begin(s, &command));
    close_session(s);
    s = open_asking(&p, "off");
    command = wanting("true", OUTSIDE "/dir", "example.org");
    command.permissions.full = 1;
    CHECK_OK(begin(s, &command));
    CHECK_EQ_INT(0, p.asked);
    close_session(s);
    world_end();
}

TEST(for_the_session_is_for_that_very_wish)
{
    struct person p = {.says = NACRE_ANSWER_SESSION};
    world_make();
    nacre_session *s = open_asking(&p, "workspace-write");
    nacre_command command = wanting("true", OUTSIDE "/dir", NULL);
    for (int i = 0; i < 3; i++)
        CHECK_OK(begin(s, &command));
    CHECK_EQ_INT(1, p.asked);
    p.says = NACRE_ANSWER_NO;
    command = wanting("true", OUTSIDE, NULL);
    CHECK_CODE(NACRE_EPERM, begin(s, &command));
    close_session(s);
    world_end();
}

TEST(all_of_it_is_no_sandbox)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    world_make();
    nacre_session *s = open_asking(&p, "read-only");
    nacre_command command = wanting("touch $OUT/all", NULL, NULL);
    command.permissions.full = 1;
    struct run run = run_command(s, &command);
    CHECK(is_there("all"));
    CHECK_TEXT(run.record.sandbox, "");
    CHECK_TEXT(p.reason, "it wants more than its sandbox gives: to run without the sandbox");
    run_done(&run);
    close_session(s);
    world_end();
}

/* In read-only, too; and what one got no other one has. */
TEST(many_are_apart_and_meet_in_one_network)
{
    static const char meet[] = "exec 3<>/dev/tcp/127.0.0.1/$(cat /tmp/port); cat <&3; touch "
                               "$OUT/dir$WHICH/new $OUT/dir/new";
    struct person p = {.says = NACRE_ANSWER_ONCE};
    if (!have_program("python3"))
        SKIP("needs python3");
    world_make();
    nacre_session *s = open_asking(&p, "read-only");
    nacre_id server = start_text(
        s, "exec python3 -u -c 'import socket\nt = socket.socket(); t.bind((\"127.0.0.1\", 0)); "
           "t.listen(); open(\"/tmp/port\", \"w\").write(str(t.getsockname()[1])); "
           "print(\"up\")\nwhile True: t.accept()[0].send(b\"served\\n\")'");
    CHECK(AWAIT(output_has(s, &server, NACRE_OUT, "up"), 10000));
    for (int i = 0; i < 8; i++) {
        setenv("WHICH", format("%d", i), 1);
        CHECK_EQ_INT(0, system("mkdir $OUT/dir$WHICH"));
        nacre_command command = wanting(meet, format(OUTSIDE "/dir%d", i), NULL);
        struct run run = run_command(s, &command);
        CHECK_TEXT(run.out, "served\n");
        CHECK(is_there(format("dir%d/new", i)) && !is_there("dir/new"));
        run_done(&run);
    }
    nacre_command command = wanting("echo $http_proxy", NULL, "example.org");
    struct run run = run_command(s, &command);
    CHECK_STR(run.out, ":x@127.0.0.1:");
    CHECK_TEXT(run.record.sandbox, "read-only, network by named hosts, and more: example.org");
    run_done(&run);
    kill_shell(s, &server, 0);
    close_session(s);
    world_end();
}
