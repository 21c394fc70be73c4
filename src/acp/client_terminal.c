/* A terminal over a shell of the session. */
#include "acp/client_terminal.h"

#include <string.h>

#include "backend/op.h"
#include "base/defs.h"
#include "base/err.h"
#include "session/session.h"

#define CHUNK ((size_t)64 * 1024)

/* What a start borrows until it is over. */
struct acp_starting {
    json_t *params;
    struct acp_create create;
    nacre_command command;
};

static void starting_free(struct acp_starting *s)
{
    if (!s)
        return;
    acp_create_done(&s->create);
    json_decref(s->params);
    free(s);
}

static int start_command(struct acp_terminal *t, nacre_error *err)
{
    const struct acp_create *create = &t->starting->create;
    nacre_command *command = &t->starting->command;
    *command = (nacre_command)NACRE_COMMAND_INIT;
    if (acp_create_is_shell_text(create))
        command->text = create->command;
    else
        command->argv = create->argv;
    command->cwd = create->cwd;
    command->env = (const char *const *)create->env;
    return session_start(t->session, command, &t->op, err);
}

int acp_terminal_new(nacre_session *session, struct acp_create *create, json_t *params,
                     size_t limit, struct acp_terminal **ret_terminal, nacre_error *err)
{
    struct acp_terminal *t = calloc(1, sizeof *t);
    struct acp_starting *s = t ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        free(t);
        return err_set(err, NACRE_ENOMEM, "out of memory");
    }
    s->params = json_incref(params);
    s->create = *create;
    *create = (struct acp_create){0};
    *t = (struct acp_terminal){.session = session, .starting = s, .polled_fd = -1};
    acp_tail_init(&t->tail, limit);
    t->owner = strdup(s->create.session);
    int r = t->owner ? start_command(t, err) : err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        acp_terminal_free(t);
    else
        *ret_terminal = t;
    return r;
}

void acp_terminal_begin(struct acp_terminal *t)
{
    nacre_started *started = &((struct session_started *)t->op->result)->started;
    t->id = started->id;
    t->watch = TAKE_PTR(started->watch);
    nacre_watch_skip_output(t->watch);
    op_end(&t->op);
    starting_free(TAKE_PTR(t->starting));
}

void acp_wait_free(struct acp_wait *wait)
{
    if (!wait)
        return;
    json_decref(wait->id);
    free(wait);
}

void acp_terminal_free(struct acp_terminal *t)
{
    while (t->waits) {
        struct acp_wait *wait = t->waits;
        t->waits = wait->next;
        acp_wait_free(wait);
    }
    op_end(&t->op);
    starting_free(t->starting);
    nacre_watch_close(t->watch);
    acp_tail_done(&t->tail);
    free(t->owner);
    free(t);
}

bool acp_terminal_listen(struct acp_terminal *t)
{
    nacre_event event = {.kind = NACRE_EVENT_NONE};
    do {
        if (nacre_watch_next(t->watch, NULL, 0, &event, NULL) < 0)
            event.kind = NACRE_EVENT_END;
        t->settled = t->settled || event.kind >= NACRE_EVENT_SETTLED;
    } while (event.kind != NACRE_EVENT_NONE && event.kind != NACRE_EVENT_END);
    return event.kind == NACRE_EVENT_END;
}

static int keep_piece(struct acp_terminal *t, const nacre_piece *piece, const char *bytes)
{
    if (piece->gap_bytes > 0)
        acp_tail_restart(&t->tail);
    t->cursor = piece->offset + piece->size;
    return acp_tail_add(&t->tail, piece->stream, bytes, piece->size);
}

/* A watch of its own, for as long as there is something to read: it knows the state that the
 * record came from, or a later one. */
static int read_up_to(struct acp_terminal *t, uint64_t end, nacre_error *err)
{
    cleanup_free char *chunk = malloc(CHUNK);
    nacre_watch *watch;
    int r = chunk ? nacre_watch_open(t->session, &t->id, t->cursor, &watch, err)
                  : err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0)
        return r;
    nacre_event event = {.kind = NACRE_EVENT_OUTPUT};
    while (r == 0 && t->cursor < end && event.kind != NACRE_EVENT_END &&
           event.kind != NACRE_EVENT_NONE) {
        r = nacre_watch_next(watch, chunk, CHUNK, &event, err);
        if (r == 0 && event.kind == NACRE_EVENT_OUTPUT && keep_piece(t, &event.piece, chunk) < 0)
            r = err_set(err, NACRE_ENOMEM, "out of memory");
    }
    nacre_watch_close(watch);
    return r;
}

int acp_terminal_catch_up(struct acp_terminal *t, nacre_record *ret_record, nacre_error *err)
{
    int r = session_record(t->session, &t->id, HOME_LIGHT, ret_record, NULL, err);
    if (r < 0)
        return r;
    uint64_t end = ret_record->bytes[NACRE_STDOUT] + ret_record->bytes[NACRE_STDERR];
    if (end > t->cursor && end - t->cursor > t->tail.limit) {
        acp_tail_restart(&t->tail);
        t->cursor = end - t->tail.limit;
    }
    if (t->cursor < end)
        r = read_up_to(t, end, err);
    bool over = ret_record->outcome != NACRE_RUNNING && ret_record->tree == NACRE_TREE_EMPTY;
    if (r == 0 && over && acp_tail_finish(&t->tail) < 0)
        r = err_set(err, NACRE_ENOMEM, "out of memory");
    return r;
}

int acp_terminal_add_wait(struct acp_terminal *t, json_t *id, enum acp_wait_for what)
{
    struct acp_wait **last = &t->waits;
    struct acp_wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return -ENOMEM;
    *wait = (struct acp_wait){.id = json_incref(id), .what = what};
    while (*last)
        last = &(*last)->next;
    *last = wait;
    return 0;
}

static struct acp_wait *unlink_wait(struct acp_wait **at)
{
    struct acp_wait *wait = *at;
    if (wait)
        *at = wait->next;
    return wait;
}

struct acp_wait *acp_terminal_take_wait(struct acp_terminal *t, enum acp_wait_for what)
{
    struct acp_wait **at = &t->waits;
    while (*at && (*at)->what != what)
        at = &(*at)->next;
    return unlink_wait(at);
}

struct acp_wait *acp_terminal_take_wait_of(struct acp_terminal *t, const json_t *id)
{
    struct acp_wait **at = &t->waits;
    while (*at && !json_equal((*at)->id, id))
        at = &(*at)->next;
    return unlink_wait(at);
}
