/* The two slots of a state: whatever happens to one of them, the other one is read. */
#include "unit.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sum.h"
#include "run/state.h"
#include "sys/fd.h"

#define FILE_SIZE (STATE_SLOT_SIZE + sizeof(struct run_state))

static const nacre_id id = {{1, 2, 3}}, session = {{9, 8, 7}};

static int new_file(void)
{
    int fd = memfd_create("state", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* A state whose every part tells its generation. */
static void fill(struct run_state *state)
{
    uint64_t next = state->generation + 1;
    state->started_ns = (int64_t)next;
    state->log.end = next * 3;
    state->signalled = (int32_t)next;
    snprintf(state->cgroup, sizeof state->cgroup, "/group/%" PRIu64, next);
}

static bool is_whole(const struct run_state *state)
{
    char cgroup[64];
    snprintf(cgroup, sizeof cgroup, "/group/%" PRIu64, state->generation);
    return state->started_ns == (int64_t)state->generation &&
           state->log.end == state->generation * 3 &&
           state->signalled == (int32_t)state->generation && strcmp(state->cgroup, cgroup) == 0;
}

static void write_next(int fd, struct run_state *state)
{
    fill(state);
    assert_int_equal(state_write(fd, state), 0);
}

/* A file with generations 1 and 2: generation 2 is in slot 0, 1 in slot 1. */
static int two_generations(unsigned char image[FILE_SIZE])
{
    int fd = new_file();
    struct run_state state;
    state_init(&state, &id, &session);
    write_next(fd, &state);
    write_next(fd, &state);
    assert_int_equal(fd_pread_all(fd, image, FILE_SIZE, 0), FILE_SIZE);
    return fd;
}

static void starts_empty(void **state)
{
    (void)state;
    struct run_state st;
    memset(&st, 0x5a, sizeof st);
    state_init(&st, &id, &session);
    assert_memory_equal(&st.id, &id, sizeof id);
    assert_memory_equal(&st.session, &session, sizeof session);
    assert_int_equal(st.format, RUN_FORMAT);
    assert_int_equal(st.generation, 0);
    assert_int_equal(st.phase, PHASE_WARM);
    assert_int_equal(st.outcome, NACRE_RUNNING);
    assert_int_equal(st.tree, NACRE_TREE_ALIVE);
    assert_int_equal(st.exit_code, -1);
    assert_int_equal(st.pipestatus_count, -1);
    assert_int_equal(st.log.end, 0);
    int fd = new_file();
    assert_int_equal(state_read(fd, &st), -EBADMSG);
    close(fd);
    assert_int_equal(state_read(fd, &st), -EBADF);
}

static void the_newest_is_read(void **state)
{
    (void)state;
    int fd = new_file();
    struct run_state st, got;
    state_init(&st, &id, &session);
    for (uint64_t generation = 1; generation <= 50; generation++) {
        write_next(fd, &st);
        assert_int_equal(st.generation, generation);
        memset(&got, 0, sizeof got);
        assert_int_equal(state_read(fd, &got), 0);
        assert_memory_equal(&got, &st, sizeof st);
        assert_true(is_whole(&got));
    }
    assert_int_equal(lseek(fd, 0, SEEK_END), FILE_SIZE);
    close(fd);
}

static void every_truncation(void **state)
{
    (void)state;
    unsigned char image[FILE_SIZE];
    close(two_generations(image));
    for (size_t length = 0; length <= FILE_SIZE; length++) {
        int fd = new_file();
        struct run_state got;
        assert_int_equal(fd_pwrite_all(fd, image, length, 0), 0);
        int r = state_read(fd, &got);
        if (length < sizeof got) {
            assert_int_equal(r, -EBADMSG);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(got.generation, 2);
            assert_true(is_whole(&got));
        }
        close(fd);
    }
}

/* The newest generation is in the second slot here, and a cut leaves the older one. */
static void every_truncation_of_the_newest(void **state)
{
    (void)state;
    unsigned char image[FILE_SIZE];
    int fd = two_generations(image);
    struct run_state st;
    assert_int_equal(state_read(fd, &st), 0);
    write_next(fd, &st);
    for (size_t length = FILE_SIZE; length-- > STATE_SLOT_SIZE;) {
        struct run_state got;
        assert_int_equal(ftruncate(fd, (off_t)length), 0);
        assert_int_equal(state_read(fd, &got), 0);
        assert_int_equal(got.generation, 2);
    }
    close(fd);
}

static void every_flipped_byte(void **state)
{
    (void)state;
    static const unsigned char flips[] = {0x01, 0x80, 0xff};
    unsigned char image[FILE_SIZE];
    int fd = two_generations(image);
    for (size_t at = 0; at < FILE_SIZE; at++) {
        for (size_t i = 0; i < sizeof flips; i++) {
            unsigned char byte = image[at] ^ flips[i];
            struct run_state got;
            bool newest_is_hit = at < sizeof got;
            assert_int_equal(fd_pwrite_all(fd, &byte, 1, (off_t)at), 0);
            assert_int_equal(state_read(fd, &got), 0);
            assert_int_equal(got.generation, newest_is_hit ? 1 : 2);
            assert_true(is_whole(&got));
            assert_int_equal(fd_pwrite_all(fd, &image[at], 1, (off_t)at), 0);
        }
    }
    close(fd);
}

static void both_damaged(void **state)
{
    (void)state;
    unsigned char image[FILE_SIZE];
    int fd = two_generations(image);
    struct run_state got;
    image[100] ^= 1;
    image[STATE_SLOT_SIZE + 300] ^= 1;
    assert_int_equal(fd_pwrite_all(fd, image, FILE_SIZE, 0), 0);
    assert_int_equal(state_read(fd, &got), -EBADMSG);
    close(fd);
}

/* A torn write of every length: beginning new, end old. */
static void every_torn_update(void **state)
{
    (void)state;
    unsigned char old[FILE_SIZE], new[FILE_SIZE];
    int fd = two_generations(old);
    struct run_state st;
    assert_int_equal(state_read(fd, &st), 0);
    write_next(fd, &st);
    assert_int_equal(fd_pread_all(fd, new, FILE_SIZE, 0), FILE_SIZE);
    for (size_t cut = 0; cut < sizeof st; cut++) {
        struct run_state got;
        assert_int_equal(fd_pwrite_all(fd, old, FILE_SIZE, 0), 0);
        assert_int_equal(fd_pwrite_all(fd, new + STATE_SLOT_SIZE, cut, STATE_SLOT_SIZE), 0);
        assert_int_equal(state_read(fd, &got), 0);
        assert_int_equal(got.generation, 2);
        assert_true(is_whole(&got));
    }
    close(fd);
}

static void reseal(struct run_state *st)
{
    st->sum = sum64(st, offsetof(struct run_state, sum));
}

static void write_slots(int fd, const struct run_state *st)
{
    assert_int_equal(fd_pwrite_all(fd, st, sizeof *st, 0), 0);
    assert_int_equal(fd_pwrite_all(fd, st, sizeof *st, STATE_SLOT_SIZE), 0);
}

static void formats(void **state)
{
    (void)state;
    int fd = new_file();
    struct run_state st, got;
    state_init(&st, &id, &session);
    st.generation = 4;
    st.format = RUN_FORMAT + 1;
    reseal(&st);
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), -EPROTO);
    st.format = UINT32_MAX;
    reseal(&st);
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), -EPROTO);
    /* A newer one may have another size and another checksum. */
    st.size = 4000;
    st.sum = 0;
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), -EPROTO);
    st.format = RUN_FORMAT - 1;
    st.size = sizeof st;
    reseal(&st);
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), 0);
    st.size++;
    reseal(&st);
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), -EBADMSG);
    st.size = sizeof st;
    st.magic[0] ^= 1;
    reseal(&st);
    write_slots(fd, &st);
    assert_int_equal(state_read(fd, &got), -EBADMSG);
    close(fd);
}

/* After a write that failed the good slot is still the one that is not written next. */
static void a_failed_write_costs_one_slot_only(void **state)
{
    (void)state;
    unsigned char image[FILE_SIZE];
    int fd = two_generations(image);
    struct run_state st, got;
    assert_int_equal(state_read(fd, &st), 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(reader >= 0);
    /* Every update fails: after any number of them the last good one stays. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(state_write(reader, &st), -EBADF);
    /* The next one tears. */
    uint64_t slot = (st.generation + 1) % 2;
    assert_int_equal(fd_pwrite_all(fd, "torn", 4, (off_t)slot * STATE_SLOT_SIZE), 0);
    assert_int_equal(state_read(fd, &got), 0);
    assert_int_equal(got.generation, 2);
    close(reader);
    close(fd);
}

/* What happens between two reads of a file: here, in place of another processor. */
static struct {
    int reads_left;
    void (*then)(int fd);
} meanwhile;

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
    if (meanwhile.then && meanwhile.reads_left-- == 0)
        meanwhile.then(fd);
    return syscall(SYS_pread64, fd, buf, size, offset);
}

/* One more generation, and the beginning of the one after it. */
static void write_and_begin(int fd)
{
    struct run_state st;
    meanwhile.then = NULL;
    assert_int_equal(state_read(fd, &st), 0);
    write_next(fd, &st);
    off_t next = (off_t)((st.generation + 1) % 2) * STATE_SLOT_SIZE;
    assert_int_equal(fd_pwrite_all(fd, "torn", 4, next), 0);
}

/* The writer may go on after the first slot was read, and be met in the second: then what was read
 * of the first is older than what was there at the beginning. */
static void never_older_than_before(void **state)
{
    (void)state;
    for (int generations = 2; generations < 4; generations++) {
        for (int reads = 0; reads < 3; reads++) {
            unsigned char image[FILE_SIZE];
            int fd = two_generations(image);
            struct run_state st, got;
            assert_int_equal(state_read(fd, &st), 0);
            while (st.generation < (uint64_t)generations)
                write_next(fd, &st);
            meanwhile.reads_left = reads;
            meanwhile.then = write_and_begin;
            assert_int_equal(state_read(fd, &got), 0);
            meanwhile.then = NULL;
            assert_true(is_whole(&got));
            assert_true(got.generation >= (uint64_t)generations);
            close(fd);
        }
    }
}

struct contest {
    int fd;
    int rounds;
};

static void write_without_pause(void *data)
{
    const struct contest *contest = data;
    struct run_state st;
    EXPECT(state_read(contest->fd, &st) == 0);
    for (int i = 0; i < contest->rounds; i++) {
        fill(&st);
        EXPECT(state_write(contest->fd, &st) == 0);
    }
}

static void readers_meet_a_writer(void **state)
{
    (void)state;
    unsigned char image[FILE_SIZE];
    struct contest contest = {.fd = two_generations(image), .rounds = 60000};
    pid_t pid = unit_fork(write_without_pause, &contest);
    uint64_t last = 0;
    int failures = 0, reads = 0, status = 0;
    bool over = false;
    while (!over) {
        struct run_state got;
        over = waitpid(pid, &status, WNOHANG) == pid;
        failures += state_read(contest.fd, &got) != 0 || !is_whole(&got) || got.generation < last;
        last = got.generation;
        reads++;
    }
    assert_int_equal(status, 0);
    assert_int_equal(failures, 0);
    assert_int_equal(last, 2 + contest.rounds);
    assert_true(reads > 100);
    close(contest.fd);
}

static void what_is_final(void **state)
{
    (void)state;
    for (uint32_t phase = PHASE_WARM; phase <= PHASE_RUN; phase++) {
        for (uint32_t outcome = NACRE_RUNNING; outcome <= NACRE_LOST; outcome++) {
            for (uint32_t tree = NACRE_TREE_ALIVE; tree <= NACRE_TREE_EMPTY; tree++) {
                struct run_state st = {.phase = phase, .outcome = outcome, .tree = tree};
                bool final =
                    phase == PHASE_RUN && outcome != NACRE_RUNNING && tree == NACRE_TREE_EMPTY;
                assert_int_equal(state_is_final(&st), final);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty),
        cmocka_unit_test(the_newest_is_read),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_truncation_of_the_newest),
        cmocka_unit_test(every_flipped_byte),
        cmocka_unit_test(both_damaged),
        cmocka_unit_test(every_torn_update),
        cmocka_unit_test(formats),
        cmocka_unit_test(a_failed_write_costs_one_slot_only),
        cmocka_unit_test(never_older_than_before),
        cmocka_unit_test(readers_meet_a_writer),
        cmocka_unit_test(what_is_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
