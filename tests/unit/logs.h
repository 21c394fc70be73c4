/*
 * A log without a keeper: pipes that are fed with known bytes, the writer that pulls from them,
 * and checks against a record of what was fed. A byte follows from its offset and its stream, so
 * that any reader can tell whether it got the right ones.
 */
#ifndef TESTS_UNIT_LOGS_H
#define TESTS_UNIT_LOGS_H

#include "unit.h"

#include <inttypes.h>

#include "base/defs.h"
#include "run/log.h"
#include "sys/fd.h"

#define RIG_MAX  ((size_t)6 * 1024 * 1024)
#define RIG_HALF (LOG_QUOTA_MIN / 2)

struct rig {
    char path[PATH_MAX];
    int dir;
    int state_fd;
    struct run_state st;
    struct logw w;
    int pipes[2][2];
    uint8_t *origin; /* the stream of every byte that was fed */
    int publishes;
};

UNIT char rig_byte(uint64_t offset, int stream)
{
    uint64_t x = (offset + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)stream << 62;
    x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return (x >> 33) % 11 == 0 ? '\n' : (char)(x >> 40);
}

static int rig_publish(void *userdata)
{
    struct rig *rig = userdata;
    rig->publishes++;
    return state_write(rig->state_fd, &rig->st);
}

/* In a directory that exists already. */
UNIT void rig_open_at(struct rig *rig, uint64_t quota)
{
    static const nacre_id id = {{1}};
    rig->dir = open(rig->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(rig->dir >= 0);
    rig->state_fd = unit_file(rig->dir, "state");
    state_init(&rig->st, &id, &id);
    rig->st.phase = PHASE_RUN;
    rig->origin = malloc(RIG_MAX);
    assert_non_null(rig->origin);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fd_pipe(rig->pipes[i]), 0);
        assert_int_equal(fd_set_nonblock(rig->pipes[i][0]), 0);
    }
    logw_init(&rig->w, rig->dir, unit_file(rig->dir, "log"), unit_file(rig->dir, "spans"),
              &rig->st.log, quota);
    rig->w.publish = rig_publish;
    rig->w.userdata = rig;
    rig->publishes = 0;
    assert_int_equal(rig_publish(rig), 0);
}

UNIT void rig_open(struct rig *rig, uint64_t quota)
{
    close(unit_dir(rig->path));
    rig_open_at(rig, quota);
}

UNIT void rig_close(struct rig *rig)
{
    logw_done(&rig->w);
    close(rig->w.log_fd);
    close(rig->w.spans_fd);
    for (int i = 0; i < 4; i++)
        close(rig->pipes[i / 2][i % 2]);
    close(rig->state_fd);
    close(rig->dir);
    free(rig->origin);
    unit_remove(rig->path);
}

/* Puts bytes into a pipe and has all of them pulled. */
UNIT void rig_feed(struct rig *rig, int stream, size_t size, int64_t now_us)
{
    char buf[32768];
    while (size > 0) {
        size_t n = MIN(size, sizeof buf);
        uint64_t at = rig->st.log.end;
        EXPECT(at + n <= RIG_MAX);
        for (size_t i = 0; i < n; i++)
            buf[i] = rig_byte(at + i, stream);
        memset(rig->origin + at, stream, n);
        EXPECT(write(rig->pipes[stream][1], buf, n) == (ssize_t)n);
        ssize_t pulled = 0;
        while (pulled < (ssize_t)n) {
            ssize_t got = logw_pull(&rig->w, rig->pipes[stream][0], (nacre_stream)stream, now_us);
            EXPECT(got > 0);
            pulled += got;
        }
        EXPECT(rig->st.log.end == at + n);
        size -= n;
    }
}

struct rig_counts {
    uint64_t bytes[2];
    uint64_t newlines[2];
    char last[2];
};

/* What was fed between two offsets, counted one by one. */
UNIT struct rig_counts rig_count(const struct rig *rig, uint64_t from, uint64_t to)
{
    struct rig_counts counts = {.last = {'\n', '\n'}};
    for (uint64_t at = from; at < to; at++) {
        int stream = rig->origin[at];
        counts.last[stream] = rig_byte(at, stream);
        counts.bytes[stream]++;
        counts.newlines[stream] += counts.last[stream] == '\n';
    }
    return counts;
}

UNIT uint64_t rig_tail(const struct rig *rig)
{
    const struct log_index *x = &rig->st.log;
    return x->ring_size > 0 ? x->tail_start : x->end;
}

/* The index says of the streams and of the gap exactly what counting says. */
UNIT void rig_check_counts(const struct rig *rig)
{
    const struct log_index *x = &rig->st.log;
    struct rig_counts all = rig_count(rig, 0, x->end);
    struct rig_counts gone = rig_count(rig, x->head, rig_tail(rig));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(x->bytes[i], all.bytes[i]);
        assert_int_equal(x->newlines[i], all.newlines[i]);
        assert_int_equal(x->unfinished[i], all.last[i] != '\n');
        assert_int_equal(x->dropped_bytes[i], gone.bytes[i]);
        assert_int_equal(x->dropped_newlines[i], gone.newlines[i]);
    }
}

/* Whether a piece is what was fed there; for readers that know nothing but the piece. */
UNIT bool rig_piece_is_right(const struct log_piece *piece, const char *buf)
{
    for (size_t i = 0; i < piece->size; i++)
        if (buf[i] != rig_byte(piece->offset + i, piece->stream))
            return false;
    return true;
}

/* Reads from an offset to the end, and misses nothing but the gap. */
UNIT void rig_check_read(const struct rig *rig, unsigned streams, uint64_t from, size_t size)
{
    struct logr reader;
    uint64_t cursor = from, due = from, tail = rig_tail(rig);
    char *buf = malloc(size);
    assert_int_equal(logr_init(&reader, rig->dir, rig->state_fd), 0);
    for (;;) {
        struct log_piece piece;
        ssize_t n = logr_read(&reader, rig->dir, &cursor, streams, buf, size, &piece);
        assert_true(n >= 0);
        uint64_t gap = 0;
        /* Over what is missing, and what was not asked for. */
        while (due < rig->st.log.end) {
            if (due >= rig->st.log.head && due < tail) {
                gap += tail - due;
                due = tail;
            } else if (!(streams & 1u << rig->origin[due])) {
                due++;
            } else {
                break;
            }
        }
        assert_int_equal(piece.gap, gap);
        if (n == 0)
            break;
        assert_int_equal(piece.offset, due);
        assert_int_equal(piece.size, n);
        assert_int_equal(cursor, due + (uint64_t)n);
        assert_int_equal(piece.stream, rig->origin[due]);
        for (ssize_t i = 0; i < n; i++, due++)
            if (rig->origin[due] != piece.stream || buf[i] != rig_byte(due, piece.stream))
                fail_msg("a wrong byte at %" PRIu64, due);
    }
    assert_int_equal(due, rig->st.log.end);
    logr_done(&reader);
    free(buf);
}

/* Everything that must hold of a log at rest. */
UNIT void rig_check(struct rig *rig)
{
    const struct log_index *x = &rig->st.log;
    struct unit_random random = {x->end};
    assert_int_equal(rig_publish(rig), 0);
    rig_check_counts(rig);
    rig_check_read(rig, NACRE_BOTH, 0, 65536);
    rig_check_read(rig, NACRE_OUT, 0, 1000);
    rig_check_read(rig, NACRE_ERR, 0, 4096);
    for (int i = 0; i < 6; i++)
        rig_check_read(rig, 1 + (unsigned)i % 3, unit_below(&random, x->end + 1),
                       1 + unit_below(&random, 70000));
}

UNIT off_t rig_file_size(const struct rig *rig, const char *name)
{
    struct stat st;
    return fstatat(rig->dir, name, &st, 0) < 0 ? 0 : st.st_size;
}

#endif
