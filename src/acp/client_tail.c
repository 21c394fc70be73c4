/* Cleaning, escaping and cutting: see tail.h. */
#include "acp/client_tail.h"

#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "base/text.h"
#include "rpc/message.h"
#include "text/utf8.h"

#define ESCAPE_MAX 6 /* bytes of JSON for one of text: a control character */
#define PIECE_MAX  ((size_t)1 << 30)

void acp_tail_init(struct acp_tail *t, size_t limit)
{
    *t = (struct acp_tail){.limit = MIN(limit, PIECE_MAX), .json = BUF_UP_TO(SIZE_MAX / 2)};
}

void acp_tail_done(struct acp_tail *t)
{
    buf_done(&t->json);
}

static void drop_all(struct acp_tail *t)
{
    t->json.len = t->start = t->size = 0;
    if (t->json.data)
        t->json.data[0] = '\0';
    t->cut = true;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Drops the text in front, at least that many bytes, and whole characters. */
static void drop_front(struct acp_tail *t, size_t over)
{
    const char *json = t->json.data;
    size_t at = t->start, dropped = 0;
    while (at < t->json.len && (dropped < over || continues(json[at]))) {
        at += json[at] != '\\' ? 1 : json[at + 1] == 'u' ? ESCAPE_MAX : 2;
        dropped++;
    }
    t->start = at;
    t->size -= dropped;
    t->cut = true;
}

/* What was dropped makes room, once it is as much as what is kept. */
static void reclaim_front(struct acp_tail *t)
{
    if (t->start == 0 || t->start < t->json.len - t->start)
        return;
    t->json.len -= t->start;
    memmove(t->json.data, t->json.data + t->start, t->json.len + 1);
    t->start = 0;
}

/* Of text that alone is more than is kept, only the end is looked at. */
static const char *last_part(struct acp_tail *t, const char *text, size_t *size)
{
    if (*size <= t->limit)
        return text;
    size_t skip = *size - t->limit;
    while (skip < *size && continues(text[skip]))
        skip++;
    drop_all(t);
    *size -= skip;
    return text + skip;
}

static int add_clean(struct acp_tail *t, const char *text, size_t size)
{
    text = last_part(t, text, &size);
    size_t before = t->json.len;
    int r = rpc_append_escaped(&t->json, text, size);
    if (r < 0) {
        if (t->json.data)
            t->json.data[t->json.len = before] = '\0';
        return r;
    }
    t->size += size;
    if (t->size > t->limit)
        drop_front(t, t->size - t->limit);
    reclaim_front(t);
    return 0;
}

static int add_bytes(struct acp_tail *t, nacre_stream stream, const char *bytes, size_t size)
{
    size_t whole = text_whole(bytes, size);
    if (whole == size && utf8_is_valid(bytes, size))
        return add_clean(t, bytes, size);
    struct buf clean cleanup_buf = BUF_UP_TO(PIECE_MAX);
    int r = utf8_clean(&clean, bytes, whole);
    if (r == 0 && clean.len > 0)
        r = add_clean(t, clean.data, clean.len);
    if (r < 0)
        return r;
    t->torn_size[stream] = size - whole;
    memcpy(t->torn[stream], bytes + whole, size - whole);
    return 0;
}

int acp_tail_add(struct acp_tail *t, nacre_stream stream, const char *bytes, size_t size)
{
    if (t->inside[stream]) {
        size_t rest = utf8_torn(bytes, size);
        t->inside[stream] = rest == size;
        bytes += rest;
        size -= rest;
    }
    if (size == 0)
        return 0;
    if (t->torn_size[stream] == 0)
        return add_bytes(t, stream, bytes, size);
    struct buf joined cleanup_buf = BUF_UP_TO(PIECE_MAX);
    int r = buf_append(&joined, t->torn[stream], t->torn_size[stream]);
    if (r == 0)
        r = buf_append(&joined, bytes, size);
    if (r < 0)
        return r;
    t->torn_size[stream] = 0;
    return add_bytes(t, stream, joined.data, joined.len);
}

void acp_tail_restart(struct acp_tail *t)
{
    drop_all(t);
    t->torn_size[NACRE_STDOUT] = t->torn_size[NACRE_STDERR] = 0;
    t->inside[NACRE_STDOUT] = t->inside[NACRE_STDERR] = true;
}

int acp_tail_finish(struct acp_tail *t)
{
    struct buf clean cleanup_buf = BUF_UP_TO(PIECE_MAX);
    int r = 0;
    for (int stream = NACRE_STDOUT; r == 0 && stream <= NACRE_STDERR; stream++) {
        r = utf8_clean(&clean, t->torn[stream], t->torn_size[stream]);
        t->torn_size[stream] = 0;
    }
    return r < 0 || clean.len == 0 ? r : add_clean(t, clean.data, clean.len);
}

/* Moves the text so far back that head fits in front of it. */
static int make_room_for_head(struct acp_tail *t, const struct buf *head)
{
    size_t size = t->json.len - t->start;
    if (t->start >= head->len)
        return 0;
    int r = buf_append(&t->json, head->data, head->len - t->start);
    if (r < 0)
        return r;
    memmove(t->json.data + head->len, t->json.data + t->start, size);
    t->start = head->len;
    return 0;
}

int acp_tail_send(struct acp_tail *t, const struct buf *head, const struct buf *end,
                  nacre_acp_send_fn *send, void *userdata)
{
    int r = make_room_for_head(t, head);
    size_t len = t->json.len;
    if (r == 0)
        r = buf_append(&t->json, end->data, end->len);
    if (r < 0)
        return r;
    char *message = t->json.data + t->start - head->len;
    memcpy(message, head->data, head->len);
    send(message, head->len + t->json.len - t->start, userdata);
    t->json.data[t->json.len = len] = '\0';
    return 0;
}
