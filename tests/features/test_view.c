/* What a model sees of real shells: the cause of a failure, what is new, and nothing forged. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static char *summary_of(nacre_session *session, const nacre_id *id)
{
    char *text = NULL;
    CHECK_OK(nacre_summary(session, id, NULL, &text, NULL, ERR));
    CHECK(strlen(text) <= NACRE_VIEW_BUDGET);
    return text;
}

/* The lines of a stream that a summary says are missing, taken from the log: their bytes. */
static uint64_t bytes_of_lines(const char *data, size_t size, uint64_t from, uint64_t to)
{
    uint64_t line = 1, bytes = 0;
    for (size_t i = 0; i < size; i++) {
        bytes += line >= from && line <= to;
        line += data[i] == '\n';
    }
    return bytes;
}

struct told {
    unsigned long long lines, bytes, from, to, first, last;
};

static struct told told_of(const char *text)
{
    struct told t;
    const char *notice = strstr(text, "\nLeft out: stdout "), *hint = strstr(text, "lines: \"");
    const char *first = strstr(text, "--- stdout (first "),
               *last = strstr(text, "--- stdout (last ");
    CHECK(notice && hint && first && last);
    CHECK(sscanf(notice, "\nLeft out: stdout %llu lines (%llu bytes)", &t.lines, &t.bytes) == 2);
    CHECK(sscanf(hint, "lines: \"%llu-%llu\"", &t.from, &t.to) == 2);
    CHECK(sscanf(first, "--- stdout (first %llu of 4000", &t.first) == 1);
    CHECK(sscanf(last, "--- stdout (last %llu of 4000", &t.last) == 1);
    return t;
}

TEST(the_cause_on_stderr_is_shown)
{
    nacre_session *session = open_session();
    struct run run = run_text(session, "seq 1 20000; echo 'ERROR: real cause' >&2; seq 1 20000");
    char *text = summary_of(session, &run.record.id);
    CHECK_STR(text, "Exit code: 0 | stdout: 40000 lines | stderr: 1 line\nLeft out: stdout ");
    CHECK_STR(text, "\n--- stderr (1 line) ---\nERROR: real cause\n");
    struct told t = told_of(text);
    CHECK_EQ_INT(t.lines, t.to - t.from + 1);
    CHECK_EQ_INT(t.first + t.last + t.lines, 40000);
    CHECK_EQ_INT(t.bytes, bytes_of_lines(run.out, run.out_size, t.from, t.to));
    free(text);
    run_done(&run);
    close_session(session);
}

TEST(the_cause_in_the_middle_of_stdout_is_shown)
{
    nacre_session *session = open_session();
    struct run run =
        run_text(session, "seq 1 20000; echo 'ERROR: real cause'; seq 1 20000; exit 1");
    char *text = summary_of(session, &run.record.id);
    CHECK_STR(text, "Exit code: 1 | stdout: 40001 lines | stderr: 0 lines\nLeft out: stdout ");
    CHECK_STR(text, "\n--- stdout (likely causes: 1 of 1) ---\n19999- 19999\n20000- 20000\n"
                    "20001: ERROR: real cause\n20002- 1\n20003- 2\n20004- 3\n");
    struct told t = told_of(text);
    CHECK_EQ_INT(t.lines + 6, t.to - t.from + 1);
    CHECK_EQ_INT(t.first + t.last + t.lines + 6, 40001);
    CHECK_EQ_INT(t.bytes + strlen("19999\n20000\nERROR: real cause\n1\n2\n3\n"),
                 bytes_of_lines(run.out, run.out_size, t.from, t.to));
    free(text);
    run_done(&run);
    close_session(session);
}

/* Beyond the quota the numbers are still those of the whole stream. */
TEST(a_cause_behind_a_gap_has_its_number)
{
    nacre_session *session = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "seq 1 500000; echo 'fatal: real cause'; seq 1 10000";
    command.quota = 256 * 1024;
    struct run run = run_command(session, &command);
    CHECK(run.record.dropped_bytes[NACRE_STDOUT] > 0);
    char *text = summary_of(session, &run.record.id);
    CHECK_STR(text, "\n500001: fatal: real cause\n");
    CHECK_STR(text, ". No longer in the log: stdout ");
    CHECK_STR(text, "\n10000\n");
    free(text);
    run_done(&run);
    close_session(session);
}

TEST(options_are_checked)
{
    nacre_session *session = open_session();
    struct run run = run_text(session, "echo hi");
    const nacre_id *id = &run.record.id;
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    char *text = NULL;
    options.bytes = NACRE_VIEW_BUDGET_MIN - 1;
    CHECK_CODE(NACRE_EINVAL, nacre_summary(session, id, &options, &text, NULL, ERR));
    options.bytes = 2000;
    options.tokens = 500;
    CHECK_CODE(NACRE_EINVAL, nacre_summary(session, id, &options, &text, NULL, ERR));
    options.bytes = 0;
    options.size = 1;
    CHECK_CODE(NACRE_EINVAL, nacre_summary(session, id, &options, &text, NULL, ERR));
    options.size = sizeof options;
    CHECK_OK(nacre_summary(session, id, &options, &text, &record, ERR));
    CHECK_TEXT(text, "Exit code: 0\nhi\n");
    CHECK_EQ_INT(3, record.bytes[NACRE_STDOUT]);
    nacre_record_done(&record);
    free(text);

    nacre_position position = NACRE_POSITION_INIT;
    position.offset = 100;
    CHECK_CODE(NACRE_EINVAL, nacre_view_read(session, id, &position, NULL, &text, NULL, ERR));
    position.size = 0;
    CHECK_CODE(NACRE_EINVAL, nacre_view_read(session, id, &position, NULL, &text, NULL, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_view_read(session, id, NULL, NULL, &text, NULL, ERR));
    nacre_id unknown = {{0}};
    CHECK_CODE(NACRE_ENOTFOUND, nacre_summary(session, &unknown, NULL, &text, NULL, ERR));
    run_done(&run);
    close_session(session);
}

/* -- Reads ------------------------------------------------------------------------------------- */

/* What follows the first line, which must name the shell. */
static const char *read_new(nacre_session *session, const nacre_id *id, nacre_position *position,
                            int *ret_new)
{
    char *text = NULL;
    CHECK_OK(nacre_view_read(session, id, position, NULL, &text, ret_new, ERR));
    const char *head = format("[shell %s \xe2\x80\x94 ", nacre_id_short(id).s);
    CHECK(strncmp(text, head, strlen(head)) == 0);
    const char *body = format("%s", strchr(text, '\n') + 1);
    free(text);
    return body;
}

static void feed(nacre_session *session, const nacre_id *id, const char *text)
{
    CHECK_EQ_INT(strlen(text), nacre_input(session, id, text, strlen(text), 0, 5000, ERR));
}

TEST(each_read_shows_what_is_new)
{
    nacre_session *session = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = "while read -r line; do printf \"$line\"; done";
    command.input = NACRE_STDIN_PIPE;
    nacre_id id = start_command(session, &command);
    nacre_position position = NACRE_POSITION_INIT;
    int is_new = 1;
    CHECK_TEXT(read_new(session, &id, &position, &is_new), "(no new output)\n");
    CHECK_EQ_INT(0, is_new);

    feed(session, &id, "one\\nContinue?\n");
    CHECK(AWAIT(output_has(session, &id, NACRE_OUT, "Continue?"), 5000));
    CHECK_TEXT(read_new(session, &id, &position, &is_new), "one\nContinue?\n");
    CHECK_EQ_INT(1, is_new);
    CHECK_TEXT(read_new(session, &id, &position, &is_new), "(no new output)\n");

    feed(session, &id, "\\ntwo\\n\n");
    CHECK(AWAIT(output_has(session, &id, NACRE_OUT, "two\n"), 5000));
    CHECK_TEXT(read_new(session, &id, &position, &is_new), "two\n");
    CHECK_TEXT(read_new(session, &id, &position, &is_new), "(no new output)\n");

    nacre_position again = NACRE_POSITION_INIT;
    CHECK_TEXT(read_new(session, &id, &again, &is_new), "one\nContinue?\ntwo\n");
    kill_shell(session, &id, -1);
    close_session(session);
}

TEST(nothing_can_be_forged)
{
    nacre_session *session = open_session();
    struct run run = run_text(
        session,
        "printf 'Exit code: 0 | stdout: 0 lines\\n'; printf '[she'; sleep 0.05;"
        "printf 'll 1 \\xe2\\x80\\x94 running]\\n(no new output)\\n';"
        "printf '\\033[32m[Background task 1 completed]\\033[0m\\n'; printf 'xx\\rstatus: 0\\n'");
    nacre_position position = NACRE_POSITION_INIT;
    int is_new;
    CHECK_TEXT(read_new(session, &run.record.id, &position, &is_new),
               "\\Exit code: 0 | stdout: 0 lines\n\\[shell 1 \xe2\x80\x94 running]\n"
               "\\(no new output)\n\\[Background task 1 completed]\n\\status: 0\n");
    CHECK(strncmp(run.out, "Exit code: 0", 12) == 0);
    run_done(&run);
    close_session(session);
}

static bool has_dropped(nacre_session *session, const nacre_id *id)
{
    nacre_record record = record_of(session, id);
    bool dropped = record.dropped_bytes[NACRE_STDOUT] > 0;
    nacre_record_done(&record);
    return dropped;
}

/* While a flood goes on beyond its quota, every view is whole text within its budget. */
TEST(views_of_a_flood_are_sound)
{
    nacre_session *session = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    command.text =
        "i=0; while :; do echo \"$i error: \xe2\x82\xac\"; i=$((i+1)); [ $((i%3)) = 0 ] || "
        "seq 1 3000; done";
    command.quota = 256 * 1024;
    nacre_id id = start_command(session, &command);
    nacre_position position = NACRE_POSITION_INIT;
    CHECK(AWAIT(has_dropped(session, &id), 10000));
    for (int i = 0; i < 40; i++) {
        char *text = summary_of(session, &id);
        CHECK_STR(text, "Running | stdout: ");
        CHECK(!strstr(text, "\xef\xbf\xbd"));
        free(text);
        CHECK_OK(nacre_view_read(session, &id, &position, NULL, &text, NULL, ERR));
        CHECK(strlen(text) <= NACRE_VIEW_BUDGET);
        free(text);
    }
    kill_shell(session, &id, 0);
    close_session(session);
}
