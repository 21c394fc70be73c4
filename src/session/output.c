/* Output as a snapshot, and as a stream of pieces. */
#include <string.h>

#include "backend/op.h"
#include "base/err.h"
#include "home/door.h"
#include "home/mirror.h"
#include "session/session.h"

#define SNAPSHOT_LIMIT ((size_t)1024 * 1024)
#define FOLLOW_CHUNK   ((size_t)64 * 1024)

/* The last limit bytes of what goes through it. */
struct tail {
    char *data;
    size_t limit;
    size_t start; /* where the oldest byte is, once it is full */
    size_t size;
    bool cut;
};

static void tail_add(struct tail *tail, const char *data, size_t size)
{
    if (size > tail->limit) {
        data += size - tail->limit;
        size = tail->limit;
        tail->cut = true;
    }
    for (size_t done = 0; done < size;) {
        size_t at = (tail->start + tail->size) % tail->limit;
        size_t n = MIN(size - done, tail->limit - at);
        memcpy(tail->data + at, data + done, n);
        done += n;
        size_t over = tail->size + n > tail->limit ? tail->size + n - tail->limit : 0;
        tail->cut = tail->cut || over > 0;
        tail->start = (tail->start + over) % tail->limit;
        tail->size += n - over;
    }
}

/* The bytes in order, from the first beginning of a character on if some are missing. */
static char *tail_take(struct tail *tail, size_t *ret_size)
{
    char *data = malloc(tail->size + 1);
    if (!data)
        return NULL;
    size_t first = MIN(tail->size, tail->limit - tail->start);
    memcpy(data, tail->data + tail->start, first);
    memcpy(data + first, tail->data, tail->size - first);
    size_t skip = 0;
    while (tail->cut && skip < tail->size && skip < 4 && ((unsigned char)data[skip] & 0xc0) == 0x80)
        skip++;
    memmove(data, data + skip, tail->size - skip);
    *ret_size = tail->size - skip;
    return data;
}

int64_t output_read(nacre_session *s, const nacre_id *id, uint64_t *cursor, unsigned streams,
                    void *buf, size_t size, nacre_piece *ret_piece, nacre_error *err)
{
    int r = session_check_id(s, id, false, err);
    if (r < 0)
        return r;
    if (!(streams & NACRE_BOTH) || size == 0)
        return err_set(err, NACRE_EINVAL, "no stream or no room to read into");
    return home_read(s->home, id, cursor, streams, buf, size, ret_piece, err);
}

static int look_first(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_op *op = NULL;
    int r = session_look(s, id, &op, err);
    return r == 0 && op ? op_finish(op, NULL, 0, err) : r;
}

/* What is here is read at once; only who has read all of it has the backend bring more, and only
 * who finds no files has the keeper put them back. */
int64_t nacre_read(nacre_session *session, const nacre_id *id, uint64_t *cursor, unsigned streams,
                   void *buf, size_t size, nacre_piece *ret_piece, nacre_error *reterr)
{
    int64_t n = output_read(session, id, cursor, streams, buf, size, ret_piece, reterr);
    bool lost = n < 0 && door_is_lost((int)n);
    if (!lost && (n != 0 || !mirror_find(session->home, id)))
        return n;
    int r = look_first(session, id, reterr);
    return r < 0 ? r : output_read(session, id, cursor, streams, buf, size, ret_piece, reterr);
}

int output_snapshot(nacre_session *s, const nacre_id *id, unsigned streams, size_t limit,
                    nacre_snapshot *ret_snapshot, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_record(s, id, HOME_LIGHT, &record, NULL, err);
    if (r < 0)
        return r;
    uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    struct tail tail = {.limit = limit ? limit : SNAPSHOT_LIMIT};
    cleanup_free char *ring = tail.data = malloc(tail.limit);
    cleanup_free char *chunk = malloc(FOLLOW_CHUNK);
    if (!ring || !chunk)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    /* One stream alone may lie anywhere; both together end at the end. */
    uint64_t cursor =
        (streams & NACRE_BOTH) == NACRE_BOTH && end > tail.limit ? end - tail.limit : 0;
    tail.cut = cursor > 0;
    while (cursor < end) {
        nacre_piece piece;
        int64_t n = output_read(s, id, &cursor, streams, chunk, FOLLOW_CHUNK, &piece, err);
        if (n < 0)
            return (int)n;
        tail.cut = tail.cut || piece.gap_bytes > 0;
        if (n == 0)
            break;
        tail_add(&tail, chunk, (size_t)n);
    }
    *ret_snapshot =
        (nacre_snapshot){.truncated = tail.cut, .has_outcome = record.outcome != NACRE_RUNNING};
    ret_snapshot->data = tail_take(&tail, &ret_snapshot->size);
    return ret_snapshot->data ? 0 : err_set(err, NACRE_ENOMEM, "out of memory");
}

int nacre_output(nacre_session *session, const nacre_id *id, unsigned streams, size_t limit,
                 nacre_snapshot *ret_snapshot, nacre_error *reterr)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = nacre_get(session, id, &record, reterr);
    if (r < 0)
        return r;
    r = output_snapshot(session, id, streams, limit, ret_snapshot, reterr);
    if (!door_is_lost(r))
        return r;
    r = look_first(session, id, reterr);
    return r < 0 ? r : output_snapshot(session, id, streams, limit, ret_snapshot, reterr);
}

int nacre_follow(nacre_session *session, const nacre_id *id, uint64_t offset, nacre_follow_fn *fn,
                 void *userdata, nacre_error *reterr)
{
    nacre_watch *watch;
    cleanup_free char *chunk = malloc(FOLLOW_CHUNK);
    if (!chunk)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    int r = nacre_watch_open(session, id, offset, &watch, reterr);
    if (r < 0)
        return r;
    nacre_event event = {0};
    while (r == 0 && event.kind != NACRE_EVENT_END) {
        r = nacre_watch_wait(watch, -1, chunk, FOLLOW_CHUNK, &event, reterr);
        if (r == 0 && event.kind == NACRE_EVENT_OUTPUT)
            r = fn(&event.piece, chunk, userdata);
    }
    nacre_watch_close(watch);
    return r;
}
