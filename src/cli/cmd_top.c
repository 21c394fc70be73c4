/* nacre top: every session's shells on one screen, with what the chosen one prints. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "cli/top_find.h"
#include "cli/verbs.h"
#include "console/full_screen.h"
#include "console/out.h"
#include "console/shell_texts.h"
#include "console/shells.h"
#include "console/signals.h"
#include "console/table.h"
#include "console/viewer.h"
#include "screen/render.h"

#define EVERY_MS    1000
#define SIZE_MS     250 /* a terminal that was made larger or smaller is seen by then */
#define OUTPUT_SIZE ((size_t)64 << 10)
#define FILTER_MAX  64
#define NOTE_SIZE   160
#define NOTE_MS     8000

enum top_order { BY_AGE, BY_CPU, BY_MEMORY, BY_STATUS, BY_SESSION, ORDERS };

static const char *const order_names[ORDERS] = {"age", "cpu", "memory", "status", "session"};

#define AT_END UINT64_MAX

enum top_column {
    T_STATUS,
    T_ID,
    T_AGE,
    T_CPU,
    T_MEMORY,
    T_PORTS,
    T_SESSION,
    T_COMMAND,
    T_COLUMNS
};

static const struct table_column top_columns[T_COLUMNS] = {
    [T_STATUS] = {"STATUS", false, 0},   [T_ID] = {"ID", false, 0},
    [T_AGE] = {"AGE", true, 3},          [T_CPU] = {"CPU", true, 2},
    [T_MEMORY] = {"MEM", true, 4},       [T_PORTS] = {"PORTS", false, 1},
    [T_SESSION] = {"SESSION", false, 5}, [T_COMMAND] = {"COMMAND", false, 0},
};

struct top_shell {
    nacre_id id;
    nacre_id session;
    nacre_outcome outcome;
    bool has_screen;
    int64_t started_ms, cpu_ms;
    uint64_t memory_bytes;
    const char *colour;
    struct shell_texts texts;
    char *label;
};

struct top {
    nacre_session *session;
    struct full_screen screen;
    struct paint paint;
    struct top_shell *shells;
    size_t count, room;
    size_t alive;
    nacre_id chosen;
    size_t at;       /* of the chosen one */
    size_t scrolled; /* shells above the first that is shown */
    size_t back;     /* lines of output below the last that is shown */
    uint64_t place;  /* in its log, from where it is shown; AT_END = its end */
    size_t down;     /* lines of output that are left out from there on */
    struct top_find find;
    enum top_order order;
    bool all; /* what has ended, too */
    bool help;
    bool types; /* the filter */
    bool kills; /* y is waited for */
    char filter[FILTER_MAX];
    char note[NOTE_SIZE];
    int64_t note_ns;
    nacre_id killed; /* whose end is to be told */
    bool tells;
};

/* -- Shells ----------------------------------------------------------------------------------- */

static void forget_shells(struct top *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->shells[i].label);
    t->count = t->alive = 0;
}

static bool passes_filter(const struct top *t, const struct top_shell *s)
{
    return !*t->filter || strstr(s->label, t->filter) || strstr(s->texts.status, t->filter) ||
           strstr(s->texts.session, t->filter) || strstr(nacre_id_format(&s->id).s, t->filter);
}

static int note_top_shell(const nacre_listed *listed, void *userdata)
{
    struct top *t = userdata;
    const nacre_record *record = listed->record;
    nacre_usage usage = NACRE_USAGE_INIT;
    struct buf label cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    t->alive += shell_is_alive(record);
    if (GROW(t->shells, t->count, t->room) < 0 || shell_label(record, &label) < 0)
        return NACRE_ENOMEM;
    struct top_shell *s = &t->shells[t->count];
    *s = (struct top_shell){.id = record->id,
                            .session = record->session,
                            .outcome = record->outcome,
                            .has_screen = record->columns > 0 && shell_is_alive(record),
                            .started_ms = record->started_ms,
                            .colour = shell_colour(&t->paint, record),
                            .label = buf_take(&label)};
    shell_tell(t->session, listed, &s->texts);
    if (shell_usage(t->session, record, &usage)) {
        s->cpu_ms = usage.cpu_ms;
        s->memory_bytes = usage.memory_bytes;
    }
    if (!s->label)
        return NACRE_ENOMEM;
    if (passes_filter(t, s))
        t->count++;
    else
        free(s->label);
    return 0;
}

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_order(const void *one, const void *other, void *userdata)
{
    const struct top_shell *a = one, *b = other;
    const struct top *t = userdata;
    int r = t->order == BY_CPU ? order_of(b->cpu_ms, a->cpu_ms)
            : t->order == BY_MEMORY
                ? (b->memory_bytes > a->memory_bytes) - (b->memory_bytes < a->memory_bytes)
            : t->order == BY_STATUS  ? order_of(a->outcome, b->outcome)
            : t->order == BY_SESSION ? memcmp(&a->session, &b->session, sizeof a->session)
                                     : 0;
    return r != 0 ? r : order_of(b->started_ms, a->started_ms);
}

/* The chosen one stays, wherever it stands now; if it is gone, who stands there. */
static void find_chosen(struct top *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (nacre_id_equal(&t->shells[i].id, &t->chosen)) {
            t->at = i;
            return;
        }
    t->at = t->count > 0 ? MIN(t->at, t->count - 1) : 0;
    t->back = 0;
    t->place = AT_END;
    if (t->count > 0)
        t->chosen = t->shells[t->at].id;
}

static int look_at_shells(struct top *t)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    options.only_alive = !t->all;
    forget_shells(t);
    int r = nacre_list(t->session, &options, note_top_shell, t, &error);
    if (r < 0)
        return r == NACRE_ENOMEM ? failure("out of memory") : library_failure(&error);
    if (t->count > 0)
        qsort_r(t->shells, t->count, sizeof *t->shells, by_order, t);
    find_chosen(t);
    return STATUS_OK;
}

/* -- Words at the bottom ---------------------------------------------------------------------- */

PRINTF(2, 3) static void say_below(struct top *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->note, sizeof t->note, fmt, ap);
    va_end(ap);
    t->note_ns = clock_deadline(NOTE_MS);
}

/* How the kill came out, once nothing of it is left. */
static void tell_killed(struct top *t)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (!t->tells || nacre_get(t->session, &t->killed, &record, NULL) < 0 ||
        record.tree != NACRE_TREE_EMPTY)
        return;
    t->tells = false;
    say_below(t, "%.8s: %d %s got the signal, %d needed SIGKILL, %d left",
              nacre_id_format(&t->killed).s, record.signalled, PROCESSES(record.signalled),
              record.force_killed, record.survivors);
}

static void kill_chosen(struct top *t)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    options.no_wait = 1;
    if (nacre_kill(t->session, &t->killed, &options, NULL, &error) < 0) {
        say_below(t, "%s", error.msg);
        return;
    }
    t->tells = true;
    say_below(t, "%.8s is being ended", nacre_id_format(&t->killed).s);
}

static int put_footer(struct top *t, struct buf *out)
{
    char text[NOTE_SIZE + FILTER_MAX];
    if (t->kills)
        snprintf(text, sizeof text, "end %.8s and all that it started? y, or any other key",
                 nacre_id_format(&t->killed).s);
    else if (t->types)
        snprintf(text, sizeof text, "/%s_", t->filter);
    else if (t->find.types)
        snprintf(text, sizeof text, "search all output for: %s_", t->find.text);
    else if (t->find.shown)
        snprintf(text, sizeof text, "j k choose  Enter opens it there  Esc back");
    else if (*t->note && clock_left_ms(t->note_ns) > 0)
        snprintf(text, sizeof text, "%s", t->note);
    else
        snprintf(text, sizeof text,
                 "j k choose  a attach  x end  / filter  r search  s sort  "
                 "? keys  q quit");
    return brief_line(out, text, t->screen.columns);
}

/* -- The picture ------------------------------------------------------------------------------ */

static int put_heading(struct top *t, struct buf *out)
{
    char text[NOTE_SIZE + FILTER_MAX];
    snprintf(text, sizeof text, "nacre: %zu %s or linger, %zu shown%s, by %s%s%s", t->alive,
             t->alive == 1 ? "shell runs" : "shells run", t->count,
             t->all ? " with ended ones" : "", order_names[t->order], *t->filter ? ", with " : "",
             t->filter);
    int r = buf_str(out, t->paint.bold);
    if (r == 0)
        r = brief_line(out, text, t->screen.columns);
    return r < 0 ? r : buf_printf(out, "%s\n", t->paint.off);
}

static int fill_table(const struct top *t, size_t rows, struct table *table)
{
    int r = 0;
    for (size_t i = t->scrolled; r == 0 && i < t->count && i < t->scrolled + rows; i++) {
        const struct top_shell *s = &t->shells[i];
        nacre_id_text id = nacre_id_short(&s->id);
        /* Under one another, so that a session stands at the first of its shells. */
        bool follows = t->order == BY_SESSION && i > t->scrolled &&
                       nacre_id_equal(&s->session, &t->shells[i - 1].session);
        const char *cells[T_COLUMNS] = {
            [T_STATUS] = s->texts.status,
            [T_ID] = id.s,
            [T_AGE] = s->texts.age,
            [T_CPU] = s->texts.cpu,
            [T_MEMORY] = s->texts.memory,
            [T_PORTS] = s->texts.ports,
            [T_SESSION] = follows ? "" : s->texts.session,
            [T_COMMAND] = s->label,
        };
        r = table_add(table, cells, s->colour);
    }
    return r;
}

static void hide_what_says_nothing(const struct top *t, struct table *table)
{
    const char *first = t->shells[0].texts.session;
    table->hidden[T_PORTS] = table->hidden[T_SESSION] = true;
    for (size_t i = 0; i < t->count; i++) {
        const struct shell_texts *texts = &t->shells[i].texts;
        table->hidden[T_PORTS] &= texts->ports[0] == '\0';
        table->hidden[T_SESSION] &= strcmp(texts->session, first) == 0;
    }
}

/* Each line with what says which is chosen: also without colours. */
static int put_marked(const struct top *t, const struct buf *text, struct buf *out)
{
    const char *at = text->data ? text->data : "";
    int r = 0;
    for (size_t row = 0; r == 0 && *at; row++) {
        size_t size = strcspn(at, "\n");
        bool chosen = t->count > 0 && row == t->at - t->scrolled + 1;
        r = buf_str(out, chosen ? "> " : "  ");
        if (r == 0)
            r = buf_append(out, at, size);
        if (r == 0)
            r = buf_str(out, "\n");
        at += size + (at[size] == '\n');
    }
    return r;
}

/* rows: with the heading of the table. */
static int put_shells(struct top *t, size_t rows, struct buf *out)
{
    struct table table;
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    size_t places = rows - 1;
    if (t->at < t->scrolled)
        t->scrolled = t->at;
    if (t->at >= t->scrolled + places)
        t->scrolled = t->at - places + 1;
    if (t->count == 0)
        return buf_str(out, *t->filter ? "  no shells like that\n" : "  nothing runs\n");
    table_init(&table, top_columns, T_COLUMNS);
    hide_what_says_nothing(t, &table);
    int r = fill_table(t, places, &table);
    size_t width = t->screen.columns > 2 ? t->screen.columns - 2 : 1;
    if (r == 0)
        r = table_format(&table, &t->paint, width, places, &text);
    table_done(&table);
    return r < 0 ? r : put_marked(t, &text, out);
}

static const struct render_options top_render = {.first_line = 1, .line_max = 4096};

/* What is on its screen, if it has a terminal. */
static int copy_screen(struct top *t, struct buf *text)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    if (nacre_get_screen(t->session, &t->chosen, &screen, NULL) < 0)
        return 0;
    int r = buf_str(text, screen.text);
    nacre_screen_done(&screen);
    return r;
}

/* What was printed from a place on. */
static int copy_from_place(struct top *t, struct buf *text)
{
    struct buf bytes cleanup_buf = BUF_UP_TO(OUTPUT_SIZE * 2);
    char piece[8192];
    uint64_t cursor = t->place;
    int64_t n = 1;
    int r = 0;
    while (r == 0 && n > 0 && bytes.len < OUTPUT_SIZE) {
        n = nacre_read(t->session, &t->chosen, &cursor, NACRE_BOTH, piece, sizeof piece, NULL,
                       NULL);
        r = n > 0 ? buf_append(&bytes, piece, (size_t)n) : 0;
    }
    return r < 0 ? r : render_text(text, bytes.data ? bytes.data : "", bytes.len, &top_render);
}

static int copy_output(struct top *t, struct buf *text)
{
    nacre_snapshot snapshot = {0};
    if (t->count == 0)
        return 0;
    if (t->place != AT_END)
        return copy_from_place(t, text);
    if (t->shells[t->at].has_screen)
        return copy_screen(t, text);
    if (nacre_output(t->session, &t->chosen, NACRE_BOTH, OUTPUT_SIZE, &snapshot, NULL) < 0)
        return 0;
    int r = render_text(text, snapshot.data, snapshot.size, &top_render);
    free(snapshot.data);
    return r;
}

/* Where the last lines begin that fit, so many lines up from the end. */
static const char *find_window(struct top *t, const struct buf *text, size_t rows)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n' || i + 1 == text->len;
    t->back = MIN(t->back, lines - MIN(lines, rows));
    size_t skip = lines - MIN(lines, rows + t->back);
    t->down = MIN(t->down, lines - MIN(lines, (size_t)1));
    if (t->place != AT_END)
        skip = t->down;
    const char *at = text->data ? text->data : "";
    for (; skip > 0; skip--)
        at += strcspn(at, "\n") + 1;
    return at;
}

static int put_output(struct top *t, size_t rows, struct buf *out)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2),
                    line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = copy_output(t, &text);
    const char *at = find_window(t, &text, rows);
    for (size_t row = 0; r == 0 && row < rows; row++) {
        size_t size = strcspn(at, "\n");
        line.len = 0;
        r = buf_append(&line, at, size);
        if (r == 0 && size > 0)
            r = brief_line(out, line.data, t->screen.columns);
        if (r == 0)
            r = buf_str(out, "\n");
        at += size + (at[size] == '\n');
    }
    return r;
}

static int put_rule(struct top *t, struct buf *out)
{
    char text[NOTE_SIZE];
    if (t->count == 0)
        return buf_str(out, "\n");
    snprintf(text, sizeof text, "--- %.8s%s ", nacre_id_format(&t->chosen).s,
             t->place != AT_END            ? ", from what was found on"
             : t->back > 0                 ? ", scrolled up"
             : t->shells[t->at].has_screen ? ", its screen"
                                           : "");
    int r = buf_str(out, t->paint.dim);
    if (r == 0)
        r = brief_line(out, text, t->screen.columns);
    for (size_t i = strlen(text); r == 0 && i < t->screen.columns; i++)
        r = buf_str(out, "-");
    return r < 0 ? r : buf_printf(out, "%s\n", t->paint.off);
}

static const char help_text[] =
    "  j k, up down     choose a shell          g G, Home End   the first, the last\n"
    "  PgUp PgDn, u d   scroll its output       f               back to its end\n"
    "  x                end it, with all that it started; asks, and tells what came of it\n"
    "  r                search all that was ever printed; Enter opens what was found\n"
    "  /                show only what has a text; Enter keeps it, Esc drops it\n"
    "  s                sort by age, cpu, memory, status; group by session\n"
    "  a                attach: see its screen as it goes on; Ctrl-] d comes back\n"
    "  i                likewise, and type to it\n"
    "  e                show what has ended, too\n"
    "  q                leave\n";

#define HELP_ROWS 10

static int draw_top(struct top *t)
{
    struct buf picture cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    full_screen_measure(&t->screen);
    size_t rows = MAX(t->screen.rows, (size_t)8);
    size_t wanted = t->help ? HELP_ROWS : MAX(t->count + 1, (size_t)2);
    size_t list = MIN(wanted, (rows - 3) / 2), output = rows - 3 - list;
    int r = put_heading(t, &picture);
    if (r == 0)
        r = t->help ? buf_str(&picture, help_text) : put_shells(t, list, &picture);
    for (size_t i = t->help        ? HELP_ROWS
                    : t->count > 0 ? MIN(t->count + 1, list)
                                   : 1;
         r == 0 && i < list; i++)
        r = buf_str(&picture, "\n");
    if (r == 0)
        r = put_rule(t, &picture);
    if (r == 0)
        r = t->find.shown ? top_find_put(&t->find, output, t->screen.columns, &picture)
                          : put_output(t, output, &picture);
    if (r == 0)
        r = put_footer(t, &picture);
    return r < 0 ? r : full_screen_draw(&t->screen, &picture);
}

/* -- Keys ------------------------------------------------------------------------------------- */

static void choose_at(struct top *t, size_t at)
{
    if (t->count == 0)
        return;
    t->at = MIN(at, t->count - 1);
    t->chosen = t->shells[t->at].id;
    t->back = 0;
    t->place = AT_END;
}

/* The shell that printed it, also if it has ended or was filtered out. */
static void open_found(struct top *t, const struct found_line *line)
{
    t->find.shown = false;
    t->all = true;
    *t->filter = '\0';
    t->chosen = line->id;
    t->place = line->offset;
    t->down = 0;
}

/* True if the list has to be looked at again. */
static bool type_filter(struct top *t, int key)
{
    size_t size = strlen(t->filter);
    if (key == '\n' || key == '\r')
        t->types = false;
    else if (key == KEY_ESCAPE) {
        t->types = false;
        *t->filter = '\0';
    } else if ((key == 0x7f || key == '\b') && size > 0)
        t->filter[size - 1] = '\0';
    else if (key >= ' ' && key < 0x7f && size + 1 < sizeof t->filter) {
        t->filter[size] = (char)key;
        t->filter[size + 1] = '\0';
    }
    return true;
}

static bool press_in_list(struct top *t, int key)
{
    size_t page = t->screen.rows / 2;
    switch (key) {
    case 'j':
    case KEY_DOWN:
        choose_at(t, t->at + 1);
        return false;
    case 'k':
    case KEY_UP:
        choose_at(t, t->at - MIN(t->at, (size_t)1));
        return false;
    case 'g':
    case KEY_HOME:
        choose_at(t, 0);
        return false;
    case 'G':
    case KEY_LAST:
        choose_at(t, SIZE_MAX);
        return false;
    case 'u':
    case KEY_PAGE_UP:
        t->back += page;
        t->down -= MIN(t->down, page);
        return false;
    case 'd':
    case KEY_PAGE_DOWN:
        t->back -= MIN(t->back, page);
        t->down += page;
        return false;
    case 'f':
        t->back = 0;
        t->place = AT_END;
        return false;
    default:
        return false;
    }
}

/* The terminal is theirs meanwhile. */
static void attach_to_chosen(struct top *t, bool input)
{
    struct viewer_options options = {.input = input};
    struct viewer_end end = {0};
    detach_key_parse(&options.leave, DETACH_KEY);
    full_screen_close(&t->screen);
    int status = viewer_run(t->session, &t->chosen, &options, &end);
    if (full_screen_open(&t->screen) < 0)
        t->screen.signal = SIGTERM;
    if (end.signal)
        t->screen.signal = end.signal;
    if (status != STATUS_OK)
        say_below(t, "%.8s cannot be attached to, or takes no input",
                  nacre_id_format(&t->chosen).s);
}

static bool press_key(struct top *t, int key)
{
    if (t->kills) {
        t->kills = false;
        if (key == 'y')
            kill_chosen(t);
        return true;
    }
    if (t->types)
        return type_filter(t, key);
    if (t->find.types || t->find.shown) {
        const struct found_line *line = top_find_press(&t->find, key, t->session);
        if (line)
            open_found(t, line);
        return line != NULL;
    }
    if (key == 'x' && t->count > 0) {
        t->kills = true;
        t->killed = t->chosen;
    } else if (key == '/')
        t->types = true;
    else if (key == 'r')
        t->find.types = true;
    else if (key == '?')
        t->help = !t->help;
    else if (key == 's')
        t->order = (t->order + 1) % ORDERS;
    else if (key == 'e')
        t->all = !t->all;
    else if ((key == 'a' || key == 'i') && t->count > 0)
        attach_to_chosen(t, key == 'i');
    else
        return press_in_list(t, key);
    return true;
}

static int run_top(struct top *t)
{
    int64_t next_ns = 0;
    for (;;) {
        if (clock_left_ms(next_ns) == 0) {
            int status = look_at_shells(t);
            if (status != STATUS_OK)
                return status;
            next_ns = clock_deadline(EVERY_MS);
        }
        tell_killed(t);
        int r = draw_top(t);
        if (r < 0)
            return failure("top: cannot write to the terminal: %s", err_text(-r));
        int key = full_screen_key(&t->screen, MIN(clock_left_ms(next_ns), SIZE_MS));
        if (key == KEY_END ||
            (key == 'q' && !t->types && !t->kills && !t->find.types && !t->find.shown))
            return STATUS_OK;
        if (key != KEY_NONE && press_key(t, key))
            next_ns = 0;
        if (t->screen.signal != 0)
            return STATUS_OK;
    }
}

static int top(UNUSED const void *options, UNUSED char **words, UNUSED size_t count)
{
    struct top t = {.paint = paint_for(stdout), .place = AT_END};
    nacre_session *session cleanup_session = NULL;
    if (!full_screen_is_possible())
        return failure(
            "top: it needs a terminal that can move its cursor; \"nacre list\" does not");
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    t.session = session;
    int r = full_screen_open(&t.screen);
    status = r < 0 ? failure("top: cannot take the terminal: %s", err_text(-r)) : run_top(&t);
    full_screen_close(&t.screen);
    forget_shells(&t);
    top_find_done(&t.find);
    free(t.shells);
    if (t.screen.signal != 0 && t.screen.signal != SIGINT)
        signals_die_by(t.screen.signal);
    return status;
}

const struct verb verb_top = {
    .name = "top",
    .words = "",
    .summary = "show all sessions' shells, and what one of them prints",
    .details =
        "On top the shells that run or linger, of every session, newest first; below the end\n"
        "of what the chosen one has printed. j and k or the arrows choose, PgUp and PgDn\n"
        "scroll its output, x ends it with all that it started (and asks first), / shows\n"
        "only what has a text, r searches all that was ever printed and opens what it found,\n"
        "s sorts, e shows what has ended, too, a attaches to the chosen one and i types to it,\n"
        "until Ctrl-] d; ? lists the keys, q leaves. Of a shell with a terminal its screen is\n"
        "shown.\n",
    .run = top,
};
