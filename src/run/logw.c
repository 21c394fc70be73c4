/* Writing the log: the keeper's hot path. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/defs.h"
#include "run/log.h"
#include "sys/fd.h"

#define RING_MIN      ((uint64_t)64 * 1024)
#define RING_RETRY_US 1000000

/* Filled by the head's reads and by whatever cannot be read straight into the ring. */
static _Alignas(4096) char chunk_buf[LOG_CHUNK];

/* The width every 64-bit machine has in one register; wider ones would be taken apart. */
typedef unsigned char vec __attribute__((vector_size(16)));

#define LANES sizeof(vec)
#define WIDTH 4 /* vectors in flight */

static vec matches(const char *at)
{
    vec v;
    memcpy(&v, at, sizeof v);
    return (vec)(v == '\n');
}

size_t log_count_newlines(const char *data, size_t size)
{
    size_t count = 0;
    size_t i = 0;
    while (size - i >= WIDTH * LANES) {
        /* A lane holds up to 255 before it must be emptied. */
        size_t steps = MIN((size - i) / (WIDTH * LANES), (size_t)255);
        vec a = {0}, b = {0}, c = {0}, d = {0};
        for (size_t s = 0; s < steps; s++, i += WIDTH * LANES) {
            a -= matches(data + i);
            b -= matches(data + i + LANES);
            c -= matches(data + i + 2 * LANES);
            d -= matches(data + i + 3 * LANES);
        }
        for (size_t lane = 0; lane < LANES; lane++)
            count += (size_t)a[lane] + b[lane] + c[lane] + d[lane];
    }
    for (; i < size; i++)
        count += data[i] == '\n';
    return count;
}

void logw_init(struct logw *w, int dir, int log_fd, int spans_fd, struct log_index *index,
               uint64_t quota)
{
    *w = (struct logw){
        .dir = dir,
        .log_fd = log_fd,
        .spans_fd = spans_fd,
        .index = index,
        .tail_fd = -EBADF,
        .half = MAX(quota, LOG_QUOTA_MIN) / 2,
        .chunk = LOG_CHUNK,
    };
}

size_t logw_ring_size(const struct logw *w)
{
    if (!w->ring)
        return 0;
    return (size_t)(w->index->ring_size + w->index->span_cap * sizeof(struct span));
}

static void publish_index(struct logw *w)
{
    if (w->publish)
        w->publish(w->userdata);
}

/* All that came before this span and is not in the head is gone. */
static void dropped_before(struct logw *w, const struct span *span)
{
    struct log_index *x = w->index;
    x->dropped_bytes[NACRE_STDOUT] = span->out_bytes - w->head_bytes[NACRE_STDOUT];
    x->dropped_bytes[NACRE_STDERR] = span->offset - span->out_bytes - w->head_bytes[NACRE_STDERR];
    x->dropped_newlines[NACRE_STDOUT] = span->out_newlines - w->head_newlines[NACRE_STDOUT];
    x->dropped_newlines[NACRE_STDERR] = span->err_newlines - w->head_newlines[NACRE_STDERR];
    x->tail_start = span->offset;
}

static struct span span_now(const struct logw *w, nacre_stream stream, int64_t now_us)
{
    const struct log_index *x = w->index;
    return (struct span){
        .offset = x->end,
        .when = (uint64_t)now_us << 1 | (uint64_t)stream,
        .out_bytes = x->bytes[NACRE_STDOUT],
        .out_newlines = x->newlines[NACRE_STDOUT],
        .err_newlines = x->newlines[NACRE_STDERR],
    };
}

static bool span_fits(const struct logw *w, nacre_stream stream, int64_t now_us, size_t size)
{
    return w->have_span && (w->last.when & 1) == (uint64_t)stream &&
           now_us - (int64_t)(w->last.when >> 1) < LOG_SPAN_US &&
           w->index->end - w->last.offset + size <= w->chunk;
}

static void account(struct logw *w, nacre_stream stream, const char *data, size_t size)
{
    struct log_index *x = w->index;
    must(size > 0);
    if (w->hear)
        w->hear(w->userdata, stream, data, size);
    x->end += size;
    x->bytes[stream] += size;
    x->newlines[stream] += log_count_newlines(data, size);
    x->unfinished[stream] = data[size - 1] != '\n';
}

/* Nothing is kept from here on, at least for now. */
static void drop_bytes(struct logw *w, nacre_stream stream, const char *data, size_t size)
{
    account(w, stream, data, size);
    struct span end = span_now(w, stream, 0);
    dropped_before(w, &end);
    w->have_span = false;
}

static void close_head(struct logw *w, int cause)
{
    struct log_index *x = w->index;
    memcpy(w->head_bytes, x->bytes, sizeof w->head_bytes);
    memcpy(w->head_newlines, x->newlines, sizeof w->head_newlines);
    x->head = x->end;
    x->tail_start = x->end;
    if (cause)
        x->dropped_errno = cause;
    w->head_closed = true;
    w->have_span = false;
}

bool logw_head_is_whole(const struct logw *w)
{
    struct stat log, spans;
    const struct log_index *x = w->index;
    return x->head == 0 || (fstat(w->log_fd, &log) == 0 && fstat(w->spans_fd, &spans) == 0 &&
                            (uint64_t)log.st_size >= x->head &&
                            (uint64_t)spans.st_size >= x->head_spans * sizeof(struct span));
}

void logw_lose_head(struct logw *w, int cause)
{
    struct log_index *x = w->index;
    struct span first = span_now(w, NACRE_STDOUT, 0);
    if (w->ring_spans && x->span_first < x->span_next)
        first = w->ring_spans[x->span_first % x->span_cap];
    memset(w->head_bytes, 0, sizeof w->head_bytes);
    memset(w->head_newlines, 0, sizeof w->head_newlines);
    x->head = 0;
    x->head_spans = 0;
    x->dropped_errno = cause;
    w->have_span = w->have_span && w->head_closed;
    w->head_closed = true;
    dropped_before(w, &first);
}

/* Stores what fits of a chunk in the head; returns how much. What is cut would be filled up with
 * zeros by the next write. */
static size_t put_head(struct logw *w, nacre_stream stream, int64_t now_us, const char *data,
                       size_t size)
{
    struct log_index *x = w->index;
    must(!w->head_closed && x->head == x->end);
    if (!logw_head_is_whole(w)) {
        logw_lose_head(w, EIO);
        return 0;
    }
    bool fresh = !span_fits(w, stream, now_us, size);
    uint64_t used = x->head + (x->head_spans + fresh) * sizeof(struct span);
    if (used + size > w->half) {
        close_head(w, 0);
        return 0;
    }
    if (fresh) {
        struct span span = span_now(w, stream, now_us);
        off_t at = (off_t)(x->head_spans * sizeof span);
        int r = fd_pwrite_all(w->spans_fd, &span, sizeof span, at);
        if (r < 0) {
            close_head(w, -r);
            return 0;
        }
        x->head_spans++;
        w->last = span;
        w->have_span = true;
    }
    size_t done = 0;
    int cause = 0;
    while (done < size && !cause) {
        ssize_t n =
            RETRY(pwrite(w->log_fd, data + done, size - done, (off_t)x->head + (off_t)done));
        if (n <= 0)
            cause = n < 0 ? errno : EIO;
        else
            done += (size_t)n;
    }
    if (done > 0)
        account(w, stream, data, done);
    x->head = x->end;
    if (cause)
        close_head(w, cause);
    return done;
}

/* Gives a ring that is mapped its space on disk now, so that a full disk is an error and not a
 * fault later. */
static int allocate(const struct logw *w, int fd, uint64_t size)
{
    if (w->unmapped)
        return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
    if (fallocate(fd, 0, 0, (off_t)size) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -errno;
    return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

/* The bytes and the spans behind them; of an unmapped ring only the spans, and not shared. */
static int map_ring(struct logw *w, int fd, uint64_t ring, uint64_t cap)
{
    size_t spans = (size_t)cap * sizeof(struct span);
    size_t size = w->unmapped ? spans : (size_t)ring + spans;
    int flags = w->unmapped ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, w->unmapped ? -1 : fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    w->ring = w->unmapped ? NULL : map;
    w->ring_spans = w->unmapped ? map : (struct span *)(w->ring + ring);
    return 0;
}

static void unmap_ring(struct logw *w)
{
    if (w->ring)
        munmap(w->ring, logw_ring_size(w));
    else if (w->ring_spans)
        munmap(w->ring_spans, (size_t)w->index->span_cap * sizeof(struct span));
    w->ring = NULL;
    w->ring_spans = NULL;
    close_fd(&w->tail_fd);
}

static int open_ring(struct logw *w)
{
    struct log_index *x = w->index;
    must(w->head_closed && !w->ring_spans);
    /* Whatever a command may have put in its place is not it. */
    unlinkat(w->dir, "tail", 0);
    cleanup_close int fd = fd_lift_consume(
        openat(w->dir, "tail", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0)
        return -errno;
    /* Seven eighths for bytes, one for spans; half of that if the disk has no more, and so on. */
    uint64_t room = w->half;
    uint64_t cap, ring;
    int r;
    do {
        cap = room / 8 / sizeof(struct span);
        ring = (room - room / 8) & ~UINT64_C(4095);
        r = allocate(w, fd, ring + cap * sizeof(struct span));
        room /= 2;
    } while (r == -ENOSPC && room - room / 8 >= RING_MIN);
    if (r < 0) {
        if (ftruncate(fd, 0) < 0)
            return -errno;
        return r;
    }
    r = map_ring(w, fd, ring, cap);
    if (r < 0)
        return r;
    w->tail_fd = TAKE_FD(fd);
    w->chunk = MIN(LOG_CHUNK, (size_t)ring / 8);
    x->ring_size = ring;
    x->ring_base = x->end;
    x->tail_start = x->end;
    x->span_cap = cap;
    x->span_first = x->span_next;
    publish_index(w);
    return 0;
}

int logw_move_ring(struct logw *w, int fd)
{
    size_t size = logw_ring_size(w);
    int r = fd_pwrite_all(fd, w->ring, size, 0);
    if (r < 0)
        return r;
    if (mmap(w->ring, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return -errno;
    close_fd(&w->tail_fd);
    w->tail_fd = fd;
    return 0;
}

void logw_lose_ring(struct logw *w, int cause)
{
    struct log_index *x = w->index;
    unmap_ring(w);
    w->chunk = LOG_CHUNK;
    x->dropped_errno = cause;
    x->ring_size = 0;
    x->span_first = x->span_next;
    w->retry_us = (int64_t)(w->last.when >> 1) + RING_RETRY_US;
    struct span end = span_now(w, NACRE_STDOUT, 0);
    dropped_before(w, &end);
    w->have_span = false;
}

/* Makes room for size bytes and one span by dropping spans from the start, some ahead of need. */
static void make_ring_room(struct logw *w, size_t size)
{
    struct log_index *x = w->index;
    must(size <= x->ring_size && x->span_next - x->span_first <= x->span_cap);
    bool bytes_fit = x->end + size - x->tail_start <= x->ring_size;
    bool span_fits_ring = x->span_next - x->span_first < x->span_cap;
    if (bytes_fit && span_fits_ring)
        return;
    uint64_t start = x->tail_start;
    if (!bytes_fit)
        start = MAX(x->end + size - x->ring_size, x->tail_start + x->ring_size / 16);
    uint64_t first = x->span_first;
    if (!span_fits_ring)
        first += MAX(x->span_cap / 16, (uint64_t)1);
    while (first < x->span_next && w->ring_spans[first % x->span_cap].offset < start)
        first++;
    x->span_first = first;
    if (first < x->span_next) {
        dropped_before(w, &w->ring_spans[first % x->span_cap]);
    } else {
        struct span end = span_now(w, NACRE_STDOUT, 0);
        dropped_before(w, &end);
        w->have_span = false;
    }
    publish_index(w);
}

static void ensure_span(struct logw *w, nacre_stream stream, int64_t now_us, size_t size)
{
    struct log_index *x = w->index;
    if (span_fits(w, stream, now_us, size))
        return;
    w->last = span_now(w, stream, now_us);
    w->have_span = true;
    w->ring_spans[x->span_next % x->span_cap] = w->last;
    x->span_next++;
}

/* Where in the ring the next byte goes. */
static uint64_t ring_at(const struct logw *w, size_t *ret_contiguous)
{
    const struct log_index *x = w->index;
    uint64_t at = (x->end - x->ring_base) % x->ring_size;
    *ret_contiguous = (size_t)(x->ring_size - at);
    return at;
}

/* Into a ring that is no memory: the bytes, then the span they belong to. */
static int write_ring(const struct logw *w, uint64_t at, const char *data, size_t size)
{
    const struct log_index *x = w->index;
    uint64_t slot = (x->span_next - 1) % x->span_cap;
    int r = fd_pwrite_all(w->tail_fd, data, size, (off_t)at);
    return r < 0 ? r
                 : fd_pwrite_all(w->tail_fd, &w->last, sizeof w->last,
                                 (off_t)(x->ring_size + slot * sizeof w->last));
}

static size_t put_ring(struct logw *w, nacre_stream stream, int64_t now_us, const char *data,
                       size_t size)
{
    size_t contiguous;
    size = MIN(size, w->chunk);
    make_ring_room(w, size);
    uint64_t at = ring_at(w, &contiguous);
    size = MIN(size, contiguous);
    must(size > 0 && at + size <= w->index->ring_size);
    ensure_span(w, stream, now_us, size);
    int r = 0;
    if (w->unmapped)
        r = write_ring(w, at, data, size);
    else
        memcpy(w->ring + at, data, size);
    if (r < 0) {
        logw_lose_ring(w, -r);
        return 0;
    }
    account(w, stream, data, size);
    return size;
}

static bool have_ring(struct logw *w, int64_t now_us)
{
    if (w->ring_spans)
        return true;
    if (now_us < w->retry_us)
        return false;
    int r = open_ring(w);
    if (r == 0)
        return true;
    w->index->dropped_errno = -r;
    w->retry_us = now_us + RING_RETRY_US;
    return false;
}

static void store_bytes(struct logw *w, nacre_stream stream, int64_t now_us, const char *data,
                        size_t size)
{
    while (size > 0) {
        size_t done = 0;
        if (!w->head_closed) {
            done = put_head(w, stream, now_us, data, size);
        } else if (have_ring(w, now_us)) {
            done = put_ring(w, stream, now_us, data, size);
        } else {
            drop_bytes(w, stream, data, size);
            return;
        }
        data += done;
        size -= done;
    }
}

/* Straight from the pipe into the ring: one copy, made by the kernel. */
static ssize_t pull_ring(struct logw *w, int fd, nacre_stream stream, int64_t now_us)
{
    size_t contiguous;
    make_ring_room(w, w->chunk);
    char *to = w->ring + ring_at(w, &contiguous);
    ssize_t n = RETRY(read(fd, to, MIN(w->chunk, contiguous)));
    if (n < 0 && errno == EFAULT) {
        /* The file was cut under the mapping: nothing was read; go on without it. */
        logw_lose_ring(w, EIO);
        return logw_pull(w, fd, stream, now_us);
    }
    if (n <= 0)
        return n < 0 ? -errno : 0;
    ensure_span(w, stream, now_us, (size_t)n);
    account(w, stream, to, (size_t)n);
    return n;
}

ssize_t logw_pull(struct logw *w, int fd, nacre_stream stream, int64_t now_us)
{
    if (w->head_closed && have_ring(w, now_us))
        return pull_ring(w, fd, stream, now_us);
    ssize_t n = RETRY(read(fd, chunk_buf, sizeof chunk_buf));
    if (n <= 0)
        return n < 0 ? -errno : 0;
    store_bytes(w, stream, now_us, chunk_buf, (size_t)n);
    return n;
}

void logw_append(struct logw *w, nacre_stream stream, int64_t now_us, const char *data, size_t size)
{
    for (size_t done = 0, n; done < size; done += n) {
        n = MIN(size - done, (size_t)LOG_CHUNK);
        store_bytes(w, stream, now_us, data + done, n);
    }
}

void logw_skip(struct logw *w, uint64_t size, int cause)
{
    struct log_index *x = w->index;
    if (!w->head_closed)
        close_head(w, cause);
    x->dropped_errno = cause;
    x->end += size;
    x->bytes[NACRE_STDOUT] += size;
    x->span_first = x->span_next;
    struct span end = span_now(w, NACRE_STDOUT, 0);
    dropped_before(w, &end);
    w->have_span = false;
    publish_index(w);
}

void logw_done(struct logw *w)
{
    unmap_ring(w);
    if (!w->unmapped)
        madvise(chunk_buf, sizeof chunk_buf, MADV_DONTNEED);
}
