/* The log of a session: a line for each start, end, kill and refusal, and no secret in it. */
#include "harness/harness.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static nacre_session *open_audited(void)
{
    return open_tool((const char *[]){"audit=on", "shells=2", NULL});
}

static const char *log_path(nacre_session *s)
{
    nacre_id id = nacre_session_id(s);

    return format("%s/audit/%s.jsonl", test_home(), nacre_id_format(&id).s);
}

/* Every line is an object of its own. The caller frees it. */
static json_t *read_log(const char *path)
{
    char *text = slurp(path, NULL);
    json_t *lines = json_array();

    CHECK(text);
    CHECK(text[0] && text[strlen(text) - 1] == '\n');
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(object))
            FAIL("\"%s\" is no object: %s", line, error.text);
        json_array_append_new(lines, object);
    }
    free(text);
    return lines;
}

static const char *text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));

    return text ? text : "";
}

/* The lines of one event, of one shell if id is not NULL. */
static int count_lines(const json_t *lines, const char *event, const nacre_id *id)
{
    size_t i;
    json_t *line;
    int count = 0;

    json_array_foreach(lines, i, line) count +=
        strcmp(text_of(line, "event"), event) == 0 &&
        (!id || strcmp(text_of(line, "id"), nacre_id_format(id).s) == 0);
    return count;
}

static json_t *find_line(const json_t *lines, const char *event, const nacre_id *id)
{
    size_t i;
    json_t *line;

    CHECK_EQ_INT(1, count_lines(lines, event, id));
    json_array_foreach(lines, i, line)
    {
        if (strcmp(text_of(line, "event"), event) == 0 &&
            (!id || strcmp(text_of(line, "id"), nacre_id_format(id).s) == 0))
            return line;
    }
    return NULL;
}

static void check_time(const json_t *line)
{
    int year, parts[6], n = 0;

    CHECK_EQ_INT(7, sscanf(text_of(line, "time"), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year,
                           &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5], &n));
    CHECK_EQ_INT(24, n);
    CHECK(year >= 2024);
}

TEST(foreground_and_background)
{
    nacre_session *s = open_audited();
    nacre_command command = NACRE_COMMAND_INIT;

    struct run run = run_text(s, "echo hi; echo oops >&2; exit 3");
    command.text = "printf \"\\303\\251 'quoted'\n\"";
    command.background = 1;
    command.name = "speaker";
    command.cwd = "/";
    nacre_id background = start_command(s, &command);
    wait_outcome(s, &background, 5000);
    CHECK(AWAIT(counts_of(s).running == 0, 5000));

    json_t *lines = read_log(log_path(s));
    CHECK_EQ_INT(4, json_array_size(lines));
    json_t *line = find_line(lines, "start", &run.record.id);
    check_time(line);
    CHECK_TEXT(text_of(line, "command"), "echo hi; echo oops >&2; exit 3");
    CHECK(json_is_false(json_object_get(line, "background")));
    line = find_line(lines, "end", &run.record.id);
    check_time(line);
    CHECK_TEXT(text_of(line, "status"), "exited(3)");
    CHECK_EQ_INT(3, json_integer_value(json_object_get(line, "exit_code")));
    CHECK_EQ_INT(3, json_integer_value(json_object_get(line, "stdout_bytes")));
    CHECK_EQ_INT(5, json_integer_value(json_object_get(line, "stderr_bytes")));

    line = find_line(lines, "start", &background);
    CHECK_TEXT(text_of(line, "command"), command.text);
    CHECK_TEXT(text_of(line, "name"), "speaker");
    CHECK_TEXT(text_of(line, "cwd"), "/");
    CHECK(json_is_true(json_object_get(line, "background")));
    CHECK(json_is_false(json_object_get(line, "kept")));
    line = find_line(lines, "end", &background);
    CHECK_TEXT(text_of(line, "status"), "exited(0)");
    json_decref(lines);
    run_done(&run);
    close_session(s);
}

TEST(kills_and_their_ends)
{
    nacre_session *s = open_audited();
    nacre_id id = start_background(s, "sleep 300");
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;

    options.signal = SIGINT;
    CHECK_OK(nacre_kill(s, &id, &options, NULL, ERR));
    json_t *lines = read_log(log_path(s));
    json_t *line = find_line(lines, "kill", &id);
    check_time(line);
    CHECK_TEXT(text_of(line, "signal"), "SIGINT");
    CHECK(json_is_true(json_object_get(line, "was_alive")));
    CHECK_EQ_INT(0, json_integer_value(json_object_get(line, "survivors")));
    CHECK(json_integer_value(json_object_get(line, "signalled")) >= 1);
    CHECK_TEXT(text_of(find_line(lines, "end", &id), "status"), "killed");
    json_decref(lines);

    CHECK_OK(nacre_kill(s, &id, NULL, NULL, ERR));
    lines = read_log(log_path(s));
    CHECK_EQ_INT(2, count_lines(lines, "kill", &id));
    CHECK_EQ_INT(1, count_lines(lines, "end", &id));
    json_decref(lines);
    close_session(s);
}

TEST(refusals)
{
    nacre_session *s = open_audited();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "echo never";
    command.cwd = "/nowhere/at/all";
    CHECK_CODE(NACRE_ESTART, nacre_start(s, &command, &id, NULL, ERR));
    start_background(s, "sleep 300");
    start_background(s, "sleep 300");
    command.cwd = NULL;
    command.background = 1;
    CHECK_CODE(NACRE_ELIMIT, nacre_start(s, &command, &id, NULL, ERR));
    json_t *lines = read_log(log_path(s));
    CHECK_EQ_INT(2, count_lines(lines, "denial", NULL));
    json_t *line = json_array_get(lines, 0);
    CHECK_TEXT(text_of(line, "event"), "denial");
    CHECK_TEXT(text_of(line, "command"), "echo never");
    CHECK_TEXT(text_of(line, "code"), nacre_code_name(NACRE_ESTART));
    CHECK_STR(text_of(line, "why"), "/nowhere/at/all");
    line = json_array_get(lines, 3);
    CHECK_TEXT(text_of(line, "event"), "denial");
    CHECK_TEXT(text_of(line, "code"), nacre_code_name(NACRE_ELIMIT));
    CHECK_TEXT(text_of(line, "why"), ERR->msg);
    json_decref(lines);
    close_session(s);
}

/* A name that is taken is a refusal too. */
TEST(refusals_for_a_name)
{
    nacre_session *s = open_audited();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "sleep 300";
    command.name = "web";
    command.background = 1;
    start_command(s, &command);
    command.text = "sleep 301";
    CHECK_CODE(NACRE_EBUSY, nacre_start(s, &command, &id, NULL, ERR));
    json_t *lines = read_log(log_path(s));
    CHECK_TEXT(text_of(find_line(lines, "denial", NULL), "command"), "sleep 301");
    json_decref(lines);
    close_session(s);
}

TEST(what_ended_with_the_session)
{
    nacre_session *s = open_audited();
    const char *path = log_path(s);
    nacre_id background = start_background(s, "sleep 300"), foreground = start_text(s, "sleep 300");
    nacre_id unheard = start_text(s, "exit 4");

    wait_outcome(s, &unheard, 5000);
    CHECK_OK(nacre_release(s, &foreground, ERR));
    close_session(s);
    json_t *lines = read_log(path);
    CHECK_TEXT(text_of(find_line(lines, "end", &background), "status"), "killed");
    CHECK_TEXT(text_of(find_line(lines, "end", &foreground), "status"), "killed");
    CHECK_TEXT(text_of(find_line(lines, "end", &unheard), "status"), "exited(4)");
    json_decref(lines);
}

TEST(names_of_variables_and_never_values)
{
    nacre_session *s = open_audited();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *env[] = {"COLOUR=mauve-unmistakable", "API_KEY=hunter2-unmistakable", "GONE", NULL};

    setenv("MY_SECRET", "inherited-unmistakable", 1);
    command.text = "echo $COLOUR";
    command.env = env;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "mauve-unmistakable\n");
    json_t *lines = read_log(log_path(s));
    json_t *names = json_object_get(find_line(lines, "start", &run.record.id), "env");
    CHECK_EQ_INT(3, json_array_size(names));
    CHECK_TEXT(json_string_value(json_array_get(names, 0)), "COLOUR");
    CHECK_TEXT(json_string_value(json_array_get(names, 1)), "API_KEY");
    CHECK_TEXT(json_string_value(json_array_get(names, 2)), "GONE");
    json_decref(lines);
    char *text = slurp(log_path(s), NULL);
    CHECK(text && !strstr(text, "unmistakable"));
    free(text);
    run_done(&run);
    close_session(s);
}

TEST(bytes_that_are_no_text)
{
    nacre_session *s = open_audited();

    struct run run = run_text(s, "true '\xff\xfe' \t\x01");
    json_t *lines = read_log(log_path(s));
    CHECK_STR(text_of(find_line(lines, "start", &run.record.id), "command"), "\xef\xbf\xbd");
    json_decref(lines);
    run_done(&run);
    close_session(s);
}

TEST(the_log_is_ones_own)
{
    nacre_session *s = open_audited();
    struct stat st;

    struct run run = run_text(s, "true");
    run_done(&run);
    CHECK_EQ_INT(0, stat(log_path(s), &st));
    CHECK_EQ_INT(0600, st.st_mode & 0777);
    CHECK_EQ_INT(0, stat(format("%s/audit", test_home()), &st));
    CHECK_EQ_INT(0700, st.st_mode & 0777);
    close_session(s);
}

TEST(off_leaves_no_file)
{
    nacre_session *s = open_tool((const char *[]){"audit=off", NULL});

    struct run run = run_text(s, "true");
    run_done(&run);
    nacre_id id = start_background(s, "true");
    wait_outcome(s, &id, 5000);
    CHECK(access(format("%s/audit", test_home()), F_OK) < 0);
    close_session(s);
    CHECK(access(format("%s/audit", test_home()), F_OK) < 0);
}

/* By whoever collects, whether that one keeps a log or not. */
static void check_log_is_collected(const char *setting)
{
    nacre_session *s = open_audited(), *other = open_tool((const char *[]){setting, NULL});
    const char *path = log_path(s);

    struct run run = run_text(s, "true");
    CHECK_OK(nacre_remove(s, &run.record.id, ERR));
    run_done(&run);
    CHECK_OK(nacre_gc(other, NULL, NULL, NULL, NULL, ERR));
    CHECK_EQ_INT(0, access(path, F_OK));
    close_session(s);
    CHECK_EQ_INT(0, access(path, F_OK));
    CHECK_OK(nacre_gc(other, NULL, NULL, NULL, NULL, ERR));
    CHECK(access(path, F_OK) < 0);
    close_session(other);
}

TEST(a_log_goes_with_the_last_run)
{
    check_log_is_collected("audit=on");
}

TEST(a_log_goes_with_the_last_run_where_none_is_kept)
{
    check_log_is_collected("audit=off");
}

TEST(a_log_without_a_session_goes_when_it_is_old)
{
    nacre_session *s = open_audited();
    const char *old = format("%s/audit/%032d.jsonl", test_home(), 1);
    const char *fresh = format("%s/audit/%032d.jsonl", test_home(), 2);
    const char *other = format("%s/audit/letter.jsonl", test_home());
    struct timespec past[2] = {{1000000000, 0}, {1000000000, 0}};

    struct run run = run_text(s, "true");
    run_done(&run);
    spit(old, "{}\n", 3);
    spit(fresh, "{}\n", 3);
    spit(other, "{}\n", 3);
    CHECK_EQ_INT(0, utimensat(AT_FDCWD, old, past, 0));
    CHECK_EQ_INT(0, utimensat(AT_FDCWD, other, past, 0));
    CHECK_OK(nacre_gc(s, NULL, NULL, NULL, NULL, ERR));
    CHECK(access(old, F_OK) < 0);
    CHECK_EQ_INT(0, access(fresh, F_OK));
    CHECK_EQ_INT(0, access(other, F_OK));
    CHECK_EQ_INT(0, access(log_path(s), F_OK));
    close_session(s);
}

static void start_many(int index, void *arg)
{
    for (int i = 0; i < 5; i++) {
        struct run run = run_text(arg, format("exit %d", index));
        run_done(&run);
    }
}

TEST(lines_of_threads_do_not_mix)
{
    nacre_session *s = open_audited();

    run_threads(8, start_many, s);
    json_t *lines = read_log(log_path(s));
    CHECK_EQ_INT(40, count_lines(lines, "start", NULL));
    CHECK_EQ_INT(40, count_lines(lines, "end", NULL));
    json_decref(lines);
    close_session(s);
}
