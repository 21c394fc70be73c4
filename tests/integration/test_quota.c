/*
 * Floods: memory stays bounded, disk within the quota, head and tail are there byte by byte, and
 * the gap between them is named exactly.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUOTA = 256 * 1024, MIB = 1 << 20 };

static uint64_t disk_usage(const nacre_id *id)
{
    DIR *dir = opendir(run_path(id, ""));
    struct stat st;
    uint64_t bytes = 0;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] != '.' && stat(run_path(id, e->d_name), &st) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    }
    closedir(dir);
    return bytes;
}

struct kept {
    uint64_t bytes[2];
    uint64_t gap;
    int gaps;
};

/* Reads everything there is and checks each byte against its position in its stream. */
static struct kept read_kept(nacre_session *s, const nacre_id *id, const nacre_record *record,
                             int lines)
{
    struct kept kept = {{0, 0}, 0, 0};
    static char buf[65536];
    uint64_t cursor = 0, end = 0, position[2] = {0, 0};
    nacre_piece piece;
    int64_t got;

    while ((got = nacre_read(s, id, &cursor, NACRE_BOTH, buf, sizeof(buf), &piece, ERR)) > 0) {
        CHECK_EQ_INT(end, piece.offset - piece.gap_bytes);
        end = piece.offset + piece.size;
        if (piece.gap_bytes) {
            kept.gaps++;
            kept.gap += piece.gap_bytes;
            for (int i = 0; i < 2; i++)
                position[i] += record->dropped_bytes[i];
        }
        int stream = piece.stream;
        check_pattern(buf, piece.size, position[stream], stream, lines);
        position[stream] += piece.size;
        kept.bytes[stream] += piece.size;
    }
    CHECK_OK(got);
    CHECK_EQ_INT(record->bytes[0] + record->bytes[1], end);
    CHECK_EQ_INT(record->bytes[0], position[0]);
    CHECK_EQ_INT(record->bytes[1], position[1]);
    return kept;
}

static void check_flood(uint64_t quota, uint64_t out, uint64_t err, int lines, int chunk)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = format("exec %s %s -c %d %llu %llu", program("flood"), lines ? "-l" : "", chunk,
                          (unsigned long long)out, (unsigned long long)err);
    command.quota = quota;
    nacre_record record = NACRE_RECORD_INIT;
    CHECK_OK(nacre_run(s, &command, -1, &record, ERR));
    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(0, record.exit_code);
    CHECK_EQ_INT(out, record.bytes[0]);
    CHECK_EQ_INT(err, record.bytes[1]);
    CHECK_EQ_INT(0, record.dropped_errno);
    if (lines) {
        CHECK_EQ_INT((out + 63) / 64, record.lines[0]);
        CHECK_EQ_INT((err + 63) / 64, record.lines[1]);
    }
    struct kept kept = read_kept(s, &record.id, &record, lines);
    CHECK_EQ_INT(out, kept.bytes[0] + record.dropped_bytes[0]);
    CHECK_EQ_INT(err, kept.bytes[1] + record.dropped_bytes[1]);
    CHECK_EQ_INT(kept.gap, record.dropped_bytes[0] + record.dropped_bytes[1]);
    CHECK_EQ_INT(out + err > quota ? 1 : 0, kept.gaps);
    if (out + err > quota)
        CHECK(kept.bytes[0] + kept.bytes[1] >= quota / 2);
    CHECK(disk_usage(&record.id) <= quota + 65536);
    nacre_record_done(&record);
    close_session(s);
}

TEST(within_the_quota)
{
    check_flood(QUOTA, 60000, 50000, 1, 1000);
}

TEST(one_stream)
{
    check_flood(QUOTA, 20 * MIB, 0, 1, 65536);
}

TEST(both_streams)
{
    check_flood(QUOTA, 8 * MIB, 4 * MIB, 1, 65536);
}

TEST(both_streams_in_small_pieces)
{
    check_flood(QUOTA, 900000, 600000, 1, 50);
}

TEST(without_a_newline)
{
    check_flood(QUOTA, (uint64_t)(long_tests() ? 1024 : 64) * MIB, 0, 0, 65536);
}

TEST(of_odd_sizes)
{
    check_flood(1000003, 3000017, 2000003, 1, 4099);
    check_flood(QUOTA + 1, QUOTA + 2, 0, 1, 8191);
}

static void check_dropped_lines(int lines_total, const nacre_record *record, const char *text,
                                size_t size)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < size; i++)
        kept += text[i] == '\n' || i + 1 == size;
    CHECK_EQ_INT(lines_total, record->lines[0]);
    CHECK_EQ_INT(lines_total, kept + record->dropped_lines[0]);
}

/* Real lines, as people print them: what is dropped is counted in lines too. */
TEST(lines_of_the_gap)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "seq 1 300000";
    command.quota = QUOTA;
    struct run run = run_command(s, &command);
    CHECK_EQ_INT(1988895, run.record.bytes[0]);
    CHECK_EQ_INT(1988895, run.out_size + run.record.dropped_bytes[0]);
    CHECK(memcmp(run.out, "1\n2\n3\n4\n5\n", 10) == 0);
    CHECK(memcmp(run.out + run.out_size - 14, "299999\n300000\n", 14) == 0);
    check_dropped_lines(300000, &run.record, run.out, run.out_size);
    nacre_snapshot snapshot;
    CHECK_OK(nacre_output(s, &run.record.id, NACRE_BOTH, 1000, &snapshot, ERR));
    CHECK_EQ_INT(1, snapshot.truncated);
    CHECK_EQ_INT(1000, snapshot.size);
    CHECK(memcmp(snapshot.data, run.out + run.out_size - 1000, 1000) == 0);
    free(snapshot.data);
    run_done(&run);
    close_session(s);
}

TEST(random_bytes)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    size_t size;

    command.text = "head -c 6000000 /dev/urandom | tee copy";
    command.quota = QUOTA;
    struct run run = run_command(s, &command);
    char *copy = slurp("copy", &size);
    CHECK_EQ_INT(6000000, size);
    CHECK_EQ_INT(6000000, run.record.bytes[0]);
    size_t head = 0, tail = 0;
    while (head < run.out_size && run.out[head] == copy[head])
        head++;
    while (tail < run.out_size && run.out[run.out_size - 1 - tail] == copy[size - 1 - tail])
        tail++;
    CHECK_RANGE(60000, head, QUOTA); /* whole reads, of up to 64 KiB */
    CHECK_RANGE(40000, tail, QUOTA);
    CHECK(head + tail >= run.out_size);
    check_dropped_lines((int)run.record.lines[0], &run.record, run.out, run.out_size);
    free(copy);
    run_done(&run);
    close_session(s);
}

static bool is_aside(pid_t keeper)
{
    char *text = slurp(format("/proc/%d/autogroup", (int)keeper), NULL);
    bool aside = text && strstr(text, " nice 10");

    free(text);
    return aside;
}

/* The keeper of a flood lets others go first; that of anything else does not. */
TEST(a_flood_steps_aside)
{
    if (access("/proc/self/autogroup", W_OK) < 0)
        SKIP("the scheduler of this kernel does not know sessions");
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "echo; exec sleep 300";
    nacre_id calm = start_command(s, &command);
    command.text = "exec yes";
    command.quota = QUOTA;
    nacre_id flood = start_command(s, &command);
    CHECK(AWAIT(is_aside(keeper_of(s, &flood).pid), 5000));
    CHECK(!is_aside(keeper_of(s, &calm).pid));
    close_session(s);
}

/* An endless flood, killed: memory of the keeper and of the host stay where they were. */
TEST(memory_of_an_endless_flood)
{
    if (sanitized())
        SKIP("memory cannot be judged under a sanitizer");
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    char buf[4096];
    uint64_t cursor = 0;

    command.text = "exec yes";
    command.quota = QUOTA;
    nacre_id id = start_command(s, &command);
    struct process keeper = keeper_of(s, &id);
    CHECK(AWAIT(bytes_printed(s, &id) > 4 * MIB, 5000));
    long keeper_rss = process_rss_kb(keeper.pid), host_rss = process_rss_kb(getpid());
    int64_t until = now_ms() + 500;
    while (now_ms() < until || bytes_printed(s, &id) <= 100 * MIB)
        CHECK_OK(nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, ERR));
    CHECK(process_rss_kb(keeper.pid) <= keeper_rss + 400);
    CHECK(process_rss_kb(keeper.pid) <= 2048);
    CHECK(process_rss_kb(getpid()) <= host_rss + 2048);
    CHECK(disk_usage(&id) <= QUOTA + 65536);
    kill_shell(s, &id, -1);
    nacre_record record = record_of(s, &id);
    CHECK(record.bytes[0] > 100 * MIB);
    CHECK_EQ_INT(record.bytes[0] / 2 + record.bytes[0] % 2, record.lines[0]);
    nacre_record_done(&record);
    close_session(s);
}

/* A reader that is overtaken is told how much it missed, and never sees a byte twice. */
TEST(slow_reader_of_a_flood)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    uint64_t cursor = 0, seen = 0, missed = 0;
    nacre_piece piece;
    char buf[3000];
    int64_t got;

    command.text = format("exec %s 30000000", program("flood"));
    command.quota = QUOTA;
    nacre_id id = start_command(s, &command);
    for (;;) {
        bool over = nacre_wait(s, &id, 1, NACRE_WAIT_ANY, 0, NULL, NULL) == 0;
        while ((got = nacre_read(s, &id, &cursor, NACRE_BOTH, buf, sizeof(buf), &piece, ERR)) > 0) {
            missed += piece.gap_bytes;
            CHECK_EQ_INT(seen + missed, piece.offset);
            check_pattern(buf, (size_t)got, piece.offset, 0, 0);
            seen += (uint64_t)got;
        }
        CHECK_OK(got);
        if (over)
            break;
    }
    CHECK_EQ_INT(30000000, seen + missed);
    close_session(s);
}
