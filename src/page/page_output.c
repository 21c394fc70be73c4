/* Output by its place in the log. It never changes there, so that whoever missed some, or scrolls
 * back, asks for it here. */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/err.h"
#include "page/page.h"
#include "session/session.h"

#define LIMIT_MOST  ((uint64_t)1 << 20)
#define LIMIT_USUAL ((uint64_t)64 << 10)
#define PIECE       ((size_t)64 << 10)

struct output_reading {
    struct live_page *page;
    nacre_id id;
    uint64_t from, at, until;
    unsigned streams;
    bool pieces; /* as JSON, with where and when each was printed */
    struct buf out;
};

static int add_piece_read(struct output_reading *r, const nacre_piece *piece, const char *bytes,
                          size_t size)
{
    if (!r->pieces)
        return buf_append(&r->out, bytes, size);
    bool first = r->out.data[r->out.len - 1] == '[';
    int e =
        buf_printf(&r->out, "%s{\"at\":%llu,\"stream\":%d,\"ms\":%lld,\"gap\":%llu,\"bytes\":\"",
                   first ? "" : ",", (unsigned long long)piece->offset, (int)piece->stream,
                   (long long)piece->time_ms, (unsigned long long)piece->gap_bytes);
    if (e == 0)
        e = base64_append(&r->out, bytes, size);
    return e < 0 ? e : buf_str(&r->out, "\"}");
}

static int read_pieces(struct output_reading *r, nacre_error *err)
{
    cleanup_free char *bytes = malloc(PIECE);
    int e = bytes ? 0 : -ENOMEM;
    while (e == 0 && r->at < r->until) {
        nacre_piece piece = {0};
        uint64_t cursor = r->at;
        int64_t n = output_read(r->page->session, &r->id, &cursor, r->streams, bytes,
                                (size_t)MIN(r->until - r->at, (uint64_t)PIECE), &piece, err);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= r->until)
            break;
        size_t size = (size_t)MIN((uint64_t)n, r->until - piece.offset);
        e = add_piece_read(r, &piece, bytes, size);
        r->at = piece.offset + size;
    }
    return e < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static unsigned streams_wanted(const struct http_request *q)
{
    char text[8];
    if (!request_text(q, "stream", text, sizeof text))
        return NACRE_BOTH;
    return strcmp(text, "out") == 0 ? NACRE_OUT : strcmp(text, "err") == 0 ? NACRE_ERR : NACRE_BOTH;
}

static void answer_reading(struct http_conn *c, struct output_reading *r, uint64_t end)
{
    char fields[160];
    if (r->pieces) {
        if (buf_printf(&r->out, "],\"next\":%llu,\"end\":%llu}", (unsigned long long)r->at,
                       (unsigned long long)end) < 0)
            answer_error(c, 503, "out of memory");
        else
            answer_json(c, 200, &r->out);
        return;
    }
    snprintf(fields, sizeof fields,
             "Content-Type: application/octet-stream\r\nContent-Disposition: attachment\r\n"
             "X-Nacre-Next: %llu\r\nX-Nacre-End: %llu\r\n",
             (unsigned long long)r->at, (unsigned long long)end);
    http_answer(c, 200, fields, r->out.data, r->out.len);
}

static int log_end(struct live_page *p, const nacre_id *id, uint64_t *ret_end, nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = session_record(p->session, id, HOME_LIGHT, &record, NULL, err);
    *ret_end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    return r;
}

void output_ask(struct live_page *p, struct http_conn *c, const nacre_id *id)
{
    const struct http_request *q = &c->request;
    nacre_error err = NACRE_ERROR_INIT;
    char as[16];
    uint64_t end, limit = MIN(request_number(q, "limit", LIMIT_USUAL), LIMIT_MOST);
    int r = log_end(p, id, &end, &err);
    if (r < 0) {
        answer_failure(c, r, &err);
        return;
    }
    uint64_t back = request_number(q, "back", 0); /* so many bytes before the end */
    uint64_t from = request_number(q, "offset", back > 0 ? end - MIN(end, back) : 0);
    struct output_reading reading = {.page = p,
                                     .id = *id,
                                     .from = from,
                                     .at = from,
                                     .until = MIN(end, from + MIN(limit, UINT64_MAX - from)),
                                     .streams = streams_wanted(q),
                                     .pieces = request_text(q, "as", as, sizeof as) &&
                                               strcmp(as, "pieces") == 0,
                                     .out = BUF_UP_TO((size_t)LIMIT_MOST * 8)};
    if (buf_str(&reading.out, reading.pieces ? "{\"pieces\":[" : "") < 0 ||
        (r = read_pieces(&reading, &err)) < 0)
        answer_failure(c, r, &err);
    else
        answer_reading(c, &reading, end);
    buf_done(&reading.out);
}

/* -- Moments ---------------------------------------------------------------------------------- */

/* The first byte of a stream that was read at a moment or later; UINT64_MAX if there is none. */
static int find_moment(struct live_page *p, const nacre_id *id, nacre_stream stream, int64_t ms,
                       uint64_t *ret, nacre_error *err)
{
    char bytes[4096];
    nacre_stretch stretches[64];
    nacre_reader_options options = NACRE_READER_OPTIONS_INIT;
    nacre_block block = NACRE_BLOCK_INIT;
    nacre_reader *reader;
    options.stream = stream;
    options.since_ms = ms;
    *ret = UINT64_MAX;
    int r = nacre_reader_open(p->session, id, &options, &reader, err);
    if (r < 0)
        return r;
    block.data = bytes;
    block.room = sizeof bytes;
    block.stretches = stretches;
    block.stretch_room = ARRAY_SIZE(stretches);
    do {
        r = nacre_reader_read(reader, &block, err);
        for (size_t i = 0; r == 0 && *ret == UINT64_MAX && i < block.stretch_count; i++)
            if (stretches[i].time_ms >= ms)
                *ret = stretches[i].offset;
    } while (r == 0 && block.bytes > 0 && *ret == UINT64_MAX);
    nacre_reader_close(reader);
    return r;
}

void output_find_moment(struct live_page *p, struct http_conn *c, const nacre_id *id)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(256);
    int64_t ms = (int64_t)MIN(request_number(&c->request, "ms", 0), (uint64_t)INT64_MAX);
    uint64_t out = UINT64_MAX, other = UINT64_MAX, end = 0;
    int r = session_check_id(p->session, id, false, &err);
    if (r == 0)
        r = log_end(p, id, &end, &err);
    if (r == 0)
        r = find_moment(p, id, NACRE_STDOUT, ms, &out, &err);
    if (r == 0)
        r = find_moment(p, id, NACRE_STDERR, ms, &other, &err);
    if (r < 0) {
        answer_failure(c, r, &err);
        return;
    }
    uint64_t first = MIN(out, other);
    if (buf_printf(&text, "{\"offset\":%llu}",
                   (unsigned long long)(first == UINT64_MAX ? end : first)) < 0)
        answer_error(c, 503, "out of memory");
    else
        answer_json(c, 200, &text);
}
