/* Stdin: nothing, given bytes of any size, a descriptor of the host's, or a pipe fed by calls. */
#include "harness/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "programs/pattern.h"

static char *pattern(size_t size)
{
    char *data = malloc(size + 1);

    CHECK(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)pattern_byte(i, 0, 1);
    return data;
}

static struct run run_bytes(nacre_session *s, const char *text, const void *data, size_t size)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.input = NACRE_STDIN_BYTES;
    command.input_data = data;
    command.input_size = size;
    return run_command(s, &command);
}

/* -- Given bytes ----------------------------------------------------------------------------- */

TEST(bytes_of_any_size)
{
    static const size_t sizes[] = {0,     1,     2,     4095,    4096,    65535,
                                   65536, 65537, 70000, 1000000, 10485760};
    char *data = pattern(10485760);
    nacre_session *s = open_session();

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct run run = run_bytes(s, "cat", data, sizes[i]);
        CHECK_EQ_INT(NACRE_EXITED, run.record.outcome);
        CHECK_EQ_INT(0, run.record.exit_code);
        CHECK_EQ_INT(sizes[i], run.out_size);
        CHECK(memcmp(run.out, data, sizes[i]) == 0);
        CHECK_EQ_INT(NACRE_STDIN_BYTES, run.record.input);
        run_done(&run);
    }
    free(data);
    close_session(s);
}

TEST(bytes_that_nobody_reads)
{
    char *data = pattern(10485760);
    nacre_session *s = open_session();
    int64_t begin = now_ms();
    struct run run = run_bytes(s, "echo ok", data, 10485760);

    CHECK_TEXT(run.out, "ok\n");
    run_done(&run);
    run = run_bytes(s, "exec <&-; echo ok", data, 10485760);
    CHECK_TEXT(run.out, "ok\n");
    run_done(&run);
    run = run_bytes(s, "head -c 3; sleep 0.05; echo; echo ok", data, 1000000);
    CHECK_EQ_INT(7, run.out_size);
    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
    CHECK_RANGE(0, now_ms() - begin, soon(2000));
    free(data);
    close_session(s);
}

TEST(bytes_for_a_slow_reader)
{
    char *data = pattern(300000);
    nacre_session *s = open_session();
    struct run run =
        run_bytes(s, "for i in 1 2 3; do head -c 50000; sleep 0.03; done; cat", data, 300000);

    CHECK_EQ_INT(300000, run.out_size);
    CHECK(memcmp(run.out, data, 300000) == 0);
    run_done(&run);
    free(data);
    close_session(s);
}

/* The bytes are copied: the caller's memory is its own again when the start returns. */
TEST(bytes_are_copied)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    size_t size;
    char *data = pattern(2000000), *expected = pattern(2000000);

    command.text = "sleep 0.1; cat";
    command.input = NACRE_STDIN_BYTES;
    command.input_data = data;
    command.input_size = 2000000;
    nacre_id id = start_command(s, &command);
    memset(data, 0, 2000000);
    free(data);
    wait_outcome(s, &id, 5000);
    char *out = output_of(s, &id, NACRE_OUT, &size);
    CHECK_EQ_INT(2000000, size);
    CHECK(memcmp(out, expected, size) == 0);
    free(out);
    free(expected);
    close_session(s);
}

TEST(bytes_for_a_background_child)
{
    nacre_session *s = open_session();
    char *data = pattern(500000);
    struct run run = run_bytes(s, "{ sleep 0.1; cat; } <&0 & echo started", data, 500000);

    CHECK(AWAIT(tree_empty(s, &run.record.id), 3000));
    nacre_record record = record_of(s, &run.record.id);
    CHECK_EQ_INT(500008, record.bytes[0]);
    nacre_record_done(&record);
    run_done(&run);
    free(data);
    close_session(s);
}

/* -- A descriptor of the host's -------------------------------------------------------------- */

TEST(descriptor_of_a_file)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    spit("in", "one\ntwo\nthree\n", 14);
    int fd = open("in", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ_INT(4, lseek(fd, 4, SEEK_SET));
    command.text = "cat";
    command.input = NACRE_STDIN_FD;
    command.input_fd = fd;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "two\nthree\n");
    CHECK_EQ_INT(0, fcntl(fd, F_GETFD) == -1);
    run_done(&run);
    close(fd);
    close_session(s);
}

TEST(descriptor_of_a_pipe)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    int pipes[2];

    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    command.text = "read line; echo \"got $line\"; cat; echo end";
    command.input = NACRE_STDIN_FD;
    command.input_fd = pipes[0];
    nacre_id id = start_command(s, &command);
    CHECK_EQ_INT(6, write(pipes[1], "hello\n", 6));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "got hello\n"), 3000));
    CHECK_TEXT(status_of(s, &id), "running");
    close(pipes[1]);
    wait_outcome(s, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "end\n"));
    close(pipes[0]);
    close_session(s);
}

/* The write end of the host's pipe must not have leaked into a warm keeper or a command. */
TEST(descriptor_of_a_pipe_that_others_do_not_hold)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    int pipes[2];

    CHECK(pipe(pipes) == 0);
    nacre_id sibling = start_text(s, "sleep 300");
    struct run run = run_text(s, "true");
    command.text = "cat; echo end";
    command.input = NACRE_STDIN_FD;
    command.input_fd = pipes[0];
    nacre_id id = start_command(s, &command);
    close(pipes[1]);
    wait_outcome(s, &id, 3000);
    CHECK_TEXT(status_of(s, &sibling), "running");
    run_done(&run);
    close(pipes[0]);
    close_session(s);
}

TEST(descriptor_that_is_not_open)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_id id;

    command.text = "cat";
    command.input = NACRE_STDIN_FD;
    command.input_fd = -1;
    CHECK_CODE(NACRE_EINVAL, nacre_start(s, &command, &id, NULL, ERR));
    command.input_fd = 777;
    CHECK(nacre_start(s, &command, &id, NULL, ERR) < 0);
    CHECK(harness_error.msg[0]);
    close_session(s);
}

/* -- A pipe fed by calls --------------------------------------------------------------------- */

static nacre_id start_piped(nacre_session *s, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.input = NACRE_STDIN_PIPE;
    return start_command(s, &command);
}

TEST(conversation)
{
    nacre_session *s = open_session();
    nacre_id id = start_piped(s, "while read -r line; do echo \"[$line]\"; done; echo over");

    for (int i = 0; i < 20; i++) {
        const char *line = format("line %d\n", i);
        CHECK_EQ_INT(strlen(line), nacre_input(s, &id, line, strlen(line), 0, 1000, ERR));
        CHECK(AWAIT(output_has(s, &id, NACRE_OUT, format("[line %d]\n", i)), 2000));
    }
    CHECK_TEXT(status_of(s, &id), "running");
    CHECK_EQ_INT(5, nacre_input(s, &id, "last\n", 5, 1, 1000, ERR));
    wait_outcome(s, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "[last]\nover\n"));
    close_session(s);
}

TEST(end_of_input)
{
    nacre_session *s = open_session();
    nacre_id id = start_piped(s, "cat; echo over; sleep 100");

    CHECK_EQ_INT(0, nacre_input(s, &id, NULL, 0, 0, 1000, ERR));
    CHECK(!output_has(s, &id, NACRE_OUT, "over"));
    CHECK_EQ_INT(0, nacre_input(s, &id, NULL, 0, 1, 1000, ERR));
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "over"), 2000));
    CHECK_CODE(NACRE_ECLOSED, nacre_input(s, &id, "x", 1, 0, 1000, ERR));
    close_session(s);
}

TEST(much_input)
{
    enum { SIZE = 8 << 20 };
    nacre_session *s = open_session();
    nacre_id id = start_piped(s, "cat");
    char *data = pattern(SIZE);
    size_t size;

    CHECK_EQ_INT(SIZE, nacre_input(s, &id, data, SIZE, 1, MS(10000), ERR));
    wait_outcome(s, &id, 5000);
    char *out = output_of(s, &id, NACRE_OUT, &size);
    CHECK_EQ_INT(SIZE, size);
    CHECK(memcmp(out, data, SIZE) == 0);
    free(data);
    free(out);
    close_session(s);
}

/* Nobody reads: the call comes back in time and says how much was taken; the rest can follow. */
TEST(input_that_nobody_reads)
{
    enum { SIZE = 1 << 20 };
    nacre_session *s = open_session();
    nacre_id id = start_piped(s, format("%s; cat | tail -c +1 | wc -c", gate()));
    char *data = pattern(SIZE);
    int64_t begin = now_ms();
    int64_t taken = nacre_input(s, &id, data, SIZE, 0, MS(150), ERR);

    CHECK_RANGE(MS(100), now_ms() - begin, soon(1500));
    CHECK_RANGE(4096, taken, SIZE - 1);
    CHECK_EQ_INT(0, nacre_input(s, &id, data, SIZE, 0, 20, ERR) > 4096);
    let_go();
    CHECK(AWAIT(nacre_input(s, &id, NULL, 0, 1, 1000, ERR) == 0, 3000));
    wait_outcome(s, &id, 3000);
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(0, record.exit_code);
    nacre_record_done(&record);
    char *out = output_of(s, &id, NACRE_OUT, NULL);
    CHECK(atol(out) >= taken);
    free(out);
    free(data);
    close_session(s);
}

TEST(input_to_what_takes_none)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 100");
    struct run run = run_text(s, "true");
    nacre_id unknown;

    memset(&unknown, 0x11, sizeof(unknown));
    CHECK_CODE(NACRE_ECLOSED, nacre_input(s, &id, "x", 1, 0, 1000, ERR));
    CHECK_CODE(NACRE_ECLOSED, nacre_input(s, &run.record.id, "x", 1, 0, 1000, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_input(s, &unknown, "x", 1, 0, 1000, ERR));
    run_done(&run);
    id = start_piped(s, "exit 3");
    wait_outcome(s, &id, 3000);
    CHECK(AWAIT(tree_empty(s, &id), 1000));
    CHECK_CODE(NACRE_ECLOSED, nacre_input(s, &id, "x", 1, 0, 1000, ERR));
    CHECK_TEXT(status_of(s, &id), "exited(3)");
    close_session(s);
}

/* A command that closes its stdin: the write fails, the keeper does not. */
TEST(input_after_the_command_closed_it)
{
    nacre_session *s = open_session();
    nacre_id id = start_piped(s, "exec <&-; echo closed; sleep 0.3; echo end");

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "closed"), 3000));
    int64_t got = nacre_input(s, &id, "abc", 3, 0, 500, ERR);
    CHECK(got == NACRE_ECLOSED || got == 3);
    CHECK_CODE(NACRE_ECLOSED, nacre_input(s, &id, "abc", 3, 0, 500, ERR));
    wait_outcome(s, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "end\n"));
    CHECK_TEXT(status_of(s, &id), "exited(0)");
    close_session(s);
}

TEST(input_from_another_session)
{
    nacre_session *s = open_session(), *other = open_session();
    nacre_id id = start_piped(s, "cat");

    CHECK_EQ_INT(6, nacre_input(other, &id, "hello\n", 6, 1, 1000, ERR));
    wait_outcome(other, &id, 3000);
    CHECK(output_has(s, &id, NACRE_OUT, "hello\n"));
    close_session(other);
    close_session(s);
}

/* Two writers at once: each call's bytes stay together up to the pipe's own atomicity. */
struct writer {
    nacre_session *session;
    nacre_id id;
};

static void write_lines(int index, void *arg)
{
    struct writer *writer = arg;

    for (int i = 0; i < 100; i++) {
        const char *line = format("%d-%03d\n", index, i);
        CHECK_EQ_INT(strlen(line), nacre_input(writer->session, &writer->id, line, strlen(line), 0,
                                               MS(5000), ERR));
    }
}

TEST(input_from_four_threads)
{
    struct writer writer = {.session = open_session()};
    size_t size;

    writer.id = start_piped(writer.session, "sort | uniq -c | awk '{print $1}' | sort | uniq -c");
    run_threads(4, write_lines, &writer);
    CHECK_EQ_INT(0, nacre_input(writer.session, &writer.id, NULL, 0, 1, 1000, ERR));
    wait_outcome(writer.session, &writer.id, 5000);
    char *out = output_of(writer.session, &writer.id, NACRE_OUT, &size);
    CHECK_STR(out, "400 1\n");
    free(out);
    close_session(writer.session);
}

/* -- Signals to the process group ------------------------------------------------------------- */

TEST(signal_reaches_the_group_and_no_further)
{
    need_tree();
    nacre_session *s = open_session();
    const char *mark = marker();
    nacre_id id = start_text(s, format("setsid sleep 300.%s & trap 'echo got INT' INT; echo up; "
                                       "sleep 30; echo after; read x; exit 3",
                                       mark));

    await_marked(mark, 1);
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up"), 5000));
    pause_ms(50); /* the sleep is there right after the word */
    CHECK_OK(nacre_signal(s, &id, SIGINT, ERR));
    wait_outcome(s, &id, 5000);
    CHECK(output_has(s, &id, NACRE_OUT, "got INT\nafter\n"));
    CHECK_TEXT(status_of(s, &id), "exited(3), lingering");
    CHECK_EQ_INT(1, count_marked(mark));
    CHECK_CODE(NACRE_ECLOSED, nacre_signal(s, &id, SIGINT, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_signal(s, &id, 0, ERR));
    CHECK_CODE(NACRE_EINVAL, nacre_signal(s, &id, 4711, ERR));
    kill_shell(s, &id, 100);
    CHECK_CODE(NACRE_ECLOSED, nacre_signal(s, &id, SIGINT, ERR));
    close_session(s);
}

TEST(signal_that_nobody_catches_is_the_outcome)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 300");

    CHECK_OK(nacre_signal(s, &id, SIGINT, ERR));
    wait_outcome(s, &id, 5000);
    CHECK_TEXT(status_of(s, &id), "signaled(SIGINT)");
    close_session(s);
}
