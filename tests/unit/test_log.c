/* The log's writer and reader together: every byte, in order, and a gap that is counted exactly. */
#include "logs.h"

static void newlines_as_counted_one_by_one(void **state)
{
    (void)state;
    static char data[40000];
    struct unit_random random = {3};
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = unit_below(&random, 4) ? (char)unit_next(&random) : '\n';
    for (size_t from = 0; from < 70; from++) {
        size_t count = 0;
        for (size_t size = 0; size < 600; size++) {
            assert_int_equal(log_count_newlines(data + from, size), count);
            count += data[from + size] == '\n';
        }
    }
    /* Lanes that would overflow, and counts at every size around that. */
    memset(data, '\n', sizeof data);
    for (size_t from = 0; from < 3; from++)
        for (size_t size = 16000; size < 17000; size += 7)
            assert_int_equal(log_count_newlines(data + from, size), size);
    assert_int_equal(log_count_newlines(data, sizeof data), sizeof data);
    /* Neighbours of '\n', and its bits with the top one set, are not it. */
    memset(data, '\n' ^ 0x80, sizeof data);
    assert_int_equal(log_count_newlines(data, sizeof data), 0);
    memset(data, '\n' + 1, sizeof data);
    assert_int_equal(log_count_newlines(data, sizeof data), 0);
}

static void an_empty_log(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_check(&rig);
    assert_int_equal(logw_pull(&rig.w, rig.pipes[0][0], NACRE_STDOUT, 0), -EAGAIN);
    close_fd(&rig.pipes[0][1]);
    assert_int_equal(logw_pull(&rig.w, rig.pipes[0][0], NACRE_STDOUT, 0), 0);
    assert_int_equal(logw_ring_size(&rig.w), 0);
    assert_int_equal(logw_pull(&rig.w, -EBADF, NACRE_STDOUT, 0), -EBADF);
    rig_check(&rig);
    rig_close(&rig);
}

static void in_the_head_alone(void **state)
{
    (void)state;
    struct rig rig;
    struct unit_random random = {5};
    rig_open(&rig, LOG_QUOTA_MIN);
    for (int i = 0; i < 400; i++)
        rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, 200), i * 100);
    assert_int_equal(rig.st.log.head, rig.st.log.end);
    assert_int_equal(rig.st.log.ring_size, 0);
    assert_int_equal(rig_file_size(&rig, "log"), rig.st.log.end);
    rig_check(&rig);
    rig_close(&rig);
}

/* One piece after the other; whatever the quota is, it is not exceeded. */
static void fill_up(uint64_t quota, size_t total, size_t piece, uint64_t seed)
{
    struct rig rig;
    struct unit_random random = {seed};
    rig_open(&rig, quota);
    for (int i = 0; rig.st.log.end < total; i++) {
        size_t n = piece ? piece : 1 + unit_below(&random, 20000);
        rig_feed(&rig, (int)unit_below(&random, 2), MIN(n, total - rig.st.log.end), i * 50);
    }
    rig_check(&rig);
    off_t used =
        rig_file_size(&rig, "log") + rig_file_size(&rig, "spans") + rig_file_size(&rig, "tail");
    assert_true((uint64_t)used <= MAX(quota, LOG_QUOTA_MIN));
    assert_int_equal(rig.st.log.dropped_errno, 0);
    /* What fits is kept: nothing is dropped before the ring is full. */
    const struct log_index *x = &rig.st.log;
    if (x->dropped_bytes[0] + x->dropped_bytes[1] > 0)
        assert_true(x->end - x->head > x->ring_size / 2);
    rig_close(&rig);
}

static void around_the_end_of_the_head(void **state)
{
    (void)state;
    for (size_t total = RIG_HALF - 3000; total < RIG_HALF + 3000; total += 211)
        fill_up(LOG_QUOTA_MIN, total, 0, total);
    for (size_t total = RIG_HALF - 100; total < RIG_HALF + 20; total += 13)
        fill_up(LOG_QUOTA_MIN, total, 30000, 1);
}

static void around_the_end_of_the_ring(void **state)
{
    (void)state;
    for (size_t total = 2 * RIG_HALF - 20000; total < 2 * RIG_HALF + 20000; total += 1999)
        fill_up(LOG_QUOTA_MIN, total, 0, total);
}

static void many_sizes(void **state)
{
    (void)state;
    for (size_t total = 1; total < 3 * 1000 * 1000; total = total * 5 / 3 + 1)
        fill_up(LOG_QUOTA_MIN, total, 0, total);
    static const size_t pieces[] = {511, 4095, 4096, 4097, 14335, 14336, 14337, 32768};
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        fill_up(LOG_QUOTA_MIN, 700000, pieces[i], i);
}

static void other_quotas(void **state)
{
    (void)state;
    fill_up(1, 600000, 0, 1);
    fill_up(LOG_QUOTA_MIN + 1, 600000, 0, 2);
    fill_up(LOG_QUOTA_MIN + 4097, 600000, 0, 3);
    fill_up(1000000, 2500000, 0, 4);
    fill_up(3 * 1024 * 1024, 5000000, 0, 5);
}

/* Each is a span of its own: their ring is full long before that of the bytes. */
static void tiny_writes_exhaust_the_spans(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_feed(&rig, 0, RIG_HALF - 5000, 0);
    for (int i = 0; i < 3000; i++) {
        rig_feed(&rig, i % 2, 1 + (size_t)(i % 3), i);
        assert_true(rig.st.log.span_next - rig.st.log.span_first <= rig.st.log.span_cap);
        if (i % 500 == 0)
            rig_check(&rig);
    }
    const struct log_index *x = &rig.st.log;
    assert_true(x->span_cap > 0);
    assert_true(x->end - x->tail_start < x->ring_size / 2);
    assert_true(x->dropped_bytes[0] + x->dropped_bytes[1] > 0);
    /* Most of what the ring of spans can name is there. */
    assert_true(x->span_next - x->span_first >= x->span_cap * 3 / 4);
    rig_check(&rig);
    /* Large pieces after small ones, and the other way round. */
    rig_feed(&rig, 1, 200000, 900000);
    rig_check(&rig);
    for (int i = 0; i < 700; i++)
        rig_feed(&rig, i % 2, 2, 1000000 + i);
    rig_check(&rig);
    rig_close(&rig);
}

/* So many spans in the head that they, not the bytes, fill its half. */
static void tiny_writes_close_the_head(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    for (int i = 0; i < 5000; i++)
        rig_feed(&rig, i % 2, 1, i);
    const struct log_index *x = &rig.st.log;
    assert_true(x->head > 0 && x->head < 5000);
    assert_true(x->head + x->head_spans * sizeof(struct span) <= RIG_HALF);
    assert_true(x->head + (x->head_spans + 1) * sizeof(struct span) + 1 > RIG_HALF);
    rig_check(&rig);
    rig_close(&rig);
}

/* -- Spans ------------------------------------------------------------------------------------- */

struct expected {
    int stream;
    uint64_t offset;
    int64_t when_us;
};

static void check_spans(struct rig *rig, const struct expected *want, size_t count)
{
    struct logr reader;
    uint64_t cursor = 0;
    static char buf[LOG_CHUNK];
    assert_int_equal(rig_publish(rig), 0);
    assert_int_equal(logr_init(&reader, rig->dir, rig->state_fd), 0);
    for (size_t i = 0; i < count; i++) {
        struct log_piece piece;
        uint64_t end = i + 1 < count ? want[i + 1].offset : rig->st.log.end;
        assert_int_equal(cursor, want[i].offset);
        assert_int_equal(logr_read(&reader, rig->dir, &cursor, NACRE_BOTH, buf, sizeof buf, &piece),
                         end - want[i].offset);
        assert_int_equal(piece.stream, want[i].stream);
        assert_int_equal(piece.when_us, want[i].when_us);
        assert_int_equal(piece.offset, want[i].offset);
    }
    assert_int_equal(cursor, rig->st.log.end);
    logr_done(&reader);
}

static void a_span_is_one_stream_and_one_moment(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 8 * 1024 * 1024);
    rig_feed(&rig, 0, 10, 100);
    rig_feed(&rig, 0, 10, 100 + LOG_SPAN_US - 1); /* still the same */
    rig_feed(&rig, 0, 10, 100 + LOG_SPAN_US);     /* a pause */
    rig_feed(&rig, 1, 10, 100 + LOG_SPAN_US);     /* another stream */
    rig_feed(&rig, 0, 10, 100 + LOG_SPAN_US);
    rig_feed(&rig, 0, 30000, 100 + LOG_SPAN_US);
    rig_feed(&rig, 0, 30000, 100 + LOG_SPAN_US);
    rig_feed(&rig, 0, 30000, 100 + LOG_SPAN_US); /* longer than a chunk */
    static const struct expected want[] = {
        {0, 0, 100},
        {0, 20, 100 + LOG_SPAN_US},
        {1, 30, 100 + LOG_SPAN_US},
        {0, 40, 100 + LOG_SPAN_US},
        {0, 60050, 100 + LOG_SPAN_US},
    };
    assert_int_equal(rig.st.log.head_spans, ARRAY_SIZE(want));
    check_spans(&rig, want, ARRAY_SIZE(want));
    rig_close(&rig);
}

static void spans_count_what_came_before(void **state)
{
    (void)state;
    struct rig rig;
    struct unit_random random = {11};
    rig_open(&rig, LOG_QUOTA_MIN);
    for (int i = 0; i < 300; i++)
        rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, 600), i * 30);
    assert_true(rig.st.log.head_spans > 50);
    for (uint64_t i = 0; i < rig.st.log.head_spans; i++) {
        struct span span;
        assert_int_equal(fd_pread_all(rig.w.spans_fd, &span, sizeof span, (off_t)(i * sizeof span)),
                         sizeof span);
        struct rig_counts before = rig_count(&rig, 0, span.offset);
        assert_int_equal(span.out_bytes, before.bytes[0]);
        assert_int_equal(span.offset - span.out_bytes, before.bytes[1]);
        assert_int_equal(span.out_newlines, before.newlines[0]);
        assert_int_equal(span.err_newlines, before.newlines[1]);
        assert_int_equal(span.when & 1, rig.origin[span.offset]);
    }
    rig_close(&rig);
}

/* -- Reading ----------------------------------------------------------------------------------- */

static void a_reader_follows(void **state)
{
    (void)state;
    struct rig rig;
    struct logr reader;
    struct unit_random random = {13};
    uint64_t cursor = 0, seen = 0, gaps = 0;
    static char buf[LOG_CHUNK];
    rig_open(&rig, LOG_QUOTA_MIN);
    assert_int_equal(logr_init(&reader, rig.dir, rig.state_fd), 0);
    for (int i = 0; i < 3000; i++) {
        struct log_piece piece;
        rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, 900), i * 40);
        if (unit_below(&random, 20))
            continue;
        rig_publish(&rig);
        ssize_t n;
        while ((n = logr_read(&reader, rig.dir, &cursor, NACRE_BOTH, buf, sizeof buf, &piece)) >
               0) {
            assert_true(rig_piece_is_right(&piece, buf));
            seen += (uint64_t)n;
            gaps += piece.gap;
        }
        assert_int_equal(n, 0);
        assert_int_equal(seen + gaps, rig.st.log.end);
        assert_int_equal(cursor, rig.st.log.end);
    }
    /* It came often enough to miss nothing, though the ring went round many times. */
    assert_int_equal(gaps, 0);
    assert_true(rig.st.log.dropped_bytes[0] > 100000);
    logr_done(&reader);
    rig_close(&rig);
}

static void cursors_beyond_the_end(void **state)
{
    (void)state;
    struct rig rig;
    struct logr reader;
    struct log_piece piece;
    char buf[64];
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_feed(&rig, 0, 100, 0);
    rig_publish(&rig);
    assert_int_equal(logr_init(&reader, rig.dir, rig.state_fd), 0);
    static const uint64_t beyond[] = {100, 101, 1000000, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
        uint64_t cursor = beyond[i];
        assert_int_equal(logr_read(&reader, rig.dir, &cursor, NACRE_BOTH, buf, 64, &piece), 0);
        assert_int_equal(cursor, beyond[i]);
        assert_int_equal(piece.gap, 0);
    }
    /* Nothing of that stream, but the cursor moves on: next time it need not be looked at. */
    uint64_t cursor = 0;
    assert_int_equal(logr_read(&reader, rig.dir, &cursor, NACRE_ERR, buf, 64, &piece), 0);
    assert_int_equal(cursor, 100);
    logr_done(&reader);
    rig_close(&rig);
}

/* What files that contradict the index should have is a gap, never a crash and never other bytes.
 */
static void damaged_files(void **state)
{
    (void)state;
    static const char *const names[] = {"log", "spans", "tail"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct rig rig;
        struct logr reader;
        struct log_piece piece;
        char buf[4096];
        uint64_t cursor = 0;
        ssize_t n;
        rig_open(&rig, LOG_QUOTA_MIN);
        for (int j = 0; j < 100; j++)
            rig_feed(&rig, j % 2, 3000, j * 100);
        rig_publish(&rig);
        assert_int_equal(logr_init(&reader, rig.dir, rig.state_fd), 0);
        int fd = openat(rig.dir, names[i], O_RDWR | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, 100), 0);
        close(fd);
        uint64_t got = 0, missing = 0;
        do {
            n = logr_read(&reader, rig.dir, &cursor, NACRE_BOTH, buf, sizeof buf, &piece);
            assert_true(n <= 0 || rig_piece_is_right(&piece, buf));
            got += (uint64_t)MAX(n, (ssize_t)0);
            missing += piece.gap;
        } while (n > 0);
        assert_int_equal(n, 0);
        assert_true(missing > 0);
        assert_int_equal(got + missing, 300000);
        logr_done(&reader);
        /* Without the file it cannot begin, or not go on. */
        cursor = 0;
        assert_int_equal(unlinkat(rig.dir, names[i], 0), 0);
        n = logr_init(&reader, rig.dir, rig.state_fd);
        if (n == 0) {
            while ((n = logr_read(&reader, rig.dir, &cursor, NACRE_BOTH, buf, sizeof buf, &piece)) >
                   0)
                ;
            logr_done(&reader);
        }
        assert_int_equal(n, -ENOENT);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newlines_as_counted_one_by_one),
        cmocka_unit_test(an_empty_log),
        cmocka_unit_test(in_the_head_alone),
        cmocka_unit_test(around_the_end_of_the_head),
        cmocka_unit_test(around_the_end_of_the_ring),
        cmocka_unit_test(many_sizes),
        cmocka_unit_test(other_quotas),
        cmocka_unit_test(tiny_writes_exhaust_the_spans),
        cmocka_unit_test(tiny_writes_close_the_head),
        cmocka_unit_test(a_span_is_one_stream_and_one_moment),
        cmocka_unit_test(spans_count_what_came_before),
        cmocka_unit_test(a_reader_follows),
        cmocka_unit_test(cursors_beyond_the_end),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
