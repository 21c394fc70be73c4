/* Asking a person: what was said counts, once, for the command that was shown and for no other. */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A person, and what they were shown last. */
struct person {
    bool there;   /* they can be asked */
    bool at_once; /* they answer before they let go of the question */
    nacre_answer_kind says;
    int asked;
    uint64_t number;
    char command[4096], commands[4096], reason[256], cwd[256], description[256];
};

static int ask_them(nacre_session *session, const nacre_question *q, void *userdata)
{
    struct person *p = userdata;

    p->asked++;
    p->number = q->number;
    snprintf(p->command, sizeof p->command, "%s", q->command);
    snprintf(p->commands, sizeof p->commands, "%s", q->commands);
    snprintf(p->reason, sizeof p->reason, "%s", q->reason);
    snprintf(p->cwd, sizeof p->cwd, "%s", q->cwd);
    snprintf(p->description, sizeof p->description, "%s", q->description);
    if (p->there && p->at_once)
        CHECK_OK(nacre_answer(session, q->number, p->says, ERR));
    return p->there;
}

static nacre_session *open_asking(struct person *person)
{
    static const char rules[] = "[{\"deny\": [\"touch\"]}, {\"ask\": [\"mkdir\"]}]";
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;
    nacre_session *session;

    CHECK_OK(nacre_settings_load("", &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "policy", rules, NULL, ERR));
    options.settings = settings;
    options.ask = ask_them;
    options.ask_userdata = person;
    CHECK_OK(nacre_open(&options, &session, ERR));
    nacre_settings_free(settings);
    return session;
}

static int run_line(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    command.text = text;
    int r = nacre_run(session, &command, -1, &record, ERR);
    nacre_record_done(&record);
    return r;
}

TEST(what_a_person_says_counts)
{
    struct person p = {.there = true, .at_once = true, .says = NACRE_ANSWER_NO};
    nacre_session *session = open_asking(&p);

    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir a"));
    CHECK_STR(harness_error.msg, "said no");
    p.says = NACRE_ANSWER_CANCELLED;
    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir a"));
    CHECK_STR(harness_error.msg, "did not answer");
    p.says = NACRE_ANSWER_CANNOT;
    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir a"));
    CHECK_STR(harness_error.msg, "change \"ask\" in it to \"allow\"");
    CHECK(access("a", F_OK) < 0);
    p.says = NACRE_ANSWER_ONCE;
    CHECK_OK(run_line(session, "mkdir a"));
    CHECK(access("a", F_OK) == 0);
    CHECK_EQ_INT(4, p.asked);
    CHECK_OK(run_line(session, "rmdir a"));
    CHECK_CODE(NACRE_EPERM, run_line(session, "touch a"));
    CHECK_EQ_INT(4, p.asked);
    close_session(session);
}

TEST(who_cannot_be_asked_allows_nothing)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    nacre_session *session = open_asking(&p);

    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir a"));
    CHECK_STR(harness_error.msg, "change \"ask\" in it to \"allow\"");
    CHECK_EQ_INT(1, p.asked);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    close_session(session);
}

TEST(for_the_session_is_for_that_very_command)
{
    static const char *const env[] = {"A=1", NULL};
    struct person p = {.there = true, .at_once = true, .says = NACRE_ANSWER_SESSION};
    nacre_session *session = open_asking(&p);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;

    for (int i = 0; i < 3; i++)
        CHECK_OK(run_line(session, "mkdir -p a"));
    CHECK_EQ_INT(1, p.asked);
    p.says = NACRE_ANSWER_NO;
    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir -p a "));
    command.text = "mkdir -p a";
    command.env = env;
    CHECK_CODE(NACRE_EPERM, nacre_run(session, &command, -1, &record, ERR));
    command.env = NULL;
    command.cwd = "/";
    CHECK_CODE(NACRE_EPERM, nacre_run(session, &command, -1, &record, ERR));
    CHECK_OK(run_line(session, "mkdir -p a"));
    CHECK_EQ_INT(4, p.asked);
    close_session(session);
    session = open_asking(&p);
    CHECK_CODE(NACRE_EPERM, run_line(session, "mkdir -p a"));
    close_session(session);
}

TEST(all_of_it_is_shown_and_can_be_seen)
{
    struct person p = {.there = true, .at_once = true, .says = NACRE_ANSWER_NO};
    nacre_session *session = open_asking(&p);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    char text[3000] = "mkdir a\xe2\x80\xae; echo $(mkdir b)\n# ";

    memset(text + strlen(text), 'x', 2000);
    strcat(text, "; mkdir end");
    command.text = text;
    command.cwd = "/";
    command.description = "harmless\x1b[2J";
    CHECK_CODE(NACRE_EPERM, nacre_run(session, &command, -1, &record, ERR));
    CHECK_STR(p.command, "mkdir a\\u202e; echo $(mkdir b)\\n# xxxx");
    CHECK_STR(p.command, "x; mkdir end");
    CHECK(strlen(p.command) > 2000);
    CHECK_TEXT(p.commands, "mkdir 'a\\u202e'\nmkdir b\necho $(mkdir b)");
    CHECK_TEXT(p.cwd, "/");
    CHECK_TEXT(p.description, "harmless\\x1b[2J");
    CHECK_STR(p.reason, "rule {\"ask\": [\"mkdir\"]}");
    close_session(session);
}

struct later {
    nacre_session *session;
    const char *text;
    int result;
};

static void *start_later(void *data)
{
    struct later *l = data;

    l->result = run_line(l->session, l->text);
    return NULL;
}

TEST(an_answer_may_come_later_and_counts_once)
{
    struct person p = {.there = true};
    nacre_session *session = open_asking(&p);
    struct later l = {session, "mkdir a", 1};
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, start_later, &l) == 0);
    CHECK(AWAIT(__atomic_load_n(&p.asked, __ATOMIC_SEQ_CST) == 1, 5000));
    CHECK(access("a", F_OK) < 0);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_answer(session, p.number + 1, NACRE_ANSWER_ONCE, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_answer(session, p.number, (nacre_answer_kind)77, ERR));
    CHECK_OK(run_line(session, "true"));
    CHECK_OK(nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ_INT(0, l.result);
    CHECK(access("a", F_OK) == 0);
    CHECK_CODE(NACRE_ENOTFOUND, nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    close_session(session);
}

TEST(a_close_waits_for_no_person)
{
    struct person p = {.there = true};
    nacre_session *session = open_asking(&p);
    struct later l = {session, "mkdir a", 1};
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, start_later, &l) == 0);
    CHECK(AWAIT(__atomic_load_n(&p.asked, __ATOMIC_SEQ_CST) == 1, 5000));
    close_session(session);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ_INT(NACRE_EPERM, l.result);
    CHECK(access("a", F_OK) < 0);
}
