/*
 * Arbitrary log, spans and tail under an arbitrary index with a right checksum: a reader gets
 * bytes, an end or an error, and always comes back.
 *
 * The input: a byte of flags, the index, the sizes of the three files, how to read, the files.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "run/log.h"

#define READS_MAX 400

static char place[64];
static int dir, state_fd, files[3];
static const char *const names[3] = {"log", "spans", "tail"};

static void clean_up(void)
{
    for (int i = 0; i < 3; i++)
        unlinkat(dir, names[i], 0);
    rmdir(place);
}

static void open_files(void)
{
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(place, sizeof place, "%s/nacre-fuzz.XXXXXX", tmp);
    MUST(mkdtemp(place));
    dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    state_fd = memfd_create("state", MFD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        files[i] = openat(dir, names[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    MUST(dir >= 0 && state_fd >= 0 && files[0] >= 0 && files[1] >= 0 && files[2] >= 0);
    atexit(clean_up);
}

/* Numbers as they stand, or small ones, which more often fit together. */
static uint64_t number(struct input *in, bool small)
{
    return small ? take16(in) : take64(in);
}

static void take_index(struct input *in, bool small, struct log_index *x)
{
    uint64_t *fields[] = {&x->end,       &x->head,       &x->head_spans,
                          &x->ring_size, &x->ring_base,  &x->tail_start,
                          &x->span_cap,  &x->span_first, &x->span_next};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        *fields[i] = number(in, small);
}

/* Spans whose offsets grow, if they shall make sense. */
static void put_spans(struct input *in, bool small, int fd, off_t at, size_t count)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < count && in->left > 0; i++) {
        struct span span = {0};
        if (small) {
            span.offset = offset;
            span.when = take8(in);
            offset += take8(in);
        } else {
            take(in, &span, sizeof span);
        }
        MUST(pwrite(fd, &span, sizeof span, at + (off_t)(i * sizeof span)) == sizeof span);
    }
}

static void read_all(unsigned streams, uint64_t cursor, size_t size)
{
    struct logr reader;
    struct log_piece piece;
    char *buf = malloc(size);
    MUST(logr_init(&reader, dir, state_fd) == 0);
    for (int i = 0; i < READS_MAX; i++) {
        uint64_t before = cursor;
        ssize_t n = logr_read(&reader, dir, &cursor, streams, buf, size, &piece);
        MUST(n <= (ssize_t)size);
        MUST(cursor >= before);
        if (n <= 0)
            break;
        MUST(piece.size == (size_t)n);
        MUST(piece.offset + (uint64_t)n == cursor);
        MUST(piece.offset >= before && piece.gap <= piece.offset - before);
        MUST(streams & 1u << piece.stream);
    }
    logr_done(&reader);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const nacre_id none;
    struct input in = {data, size};
    struct run_state state;
    if (!place[0])
        open_files();
    uint8_t flags = take8(&in);
    bool small = flags & 1;
    state_init(&state, &none, &none);
    take_index(&in, small, &state.log);
    size_t spans = take8(&in), tail_spans = take8(&in), bytes = take16(&in);
    unsigned streams = 1 + flags / 2 % 3;
    uint64_t cursor = number(&in, small);
    size_t room = 1 + (size_t)take16(&in);
    for (int i = 0; i < 3; i++)
        set_content(files[i], NULL, 0);
    put_spans(&in, flags & 8, files[1], 0, spans);
    if (state.log.ring_size < 1 << 20)
        put_spans(&in, flags & 8, files[2], (off_t)state.log.ring_size, tail_spans);
    MUST(ftruncate(files[0], (off_t)bytes) == 0);
    MUST(pwrite(files[0], in.at, in.left < bytes ? in.left : bytes, 0) >= 0);
    set_content(state_fd, NULL, 0);
    MUST(state_write(state_fd, &state) == 0);
    read_all(streams, cursor, room);
    read_all(NACRE_BOTH, 0, 4096);
    struct log_index index = state.log;
    if (log_recover(dir, &index) < 0)
        MUST(memcmp(&index, &state.log, sizeof index) == 0);
    MUST(index.end >= state.log.end);
    return 0;
}
