/*
 * Batches: several messages in one array, answered in one array when the last of them is done. Only
 * 2025-03-26 has them. An answer waits in its slot until then; what was cancelled leaves its slot
 * empty, and a batch in which nothing is left to answer is not answered.
 */
#include "base/defs.h"
#include "mcp/peer.h"

#define MESSAGES_MAX 128
#define HELD_MAX     ((size_t)8 << 20) /* of all answers that wait in slots */

struct slot {
    json_t *id;      /* NULL = nothing is to be answered */
    struct buf text; /* the answer, if it is there */
    bool open;       /* it is not */
};

struct mcp_batch {
    struct mcp_batch *next;
    struct mcp_stream *stream; /* where it is answered; NULL = nowhere any more */
    size_t open;               /* slots, and one more while the batch is being read */
    size_t count;
    struct slot slots[];
};

/* -- Life ------------------------------------------------------------------------------------- */

static void empty_slot(struct mcp_peer *p, struct slot *slot)
{
    p->held -= slot->text.len;
    json_decref(slot->id);
    slot->id = NULL;
    buf_done(&slot->text);
}

static void remove_batch(struct mcp_peer *p, struct mcp_batch *b)
{
    UNLINK(p->batches, b);
    for (size_t i = 0; i < b->count; i++)
        empty_slot(p, &b->slots[i]);
    free(b);
}

/* The array; empty if there is nothing to say. */
static int join_answers(const struct mcp_batch *b, struct buf *line)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < b->count; i++) {
        const struct buf *text = &b->slots[i].text;
        if (text->len == 0)
            continue;
        r = buf_str(line, line->len > 0 ? "," : "[");
        if (r == 0)
            r = buf_append(line, text->data, text->len);
    }
    return r == 0 && line->len > 0 ? buf_str(line, "]") : r;
}

/* One slot less to wait for. */
static void settle_slot(struct mcp_peer *p, struct mcp_batch *b)
{
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    uint64_t ticket = 0;
    if (--b->open > 0)
        return;
    if (join_answers(b, &line) < 0)
        p->ended = true;
    else if (line.len > 0)
        mcp_send(p, b->stream, &line, MCP_RESULT, &ticket);
    else if (b->stream)
        b->stream->ops->cancel(b->stream);
    mcp_calls_leave_batch(p, b, ticket);
    remove_batch(p, b);
}

void mcp_batches_end(struct mcp_peer *p)
{
    while (p->batches)
        remove_batch(p, p->batches);
}

/* -- Slots ------------------------------------------------------------------------------------ */

bool mcp_batch_has_room(const struct mcp_peer *p, size_t size)
{
    return size <= HELD_MAX - MIN(p->held, HELD_MAX);
}

void mcp_batch_answer(struct mcp_peer *p, struct mcp_batch *b, size_t index, struct buf *text)
{
    struct slot *slot = &b->slots[index];
    slot->text = *text;
    *text = (struct buf){0};
    p->held += slot->text.len;
    slot->open = false;
    settle_slot(p, b);
}

static struct slot *find_slot(const struct mcp_peer *p, const json_t *id,
                              struct mcp_batch **ret_batch)
{
    for (struct mcp_batch *b = p->batches; b; b = b->next)
        for (size_t i = 0; i < b->count; i++)
            if (b->slots[i].id && json_equal(b->slots[i].id, id)) {
                *ret_batch = b;
                return &b->slots[i];
            }
    return NULL;
}

bool mcp_batch_has(const struct mcp_peer *p, const json_t *id)
{
    struct mcp_batch *b;
    return find_slot(p, id, &b) != NULL;
}

/* Whoever cancelled does not want the answer either if it is there already. */
void mcp_batch_cancel(struct mcp_peer *p, const json_t *id)
{
    struct mcp_batch *b;
    struct slot *slot = find_slot(p, id, &b);
    if (!slot)
        return;
    bool open = slot->open;
    slot->open = false;
    empty_slot(p, slot);
    if (open)
        settle_slot(p, b);
}

void mcp_batches_forget(struct mcp_peer *p, const struct mcp_stream *stream)
{
    for (struct mcp_batch *b = p->batches; b; b = b->next)
        if (b->stream == stream)
            b->stream = NULL;
}

/* -- Beginning -------------------------------------------------------------------------------- */

static struct mcp_batch *new_batch(struct mcp_peer *p, struct mcp_stream *stream, size_t count)
{
    struct mcp_batch *b = calloc(1, sizeof *b + count * sizeof b->slots[0]);
    if (!b)
        return NULL;
    b->open = 1;
    b->stream = stream;
    b->count = count;
    b->next = p->batches;
    p->batches = b;
    return b;
}

void mcp_batch_open(struct mcp_batch *b, size_t index, const json_t *id)
{
    b->slots[index].id = json_deep_copy(id);
    b->slots[index].open = true;
    b->open++;
}

/* What is wrong with a batch as a whole; NULL if nothing is. */
static const char *fault_of(const struct mcp_peer *p, size_t count)
{
    if (!p->takes_batches)
        return "Invalid Request: batches are not part of this protocol version";
    if (count == 0)
        return "Invalid Request: the batch is empty";
    if (count > MESSAGES_MAX)
        return "Invalid Request: there are too many messages in the batch";
    return NULL;
}

void mcp_take_batch(struct mcp_peer *p, struct mcp_stream *stream, const json_t *array)
{
    struct mcp_request q = {.peer = p, .stream = stream};
    const char *fault = fault_of(p, json_array_size(array));
    struct mcp_batch *b = fault ? NULL : new_batch(p, stream, json_array_size(array));
    json_t *value;
    size_t i;
    if (fault)
        mcp_refuse(&q, RPC_INVALID_REQUEST, fault, NULL);
    else if (!b)
        mcp_fail(&q, RPC_INTERNAL, "out of memory");
    if (!b)
        return;
    json_array_foreach(array, i, value) mcp_take_message(p, stream, value, b, i);
    settle_slot(p, b);
}
