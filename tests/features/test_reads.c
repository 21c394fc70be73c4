/*
 * Who reads, by real programs: what is known of each stands in reads_programs.h. Of those that do
 * not read none may be called reading; of those that do, each has to be seen. An ordinary user to
 * whom /proc hides the processes of others has a part of them.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reads_programs.h"

#define BATCH 12 /* that run at a time */

static const char *const names[] = {"no", "unknown", "listens", "line", "keys", "password"};

struct trial {
    const struct reads_program *program;
    nacre_id id;
    unsigned got; /* all that was seen */
    bool came_true;
};

static bool others_are_hidden(void)
{
    return access("/proc/1/stat", F_OK) < 0;
}

static bool has_all(const char *needs)
{
    char list[128], *rest = list;
    snprintf(list, sizeof list, "%s", needs);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && !have_program(word))
            return false;
    return true;
}

static void begin(nacre_session *s, struct trial *t, const struct reads_program *program)
{
    static int places;
    nacre_command command = NACRE_COMMAND_INIT;
    const char *place = format("%s/%d", test_base(), places++);
    CHECK(mkdir(place, 0777) == 0);
    *t = (struct trial){.program = program};
    command.text = program->text;
    command.cwd = place;
    command.background = 1;
    command.tty = program->where == TTY;
    command.input = NACRE_STDIN_PIPE;
    CHECK_OK(nacre_start(s, &command, &t->id, NULL, ERR));
}

static nacre_reading look(nacre_session *s, struct trial *t)
{
    nacre_reading reading = NACRE_READING_INIT;
    int r = nacre_get_reading(s, &t->id, &reading, ERR);
    if (r != NACRE_ECLOSED)
        CHECK_OK(r);
    t->got |= NACRE_READS_BIT(reading.reads);
    return reading;
}

static void describe(nacre_session *s, struct trial *t, const char *what)
{
    char words[128], status[64];
    nacre_reading reading = look(s, t);
    nacre_record record = record_of(s, &t->id);
    fprintf(stderr, "%s: %s, %s; it is %s, %s, and printed:\n%s\n", what, t->program->name,
            t->program->seen ? "seen before" : "new", names[reading.reads],
            nacre_reading_text(&reading, words, sizeof words),
            output_of(s, &t->id, NACRE_BOTH, NULL));
    fprintf(stderr, "%s\n", nacre_status(&record, status, sizeof status));
    nacre_record_done(&record);
}

/* Of those that read: each comes to what is expected. */
static bool all_came_true(nacre_session *s, struct trial *trials, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++)
        if (!trials[i].came_true) {
            unsigned now = NACRE_READS_BIT(look(s, &trials[i]).reads);
            trials[i].came_true = (now & trials[i].program->expected) != 0;
            all = all && trials[i].came_true;
        }
    return all;
}

static int judge_readers(nacre_session *s, struct trial *trials, size_t count)
{
    int wrong = 0;
    if (AWAIT(all_came_true(s, trials, count), 15000))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (!trials[i].came_true && ++wrong)
            describe(s, &trials[i], "MISSED");
    return wrong;
}

/* Of those that do not: they were never seen to, in some looks after they had time to begin. */
static int judge_others(nacre_session *s, struct trial *trials, size_t count)
{
    int wrong = 0;
    pause_ms(MS(1000));
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < count; i++)
            look(s, &trials[i]);
    for (size_t i = 0; i < count; i++)
        if ((trials[i].got == 0 || (trials[i].got & ~(N | S | U))) && ++wrong)
            describe(s, &trials[i], trials[i].got == 0 ? "ENDED" : "FALSE");
    return wrong;
}

/* What /proc hides cannot be found to be killed; a terminal interrupts whoever is there. */
static void end(nacre_session *s, const struct trial *t)
{
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    options.signal = 9;
    if (others_are_hidden() && t->program->expected == P)
        CHECK(AWAIT(nacre_input(s, &t->id, "\003", 1, 0, 100, NULL) < 0 || tree_empty(s, &t->id),
                    5000));
    CHECK_OK(nacre_kill(s, &t->id, &options, NULL, ERR));
}

/* One of so many. */
static void judge_all(const struct reads_program *list, size_t count, size_t step,
                      int (*judge)(nacre_session *s, struct trial *trials, size_t count))
{
    setenv("NACRE_SHELLS", "32", 1);
    nacre_session *s = open_session();
    int wrong = 0, tried = 0, fresh = 0;
    for (size_t at = 0; at < count;) {
        struct trial trials[BATCH];
        size_t began = 0;
        for (; at < count && began < BATCH; at += step)
            if (others_are_hidden() && strcmp(list[at].needs, "ssh-agent") == 0)
                continue; /* it hides itself, and could not be ended */
            else if (has_all(list[at].needs))
                begin(s, &trials[began++], &list[at]);
            else
                fprintf(stderr, "left out: %s: there is no %s\n", list[at].name, list[at].needs);
        wrong += judge(s, trials, began);
        tried += (int)began;
        for (size_t i = 0; i < began; i++) {
            fresh += !trials[i].program->seen;
            end(s, &trials[i]);
        }
    }
    fprintf(stderr, "%d programs, %d of them not seen before: %d wrong\n", tried, fresh, wrong);
    CHECK_EQ_INT(0, wrong);
    close_session(s);
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

TEST_LIMIT(programs_that_read_are_seen_to, 120)
{
    judge_all(programs_that_read, COUNT(programs_that_read), 1, judge_readers);
}

TEST_LIMIT(programs_that_do_not_read_never_are, 120)
{
    judge_all(programs_that_do_not, COUNT(programs_that_do_not), 1, judge_others);
}

HOST(one_to_whom_others_are_hidden)
{
    size_t step = long_tests() ? 1 : 5;

    CHECK(others_are_hidden());
    judge_all(programs_that_hide, COUNT(programs_that_hide), 1, judge_readers);
    judge_all(programs_that_read, COUNT(programs_that_read), step, judge_readers);
    judge_all(programs_that_do_not, COUNT(programs_that_do_not), step, judge_others);
}

/* What belongs to others is not even listed there: a setuid program is known by its number, and by
 * what it does with the terminal. */
TEST_LIMIT(what_may_not_be_looked_at_is_told_by_the_terminal, 120)
{
    static const char *const prefix[] = {
        "unshare",
        "-m",
        "sh",
        "-c",
        "mount -t proc -o hidepid=2 proc /proc && "
        "exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"",
        "sh",
        NULL};
    if (getuid() != 0)
        SKIP("only root gives another user a /proc of its own");
    if (system("unshare -m mount -t proc -o hidepid=2 proc /proc 2>/dev/null") != 0)
        SKIP("nothing can be mounted here");
    CHECK(chmod(test_base(), 0777) == 0);
    setenv("NACRE_HOME", format("%s/user", test_base()), 1);
    host_join(host_exec(prefix, "one_to_whom_others_are_hidden"));
}
