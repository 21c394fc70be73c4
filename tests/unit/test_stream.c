/* One stream in blocks: every byte once, its offset, its line number, and the gap before it. */
#include "logs.h"

#include "run/stream.h"

#define MARKS 64

struct expect {
    const struct rig *rig;
    int stream;
    uint64_t at;       /* the next offset to look at */
    uint64_t newlines; /* of the stream before it */
    uint64_t gap;      /* bytes of the stream skipped since the last one that was given */
};

/* Moves to the next byte of the stream that is still there; false at the end. */
static bool expect_next(struct expect *e)
{
    const struct log_index *x = &e->rig->st.log;
    for (; e->at < x->end; e->at++) {
        if (e->rig->origin[e->at] != e->stream)
            continue;
        if (e->at < x->head || e->at >= rig_tail(e->rig))
            return true;
        e->gap++;
        e->newlines += rig_byte(e->at, e->stream) == '\n';
    }
    return false;
}

static void check_block(struct expect *e, const struct log_block *b)
{
    size_t mark = 0;
    assert_true(expect_next(e));
    assert_int_equal(b->gap, e->gap);
    assert_int_equal(b->newlines, e->newlines);
    assert_true(b->mark_count > 0 && b->marks[0].at == 0);
    for (size_t i = 0; i < b->size; i++, e->at++) {
        e->gap = 0;
        assert_true(expect_next(e));
        assert_int_equal(e->gap, 0);
        while (mark + 1 < b->mark_count && b->marks[mark + 1].at <= i)
            mark++;
        if (b->data[i] != rig_byte(e->at, e->stream) ||
            b->marks[mark].offset + (i - b->marks[mark].at) != e->at)
            fail_msg("a wrong byte or offset at %" PRIu64, e->at);
        e->newlines += b->data[i] == '\n';
    }
    assert_int_equal(b->end_newlines, e->newlines);
}

static void check_from(const struct rig *rig, struct log_stream *s, struct expect *e, size_t room,
                       size_t marks)
{
    struct log_mark mark_room[MARKS];
    char *data = malloc(room);
    struct log_block b = {.data = data, .room = room, .marks = mark_room, .mark_room = marks};
    for (;;) {
        assert_int_equal(log_stream_read(s, &b), 0);
        if (b.size == 0)
            break;
        assert_true(b.size <= room && b.mark_count <= marks);
        check_block(e, &b);
    }
    e->gap = 0;
    assert_false(expect_next(e));
    assert_int_equal(rig->st.log.newlines[e->stream], e->newlines);
    free(data);
}

static void check_all(struct rig *rig, size_t room, size_t marks)
{
    assert_int_equal(rig_publish(rig), 0);
    for (int stream = 0; stream < 2; stream++) {
        struct log_stream s;
        struct expect e = {.rig = rig, .stream = stream};
        assert_int_equal(
            log_stream_init(&s, rig->dir, rig->state_fd, (nacre_stream)stream, UINT64_MAX), 0);
        check_from(rig, &s, &e, room, marks);
        log_stream_done(&s);
    }
}

/* Both streams in turns, of all sizes, some of them long enough to be read around. */
static void feed_both(struct rig *rig, size_t total, size_t longest, uint64_t seed)
{
    struct unit_random random = {seed};
    static const size_t sizes[] = {1, 3, 40, 700, 5000, 30000, 100000};
    int64_t now = 0;
    while (rig->st.log.end < total) {
        size_t size = 1 + unit_below(&random, MIN(sizes[unit_below(&random, 7)], longest));
        rig_feed(rig, (int)unit_below(&random, 2), size, now);
        now += (int64_t)unit_below(&random, 9000);
    }
}

static void test_head(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 16 << 20);
    check_all(&rig, 100, 1);
    feed_both(&rig, 1 << 20, SIZE_MAX, 1);
    check_all(&rig, 1 << 18, MARKS);
    check_all(&rig, 70000, 3);
    check_all(&rig, 20000, MARKS);
    rig_close(&rig);
}

/* Blocks far smaller than a span: each begins inside one. */
static void test_tiny_blocks(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 16 << 20);
    feed_both(&rig, 6000, 300, 5);
    check_all(&rig, 1, 1);
    check_all(&rig, 7, 2);
    rig_close(&rig);
}

static void test_gap(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 20; seed++) {
        struct rig rig;
        rig_open(&rig, LOG_QUOTA_MIN);
        feed_both(&rig, 1 << 20, SIZE_MAX, seed);
        check_all(&rig, 1 << 18, MARKS);
        check_all(&rig, 5000, 7);
        rig_close(&rig);
    }
}

/* A reader that is at the end goes on in the middle of the span that has grown. */
static void test_growing(void **state)
{
    (void)state;
    struct rig rig;
    struct log_stream s;
    rig_open(&rig, 16 << 20);
    struct expect e = {.rig = &rig, .stream = 0};
    assert_int_equal(log_stream_init(&s, rig.dir, rig.state_fd, NACRE_STDOUT, UINT64_MAX), 0);
    for (int i = 0; i < 50; i++) {
        rig_feed(&rig, i % 5 == 4, 1 + (size_t)i * 7, i * 100);
        assert_int_equal(rig_publish(&rig), 0);
        check_from(&rig, &s, &e, 64 + (size_t)i, 2);
    }
    log_stream_done(&s);
    rig_close(&rig);
}

static void test_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 16 << 20);
    feed_both(&rig, 200000, SIZE_MAX, 3);
    assert_int_equal(rig_publish(&rig), 0);
    for (uint64_t end = 0; end < 150000; end = end * 2 + 777) {
        struct log_stream s;
        struct log_mark marks[MARKS];
        char data[4096];
        struct log_block b = {
            .data = data, .room = sizeof data, .marks = marks, .mark_room = MARKS};
        uint64_t bytes = 0, newlines = 0;
        struct rig_counts counts = rig_count(&rig, 0, end);
        assert_int_equal(log_stream_init(&s, rig.dir, rig.state_fd, NACRE_STDERR, end), 0);
        while (log_stream_read(&s, &b) == 0 && b.size > 0) {
            bytes += b.size;
            newlines = b.end_newlines;
        }
        assert_int_equal(bytes, counts.bytes[1]);
        assert_int_equal(newlines, counts.newlines[1]);
        log_stream_done(&s);
    }
    rig_close(&rig);
}

/* The offset of the first byte of a line of a stream, or of the end. */
static uint64_t line_offset(const struct rig *rig, int stream, uint64_t line)
{
    uint64_t newlines = 0;
    for (uint64_t at = 0; at < rig->st.log.end; at++) {
        if (rig->origin[at] != stream)
            continue;
        if (newlines == line - 1)
            return at;
        newlines += rig_byte(at, stream) == '\n';
    }
    return rig->st.log.end;
}

static void check_seek(struct rig *rig, int stream, uint64_t line, int64_t since_us)
{
    struct log_stream s;
    struct log_mark marks[MARKS];
    static char data[1 << 17];
    struct log_block b = {.data = data, .room = sizeof data, .marks = marks, .mark_room = MARKS};
    assert_int_equal(log_stream_init(&s, rig->dir, rig->state_fd, (nacre_stream)stream, UINT64_MAX),
                     0);
    assert_int_equal(log_stream_seek(&s, line, since_us), 0);
    assert_int_equal(log_stream_read(&s, &b), 0);
    if (line > 1 && since_us == 0 && b.size > 0) {
        uint64_t wanted = line_offset(rig, stream, line);
        bool lost = wanted >= rig->st.log.head && wanted < rig_tail(rig);
        assert_true(b.marks[0].offset <= wanted || lost);
        /* Near: the line is in the first block, unless it is one that is lost. */
        assert_true(lost || b.newlines < line);
        assert_true(lost || b.end_newlines + 1 >= line);
    }
    bool first = b.size == 0 || rig_count(rig, 0, b.marks[0].offset).bytes[stream] == 0;
    if (since_us > 0 && line <= 1 && !first && b.gap == 0)
        assert_true(b.marks[0].when_us < since_us);
    /* From there on everything is given as it would be without a seek. */
    if (b.size > 0) {
        struct expect e = {.rig = rig, .stream = stream};
        while (expect_next(&e) && e.at < b.marks[0].offset) {
            e.newlines += rig_byte(e.at, stream) == '\n';
            e.gap = 0;
            e.at++;
        }
        assert_int_equal(e.at, b.marks[0].offset);
        check_block(&e, &b);
        check_from(rig, &s, &e, sizeof data, MARKS);
    }
    log_stream_done(&s);
}

static void test_seek(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct rig rig;
        rig_open(&rig, small ? LOG_QUOTA_MIN : 16 << 20);
        feed_both(&rig, 600000, SIZE_MAX, 77);
        assert_int_equal(rig_publish(&rig), 0);
        for (int stream = 0; stream < 2; stream++) {
            uint64_t lines = rig.st.log.newlines[stream] + 1;
            for (uint64_t line = 1; line <= lines; line += 1 + lines / 37)
                check_seek(&rig, stream, line, 0);
            check_seek(&rig, stream, lines, 0);
            for (int64_t us = 1; us < 300000; us += 7001)
                check_seek(&rig, stream, 0, us);
            check_seek(&rig, stream, 5, 20000);
        }
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head), cmocka_unit_test(test_tiny_blocks),
        cmocka_unit_test(test_gap),  cmocka_unit_test(test_growing),
        cmocka_unit_test(test_end),  cmocka_unit_test(test_seek),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
