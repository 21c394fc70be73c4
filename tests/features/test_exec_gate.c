/*
 * Rules, when texts run: whatever is executed is held against them, however it comes to that. Each
 * attempt is made without rules first, and does then what it is to do: it is judged by what became
 * of a file.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VICTIM "victim"
#define RULES  "[{\"deny\": [\"rm\"], \"because\": \"nothing is removed\"}, {\"ask\": [\"mkdir\"]}]"

/* A person, and what they were shown last. */
struct person {
    bool later; /* they do not answer at once */
    nacre_answer_kind says;
    int asked;
    uint64_t number;
    char command[512], reason[256], cwd[256];
};

static int ask_them(nacre_session *session, const nacre_question *q, void *userdata)
{
    struct person *p = userdata;

    p->asked++;
    p->number = q->number;
    snprintf(p->command, sizeof p->command, "%s", q->command);
    snprintf(p->reason, sizeof p->reason, "%s", q->reason);
    snprintf(p->cwd, sizeof p->cwd, "%s", q->cwd);
    if (!p->later)
        CHECK_OK(nacre_answer(session, q->number, p->says, ERR));
    return 1;
}

static nacre_session *open_with(const char *policy, const char *sandbox, struct person *person)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;

    CHECK_OK(nacre_settings_load("", &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "policy", policy, NULL, ERR));
    CHECK_OK(nacre_settings_set(settings, "sandbox", sandbox, NULL, ERR));
    options.settings = settings;
    options.ask = person ? ask_them : NULL;
    options.ask_userdata = person;
    nacre_session *session = open_options(&options);
    nacre_settings_free(settings);
    return session;
}

/* Where there can be none, `$X` is in doubt and asked about. */
static bool gate_is_there(void)
{
    nacre_policy_answer answer = NACRE_POLICY_ANSWER_INIT;
    nacre_settings *settings;

    CHECK_OK(nacre_settings_load("", &settings, ERR));
    CHECK_OK(nacre_settings_set(settings, "policy", RULES, NULL, ERR));
    CHECK_OK(nacre_policy_check(settings, "$X", NULL, NULL, NULL, &answer, ERR));
    nacre_settings_free(settings);
    return answer.verdict == NACRE_ALLOW;
}

static void need_gate(void)
{
    if (!gate_is_there())
        SKIP("seccomp cannot listen here");
}

/* -- Attempts --------------------------------------------------------------------------------- */

#define RM    "R=$(echo r; echo m); R=${R//$'\\n'/}; "
#define FOUND "$(type -P $R)"

/* needs: a program; NULL = none. */
static const struct attempt {
    const char *needs, *text;
} attempts[] = {
    {NULL, "X=rm; $X " VICTIM},
    {NULL, RM "eval \"$R " VICTIM "\""},
    {NULL, "echo cm0gdmljdGlt | base64 -d | sh"},
    {NULL, "echo cm0gdmljdGlt | base64 -d | bash -s"},
    {NULL, "echo 'rm " VICTIM "' > s; . ./s"},
    {NULL, "echo 'rm " VICTIM "' > s; sh s"},
    {NULL, "printf '#!/bin/sh\\nrm " VICTIM "\\n' > s; chmod +x s; ./s"},
    {NULL, "printf '#!/usr/bin/env -S rm\\n' > " VICTIM "; chmod +x " VICTIM "; ./" VICTIM},
    {NULL, RM "printf '#!%s\\n' " FOUND " > " VICTIM "; chmod +x " VICTIM "; ./" VICTIM},
    {NULL, RM "find . -name " VICTIM " -exec $R {} \\;"},
    {NULL, RM "find . -name " VICTIM " | xargs $R"},
    {NULL, RM "env -u NOTHING $R " VICTIM},
    {NULL, RM "nice -n 1 timeout 9 nohup $R " VICTIM},
    {NULL, RM "exec $R " VICTIM},
    {NULL, RM "exec -a true $R " VICTIM},
    {NULL, RM "command $R " VICTIM},
    {NULL, RM "$R " VICTIM " & wait"},
    {NULL, RM "trap '$R " VICTIM "' EXIT; true"},
    {NULL, RM "echo $($R " VICTIM ")"},
    {NULL, RM "cat <($R " VICTIM "); sleep 0.1"},
    {NULL, RM "coproc $R " VICTIM "; wait"},
    {NULL, RM "ln -s " FOUND " alias; ./alias " VICTIM},
    {NULL,
     RM "mkdir -p d; ln -s " FOUND " d/alias; PATH=$PWD/d; alias " VICTIM "; ./d/alias " VICTIM},
    {NULL, RM "ln -s " FOUND " one; ln -s one two; exec -a x ./two " VICTIM},
    {NULL, RM "/proc/self/root" FOUND " " VICTIM},
    {NULL, RM "//bin/../bin/./$R " VICTIM},
    {NULL, RM "cd /bin; ./$R \"$OLDPWD/" VICTIM "\""},
    {NULL, RM
     "for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ ! -e $l ] || $l " FOUND
     " " VICTIM "; done"},
    {NULL, "awk 'BEGIN { system(\"rm " VICTIM "\") }'"},
    {NULL, "echo x | sed 's/.*/rm " VICTIM "/e'"},
    {NULL, "tar cf t s 2>/dev/null; touch s; tar cf t s --checkpoint=1 "
           "--checkpoint-action=exec='rm " VICTIM "'"},
    {"setsid", "setsid sh -c 'sleep 0.05; rm " VICTIM "' & wait"},
    {"flock", RM "flock . $R " VICTIM},
    {"make", "printf 'all:\\n\\trm " VICTIM "\\n' > Makefile; make"},
    {"make", "printf 'all:\\n\\t@rm -f " VICTIM " >/dev/null; true\\n' > Makefile; make -s"},
    {"git", "git -c alias.x='!rm " VICTIM "' x"},
    {"perl", "perl -e 'system(\"rm\", \"" VICTIM "\")'"},
    {"perl", "perl -e 'exec {\"/bin/rm\"} \"true\", \"" VICTIM "\"'"},
    {"python3", "python3 -c 'import subprocess; subprocess.run([\"rm\", \"" VICTIM "\"])'"},
    {"python3", "python3 -c 'import os; os.execvp(\"rm\", [\"x\", \"" VICTIM "\"])'"},
    {"python3",
     "python3 -c 'import os; os.posix_spawnp(\"rm\", [\"rm\", \"" VICTIM "\"], {}); os.wait()'"},
    {"python3", "python3 -c 'import os; os.system(\"rm " VICTIM "\")'"},
    {NULL, RM "\"$EXECUTES\" fd " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" proc " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" dirfd " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" thread " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" vfork " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" hidden " FOUND " " VICTIM},
    {NULL, RM "\"$EXECUTES\" swap /bin/$R -f " VICTIM},
    {NULL, RM "\"$EXECUTES\" shared /bin/$R -f " VICTIM},
};

static void try_all(nacre_session *session, bool held)
{
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const struct attempt *a = &attempts[i];
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_record record = NACRE_RECORD_INIT;
        if (a->needs && !have_program(a->needs))
            continue;
        const char *dir = format("try%s%zu", held ? "" : "-free", i);
        CHECK(mkdir(dir, 0700) == 0);
        spit(format("%s/" VICTIM, dir), "x", 1);
        command.text = format("cd %s || exit; %s", dir, a->text);
        command.timeout_ms = soon(10000);
        int r = nacre_run(session, &command, -1, &record, ERR);
        if (r != NACRE_EPERM) /* that is read in its text already */
            CHECK_OK(r);
        nacre_record_done(&record);
        bool there = access(format("%s/" VICTIM, dir), F_OK) == 0;
        if (there != held)
            FAIL("%s: %s", held ? "it was executed" : "it is no attempt", a->text);
    }
}

TEST_LIMIT(nothing_that_is_denied_is_executed, 150)
{
    need_gate();
    CHECK(setenv("EXECUTES", program("executes"), 1) == 0);
    nacre_session *session = open_with("", "off", NULL);
    try_all(session, false);
    close_session(session);
    session = open_with("[{\"deny\": [\"rm\"]}]", "off", NULL);
    try_all(session, true);
    close_session(session);
}

/* -- What is told ----------------------------------------------------------------------------- */

static int count_refused(const nacre_record *record, const char *target)
{
    int count = 0;
    for (int i = 0; i < record->denial_count; i++)
        count += record->denials[i].kind == NACRE_DENIAL_EXEC &&
                 strcmp(record->denials[i].target, target) == 0;
    return count;
}

/* A name that is tried along PATH, and a loop, are one thing for each program that wants it. */
TEST(what_is_refused_is_told_once)
{
    need_gate();
    nacre_session *session = open_with(RULES, "off", NULL);
    struct run run = run_text(session, "for i in 1 2 3; do echo env -u A rm -f x | sh; done; "
                                       "PATH=/nowhere:/bin:/usr/bin; echo rm -f x | sh");
    CHECK_EQ_INT(1, count_refused(&run.record, "rm -f x"));
    CHECK_EQ_INT(1, run.record.denial_count); /* a reader has each target once */
    CHECK_STR(run.record.denials[0].why, "denied by rule {\"deny\": [\"rm\"]}: nothing is removed");
    CHECK_EQ_INT(126, run.record.exit_code);
    CHECK_STR(run.err, "not permitted");
    nacre_id id = nacre_session_id(session);
    run_done(&run);
    close_session(session);
    char *log = slurp(format("%s/audit/%s.jsonl", test_home(), nacre_id_format(&id).s), NULL);
    CHECK_STR(log, "\"event\":\"denial\"");
    CHECK_STR(log, "\"command\":\"rm -f x\"");
    free(log);
}

/* -- Asking ----------------------------------------------------------------------------------- */

/* Where neither the reader nor a shell's own words show it. */
#define HIDDEN(text) "echo '" text "' | sh"

TEST(what_a_person_says_counts)
{
    struct person p = {.says = NACRE_ANSWER_NO};
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    struct run run = run_text(session, HIDDEN("mkdir a"));
    CHECK_EQ_INT(1, p.asked);
    CHECK_TEXT(p.command, "mkdir a");
    CHECK_STR(p.reason, "rule {\"ask\": [\"mkdir\"]}; a program in shell ");
    CHECK_STR(p.cwd, "/");
    CHECK_STR(run.record.denials[0].why, "said no");
    run_done(&run);
    CHECK(access("a", F_OK) < 0);
    p.says = NACRE_ANSWER_ONCE;
    run = run_text(session, HIDDEN("mkdir a; mkdir b"));
    CHECK_EQ_INT(3, p.asked);
    CHECK_EQ_INT(0, run.record.denial_count);
    CHECK(access("a", F_OK) == 0 && access("b", F_OK) == 0);
    run_done(&run);
    p.says = NACRE_ANSWER_SESSION;
    run = run_text(session, HIDDEN("mkdir c; rmdir c; mkdir c; rmdir c; mkdir c"));
    CHECK_EQ_INT(4, p.asked);
    CHECK(access("c", F_OK) == 0);
    run_done(&run);
    close_session(session);
}

/* What is opened for it outside is of no concern to a gate alone. */
TEST(a_command_may_read_a_file)
{
    struct person p = {.says = NACRE_ANSWER_NO};
    nacre_command command = NACRE_COMMAND_INIT;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    command.text = "cat";
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "given";
    command.input_size = 5;
    struct run run = run_command(session, &command);
    CHECK_TEXT(run.out, "given");
    run_done(&run);
    close_session(session);
}

TEST(what_was_said_yes_to_is_not_asked_again)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    static const char *const words[] = {"mkdir", "w", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    struct run run =
        run_text(session, "for i in 1 2; do mkdir -p d/$i; done; env mkdir e; " HIDDEN("mkdir f"));
    CHECK_EQ_INT(2, p.asked); /* the text, and f, which it did not show */
    CHECK_TEXT(p.command, "mkdir f");
    CHECK(access("d/2", F_OK) == 0 && access("e", F_OK) == 0 && access("f", F_OK) == 0);
    run_done(&run);
    command.argv = words;
    run = run_command(session, &command);
    CHECK_EQ_INT(3, p.asked);
    CHECK(access("w", F_OK) == 0);
    run_done(&run);
    close_session(session);
}

/* It comes by three times: as what it is called, behind its interpreter, and when that begins. */
TEST(a_script_is_asked_about_once)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    static const char script[] = "#!/usr/bin/env sh\necho made > made\n";
    need_gate();
    nacre_session *session = open_with("[{\"ask\": [\"release\", \"publish\"]}]", "off", &p);
    spit("release", script, sizeof script - 1);
    CHECK(chmod("release", 0700) == 0);
    struct run run = run_text(session, HIDDEN("./release publish now"));
    CHECK_EQ_INT(1, p.asked);
    CHECK_TEXT(p.command, "release publish now");
    CHECK(access("made", F_OK) == 0);
    run_done(&run);
    run = run_text(session, HIDDEN("sh ./release publish now"));
    CHECK_EQ_INT(2, p.asked);
    run_done(&run);
    run = run_text(session, HIDDEN("./release now"));
    CHECK_EQ_INT(2, p.asked);
    run_done(&run);
    close_session(session);
}

TEST(who_cannot_be_asked_is_not_waited_for)
{
    need_gate();
    nacre_session *session = open_with(RULES, "off", NULL);
    struct run run = run_text(session, HIDDEN("mkdir a"));
    CHECK_STR(run.record.denials[0].why, "cannot be");
    CHECK(access("a", F_OK) < 0);
    run_done(&run);
    close_session(session);
}

/* Whatever is waited for, the shell's time does not pass; and its keeper does all else. */
TEST(the_deadline_waits_with_it)
{
    struct person p = {.later = true};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_event event;
    nacre_watch *watch;
    nacre_id id;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    command.text = "(sleep 0.2; echo on) & " HIDDEN("mkdir a; echo done");
    command.timeout_ms = MS(600);
    CHECK_OK(nacre_start(session, &command, &id, &watch, ERR));
    int64_t began = now_ms();
    while (now_ms() < began + MS(1500))
        CHECK_OK(nacre_watch_wait(watch, 50, NULL, 0, &event, ERR));
    CHECK_EQ_INT(1, p.asked);
    CHECK(output_has(session, &id, NACRE_OUT, "on"));
    CHECK_TEXT(status_of(session, &id), "running");
    CHECK_OK(nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    wait_outcome(session, &id, 10000);
    nacre_watch_close(watch);
    check_ended(session, &id, NACRE_EXITED, NACRE_REASON_NONE);
    CHECK(output_has(session, &id, NACRE_OUT, "done"));
    close_session(session);
}

/* The time that is left goes on afterwards. */
TEST(the_deadline_comes_all_the_same)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    command.text = HIDDEN("mkdir a; sleep 300");
    command.timeout_ms = MS(300);
    CHECK_OK(nacre_run(session, &command, -1, &record, ERR));
    CHECK_EQ_INT(NACRE_TIMED_OUT, record.outcome);
    nacre_record_done(&record);
    close_session(session);
}

static nacre_id start_waiting(nacre_session *session, const struct person *p, const char *text,
                              nacre_watch **ret_watch)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_event event;
    nacre_id id;

    command.text = text;
    CHECK_OK(nacre_start(session, &command, &id, ret_watch, ERR));
    int64_t until = now_ms() + soon(10000);
    while (p->asked == 0 && now_ms() < until)
        CHECK_OK(nacre_watch_wait(*ret_watch, 50, NULL, 0, &event, ERR));
    CHECK_EQ_INT(1, p->asked);
    return id;
}

TEST(who_waits_can_be_ended)
{
    struct person p = {.later = true};
    nacre_watch *watch;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    nacre_id id = start_waiting(session, &p, HIDDEN("mkdir a"), &watch);
    kill_shell(session, &id, -1);
    check_ended(session, &id, NACRE_KILLED, NACRE_REASON_KILL);
    counts_of(session); /* looks at what is new */
    CHECK_CODE(NACRE_ENOTFOUND, nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    CHECK(access("a", F_OK) < 0);
    nacre_watch_close(watch);
    close_session(session);
}

/* The process is gone, the shell goes on: the answer is for nobody. */
TEST(an_answer_to_nobody_counts_for_nothing)
{
    struct person p = {.later = true};
    nacre_watch *watch;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    nacre_id id = start_waiting(
        session, &p, "m=mkdir; $m a & sleep 0.5; kill -9 $!; echo gone; sleep 300", &watch);
    CHECK(AWAIT(output_has(session, &id, NACRE_OUT, "gone"), 10000));
    nacre_answer(session, p.number, NACRE_ANSWER_ONCE, NULL);
    CHECK(AWAIT(nacre_answer(session, p.number, NACRE_ANSWER_ONCE, NULL) == NACRE_ENOTFOUND, 5000));
    kill_shell(session, &id, 0);
    CHECK(access("a", F_OK) < 0);
    nacre_watch_close(watch);
    close_session(session);
}

TEST(a_session_that_closes_answers_for_all)
{
    struct person p = {.later = true};
    nacre_watch *watch;
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    start_waiting(session, &p, HIDDEN("mkdir a"), &watch);
    nacre_watch_close(watch);
    close_session(session);
    CHECK(access("a", F_OK) < 0);
}

/* In the background somebody hears of it who looks at completions. */
TEST(a_shell_in_the_background_asks_too)
{
    struct person p = {.says = NACRE_ANSWER_ONCE};
    need_gate();
    nacre_session *session = open_with(RULES, "off", &p);
    nacre_id id = start_background(session, HIDDEN("mkdir a"));
    CHECK(AWAIT((counts_of(session), access("a", F_OK) == 0), 10000));
    wait_outcome(session, &id, 10000);
    close_session(session);
}

/* What was shown is not what is executed by then. */
TEST(words_that_change_while_somebody_thinks)
{
    struct person p = {.later = true};
    nacre_watch *watch;
    need_gate();
    CHECK(setenv("EXECUTES", program("executes"), 1) == 0);
    CHECK(mkdir("a", 0700) == 0);
    nacre_session *session = open_with(RULES, "off", &p);
    nacre_id id = start_waiting(session, &p, "m=mkdir; \"$EXECUTES\" turn /bin/$m -p a", &watch);
    CHECK_TEXT(p.command, "mkdir -p a");
    CHECK(AWAIT(output_has(session, &id, NACRE_OUT, "turned"), 10000));
    CHECK_OK(nacre_answer(session, p.number, NACRE_ANSWER_ONCE, ERR));
    wait_outcome(session, &id, 10000);
    CHECK(access("a", F_OK) == 0);
    nacre_record record = record_of(session, &id);
    CHECK_EQ_INT(1, count_refused(&record, "rm -rf a"));
    nacre_record_done(&record);
    nacre_watch_close(watch);
    close_session(session);
}

/* -- With a fence, and where nothing can be gained by executing ---------------------------------
 */

TEST_LIMIT(in_a_fence_nothing_that_is_denied_is_executed, 150)
{
    need_gate();
    CHECK(setenv("EXECUTES", program("executes"), 1) == 0);
    nacre_session *session = open_with("[{\"deny\": [\"rm\"]}]", "workspace-write", NULL);
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "true";
    int r = nacre_run(session, &command, -1, &record, ERR);
    nacre_record_done(&record);
    if (r == NACRE_ESTART && strcmp(harness_error.stage, "sandbox") == 0) {
        close_session(session);
        SKIP("no sandbox can be made here");
    }
    CHECK_OK(r);
    try_all(session, true);
    close_session(session);
}

/* Of a session without rules nothing is looked at. */
TEST(without_rules_there_is_no_filter)
{
    static const char *const policies[] = {"", "[{\"allow\": [\"ls\", \"**\"]}]", RULES};
    need_gate();
    for (int i = 0; i < 3; i++) {
        nacre_session *session = open_with(policies[i], "off", NULL);
        struct run run = run_text(session, "grep -c '^Seccomp:.2' /proc/self/status");
        CHECK_TEXT(run.out, i == 2 ? "1\n" : "0\n");
        run_done(&run);
        close_session(session);
    }
}

/* Whoever ends or stops the keeper gains nothing by it. */
TEST(without_its_keeper_nothing_is_executed)
{
    need_gate();
    nacre_session *session = open_with(RULES, "off", NULL);
    spit(VICTIM, "x", 1);
    struct run run = run_text(session, "kill -STOP $PPID; r=rm; $r " VICTIM "; echo on");
    CHECK_STR(run.out, "on");
    CHECK(access(VICTIM, F_OK) == 0);
    run_done(&run);
    nacre_id id =
        start_text(session, "setsid sh -c \"kill -9 $PPID; r=rm; \\$r " VICTIM "\" & sleep 300");
    wait_outcome(session, &id, 10000);
    CHECK(AWAIT(tree_empty(session, &id), 10000));
    CHECK(access(VICTIM, F_OK) == 0);
    close_session(session);
}
