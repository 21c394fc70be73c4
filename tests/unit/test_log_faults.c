/* A log in trouble: a full disk, a file that is too large, a ring that is lost, a crash. */
#include "logs.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* -- A full disk ------------------------------------------------------------------------------- */

/* Uses up what is left of the disk but for some bytes. */
static int fill_disk(const struct rig *rig, size_t spare)
{
    char page[4096];
    memset(page, 'f', sizeof page);
    int fd = unit_file(rig->dir, "filler");
    while (write(fd, page, sizeof page) == sizeof page)
        ;
    off_t size = lseek(fd, 0, SEEK_END);
    EXPECT(ftruncate(fd, size - (off_t)spare) == 0);
    return fd;
}

/* In mounts of this program's own, which end with it. */
static void mount_disk(struct rig *rig, const char *options)
{
    static bool alone;
    close(unit_dir(rig->path));
    alone = alone ||
            (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    if (!alone || mount("none", rig->path, "tmpfs", 0, options) < 0)
        SKIP("a full disk: no tmpfs can be mounted (%s)", strerror(errno));
}

static void mount_small_disk(struct rig *rig)
{
    mount_disk(rig, "size=128k");
}

static void close_small_disk(struct rig *rig)
{
    char path[PATH_MAX];
    memcpy(path, rig->path, sizeof path);
    rig_close(rig);
    umount2(path, MNT_DETACH);
}

static void the_disk_is_full_from_the_start(void **state)
{
    (void)state;
    struct rig rig;
    mount_small_disk(&rig);
    rig_open_at(&rig, LOG_QUOTA_MIN);
    close(fill_disk(&rig, 0));
    for (int i = 0; i < 200; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    assert_int_equal(rig.st.log.head, 0);
    assert_int_equal(rig.st.log.dropped_errno, ENOSPC);
    rig_check(&rig);
    close_small_disk(&rig);
}

static void the_disk_becomes_full(void **state)
{
    (void)state;
    for (size_t spare = 4096; spare <= 65536; spare += 3 * 4096) {
        struct rig rig;
        mount_small_disk(&rig);
        rig_open_at(&rig, LOG_QUOTA_MIN);
        close(fill_disk(&rig, spare));
        for (int i = 0; i < 300; i++)
            rig_feed(&rig, i % 2, 777, i * 100);
        const struct log_index *x = &rig.st.log;
        /* All but what the spans took of the space that was left. */
        assert_true(x->head <= spare);
        assert_true(spare <= 2 * 4096 || x->head > 0);
        assert_int_equal(x->dropped_errno, ENOSPC);
        assert_int_equal(x->head, rig_file_size(&rig, "log"));
        rig_check(&rig);
        close_small_disk(&rig);
    }
}

/* Once there is room again the end of the output is kept, and the gap stays exact. */
static void the_disk_gets_room_again(void **state)
{
    (void)state;
    struct rig rig;
    mount_small_disk(&rig);
    rig_open_at(&rig, LOG_QUOTA_MIN);
    int filler = fill_disk(&rig, 30000);
    for (int i = 0; i < 300; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    uint64_t head = rig.st.log.head;
    assert_int_equal(mount("none", rig.path, "tmpfs", MS_REMOUNT, "size=4m"), 0);
    assert_int_equal(ftruncate(filler, 0), 0);
    close(filler);
    /* Not tried before a second is over: the disk is not hammered. */
    rig_feed(&rig, 0, 500, 300 * 100);
    assert_int_equal(rig.st.log.ring_size, 0);
    rig_feed(&rig, 1, 500, 3000000);
    assert_true(rig.st.log.ring_size > 0);
    assert_int_equal(rig.st.log.end - rig.st.log.tail_start, 500);
    for (int i = 0; i < 400; i++)
        rig_feed(&rig, i % 2, 900, 3000000 + i * 100);
    assert_int_equal(rig.st.log.head, head);
    rig_check(&rig);
    close_small_disk(&rig);
}

/* Too little room for the whole ring: a smaller one is better than none. */
static void a_smaller_ring_if_the_disk_has_no_more(void **state)
{
    (void)state;
    struct rig rig;
    mount_disk(&rig, "size=900k");
    rig_open_at(&rig, 1024 * 1024);
    rig_feed(&rig, 0, 500000, 0);
    close(fill_disk(&rig, 200000));
    for (int i = 0; i < 3000; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    const struct log_index *x = &rig.st.log;
    assert_true(x->ring_size >= 64 * 1024 && x->ring_size < 200000);
    assert_true(rig.w.chunk <= x->ring_size / 8);
    rig_check(&rig);
    close_small_disk(&rig);
}

/* The same without a disk of our own: a limit on the size of files. */
static void under_a_limit(void *data)
{
    const rlim_t *limit = data;
    struct rig rig;
    signal(SIGXFSZ, SIG_IGN);
    rig_open(&rig, LOG_QUOTA_MIN);
    struct rlimit file_size = {.rlim_cur = *limit, .rlim_max = *limit};
    EXPECT(setrlimit(RLIMIT_FSIZE, &file_size) == 0);
    for (int i = 0; i < 400; i++)
        rig_feed(&rig, i % 2, 1777, i * 100);
    const struct log_index *x = &rig.st.log;
    struct rig_counts all = rig_count(&rig, 0, x->end);
    struct rig_counts gone = rig_count(&rig, x->head, rig_tail(&rig));
    EXPECT(x->head <= *limit && x->head > 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(x->bytes[i] == all.bytes[i] && x->newlines[i] == all.newlines[i]);
        EXPECT(x->dropped_bytes[i] == gone.bytes[i]);
        EXPECT(x->dropped_newlines[i] == gone.newlines[i]);
    }
    EXPECT(x->dropped_errno == EFBIG);
    /* A write that the limit cut in two was kept up to there. */
    EXPECT(*limit > 131072 || x->head + 40 * 400 > *limit);
    rig_close(&rig);
}

static void files_may_not_grow(void **state)
{
    (void)state;
    /* The ring needs 131048 bytes here, the head less than that. */
    rlim_t limits[] = {4096 + 100, 20000, 65536, 100001};
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        unit_in_child(under_a_limit, &limits[i]);
}

/* -- A lost ring ------------------------------------------------------------------------------- */

static void a_lost_ring_is_counted(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    for (int i = 0; i < 400; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    assert_true(rig.st.log.ring_size > 0);
    logw_lose_ring(&rig.w, EIO);
    assert_int_equal(logw_ring_size(&rig.w), 0);
    assert_int_equal(rig.st.log.dropped_errno, EIO);
    rig_check(&rig);
    assert_int_equal(rig_tail(&rig), rig.st.log.end);
    /* For a second it goes on without. */
    for (int i = 400; i < 500; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    assert_int_equal(rig.st.log.ring_size, 0);
    rig_check(&rig);
    for (int i = 0; i < 400; i++)
        rig_feed(&rig, i % 2, 777, 5000000 + i * 100);
    assert_true(rig.st.log.ring_size > 0);
    rig_check(&rig);
    rig_close(&rig);
}

/* Somebody cuts the file under the mapping. */
static void a_cut_ring_is_noticed(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_feed(&rig, 0, RIG_HALF, 0);
    rig_feed(&rig, 1, 30000, 100);
    assert_true(rig.st.log.ring_size > 0);
    int fd = openat(rig.dir, "tail", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    rig_feed(&rig, 0, 5000, 200);
    assert_int_equal(rig.st.log.dropped_errno, EIO);
    rig_check(&rig);
    rig_feed(&rig, 1, 5000, 3000000);
    assert_int_equal(rig.st.log.end - rig.st.log.tail_start, 5000);
    rig_check(&rig);
    rig_close(&rig);
}

/* Long after the last byte the ring may be made again at once. */
static void a_cut_ring_after_a_pause(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_feed(&rig, 0, RIG_HALF, 0);
    rig_feed(&rig, 1, 30000, 100);
    int fd = openat(rig.dir, "tail", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    rig_feed(&rig, 0, 5000, 60000000);
    rig_feed(&rig, 1, 5000, 60000100);
    assert_int_equal(rig.st.log.end - rig.st.log.tail_start, 10000);
    rig_check(&rig);
    rig_close(&rig);
}

/* -- A crash ----------------------------------------------------------------------------------- */

static void assert_same_head(const struct log_index *got, const struct log_index *want)
{
    assert_int_equal(got->end, want->end);
    assert_int_equal(got->head, want->head);
    assert_int_equal(got->head_spans, want->head_spans);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got->bytes[i], want->bytes[i]);
        assert_int_equal(got->newlines[i], want->newlines[i]);
        assert_int_equal(got->unfinished[i], want->unfinished[i]);
    }
}

/* The keeper published its state last after some of the writes, and wrote on. */
static void what_was_not_published_is_recovered(void **state)
{
    (void)state;
    for (int published = 0; published <= 60; published += 4) {
        struct rig rig;
        struct unit_random random = {17};
        struct log_index before = {0}, index;
        rig_open(&rig, LOG_QUOTA_MIN);
        for (int i = 0; i < 60; i++) {
            if (i == published)
                before = rig.st.log;
            rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, 900), i * 3000);
        }
        if (published == 60)
            before = rig.st.log;
        index = before;
        assert_int_equal(log_recover(rig.dir, &index), 0);
        assert_same_head(&index, &rig.st.log);
        /* Once more changes nothing. */
        struct log_index again = index;
        assert_int_equal(log_recover(rig.dir, &again), 0);
        assert_memory_equal(&again, &index, sizeof index);
        rig.st.log = index;
        rig_check(&rig);
        rig_close(&rig);
    }
}

/* It died between any two of its writes: the files end anywhere, spans before their bytes. */
static void every_end_of_the_files(void **state)
{
    (void)state;
    struct rig rig;
    struct unit_random random = {23};
    struct log_index published = {0};
    struct span spans[64];
    rig_open(&rig, LOG_QUOTA_MIN);
    for (int i = 0; i < 30; i++) {
        rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, 90), i * 3000);
        if (i == 10)
            published = rig.st.log;
    }
    size_t count = (size_t)rig.st.log.head_spans;
    assert_true(count <= ARRAY_SIZE(spans));
    assert_true(fd_pread_all(rig.w.spans_fd, spans, sizeof spans, 0) > 0);
    uint64_t last = rig.st.log.end;
    for (uint64_t end = last; end >= published.end; end--) {
        assert_int_equal(ftruncate(rig.w.log_fd, (off_t)end), 0);
        /* The entry of the next span may be there already, or half of it. */
        size_t needed = 0;
        while (needed < count && spans[needed].offset < end)
            needed++;
        bool next = needed < count && spans[needed].offset == end;
        for (size_t extra = 0; extra <= (next ? sizeof spans[0] : 0); extra += 8) {
            size_t size = needed * sizeof spans[0] + extra;
            assert_int_equal(fd_pwrite_all(rig.w.spans_fd, spans, size, 0), 0);
            assert_int_equal(ftruncate(rig.w.spans_fd, (off_t)size), 0);
            struct log_index index = published;
            assert_int_equal(log_recover(rig.dir, &index), 0);
            assert_int_equal(index.end, end);
            assert_int_equal(index.head, end);
            rig.st.log = index;
            rig_publish(&rig);
            rig_check_counts(&rig);
            rig_check_read(&rig, NACRE_BOTH, 0, 65536);
        }
    }
    rig_close(&rig);
}

static void nothing_to_recover(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, LOG_QUOTA_MIN);
    struct log_index index = rig.st.log;
    assert_int_equal(log_recover(rig.dir, &index), 0);
    assert_int_equal(index.end, 0);
    for (int i = 0; i < 300; i++)
        rig_feed(&rig, i % 2, 777, i * 100);
    /* With a ring the head is closed: the index stays as it was published. */
    assert_true(rig.st.log.ring_size > 0);
    index = rig.st.log;
    assert_int_equal(log_recover(rig.dir, &index), 0);
    assert_memory_equal(&index, &rig.st.log, sizeof index);
    rig_check(&rig);
    rig_close(&rig);
}

static void damaged_files_recover_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"log", "spans"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct rig rig;
        rig_open(&rig, LOG_QUOTA_MIN);
        rig_feed(&rig, 0, 1000, 0);
        struct log_index before = rig.st.log, index = before;
        rig_feed(&rig, 1, 1000, 0);
        assert_int_equal(unlinkat(rig.dir, names[i], 0), 0);
        assert_true(log_recover(rig.dir, &index) < 0);
        assert_memory_equal(&index, &before, sizeof index);
        /* Bytes that contradict each other are not taken in. */
        int fd = unit_file(rig.dir, names[i]);
        struct span wrong = {.offset = 5000};
        for (int j = 0; j < 50; j++)
            assert_int_equal(fd_write_all(fd, &wrong, sizeof wrong), 0);
        close(fd);
        log_recover(rig.dir, &index);
        assert_true(index.end >= before.end && index.head == index.end);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_disk_is_full_from_the_start),
        cmocka_unit_test(the_disk_becomes_full),
        cmocka_unit_test(the_disk_gets_room_again),
        cmocka_unit_test(a_smaller_ring_if_the_disk_has_no_more),
        cmocka_unit_test(files_may_not_grow),
        cmocka_unit_test(a_lost_ring_is_counted),
        cmocka_unit_test(a_cut_ring_is_noticed),
        cmocka_unit_test(a_cut_ring_after_a_pause),
        cmocka_unit_test(what_was_not_published_is_recovered),
        cmocka_unit_test(every_end_of_the_files),
        cmocka_unit_test(nothing_to_recover),
        cmocka_unit_test(damaged_files_recover_nothing),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
