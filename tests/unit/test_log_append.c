/* A log whose writer has the bytes already, maps nothing, and may miss some: as of a terminal. */
#include "logs.h"

static void append(struct rig *rig, size_t size, int64_t now_us)
{
    uint64_t at = rig->st.log.end;
    char *bytes = malloc(size);
    assert_true(at + size <= RIG_MAX);
    for (size_t i = 0; i < size; i++)
        bytes[i] = rig_byte(at + i, NACRE_STDOUT);
    memset(rig->origin + at, NACRE_STDOUT, size);
    logw_append(&rig->w, NACRE_STDOUT, now_us, bytes, size);
    assert_int_equal(rig->st.log.end, at + size);
    free(bytes);
}

static void open_unmapped(struct rig *rig)
{
    rig_open(rig, LOG_QUOTA_MIN);
    rig->w.unmapped = true;
}

static void into_head_and_ring(void **state)
{
    (void)state;
    struct unit_random random = {7};
    for (size_t total = 1000; total < 2000000; total *= 3) {
        struct rig rig;
        open_unmapped(&rig);
        for (int i = 0; rig.st.log.end < total; i++)
            append(&rig, 1 + unit_below(&random, 200000), i * 20000);
        assert_int_equal(logw_ring_size(&rig.w), 0);
        rig_check(&rig);
        off_t used =
            rig_file_size(&rig, "log") + rig_file_size(&rig, "spans") + rig_file_size(&rig, "tail");
        assert_true((uint64_t)used <= LOG_QUOTA_MIN);
        rig_close(&rig);
    }
}

/* A tail that is cut under the writer costs bytes, never the process. */
static void the_tail_is_cut(void **state)
{
    (void)state;
    struct rig rig;
    open_unmapped(&rig);
    append(&rig, 300000, 0);
    int fd = openat(rig.dir, "tail", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    append(&rig, 300000, 1);
    rig_close(&rig);
}

struct seen {
    uint64_t bytes, gap;
};

static struct seen read_all(struct rig *rig)
{
    struct seen seen = {0};
    struct logr reader;
    struct log_piece piece;
    uint64_t cursor = 0;
    char buf[4096];
    ssize_t n;
    assert_int_equal(rig_publish(rig), 0);
    assert_int_equal(logr_init(&reader, rig->dir, rig->state_fd), 0);
    while ((n = logr_read(&reader, rig->dir, &cursor, NACRE_BOTH, buf, sizeof buf, &piece)) > 0) {
        assert_true(rig_piece_is_right(&piece, buf));
        seen.bytes += (uint64_t)n;
        seen.gap += piece.gap;
    }
    assert_int_equal(n, 0);
    seen.gap += piece.gap;
    assert_int_equal(cursor, rig->st.log.end);
    logr_done(&reader);
    return seen;
}

static void what_nobody_saw(void **state)
{
    (void)state;
    struct rig rig;
    const struct log_index *x = &rig.st.log;
    open_unmapped(&rig);
    append(&rig, 1000, 0);
    logw_skip(&rig.w, 5, ENODATA);
    struct seen seen = read_all(&rig);
    assert_int_equal(seen.bytes, 1000);
    assert_int_equal(seen.gap, 5);
    append(&rig, 2000, 1);
    seen = read_all(&rig);
    assert_int_equal(seen.bytes, 3000);
    assert_int_equal(seen.gap, 5);
    assert_int_equal(x->dropped_bytes[NACRE_STDOUT], 5);
    assert_int_equal(x->dropped_errno, ENODATA);
    /* There is one gap: what stood between two of them goes. */
    logw_skip(&rig.w, 1, ENODATA);
    append(&rig, 500, 2);
    seen = read_all(&rig);
    assert_int_equal(seen.bytes, 1500);
    assert_int_equal(seen.gap, 2006);
    assert_int_equal(x->dropped_bytes[NACRE_STDOUT], 2006);
    assert_int_equal(x->bytes[NACRE_STDOUT], 3506);
    rig_close(&rig);
}

static void nothing_was_seen_at_first(void **state)
{
    (void)state;
    struct rig rig;
    open_unmapped(&rig);
    logw_skip(&rig.w, 1, ENODATA);
    append(&rig, 100000, 0);
    struct seen seen = read_all(&rig);
    assert_int_equal(seen.bytes, 100000);
    assert_int_equal(seen.gap, 1);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(into_head_and_ring),
        cmocka_unit_test(the_tail_is_cut),
        cmocka_unit_test(what_nobody_saw),
        cmocka_unit_test(nothing_was_seen_at_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
