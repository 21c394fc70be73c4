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
#include <poll.h>

#include <nacre/nacre.h>

#include "base/defs.h"
#include "base/err.h"
#include "mcp/server.h"

#define SHELLS_MAX 64
#define STEPS      4 /* until a call is over whose shell has ended */

/* -- Shells ----------------------------------------------------------------------------------- */

struct pretended {
    bool running;
    bool background;
};

static struct {
    struct pretended shells[SHELLS_MAX];
    int count;
} host;

static nacre_id id_of(int index)
{
    nacre_id id = {{0}};
    memset(&id, 0xab, sizeof id);
    ((uint8_t *)&id)[sizeof id - 1] = (uint8_t)index;
    return id;
}

static struct pretended *find_shell(const nacre_id *id, nacre_error *err)
{
    for (int i = 0; i < host.count; i++) {
        nacre_id known = id_of(i);
        if (nacre_id_equal(&known, id))
            return &host.shells[i];
    }
    err_set(err, NACRE_ENOTFOUND, "no shell with id \"%s\"", nacre_id_short(id).s);
    return NULL;
}

static int fill(const struct pretended *shell, nacre_record *ret_record)
{
    nacre_record record = NACRE_RECORD_INIT;
    record.id = id_of((int)(shell - host.shells));
    record.outcome = shell->running ? NACRE_RUNNING : NACRE_EXITED;
    record.tree = shell->running ? NACRE_TREE_ALIVE : NACRE_TREE_EMPTY;
    record.background = shell->background;
    record.pipestatus_count = -1;
    record.command = strdup("pretended");
    record.cwd = strdup("/");
    record.name = strdup("");
    record.description = strdup("");
    nacre_record_done(ret_record);
    *ret_record = record;
    return 0;
}

static int watch_fd(void *self UNUSED)
{
    return -1;
}

static int watch_next(void *self, void *buf UNUSED, size_t size UNUSED, nacre_event *ret_event,
                      nacre_error *err UNUSED)
{
    const struct pretended *shell = self;
    ret_event->kind = shell->running ? NACRE_EVENT_NONE : NACRE_EVENT_END;
    return 0;
}

static int watch_record(void *self, nacre_record *ret_record, nacre_error *err UNUSED)
{
    return fill(self, ret_record);
}

static void watch_close(void *self UNUSED)
{
}

static int host_watch(void *self UNUSED, const nacre_id *id, uint64_t offset UNUSED,
                      nacre_watch **ret_watch, nacre_error *err)
{
    static const nacre_watch_ops ops = {.version = NACRE_BACKEND_VERSION,
                                        .size = sizeof ops,
                                        .fd = watch_fd,
                                        .next = watch_next,
                                        .record = watch_record,
                                        .close = watch_close};
    struct pretended *shell = find_shell(id, err);
    *ret_watch = shell ? nacre_watch_new(&ops, shell) : NULL;
    return shell ? 0 : NACRE_ENOTFOUND;
}

static int host_create(void *self, const nacre_command *command, nacre_id *ret_id,
                       nacre_watch **ret_watch, nacre_error *err)
{
    if (host.count == SHELLS_MAX)
        return err_set(err, NACRE_ELIMIT, "enough");
    *ret_id = id_of(host.count);
    host.shells[host.count++] = (struct pretended){true, command->background};
    return ret_watch ? host_watch(self, ret_id, 0, ret_watch, err) : 0;
}

static int64_t host_output(void *self UNUSED, const nacre_id *id, uint64_t *cursor UNUSED,
                           unsigned streams UNUSED, void *buf UNUSED, size_t size UNUSED,
                           nacre_piece *ret_piece, nacre_error *err)
{
    if (ret_piece)
        *ret_piece = (nacre_piece){0};
    return find_shell(id, err) ? 0 : NACRE_ENOTFOUND;
}

static int host_wait(void *self UNUSED, const nacre_id *id, int64_t timeout_ms UNUSED,
                     nacre_error *err)
{
    return find_shell(id, err) ? 0 : NACRE_ENOTFOUND;
}

/* It ends later, when a line says so. */
static int host_kill(void *self UNUSED, const nacre_id *id,
                     const struct nacre_kill_options *options UNUSED,
                     struct nacre_kill_result *ret_result, nacre_error *err)
{
    const struct pretended *shell = find_shell(id, err);
    if (!shell)
        return NACRE_ENOTFOUND;
    if (ret_result)
        *ret_result = (nacre_kill_result){.was_alive = shell->running};
    return 0;
}

static int host_release(void *self UNUSED, const nacre_id *id UNUSED, nacre_error *err UNUSED)
{
    return 0;
}

static int host_get(void *self UNUSED, const nacre_id *id, nacre_record *ret_record,
                    nacre_error *err)
{
    const struct pretended *shell = find_shell(id, err);
    return shell ? fill(shell, ret_record) : NACRE_ENOTFOUND;
}

static int host_find(void *self UNUSED, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    for (int i = 0; i < host.count; i++) {
        nacre_id id = id_of(i);
        if (strncmp(nacre_id_format(&id).s, prefix, strlen(prefix)) == 0) {
            *ret_id = id;
            return 0;
        }
    }
    return err_set(err, NACRE_ENOTFOUND, "no shell with id \"%.40s\"", prefix);
}

static int host_change(void *self UNUSED, const nacre_id *id, int background, int keep UNUSED,
                       nacre_error *err)
{
    struct pretended *shell = find_shell(id, err);
    if (shell && background)
        shell->background = true;
    return shell ? 0 : NACRE_ENOTFOUND;
}

static void end_oldest(void)
{
    for (int i = 0; i < host.count; i++)
        if (host.shells[i].running) {
            host.shells[i].running = false;
            return;
        }
}

static nacre_session *open_session(void)
{
    static const nacre_backend_ops ops = {
        .version = NACRE_BACKEND_VERSION,
        .size = sizeof ops,
        .name = "pretended",
        .create = host_create,
        .output = host_output,
        .wait_for_exit = host_wait,
        .kill = host_kill,
        .release = host_release,
        .get = host_get,
        .watch = host_watch,
        .find = host_find,
        .change = host_change,
    };
    static const nacre_backend backend = {.ops = &ops};
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session;
    options.backend = &backend;
    host.count = 0;
    MUST(nacre_open(&options, &session, NULL) == 0);
    return session;
}

/* -- The client ------------------------------------------------------------------------------- */

struct client {
    struct server server;
    int pipe[2];
    bool reads;
    bool batches; /* were spoken once */
    struct buf in;
    json_t *asked; /* how often each id was asked with and not answered yet */
};

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

/* What was cancelled is not answered any more, unless its answer has left already, or waits with
 * others that have the same id. */
static void note_cancel(struct client *c, const json_t *message)
{
    const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");
    const char *method = json_string_value(json_object_get(message, "method"));
    if (!id || json_object_get(message, "id") || !method ||
        strcmp(method, "notifications/cancelled") != 0 || c->server.batches ||
        c->server.writer.queued > 0)
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
    while (rpc_writer_flush(&c->server.writer) == 0 &&
           (n = read(c->pipe[0], piece, sizeof piece)) > 0)
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
    struct server *s = &c->server;
    struct pollfd fds[MCP_CALLS_MAX];
    if (mcp_is_paused(s))
        return;
    size_t open = mcp_calls_poll(s, fds);
    for (size_t i = 0; i < open; i++)
        fds[i].revents = POLLIN;
    if (mcp_events_fd(s) >= 0)
        mcp_events_step(s);
    mcp_calls_step(s, fds, open);
    MUST(mcp_calls_poll(s, fds) > 0 || !s->batches);
}

static void take_line(struct client *c, const char *line, size_t size)
{
    if (size == 1 && *line == '+') {
        end_oldest();
    } else if (size == 1 && *line == '-') {
        c->reads = !c->reads;
    } else if (size == 1 && *line == '.') {
        step(c);
    } else if (size > 0 && !mcp_is_paused(&c->server)) {
        note(c, line, size);
        mcp_take_line(&c->server, line, size);
        c->batches = c->batches || c->server.takes_batches;
        note_after(c, line, size);
    }
    if (c->reads)
        read_answers(c);
}

/* Everything ends, and is answered. */
static void finish(struct client *c)
{
    struct server *s = &c->server;
    for (int i = 0; i < host.count; i++)
        host.shells[i].running = false;
    for (int i = 0; i < STEPS; i++) {
        read_answers(c);
        step(c);
    }
    mcp_listeners_end(s);
    read_answers(c);
    mcp_calls_end(s);
    mcp_batches_end(s);
    mcp_events_end(s);
    MUST(!s->calls && !s->batches && s->held == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client c = {.server = {.level = LOG_INFO, .bell = -EBADF, .signals = -EBADF},
                       .reads = true,
                       .asked = json_object()};
    const char *at = (const char *)data;
    buf_init(&c.in, MCP_QUEUE_MAX + ((size_t)1 << 20));
    MUST(pipe2(c.pipe, O_CLOEXEC) == 0 && fcntl(c.pipe[0], F_SETFL, O_NONBLOCK) == 0);
    c.server.session = open_session();
    rpc_writer_init(&c.server.writer, c.pipe[1], MCP_QUEUE_MAX);
    while (size > 0 && !c.server.ended) {
        const char *end = memchr(at, '\n', size);
        size_t length = end ? (size_t)(end - at) : size;
        take_line(&c, at, length);
        at += length + (end != NULL);
        size -= length + (end != NULL);
    }
    MUST(!c.server.ended);
    finish(&c);
    nacre_close(c.server.session, NULL);
    rpc_writer_done(&c.server.writer);
    buf_done(&c.in);
    json_decref(c.asked);
    close(c.pipe[0]);
    close(c.pipe[1]);
    return 0;
}
