/* Recall over real runs: running, ended, of an earlier session, lost, and over their quota. */
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct found {
    char text[16384];
    size_t count;
};

static int note(const nacre_recall_line *line, void *userdata)
{
    struct found *f = userdata;
    size_t used = strlen(f->text);
    f->count++;
    if (used + line->size + 64 < sizeof f->text)
        snprintf(f->text + used, sizeof f->text - used, "%s:%llu:%.*s\n",
                 line->stream == NACRE_STDOUT ? "out" : "err", (unsigned long long)line->line,
                 (int)line->size, line->text);
    return 0;
}

static nacre_recall_totals search(nacre_session *s, const char *pattern, const nacre_id *id,
                                  struct found *found)
{
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    memset(found, 0, sizeof *found);
    query.pattern = pattern;
    query.id = id;
    CHECK_OK(nacre_recall(s, &query, note, found, &totals, ERR));
    return totals;
}

static const char *lines_of(nacre_session *s, const char *pattern, const nacre_id *id)
{
    static struct found found;
    search(s, pattern, id, &found);
    return found.text;
}

/* The cause in the middle of a lot, on either stream; any range can be had again. */
TEST(the_cause_in_the_middle)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "seq 1 20000; echo 'ERROR: real cause' >&2; seq 1 20000");
    CHECK_TEXT(lines_of(s, "ERROR", NULL), "err:1:ERROR: real cause\n");
    run_done(&run);
    run = run_text(s, "seq 1 20000; echo 'ERROR: real cause'; seq 1 20000");
    CHECK_TEXT(lines_of(s, "ERROR", &run.record.id), "out:20001:ERROR: real cause\n");

    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    struct found found = {.count = 0};
    query.id = &run.record.id;
    query.from = 20000;
    query.to = 20002;
    CHECK_OK(nacre_recall(s, &query, note, &found, NULL, ERR));
    CHECK_TEXT(found.text, "out:20000:20000\nout:20001:ERROR: real cause\nout:20002:1\n");
    run_done(&run);
    close_session(s);
}

/* Of lines that differ in numbers alone a few are shown, the rare one among them, and all counted.
 */
TEST(matches_of_one_template_are_folded)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "for i in $(seq 400); do echo \"job $i failed at 0x${i}ff\"; "
                                 "[ $i = 300 ] && echo 'the disk failed'; done; true");
    struct found found = {.count = 0};
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    query.pattern = "failed";
    query.fold = 1;
    CHECK_OK(nacre_recall(s, &query, note, &found, &totals, ERR));
    CHECK_TEXT(found.text, "out:1:job 1 failed at 0x1ff\nout:2:job 2 failed at 0x2ff\n"
                           "out:3:job 3 failed at 0x3ff\nout:301:the disk failed\n");
    CHECK_EQ_INT(401, totals.matches);
    CHECK_EQ_INT(4, totals.shown);
    CHECK_EQ_INT(397, totals.folded);
    query.fold = 0;
    memset(&found, 0, sizeof found);
    CHECK_OK(nacre_recall(s, &query, note, &found, &totals, ERR));
    CHECK_EQ_INT(100, totals.shown);
    CHECK_EQ_INT(0, totals.folded);
    run_done(&run);
    close_session(s);
}

TEST(newest_first)
{
    nacre_session *s = open_session();
    for (int i = 1; i <= 3; i++) {
        struct run run = run_text(s, format("echo word %d; echo more words", i));
        run_done(&run);
        pause_ms(2);
    }
    CHECK_TEXT(lines_of(s, "word", NULL), "out:1:word 3\nout:2:more words\nout:1:word 2\n"
                                          "out:2:more words\nout:1:word 1\nout:2:more words\n");
    close_session(s);
}

TEST(a_running_shell)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "echo so far; printf 'and not yet'; sleep 300");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "not yet"), 5000));
    CHECK_TEXT(lines_of(s, "far|yet", &id), "out:1:so far\nout:2:and not yet\n");
    close_session(s);
}

/* A flood that never ends: the search does, at where it was when it began. */
TEST(a_flooding_shell)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "yes";
    command.quota = 256 * 1024;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "y\n"), 5000));
    for (int i = 0; i < 20; i++) {
        struct found found;
        nacre_recall_totals totals = search(s, "^y$", &id, &found);
        CHECK(totals.matches >= totals.shown);
        CHECK_EQ_INT(1, totals.shells);
    }
    kill_shell(s, &id, 0);
    close_session(s);
}

static void leave_a_shell(void *arg)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo from before; echo lost >&2");
    nacre_id *id = arg;
    *id = start_text(s, "echo in the middle; printf unfinished; exec sleep 300");
    CHECK(AWAIT(output_has(s, id, NACRE_OUT, "unfinished"), 5000));
    run_done(&run);
    kill(keeper_of(s, id).pid, SIGKILL);
    raise(SIGKILL);
}

/* After SIGKILL of keeper and host there are only the files. */
TEST(after_everything_was_killed)
{
    nacre_id *id = shared_memory(sizeof *id);
    pid_t host = host_fork(leave_a_shell, id);
    nacre_session *s = open_session();
    CHECK(AWAIT(!process_alive(process_of(host)), 10000));
    host_kill(host);
    CHECK(AWAIT(strcmp(status_of(s, id), "lost") == 0, 2000));
    CHECK_TEXT(lines_of(s, "middle|unfin|before|lost", NULL),
               "out:1:in the middle\nout:2:unfinished\nout:1:from before\nerr:1:lost\n");
    close_session(s);
}

/* Beyond the quota numbers still are what they were, and what is missing is said. */
TEST(over_the_quota)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "seq 1 300000; echo end >&2";
    command.quota = 256 * 1024;
    CHECK_OK(nacre_run(s, &command, -1, &record, ERR));
    CHECK_TEXT(lines_of(s, "^(7|1999|299999|end)$", &record.id),
               "out:7:7\nout:1999:1999\nout:299999:299999\nerr:1:end\n");
    struct found found;
    nacre_recall_totals totals = search(s, "^\\d+$", &record.id, &found);
    CHECK_EQ_INT(100, totals.shown);
    CHECK_EQ_INT(record.dropped_bytes[0] + record.dropped_bytes[1], totals.dropped_bytes);
    /* The two lines at the gap are there in part. */
    CHECK_RANGE(300000 - record.dropped_lines[0] - 1, totals.matches,
                300000 - record.dropped_lines[0] + 1);
    nacre_record_done(&record);
    close_session(s);
}

/* What a session may not read it does not find; a person may read everything. */
TEST(the_shells_of_another_session)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *other = open_options(&options), *s = open_options(&options);
    nacre_session *person = open_session();
    nacre_id id = start_text(other, "echo word; exec sleep 300");
    CHECK(AWAIT(output_has(other, &id, NACRE_OUT, "word"), 5000));
    CHECK_TEXT(lines_of(other, "word", NULL), "out:1:word\n");
    CHECK_TEXT(lines_of(person, "word", NULL), "out:1:word\n");
    CHECK_TEXT(lines_of(s, "word", NULL), "");
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    struct found found = {.count = 0};
    query.id = &id;
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_recall(s, &query, note, &found, NULL, ERR));
    nacre_reader *reader = NULL;
    nacre_reader_options reading = NACRE_READER_OPTIONS_INIT;
    CHECK_CODE(NACRE_EFORBIDDEN, nacre_reader_open(s, &id, &reading, &reader, ERR));
    close_session(other);
    close_session(person);
    close_session(s);
}

TEST(a_damaged_run_is_counted)
{
    nacre_session *s = open_session();
    struct run good = run_text(s, "echo word"), bad = run_text(s, "echo word");
    spit(run_path(&bad.record.id, "spans"), "", 0);
    struct found found;
    nacre_recall_totals totals = search(s, "word", NULL, &found);
    CHECK_EQ_INT(1, totals.matches);
    CHECK_EQ_INT(1, totals.unreadable);
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    query.id = &bad.record.id;
    CHECK_CODE(NACRE_EIO, nacre_recall(s, &query, note, &found, NULL, ERR));
    run_done(&good);
    run_done(&bad);
    close_session(s);
}

static int fds_now;

static int count_fds(const nacre_recall_line *line, void *userdata)
{
    (void)line;
    (void)userdata;
    fds_now = fd_count();
    return 0;
}

TEST(no_descriptor_is_left)
{
    nacre_session *s = open_session();
    for (int i = 0; i < 5; i++) {
        struct run run = run_text(s, "echo word; echo word >&2");
        run_done(&run);
    }
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    query.pattern = "word";
    query.context = 1;
    /* The first one opens the catalog, which stays. */
    CHECK_OK(nacre_recall(s, &query, count_fds, NULL, NULL, ERR));
    int before = fd_count();
    CHECK_OK(nacre_recall(s, &query, count_fds, NULL, NULL, ERR));
    CHECK(fds_now > before);
    CHECK_EQ_INT(before, fd_count());
    close_session(s);
}
