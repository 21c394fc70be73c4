/*
 * Arbitrary lines for the MCP server: messages, arrays of messages, and what is neither. Shells are
 * those of a backend that only pretends, so that calls and batches stay open until a line of the
 * input lets something happen:
 *
 *   +  the oldest running shell ends       .  calls are stepped, events told
 *   -  the client stops reading, or begins again
 *
 * Whatever comes, each line that is answered is JSON, an array only where batches are spoken; no id
 * is answered more often than it was asked with, and none after it was cancelled; and no batch is
 * open without a call that it waits for.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>

#include <nacre/nacre.h>

#include "backend/op.h"
#include "base/defs.h"
#include "base/err.h"
#include "mcp/peer.h"
#include "rpc/rpc_lines.h"

#define SHELLS_MAX 64
#define STEPS      4 /* until a call is over whose shell has ended */
#define QUEUE_MAX  ((size_t)96 << 20)
#define PAUSE      ((size_t)1 << 20)

/* -- Shells ----------------------------------------------------------------------------------- */

struct pretended {
    nacre_mirror *mirror;
    nacre_mirror_news news;
};

static struct {
    char path[32];
    nacre_home *home;
    struct pretended shells[SHELLS_MAX];
    int count;
} host;

static struct pretended *find_shell(const nacre_id *id)
{
    for (int i = 0; i < host.count; i++) {
        nacre_id known = nacre_mirror_id(host.shells[i].mirror);
        if (nacre_id_equal(&known, id))
            return &host.shells[i];
    }
    return NULL;
}

static void end_shell(struct pretended *shell)
{
    shell->news.exit_code = 0;
    shell->news.exited = shell->news.final = shell->news.settled = shell->news.over = 1;
    nacre_mirror_note(shell->mirror, &shell->news);
}

/* A start that begins its mirror, or a kill that waits for a line that says so. */
struct host_op {
    nacre_op op;
    struct pretended *shell;
    union {
        nacre_started started;
        nacre_kill_result killed;
    } result;
};

static void end_op(nacre_op *op)
{
    free(op);
}

static int new_op(int (*step)(nacre_op *, nacre_error *), struct pretended *shell,
                  struct host_op **ret_op)
{
    struct host_op *o = calloc(1, sizeof *o);
    MUST(o);
    o->op = (nacre_op)OP_INIT(step, end_op);
    o->op.result = &o->result;
    o->shell = shell;
    *ret_op = o;
    return 0;
}

static int step_start(nacre_op *op, nacre_error *err)
{
    struct host_op *o = (struct host_op *)op;
    o->result.started.id = nacre_mirror_id(o->shell->mirror);
    MUST(nacre_mirror_begin(o->shell->mirror, err) == 0);
    return 1;
}

static int host_start(void *self UNUSED, const nacre_command *command, nacre_op **ret_op,
                      nacre_error *err)
{
    struct pretended *shell = &host.shells[host.count];
    if (host.count == SHELLS_MAX)
        return err_set(err, NACRE_ELIMIT, "enough");
    int r = nacre_mirror_new(host.home, command, &shell->mirror, NULL, err);
    if (r < 0)
        return r;
    shell->news = (nacre_mirror_news)NACRE_MIRROR_NEWS_INIT;
    shell->news.background = command->background;
    host.count++;
    return new_op(step_start, shell, (struct host_op **)ret_op);
}

/* It ends later, when a line says so. */
static int step_kill(nacre_op *op, nacre_error *err UNUSED)
{
    return ((const struct host_op *)op)->shell->news.over;
}

static int host_kill(void *self UNUSED, const nacre_id *id,
                     const struct nacre_kill_options *options UNUSED, nacre_op **ret_op,
                     nacre_error *err UNUSED)
{
    struct host_op *o;
    struct pretended *shell = find_shell(id);
    MUST(shell);
    new_op(step_kill, shell, &o);
    o->result.killed.was_alive = !shell->news.over;
    *ret_op = &o->op;
    return 0;
}

static int host_change(void *self UNUSED, const nacre_id *id, int background, int keep UNUSED,
                       nacre_op **ret_op, nacre_error *err UNUSED)
{
    struct pretended *shell = find_shell(id);
    MUST(shell);
    shell->news.background |= background;
    nacre_mirror_note(shell->mirror, &shell->news);
    *ret_op = op_done();
    return 0;
}

static int host_open(void *self UNUSED, nacre_home *home, nacre_error *err UNUSED)
{
    host.home = home;
    host.count = 0;
    return 0;
}

static int host_close(void *self UNUSED, int forked UNUSED, nacre_op **ret_op UNUSED,
                      nacre_error *err UNUSED)
{
    for (int i = 0; i < host.count; i++)
        nacre_mirror_free(host.shells[i].mirror);
    host.count = 0;
    return 0;
}

static void end_oldest(void)
{
    for (int i = 0; i < host.count; i++)
        if (!host.shells[i].news.over) {
            end_shell(&host.shells[i]);
            return;
        }
}

static nacre_session *open_session(void)
{
    static const nacre_backend_ops ops = {
        .version = NACRE_BACKEND_VERSION,
        .size = sizeof ops,
        .name = "pretended",
        .open = host_open,
        .start = host_start,
        .kill = host_kill,
        .change = host_change,
        .close = host_close,
    };
    static const nacre_backend backend = {.ops = &ops};
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session;
    strcpy(host.path, "/dev/shm/nacre-fuzz.XXXXXX");
    MUST(mkdtemp(host.path));
    options.home = host.path;
    options.backend = &backend;
    MUST(nacre_open(&options, &session, NULL) == 0);
    return session;
}

static int remove_one(const char *path, const struct stat *stat UNUSED, int kind UNUSED,
                      struct FTW *at UNUSED)
{
    return remove(path);
}

/* With the home that was its own. */
static void close_session(nacre_session *session)
{
    MUST(nacre_close(session, NULL) == 0);
    MUST(nftw(host.path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* -- The client ------------------------------------------------------------------------------- */

struct client {
    struct mcp_stream stream; /* first, so that a stream is its client */
    struct mcp_peer peer;
    struct rpc_writer writer;
    int pipe[2];
    bool reads;
    bool batches; /* were spoken once */
    struct buf in;
    json_t *asked; /* how often each id was asked with and not answered yet */
};

static void note_queue(struct client *c)
{
    c->peer.paused = c->writer.queued > PAUSE;
}

static int send_line(struct mcp_stream *stream, struct buf *message, enum mcp_sort sort UNUSED,
                     uint64_t *ret_ticket)
{
    struct client *c = (struct client *)stream;
    int r = rpc_writer_send(&c->writer, message, ret_ticket);
    c->peer.ended = c->peer.ended || r < 0;
    note_queue(c);
    return r;
}

static int has_left(const struct mcp_stream *stream, uint64_t ticket)
{
    return rpc_writer_has_left(&((const struct client *)stream)->writer, ticket);
}

static bool drop(struct mcp_stream *stream, uint64_t ticket)
{
    struct client *c = (struct client *)stream;
    bool dropped = rpc_writer_drop(&c->writer, ticket);
    note_queue(c);
    return dropped;
}

static void cancel(struct mcp_stream *stream UNUSED)
{
}

static char *key_of(const json_t *id)
{
    char *key = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    MUST(key);
    return key;
}

static void count(struct client *c, const json_t *id, int by)
{
    char *key = key_of(id);
    json_int_t now = json_integer_value(json_object_get(c->asked, key)) + by;
    MUST(now >= 0);
    MUST(json_object_set_new_nocheck(c->asked, key, json_integer(now)) == 0);
    free(key);
}

/* Whether the client may still read answers to what it asked before. */
static bool has_unread(const struct client *c)
{
    struct pollfd out = {.fd = c->pipe[0], .events = POLLIN};
    return c->peer.batches || c->writer.queued > 0 || poll(&out, 1, 0) > 0;
}

/* What was cancelled is not answered any more. */
static void note_cancel(struct client *c, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");
    const char *method = json_string_value(json_object_get(message, "method"));
    if (!id || json_object_get(message, "id") || !method ||
        strcmp(method, "notifications/cancelled") != 0)
        return;
    char *key = key_of(id);
    json_object_del(c->asked, key);
    free(key);
}

static void note(struct client *c, const char *line, size_t size)
{
    json_t *value = json_loadb(line, size, JSON_ALLOW_NUL, NULL);
    const json_t *message;
    size_t i;
    if (json_is_object(value) && json_object_get(value, "id"))
        count(c, json_object_get(value, "id"), 1);
    json_array_foreach(value, i, message) if (json_object_get(message, "id"))
        count(c, json_object_get(message, "id"), 1);
    json_decref(value);
}

/* The other half, once the line was taken: only then it is known to be sound. */
static void note_after(struct client *c, const char *line, size_t size)
{
    struct rpc_fault fault;
    struct rpc_message m;
    json_t *value = rpc_decode(line, size, &fault);
    if (json_is_object(value) && rpc_read(value, &m, &fault) == 0)
        note_cancel(c, value);
    json_decref(value);
}

static void check_response(struct client *c, const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    bool failed = json_object_get(message, "error") != NULL;
    MUST(json_is_object(message) && !json_object_get(message, "method"));
    MUST(failed != (json_object_get(message, "result") != NULL));
    MUST(failed || id);
    if (id && !json_is_null(id))
        count(c, id, -1);
}

static void check_answer(struct client *c, const char *line, size_t size)
{
    json_t *value = json_loadb(line, size, JSON_ALLOW_NUL, NULL);
    const json_t *message;
    size_t i;
    MUST(json_is_object(value) || (c->batches && json_array_size(value) > 0));
    if (json_is_object(value) && !json_object_get(value, "method"))
        check_response(c, value);
    json_array_foreach(value, i, message) check_response(c, message);
    json_decref(value);
}

static void read_answers(struct client *c)
{
    char piece[65536];
    ssize_t n;
    while (rpc_writer_flush(&c->writer) == 0 && (n = read(c->pipe[0], piece, sizeof piece)) > 0)
        MUST(buf_append(&c->in, piece, (size_t)n) == 0);
    const char *end;
    size_t done = 0;
    while (done < c->in.len && (end = memchr(c->in.data + done, '\n', c->in.len - done))) {
        size_t size = (size_t)(end - c->in.data) - done;
        check_answer(c, c->in.data + done, size);
        done += size + 1;
    }
    if (done > 0)
        memmove(c->in.data, c->in.data + done, c->in.len - done);
    c->in.len -= done;
}

static void step(struct client *c)
{
    struct pollfd fds[MCP_POLL_MAX];
    note_queue(c);
    if (c->peer.paused)
        return;
    size_t count = mcp_peer_poll(&c->peer, fds);
    for (size_t i = 0; i < count; i++)
        fds[i].revents = fds[i].fd >= 0 || i > 0 ? POLLIN : 0;
    mcp_peer_step(&c->peer, fds, count);
    MUST(mcp_peer_poll(&c->peer, fds) > 1 || !c->peer.batches);
}

static void take_line(struct client *c, const char *line, size_t size)
{
    if (size == 1 && *line == '+') {
        end_oldest();
    } else if (size == 1 && *line == '-') {
        c->reads = !c->reads;
    } else if (size == 1 && *line == '.') {
        step(c);
    } else if (size > 0 && !c->peer.paused) {
        /* An answer that has left already comes, whatever is cancelled; so does one in a batch, to
         * another request of the same id. */
        bool may_come = has_unread(c);
        note(c, line, size);
        mcp_take_line(&c->peer, &c->stream, line, size);
        c->batches = c->batches || c->peer.takes_batches;
        if (!may_come)
            note_after(c, line, size);
    }
    if (c->reads)
        read_answers(c);
}

/* Everything ends, and is answered. */
static void finish(struct client *c)
{
    struct mcp_peer *p = &c->peer;
    for (int i = 0; i < host.count; i++)
        end_oldest();
    for (int i = 0; i < STEPS; i++) {
        read_answers(c);
        step(c);
    }
    mcp_listeners_end(p);
    read_answers(c);
    close_session(mcp_peer_end(p));
    MUST(!p->calls && !p->batches && p->held == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mcp_stream_ops ops = {send_line, has_left, drop, cancel};
    struct client c = {.stream = {.ops = &ops}, .reads = true, .asked = json_object()};
    const char *at = (const char *)data;
    c.in = BUF_UP_TO(QUEUE_MAX + ((size_t)1 << 20));
    MUST(pipe2(c.pipe, O_CLOEXEC) == 0 && fcntl(c.pipe[0], F_SETFL, O_NONBLOCK) == 0);
    mcp_peer_init(&c.peer, &mcp_shells, open_session());
    c.peer.main = &c.stream;
    rpc_writer_init(&c.writer, c.pipe[1], QUEUE_MAX);
    while (size > 0 && !c.peer.ended) {
        const char *end = memchr(at, '\n', size);
        size_t length = end ? (size_t)(end - at) : size;
        take_line(&c, at, length);
        at += length + (end != NULL);
        size -= length + (end != NULL);
    }
    MUST(!c.peer.ended);
    finish(&c);
    rpc_writer_done(&c.writer);
    buf_done(&c.in);
    json_decref(c.asked);
    close(c.pipe[0]);
    close(c.pipe[1]);
    return 0;
}
