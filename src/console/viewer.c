#include "console/viewer.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "console/out.h"
#include "console/raw_terminal.h"
#include "console/shells.h"
#include "console/tail.h"
#include "screen/canvas.h"
#include "screen/harmless.h"
#include "screen/passing.h"
#include "session/replay.h"

#define CHUNK     65536
#define TURN_MS   20   /* is read at most before the person's keys are heard again */
#define FRAME_MS  8    /* between two pictures, */
#define BEHIND_MS 250  /* or while there is more to read at once */
#define SLICE_MS  1000 /* a watch wants to be asked so often */
#define NOTICE_MS 4000
#define TYPED_MAX ((size_t)256 * 1024) /* of what the command has not taken yet */
#define CTRL_C    '\x03'

struct viewer {
    nacre_session *session;
    nacre_id id;
    nacre_id_text name;
    const struct viewer_options *options;
    struct detach_key leave;
    struct raw_terminal terminal;
    nacre_watch *watch;
    struct replay replay;
    struct canvas canvas;
    struct harmless shown[2]; /* of pipes */
    struct passing *passing;  /* of a terminal that this one stands in for, or NULL */
    struct buf typed;         /* and not taken yet */
    unsigned top, left;       /* the part that is shown */
    int64_t drawn_ns, notice_ns;
    bool begun; /* it had an outcome when we came: it is looked at until nothing is left */
    bool dirty; /* there is something to draw */
    bool idle;  /* there is nothing to read now */
    bool over;  /* an answer may be given of it */
    bool ends_input;
    bool fit_due;
    bool is_deaf; /* it takes no input any more */
    struct viewer_end end;
    bool done;
    char data[CHUNK];
};

/* -- What is seen ------------------------------------------------------------------------------ */

static bool has_screen(const struct viewer *v)
{
    return v->replay.is_terminal;
}

/* Its bytes are shown one after the other: what was read is written before more is read. */
static bool has_stream(const struct viewer *v)
{
    return !has_screen(v);
}

static const char *what_keys_do(const struct viewer *v)
{
    return v->is_deaf ? "takes no more input" : v->options->input ? "typing" : "looking only";
}

static void write_state(const struct viewer *v, bool cut, char *text, size_t size)
{
    const struct terminal *t = grid_terminal(v->replay.grid);
    int n = snprintf(text, size, " shell %s %ux%u", v->name.s, t->columns, t->rows);
    if (cut && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, ", from row %u column %u", v->top + 1,
                      v->left + 1);
    if (n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " | %s", what_keys_do(v));
    if (n > 0 && (size_t)n < size && v->leave.size > 0)
        n += snprintf(text + n, size - (size_t)n, " | %s leaves", v->leave.name);
    if (n > 0 && (size_t)n < size && v->replay.partial)
        snprintf(text + n, size - (size_t)n, " | output before this was dropped");
}

/* The first that is shown, so that the cursor is, with as little movement as possible. */
static unsigned follow_cursor(unsigned first, unsigned shown, unsigned all, unsigned cursor)
{
    if (shown >= all)
        return 0;
    first = MIN(first, all - shown);
    return cursor < first ? cursor : cursor >= first + shown ? cursor - shown + 1 : first;
}

/* A line of ours tells what would not be known otherwise, or stands where there is room for it. */
static void draw(struct viewer *v)
{
    const struct terminal *t = grid_terminal(v->replay.grid);
    struct canvas *c = &v->canvas;
    char line[256];
    bool cut = c->columns < t->columns || c->rows < t->rows;
    bool notice = clock_left_ms(v->notice_ns) > 0;
    unsigned rows = cut && c->rows > 1 ? c->rows - 1 : c->rows;
    v->top = follow_cursor(v->top, rows, t->rows, t->at.row);
    v->left = follow_cursor(v->left, c->columns, t->columns, t->at.column);
    write_state(v, cut, line, sizeof line);
    struct scene scene = {.grid = v->replay.grid, .top = v->top, .left = v->left, .rows = rows};
    if (cut || notice || c->rows > t->rows)
        scene.line = line;
    if (v->options->input)
        scene.modes = t->modes & ~(cut ? (uint32_t)CANVAS_MOUSE : 0);
    canvas_draw(c, &scene, &v->terminal.pending);
    v->dirty = false;
    v->drawn_ns = clock_mono_ns();
}

static int64_t draw_at(const struct viewer *v)
{
    return v->drawn_ns + (v->idle ? FRAME_MS : BEHIND_MS) * NS_PER_MS;
}

static bool may_draw(const struct viewer *v)
{
    return has_screen(v) && v->dirty && !raw_terminal_owes(&v->terminal) &&
           clock_mono_ns() >= draw_at(v);
}

static void take_piece(struct viewer *v, const nacre_piece *piece)
{
    v->dirty = true;
    v->replay.partial |= piece->gap_bytes > 0;
    v->end.missed += piece->gap_bytes;
    v->end.next = piece->offset + piece->size;
    if (v->passing) {
        passing_feed(v->passing, &v->terminal.pending, v->data, piece->size);
        return;
    }
    if (has_stream(v)) {
        harmless_feed(&v->shown[piece->stream], &v->terminal.pending, v->data, piece->size);
        return;
    }
    replay_refresh(&v->replay);
    replay_draw(&v->replay, piece->offset, v->data, piece->size);
    replay_draw(&v->replay, piece->offset + piece->size, NULL, 0);
}

/* A size may have changed without anything being printed. */
static void look_at_size(struct viewer *v)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (has_stream(v))
        return;
    const struct terminal *t = grid_terminal(v->replay.grid);
    if (nacre_watch_record(v->watch, &record, NULL) < 0 ||
        (record.columns == t->columns && record.rows == t->rows))
        return;
    replay_refresh(&v->replay);
    replay_draw(&v->replay, record.bytes[NACRE_STDOUT], NULL, 0);
    v->dirty = true;
}

static void note_event(struct viewer *v, const nacre_event *event)
{
    v->idle = event->kind == NACRE_EVENT_NONE || event->kind == NACRE_EVENT_END;
    if (event->kind == NACRE_EVENT_OUTPUT)
        take_piece(v, &event->piece);
    else if (event->kind == NACRE_EVENT_END || (event->kind == NACRE_EVENT_SETTLED && !v->begun))
        v->over = true;
}

static int hear_shell(struct viewer *v, nacre_error *error)
{
    int64_t deadline = clock_deadline(TURN_MS);
    bool waits = has_stream(v) && raw_terminal_owes(&v->terminal);
    do {
        nacre_event event = {0};
        int r = waits ? 0 : nacre_watch_next(v->watch, v->data, sizeof v->data, &event, error);
        if (r < 0)
            return r;
        if (waits)
            break;
        note_event(v, &event);
        waits = has_stream(v) && raw_terminal_owes(&v->terminal);
    } while (!v->idle && !v->over && clock_left_ms(deadline) > 0);
    if (v->idle)
        look_at_size(v);
    return 0;
}

/* -- What is typed ----------------------------------------------------------------------------- */

static void forget_typed(struct viewer *v, size_t size)
{
    struct buf *b = &v->typed;
    if (size == 0)
        return;
    memmove(b->data, b->data + size, b->len - size);
    explicit_bzero(b->data + b->len - size, size);
    b->len -= size;
}

/* Passes on what the command has room for. */
static void pass_on(struct viewer *v)
{
    nacre_error error = NACRE_ERROR_INIT;
    int64_t n = 0;
    while (v->typed.len > 0 && !v->is_deaf) {
        n = nacre_type(v->watch, v->typed.data, v->typed.len, &error);
        if (n <= 0)
            break;
        forget_typed(v, (size_t)n);
    }
    if (n < 0) {
        v->is_deaf = true;
        forget_typed(v, v->typed.len);
        v->notice_ns = clock_deadline(NOTICE_MS);
        v->dirty = true;
    }
    if (v->ends_input && v->typed.len == 0) {
        v->ends_input = false;
        nacre_input(v->session, &v->id, "", 0, 1, SLICE_MS, NULL);
    }
    if (v->fit_due && nacre_fit(v->watch, (int)v->canvas.columns, (int)v->canvas.rows, NULL) != 0)
        v->fit_due = false;
}

/* Where lines are typed, two characters end one although the line is not at its end. */
static void read_lines_again(struct viewer *v)
{
    if (detach_key_is_begun(&v->leave))
        raw_terminal_keys(&v->terminal);
    else
        raw_terminal_lines(&v->terminal, v->leave.bytes[0], CTRL_C);
}

static bool types_lines(const struct viewer *v)
{
    return v->options->input && has_stream(v) && !v->passing;
}

/* A terminal would send SIGINT for Ctrl-C; there is none. */
static void take_lines(struct viewer *v)
{
    char *at = v->typed.len > 0 ? memchr(v->typed.data, CTRL_C, v->typed.len) : NULL;
    if (at) {
        nacre_signal(v->session, &v->id, SIGINT, NULL);
        forget_typed(v, v->typed.len);
    }
    read_lines_again(v);
}

/* Who only looks leaves by Ctrl-C, too; other keys are answered by how to leave. */
static void take_looking(struct viewer *v)
{
    if (v->typed.len > 0 && memchr(v->typed.data, CTRL_C, v->typed.len))
        v->done = v->end.detached = true;
    if (v->typed.len > 0) {
        v->notice_ns = clock_deadline(NOTICE_MS);
        v->dirty = true;
    }
    forget_typed(v, v->typed.len);
}

/* Who types knows how it goes, and wants to see the last row. */
static void end_notice(struct viewer *v)
{
    v->dirty |= clock_left_ms(v->notice_ns) > 0;
    v->notice_ns = 0;
}

static void hear_keys(struct viewer *v, bool hung_up)
{
    char keys[4096];
    ssize_t n = raw_terminal_read(keys, sizeof keys);
    if (n == -EIO && types_lines(v) && !hung_up && !detach_key_is_begun(&v->leave)) {
        v->ends_input = true;
        return;
    }
    if (n < 0) {
        v->done = v->end.detached = true;
        return;
    }
    if (detach_key_feed(&v->leave, keys, (size_t)n, &v->typed))
        v->done = v->end.detached = true;
    explicit_bzero(keys, sizeof keys);
    if (types_lines(v))
        take_lines(v);
    else if (v->options->input)
        end_notice(v);
    else
        take_looking(v);
    if (v->typed.len > TYPED_MAX)
        forget_typed(v, v->typed.len);
}

/* -- The loop ---------------------------------------------------------------------------------- */

static int measure_window(struct viewer *v)
{
    unsigned columns, rows;
    raw_terminal_size(&columns, &rows);
    v->dirty = true;
    if (columns == v->canvas.columns && rows == v->canvas.rows)
        return 0;
    v->fit_due = v->options->resize && v->canvas.columns > 0;
    return canvas_size(&v->canvas, columns, rows);
}

static int hear_signal(struct viewer *v)
{
    int signal;
    switch (raw_terminal_hear(&v->terminal, &signal)) {
    case RAW_STOP:
        v->end.signal = signal;
        v->done = true;
        return 0;
    case RAW_BACK:
        v->canvas.known = false;
        v->canvas.modes = 0;
        if (types_lines(v))
            read_lines_again(v);
        return measure_window(v);
    case RAW_RESIZED:
        return measure_window(v);
    default:
        return 0;
    }
}

static int time_left(const struct viewer *v)
{
    int ms = SLICE_MS;
    if (!v->idle && !v->over)
        ms = 0;
    if (has_screen(v) && v->dirty && !raw_terminal_owes(&v->terminal))
        ms = MIN(ms, clock_left_ms(draw_at(v)));
    int notice = clock_left_ms(v->notice_ns);
    return notice > 0 ? MIN(ms, notice) : ms;
}

/* Waits for whatever can happen next. */
static int wait_for_any(struct viewer *v)
{
    enum { SIGNALS, KEYS, SHELL, WINDOW };
    bool owes = raw_terminal_owes(&v->terminal);
    bool noticed = clock_left_ms(v->notice_ns) > 0;
    struct pollfd fds[] = {
        [SIGNALS] = {.fd = v->terminal.signal_fd, .events = POLLIN},
        [KEYS] = {.fd = STDIN_FILENO, .events = POLLIN},
        [SHELL] = {.fd = v->over ? -1 : nacre_watch_fd(v->watch), .events = POLLIN},
        [WINDOW] = {.fd = owes ? STDOUT_FILENO : -1, .events = POLLOUT},
    };
    if (RETRY(poll(fds, ARRAY_SIZE(fds), owes && has_stream(v) ? SLICE_MS : time_left(v))) < 0)
        return -errno;
    int r = fds[SIGNALS].revents ? hear_signal(v) : 0;
    if (fds[KEYS].revents)
        hear_keys(v, fds[KEYS].revents & (POLLHUP | POLLERR));
    v->dirty |= noticed && clock_left_ms(v->notice_ns) == 0;
    return r;
}

static int view_on(struct viewer *v, nacre_error *error)
{
    while (!v->done) {
        int r = v->over ? 0 : hear_shell(v, error);
        if (r < 0)
            return library_failure(error);
        pass_on(v);
        if (may_draw(v) || (v->over && has_screen(v) && v->dirty))
            draw(v);
        if (raw_terminal_write(&v->terminal) < 0) {
            v->end.detached = true;
            return STATUS_OK;
        }
        if (v->over && !raw_terminal_owes(&v->terminal))
            return STATUS_OK;
        if (wait_for_any(v) < 0)
            return failure("attach: cannot wait for the shell");
    }
    return STATUS_OK;
}

/* -- Beginning and end ------------------------------------------------------------------------- */

/* Of what was printed through pipes, a screenful. */
static int find_beginning(struct viewer *v, const nacre_record *record, uint64_t *ret_offset,
                          nacre_error *error)
{
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    *ret_offset = 0;
    if (record->columns > 0)
        return 0;
    return tail_start(v->session, &v->id, NACRE_BOTH, end, v->canvas.rows, ret_offset, error);
}

static int begin(struct viewer *v, nacre_error *error)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    nacre_attach_options attach = NACRE_ATTACH_OPTIONS_INIT;
    uint64_t offset;
    if (measure_window(v) < 0)
        return failure("out of memory");
    int r = nacre_get(v->session, &v->id, &record, error);
    if (r == 0 && record.tree == NACRE_TREE_EMPTY)
        return failure("attach: shell %s has ended; see \"nacre output\" and \"nacre screen\"",
                       v->name.s);
    v->begun = record.outcome != NACRE_RUNNING;
    if (r == 0)
        r = find_beginning(v, &record, &offset, error);
    if (r == 0)
        r = replay_begin(v->session, &v->id, &v->replay, error);
    if (r == 0)
        r = nacre_watch_open(v->session, &v->id, offset, &v->watch, error);
    attach.input = v->options->input;
    attach.columns = v->options->resize ? (int)v->canvas.columns : 0;
    attach.rows = v->options->resize ? (int)v->canvas.rows : 0;
    if (r == 0 && (record.tier != NACRE_TIER_CLIENT || attach.input || attach.columns))
        r = nacre_attach(v->session, v->watch, &attach, error);
    return r < 0 ? library_failure(error) : STATUS_OK;
}

/* One that has ended already is only seen. */
static int begin_standing_in(struct viewer *v, nacre_error *error)
{
    nacre_attach_options attach = NACRE_ATTACH_OPTIONS_INIT;
    if (measure_window(v) < 0)
        return failure("out of memory");
    attach.input = 1;
    attach.columns = (int)v->canvas.columns;
    attach.rows = (int)v->canvas.rows;
    int r = nacre_attach(v->session, v->watch, &attach, error);
    v->is_deaf = r == NACRE_ECLOSED || r == NACRE_EUNSUPPORTED;
    return r < 0 && !v->is_deaf ? library_failure(error) : STATUS_OK;
}

/* What shows that we are there, and what nobody shall see of it afterwards. */
static int frame(struct viewer *v, struct buf *enter, struct buf *leave)
{
    struct canvas all = {.modes = CANVAS_KEYS};
    int r = has_screen(v) ? canvas_enter(&v->canvas, enter) : buf_str(enter, "");
    if (r == 0)
        r = has_screen(v) ? canvas_leave(&all, leave) : buf_str(leave, "\x1b[0m");
    return r;
}

static void end_stream(struct viewer *v, struct buf *leave)
{
    for (int s = 0; s < 2 && has_stream(v) && !v->passing; s++)
        harmless_end(&v->shown[s], &v->terminal.pending);
    if (v->passing && passing_leave(v->passing, leave) == 0)
        v->terminal.leave = leave->data;
}

static int view(struct viewer *v)
{
    struct buf enter cleanup_buf = BUF_UP_TO(1024), leave cleanup_buf = BUF_UP_TO(1024);
    nacre_error error = NACRE_ERROR_INIT;
    if (frame(v, &enter, &leave) < 0)
        return failure("out of memory");
    int r = raw_terminal_open(&v->terminal, enter.data, leave.data);
    int status = STATUS_OK;
    if (r == 0 && types_lines(v))
        read_lines_again(v);
    if (r == 0)
        status = view_on(v, &error);
    end_stream(v, &leave);
    raw_terminal_close(&v->terminal);
    return r < 0 ? failure("cannot take the terminal: %s", err_text(-r)) : status;
}

static struct viewer *viewer_new(nacre_session *session, const nacre_id *id,
                                 const struct viewer_options *options)
{
    static struct viewer viewer;
    viewer = (struct viewer){.session = session,
                             .id = *id,
                             .name = nacre_id_short(id),
                             .options = options,
                             .leave = options->leave,
                             .typed = BUF_UP_TO(2 * TYPED_MAX),
                             .replay = REPLAY_NONE,
                             .shown = {{.colours = true}, {.colours = true}},
                             .notice_ns = clock_deadline(NOTICE_MS)};
    return &viewer;
}

static struct viewer_end viewer_done(struct viewer *v)
{
    replay_done(&v->replay);
    canvas_done(&v->canvas);
    if (v->typed.data)
        explicit_bzero(v->typed.data, v->typed.len);
    buf_done(&v->typed);
    return v->end;
}

int viewer_run(nacre_session *session, const nacre_id *id, const struct viewer_options *options,
               struct viewer_end *ret_end)
{
    struct viewer *v = viewer_new(session, id, options);
    nacre_error error = NACRE_ERROR_INIT;
    int status = begin(v, &error);
    if (status == STATUS_OK)
        status = view(v);
    nacre_watch_close(v->watch);
    *ret_end = viewer_done(v);
    return status;
}

int viewer_stand_in(nacre_session *session, const nacre_id *id, nacre_watch *watch,
                    struct viewer_end *ret_end)
{
    static const struct viewer_options options = {.input = true, .resize = true};
    static struct passing passing;
    struct viewer *v = viewer_new(session, id, &options);
    nacre_error error = NACRE_ERROR_INIT;
    v->watch = watch;
    v->passing = &passing;
    passing = (struct passing){0};
    int status = begin_standing_in(v, &error);
    terminal_init(&passing.terminal, v->canvas.columns, v->canvas.rows);
    if (status == STATUS_OK)
        status = view(v);
    *ret_end = viewer_done(v);
    return status;
}
