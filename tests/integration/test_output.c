/* Nothing is lost: every byte of each stream, in order, for any number of readers. */
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check_bytes(const char *what, const char *got, size_t got_size, const char *want,
                        size_t want_size)
{
    size_t at = 0;

    while (at < got_size && at < want_size && got[at] == want[at])
        at++;
    if (at < got_size || at < want_size)
        FAIL("%s: %zu bytes, wanted %zu; they differ from byte %zu on", what, got_size, want_size,
             at);
}

/* -- Both streams equal what tee would have written ------------------------------------------ */

static void check_spew(nacre_session *s, int seed, int total, int chunk)
{
    struct run run =
        run_text(s, format("%s %d %d %d out err", program("spew"), seed, total, chunk));
    size_t out_size, err_size;
    char *out = slurp("out", &out_size), *err = slurp("err", &err_size);

    CHECK_EQ_INT(0, run.record.exit_code);
    CHECK(out && err && out_size + err_size == (size_t)total);
    check_bytes("stdout", run.out, run.out_size, out, out_size);
    check_bytes("stderr", run.err, run.err_size, err, err_size);
    CHECK_EQ_INT(out_size, run.record.bytes[0]);
    CHECK_EQ_INT(err_size, run.record.bytes[1]);
    CHECK_EQ_INT(0, run.record.dropped_bytes[0] + run.record.dropped_bytes[1]);
    CHECK_EQ_INT(0, run.record.dropped_errno);
    free(out);
    free(err);
    run_done(&run);
}

TEST(random_bytes_on_both_streams)
{
    static const int chunks[] = {1, 7, 100, 4096, 65536, 200000};
    nacre_session *s = open_session();

    for (int i = 0; i < 6; i++)
        check_spew(s, 1000 + i, chunks[i] < 100 ? 3000 : 300000, chunks[i]);
    for (int i = 0; i < 10; i++)
        check_spew(s, i, 50000, 9000);
    check_spew(s, 77, 5000000, 70000);
    close_session(s);
}

TEST_LIMIT(exit_right_after_a_mebibyte, 60)
{
    nacre_session *s = open_session();
    int count = rounds(long_tests() ? 1000 : 75);
    const char *text = format("exec %s 1000000 48576", program("flood"));

    for (int i = 0; i < count; i++) {
        struct run run = run_text(s, text);
        CHECK_EQ_INT(0, run.record.exit_code);
        CHECK_EQ_INT(1000000, run.out_size);
        CHECK_EQ_INT(48576, run.err_size);
        check_pattern(run.out, run.out_size, 0, 0, 0);
        check_pattern(run.err, run.err_size, 0, 1, 0);
        run_done(&run);
    }
    close_session(s);
}

/* -- What is printed right after the exit ---------------------------------------------------- */

static int64_t wall_clock_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Whether the text's whole output was in the answer; it must be in the log in any case. Only an
 * answer that has waited its 50 ms may lack some of it.
 */
static bool answer_has(nacre_session *s, const char *text, const char *out, const char *err)
{
    struct run run = run_text(s, text);
    int64_t waited = wall_clock_ms() - run.record.exited_ms;
    bool complete = strcmp(run.out, out) == 0 && strcmp(run.err, err) == 0;

    if (!complete && waited < 50)
        FAIL("%s: the answer came %lld ms after the exit, and is incomplete", text,
             (long long)waited);

    CHECK(AWAIT(tree_empty(s, &run.record.id), 3000));
    char *late_out = output_of(s, &run.record.id, NACRE_OUT, NULL);
    char *late_err = output_of(s, &run.record.id, NACRE_ERR, NULL);
    CHECK_TEXT(late_out, out);
    CHECK_TEXT(late_err, err);
    free(late_out);
    free(late_err);
    run_done(&run);
    return complete;
}

/* The answer waits up to 50 ms for these; only a machine that is very busy needs longer. */
TEST(process_substitution)
{
    nacre_session *s = open_session();
    int complete = 0;

    for (int i = 0; i < 20; i++) {
        complete += answer_has(s, "echo hi > >(cat)", "hi\n", "");
        complete += answer_has(s, "exec > >(tee f); echo hi", "hi\n", "");
        complete += answer_has(s, "exec 2> >(sed s/^/x/ >&2); echo hi >&2", "", "xhi\n");
        complete += answer_has(s, "(sleep 0.02; echo late) & echo early", "early\nlate\n", "");
    }
    CHECK_RANGE(1, complete, 80);
    close_session(s);
}

/* The answer waits at most 50 ms for those, and not at all if nothing is left. */
TEST(answer_is_not_held_up)
{
    nacre_session *s = open_session();
    struct run warm = run_text(s, "true");
    int64_t begin = now_ms();

    for (int i = 0; i < 20; i++) {
        struct run run = run_text(s, "echo hi");
        CHECK_EQ_INT(NACRE_TREE_EMPTY, run.record.tree);
        run_done(&run);
    }
    CHECK_RANGE(0, now_ms() - begin, soon(20 * 40));
    run_done(&warm);
    close_session(s);
}

/* -- Order, prompts, odd bytes --------------------------------------------------------------- */

struct pieces {
    char text[256];
    size_t size;
    int count;
    int64_t last_ms;
    uint64_t next;
    char streams[64];
};

static int add_piece(const nacre_piece *piece, const void *bytes, void *arg)
{
    struct pieces *pieces = arg;

    CHECK(pieces->size + piece->size < sizeof(pieces->text));
    CHECK_EQ_INT(pieces->next, piece->offset);
    CHECK_EQ_INT(0, piece->gap_bytes);
    CHECK(piece->time_ms >= pieces->last_ms);
    memcpy(pieces->text + pieces->size, bytes, piece->size);
    pieces->size += piece->size;
    pieces->text[pieces->size] = 0;
    pieces->next = piece->offset + piece->size;
    pieces->last_ms = piece->time_ms;
    pieces->streams[pieces->count++] = piece->stream == NACRE_STDOUT ? 'o' : 'e';
    return 0;
}

TEST(order_of_the_streams)
{
    nacre_session *s = open_session();
    struct pieces pieces = {.size = 0};
    struct timespec now;
    nacre_id id = start_text(s, "printf foo; sleep .15; echo err >&2; sleep .15; echo bar");

    CHECK_OK(nacre_follow(s, &id, 0, add_piece, &pieces, ERR));
    CHECK_TEXT(pieces.text, "fooerr\nbar\n");
    CHECK_TEXT(pieces.streams, "oeo");
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK_RANGE(now.tv_sec * 1000 - MS(2000), pieces.last_ms, now.tv_sec * 1000 + 1000);
    char *both = output_of(s, &id, NACRE_BOTH, NULL);
    CHECK_TEXT(both, "fooerr\nbar\n");
    free(both);
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(7, record.bytes[0]);
    CHECK_EQ_INT(1, record.lines[0]);
    CHECK_EQ_INT(4, record.bytes[1]);
    CHECK_EQ_INT(1, record.lines[1]);
    nacre_record_done(&record);
    close_session(s);
}

TEST(prompt_without_a_newline)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "printf 'Continue? '; sleep 100");

    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "Continue? "), 300));
    CHECK_TEXT(status_of(s, &id), "running");
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(10, record.bytes[0]);
    CHECK_EQ_INT(1, record.lines[0]);
    nacre_record_done(&record);
    close_session(s);
}

TEST(invalid_utf8)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "printf 'a\\377b\\n'; head -c 300000 /dev/zero | tr '\\0' x;"
                                 "printf '\\0\\n'; exit 4");

    CHECK_EQ_INT(300006, run.out_size);
    CHECK_EQ_INT(4, run.record.exit_code);
    CHECK(memcmp(run.out, "a\377b\nxxx", 7) == 0);
    CHECK(memcmp(run.out + 300003, "x\0\n", 3) == 0);
    CHECK_EQ_INT(2, run.record.lines[0]);
    run_done(&run);
    close_session(s);
}

TEST(line_counts)
{
    static const struct {
        const char *text;
        int bytes, lines;
    } table[] = {
        {"true", 0, 0},
        {"printf a", 1, 1},
        {"printf 'a\\n'", 2, 1},
        {"printf 'a\\nb'", 3, 2},
        {"printf '\\n\\n\\n'", 3, 3},
        {"printf 'a'; sleep 0.02; printf 'b\\n'", 3, 1},
        {"printf '\\n'; sleep 0.02; printf 'b'", 2, 2},
        {"seq 1 10000", 48894, 10000},
        {"head -c 70000 /dev/zero", 70000, 1},
    };
    nacre_session *s = open_session();

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (int stream = 0; stream < 2; stream++) {
            struct run run = run_text(s, format("{ %s; } %s", table[i].text, stream ? ">&2" : ""));
            if (run.record.bytes[stream] != (uint64_t)table[i].bytes ||
                run.record.lines[stream] != (uint64_t)table[i].lines)
                FAIL("%s: %d bytes and %d lines", table[i].text, (int)run.record.bytes[stream],
                     (int)run.record.lines[stream]);
            CHECK_EQ_INT(0, run.record.bytes[!stream]);
            CHECK_EQ_INT(0, run.record.lines[!stream]);
            run_done(&run);
        }
    }
    close_session(s);
}

/* Pipes, not sockets: what opens /dev/stdout by name must work. */
TEST(streams_opened_by_name)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo a > /dev/stdout; echo b > /proc/self/fd/1;"
                                 "echo c > /dev/stderr; echo d | tee /dev/stderr; cat /dev/stdin");

    CHECK_TEXT(run.out, "a\nb\nd\n");
    CHECK_TEXT(run.err, "c\nd\n");
    CHECK_EQ_INT(0, run.record.exit_code);
    run_done(&run);
    close_session(s);
}

/* -- Reading --------------------------------------------------------------------------------- */

TEST(reading_in_any_size)
{
    static const size_t sizes[] = {1, 2, 3, 7, 64, 5000, 100000};
    const int all = long_tests() ? 20000 : 8000;
    nacre_session *s = open_session();
    struct run run = run_text(s, format("%s 5 %d 300 out err", program("spew"), all));

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (unsigned streams = NACRE_OUT; streams <= NACRE_BOTH; streams++) {
            char *data = malloc(sizes[i]);
            uint64_t cursor = 0, expected[2] = {0, 0};
            nacre_piece piece;
            int64_t got;
            CHECK(data);
            while ((got = nacre_read(s, &run.record.id, &cursor, streams, data, sizes[i], &piece,
                                     ERR)) > 0) {
                const char *want = piece.stream == NACRE_STDOUT ? run.out : run.err;
                CHECK_EQ_INT(got, piece.size);
                CHECK(got <= (int64_t)sizes[i]);
                CHECK(streams & 1u << piece.stream);
                CHECK(memcmp(data, want + expected[piece.stream], (size_t)got) == 0);
                expected[piece.stream] += (uint64_t)got;
                CHECK(cursor >= piece.offset + piece.size);
            }
            CHECK_OK(got);
            CHECK_EQ_INT(streams & NACRE_OUT ? run.out_size : 0, expected[0]);
            CHECK_EQ_INT(streams & NACRE_ERR ? run.err_size : 0, expected[1]);
            CHECK_EQ_INT(all, cursor);
            free(data);
        }
    }
    run_done(&run);
    close_session(s);
}

TEST(cursor_waits_for_more)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    uint64_t cursor = 0;
    char buf[64];

    command.text = "cat";
    command.input = NACRE_STDIN_PIPE;
    nacre_id id = start_command(s, &command);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(0, nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, ERR));
        CHECK_EQ_INT(i * 4, cursor);
        CHECK_EQ_INT(4, nacre_input(s, &id, "abc\n", 4, i == 4, 1000, ERR));
        CHECK(
            AWAIT(nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, ERR) == 4, 2000));
        CHECK(memcmp(buf, "abc\n", 4) == 0);
    }
    wait_outcome(s, &id, 2000);
    CHECK_EQ_INT(0, nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, ERR));
    cursor = 1000000;
    CHECK_EQ_INT(0, nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, ERR));
    cursor = 0;
    CHECK_CODE(NACRE_EINVAL, nacre_read(s, &id, &cursor, 0, buf, sizeof(buf), NULL, ERR));
    close_session(s);
}

/* -- Snapshots ------------------------------------------------------------------------------- */

TEST(snapshot_is_idempotent)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "echo one; echo two >&2; sleep 0.02; echo three");
    nacre_snapshot snapshot;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(nacre_output(s, &run.record.id, NACRE_OUT, 0, &snapshot, ERR));
        check_bytes("stdout", snapshot.data, snapshot.size, "one\nthree\n", 10);
        CHECK_EQ_INT(0, snapshot.truncated);
        CHECK_EQ_INT(1, snapshot.has_outcome);
        free(snapshot.data);
        CHECK_OK(nacre_output(s, &run.record.id, NACRE_BOTH, 6, &snapshot, ERR));
        check_bytes("both", snapshot.data, snapshot.size, "three\n", 6);
        CHECK_EQ_INT(1, snapshot.truncated);
        free(snapshot.data);
        CHECK_OK(nacre_output(s, &run.record.id, NACRE_ERR, 4, &snapshot, ERR));
        check_bytes("stderr", snapshot.data, snapshot.size, "two\n", 4);
        CHECK_EQ_INT(0, snapshot.truncated);
        free(snapshot.data);
    }
    run_done(&run);
    close_session(s);
}

TEST(snapshot_of_nothing_and_of_the_running)
{
    nacre_session *s = open_session();
    nacre_snapshot snapshot;
    struct run run = run_text(s, "true");

    CHECK_OK(nacre_output(s, &run.record.id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK(snapshot.data);
    CHECK_EQ_INT(0, snapshot.size);
    free(snapshot.data);
    run_done(&run);
    nacre_id id = start_text(s, "echo up; sleep 100");
    CHECK(AWAIT(output_has(s, &id, NACRE_OUT, "up\n"), 2000));
    CHECK_OK(nacre_output(s, &id, NACRE_BOTH, 0, &snapshot, ERR));
    CHECK_EQ_INT(0, snapshot.has_outcome);
    CHECK_EQ_INT(3, snapshot.size);
    free(snapshot.data);
    close_session(s);
}

/* No cut inside a character, whatever the limit. */
TEST(snapshot_cuts_between_characters)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "for i in 1 2 3 4 5 6 7 8 9 10; do printf '\\360\\237\\246\\204'; "
                                 "printf 'a\\303\\251'; done");
    nacre_snapshot snapshot;

    CHECK_EQ_INT(70, run.out_size);
    for (size_t limit = 1; limit <= 72; limit++) {
        CHECK_OK(nacre_output(s, &run.record.id, NACRE_BOTH, limit, &snapshot, ERR));
        CHECK(snapshot.size <= limit);
        CHECK(snapshot.size + 3 >= (limit < 70 ? limit : 70));
        if (snapshot.size && ((unsigned char)snapshot.data[0] & 0xc0) == 0x80)
            FAIL("limit %zu: begins inside a character", limit);
        CHECK(memcmp(snapshot.data, run.out + 70 - snapshot.size, snapshot.size) == 0);
        CHECK_EQ_INT(snapshot.size < 70, snapshot.truncated);
        free(snapshot.data);
    }
    run_done(&run);
    close_session(s);
}
