/*
 * Readers and a writer at the same time. First step by step: the writer goes on between any two
 * reads of files that a reader makes, as if it had been run just then. Then with processes.
 */
#include "logs.h"

#include <sys/resource.h>

static struct {
    struct rig *rig;
    int left; /* reads until the writer goes on; < 0 = it does not */
    int burst;
    size_t size;
    bool publish;
    bool running;
} meddler = {.left = -1};

static void meddle(void)
{
    static int number;
    meddler.running = true;
    for (int i = 0; i < meddler.burst; i++, number++)
        rig_feed(meddler.rig, number % 2, meddler.size, number * 10);
    if (meddler.publish)
        rig_publish(meddler.rig);
    meddler.running = false;
}

/* Stands in for libc's, under the name that the library's objects ask for. */
ssize_t reader_pread(int fd, void *buf, size_t size, off_t offset) __asm__("pread64");

ssize_t reader_pread(int fd, void *buf, size_t size, off_t offset)
{
    if (meddler.left >= 0 && !meddler.running && meddler.left-- == 0)
        meddle();
    return syscall(SYS_pread64, fd, buf, size, offset);
}

/* One read with the writer in the middle of it. Returns a word for what is wrong, or NULL. */
static const char *read_once(struct rig *rig, struct logr *reader, uint64_t from, unsigned streams)
{
    static char buf[LOG_CHUNK];
    struct log_piece piece;
    uint64_t cursor = from;
    ssize_t n = logr_read(reader, rig->dir, &cursor, streams, buf, sizeof buf, &piece);
    meddler.left = -1;
    if (n < 0)
        return n == -EBADMSG ? "EBADMSG" : "another error";
    if (n == 0)
        return cursor > from || from >= rig->st.log.end || piece.gap ? NULL : "nothing";
    if (piece.offset < from + piece.gap || cursor != piece.offset + (uint64_t)n)
        return "a wrong offset";
    if (!(streams & 1u << piece.stream))
        return "a stream that was not asked for";
    if (streams == NACRE_BOTH && piece.offset != from + piece.gap)
        return "bytes left out";
    return rig_piece_is_right(&piece, buf) ? NULL : "wrong bytes";
}

/* The writer goes on by a burst at every moment of a look at one place in the log. */
static int meddle_with_looks(int burst, uint64_t place)
{
    struct rig rig;
    int wrong = 0;
    rig_open(&rig, LOG_QUOTA_MIN);
    rig_feed(&rig, 0, RIG_HALF - 1000, 0);
    meddler.rig = &rig;
    for (int moment = 0; moment < 14; moment++) {
        struct logr reader;
        /* The ring is full, and goes round. */
        meddler.burst = (int)MIN((size_t)450, 130000 / meddler.size);
        meddle();
        rig_publish(&rig);
        uint64_t length = rig.st.log.end - rig.st.log.tail_start;
        uint64_t from = rig.st.log.end - MIN(place * meddler.size + 1, length);
        meddler.burst = burst;
        meddler.left = moment;
        assert_int_equal(logr_init(&reader, rig.dir, rig.state_fd), 0);
        const char *what = read_once(&rig, &reader, from, 1 + (unsigned)moment % 3);
        if (!what)
            what = read_once(&rig, &reader, from, NACRE_BOTH);
        logr_done(&reader);
        if (!what)
            continue;
        wrong++;
        printf("%s: %d writes of %zu before read %d of a look %" PRIu64 " writes before the end\n",
               what, burst, meddler.size, moment, place);
    }
    rig_close(&rig);
    return wrong;
}

static void meddle_with_everything(size_t size, bool publish, const int *bursts, size_t count)
{
    static const uint64_t places[] = {0, 1, 10, 100, 230, 400};
    int wrong = 0;
    meddler.size = size;
    meddler.publish = publish;
    for (size_t b = 0; b < count && wrong < 5; b++)
        for (size_t p = 0; p < ARRAY_SIZE(places); p++)
            wrong += meddle_with_looks(bursts[b], places[p]);
    assert_int_equal(wrong, 0);
}

static void tiny_writes_between_reads(void **state)
{
    (void)state;
    static const int bursts[] = {1, 60, 150, 220, 300, 1000};
    meddle_with_everything(1, true, bursts, ARRAY_SIZE(bursts));
    meddle_with_everything(3, false, bursts, ARRAY_SIZE(bursts));
}

static void larger_writes_between_reads(void **state)
{
    (void)state;
    static const int few[] = {1, 3, 10, 40};
    meddle_with_everything(280, true, few, ARRAY_SIZE(few));
    meddle_with_everything(1000, true, few, 1);
    static const int some[] = {2, 12};
    meddle_with_everything(97, true, some, ARRAY_SIZE(some));
}

/* -- With processes ---------------------------------------------------------------------------- */

struct flood {
    struct rig *rig;
    unsigned streams;
    size_t buffer;
    bool fresh;   /* a new reader for every read */
    int pause_us; /* between reads */
};

static void read_along(void *data)
{
    const struct flood *flood = data;
    struct logr reader;
    uint64_t cursor = 0, seen = 0, gaps = 0;
    char *buf = malloc(flood->buffer);
    int dir = open(flood->rig->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int state_fd = openat(dir, "state", O_RDONLY | O_CLOEXEC);
    EXPECT(logr_init(&reader, dir, state_fd) == 0);
    for (bool last = false;;) {
        struct log_piece piece;
        struct run_state now;
        ssize_t n = logr_read(&reader, dir, &cursor, flood->streams, buf, flood->buffer, &piece);
        EXPECT(n >= 0);
        gaps += piece.gap;
        if (n == 0 && last)
            break;
        EXPECT(n == 0 || rig_piece_is_right(&piece, buf));
        seen += (uint64_t)n;
        EXPECT(state_read(state_fd, &now) == 0);
        last = n == 0 && now.outcome != NACRE_RUNNING && cursor >= now.log.end;
        if (flood->fresh) {
            logr_done(&reader);
            EXPECT(logr_init(&reader, dir, state_fd) == 0);
        }
        if (flood->pause_us)
            usleep((useconds_t)flood->pause_us);
    }
    struct run_state end;
    EXPECT(state_read(state_fd, &end) == 0);
    EXPECT(cursor == end.log.end);
    EXPECT(flood->streams != NACRE_BOTH || seen + gaps == end.log.end);
    EXPECT(seen > 0);
    logr_done(&reader);
    free(buf);
}

static void flood(size_t piece, size_t total)
{
    struct rig rig;
    struct unit_random random = {piece};
    struct flood readers[] = {
        {&rig, NACRE_BOTH, LOG_CHUNK, false, 0},
        {&rig, NACRE_BOTH, 4096, true, 0},
        {&rig, NACRE_OUT, 1000, false, 100},
        {&rig, NACRE_ERR, LOG_CHUNK, true, 1000},
    };
    pid_t pids[ARRAY_SIZE(readers)];
    rig_open(&rig, LOG_QUOTA_MIN);
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        pids[i] = unit_fork(read_along, &readers[i]);
    for (int i = 0; rig.st.log.end < total; i++) {
        rig_feed(&rig, (int)unit_below(&random, 2), 1 + unit_below(&random, piece), i);
        if (i % 16 == 0)
            rig_publish(&rig);
    }
    rig.st.outcome = NACRE_EXITED;
    rig_publish(&rig);
    int failed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        failed += unit_join(pids[i]) != 0;
    rig_check(&rig);
    rig_close(&rig);
    assert_int_equal(failed, 0);
}

static void readers_in_a_flood(void **state)
{
    (void)state;
    flood(30000, RIG_MAX / 2);
    flood(500, RIG_MAX / 3);
    flood(4, 120000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_writes_between_reads),
        cmocka_unit_test(larger_writes_between_reads),
        cmocka_unit_test(readers_in_a_flood),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
