/* bash_input: text, keys and the end of file for a shell whose stdin was kept open, or that has a
 * terminal; of that the answer is its screen. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "session/session.h"
#include "tool/answer_reading.h"
#include "tool/answer_screen.h"
#include "tool/await.h"
#include "tool/feeding.h"
#include "tool/terminal_keys.h"
#include "tool/tool.h"

#define MOMENT_MS 300 /* what a signal does is seen by then */
#define STILL_MS  150 /* a screen on which nothing was drawn for so long is shown */

struct input_args {
    const char *id;
    struct arg_bytes input;
    struct arg_bytes paste;
    const char *keys;
    bool eof;
    struct await_args await;
    int64_t tokens;
    const char *resize;
};

/* What comes next: the size, the text, what is pasted, the keys one by one, the end of file; and
 * then its effect is seen. */
enum stage { STAGE_RESIZE, STAGE_TEXT, STAGE_PASTE, STAGE_KEYS, STAGE_EOF, STAGE_WATCH };

struct input {
    nacre_id id;
    nacre_watch *watch;
    enum stage stage;
    const char *key; /* the rest of the keys */
    char pressed[KEY_BYTES];
    struct buf pasted;
    int columns, rows; /* it is to have */
    bool terminal;
    uint64_t printed; /* when it was looked at last, */
    int64_t still_ns; /* and when it counts as still */
    struct feeding feeding;
    char word[64]; /* what is being done, in words */
    int64_t deadline_ns;
    struct buf wrote; /* what was done, in words */
    bool over;        /* there is nobody to feed */
    struct await await;
    struct beside reading; /* of a terminal: who reads again */
    struct reading_look look;
};

/* clang-format off */
static const struct arg input_args_table[] = {
    {"id", ARG_TEXT, offsetof(struct input_args, id), .required = true, .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "The id or name of the shell."},
    {"input", ARG_BYTES, offsetof(struct input_args, input), .aliases = "text",
     .example = "\"yes\\n\"",
     .help = "Text to write, as it is: a line needs its \\n."},
    {"keys", ARG_TEXT, offsetof(struct input_args, keys), .least = 1, .example = "\"C-c\"",
     .help = "Keys to press after the text, with blanks between: C-c interrupts (also a shell "
             "whose stdin was not kept), C-\\ quits, C-d ends the input, enter, tab, space. On a "
             "terminal all keys: up, pgdn, f5, esc, backspace, C-x, M-x, S-tab, or a character."},
    {"paste", ARG_BYTES, offsetof(struct input_args, paste), .example = "\"a b\"",
     .help = "Terminal: text to paste after that, in brackets if the program asks for them."},
    {"eof", ARG_FLAG, offsetof(struct input_args, eof), .example = "true",
     .help = "Close its stdin afterwards; on a terminal, as C-d at the beginning of a line."},
    {"resize", ARG_TEXT, offsetof(struct input_args, resize), .least = 1, .example = "\"80x24\"",
     .help = "Terminal: give it this size first, columns and rows."},
    {"wait", ARG_SECONDS, offsetof(struct input_args, await.wait), .least = 0, .most = YEAR_MS,
     .aliases = "wait_ms timeout timeout_ms", .example = "5",
     .help = "Answer with what it prints: seconds to wait for that or the end; {wait} at most. "
             "With until or idle the most if not given. On a terminal: until nothing was drawn for "
             "a moment; 0.3s if not given."},
    {"until", ARG_TEXT, offsetof(struct input_args, await.until), .least = 1, .example = "\">>> $\"",
     .help = "Answer with what it prints until that matches this regular expression, such as its "
             "prompt."},
    {"idle", ARG_SECONDS, offsetof(struct input_args, await.idle), .least = 1, .most = YEAR_MS,
     .aliases = "idle_ms", .example = "0.5",
     .help = "Answer with what it prints until it was silent for so many seconds."},
    {"max_output_tokens", ARG_COUNT, offsetof(struct input_args, tokens), .least = 1,
     .most = CALL_BUDGET_MAX / NACRE_TOKEN_BYTES, .example = "5000",
     .help = "The most to show; {answer} if not given."},
    {0},
};
/* clang-format on */

/* -- Keys ------------------------------------------------------------------------------------- */

struct key {
    const char *name;
    const char *text; /* to write, or NULL */
    int signal;       /* to send, or 0 */
    bool eof;
};

/* What keys do where there is no terminal. */
static const struct key keys[] = {
    {"C-c", NULL, SIGINT, false}, {"C-\\", NULL, SIGQUIT, false}, {"C-d", NULL, 0, true},
    {"enter", "\n", 0, false},    {"return", "\n", 0, false},     {"tab", "\t", 0, false},
    {"space", " ", 0, false},
};

static const struct key *find_key(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strlen(keys[i].name) == length && strncasecmp(keys[i].name, name, length) == 0)
            return &keys[i];
    return NULL;
}

/* All of them are checked before the first one is pressed. */
static int check_keys(const char *list, bool terminal, nacre_error *err)
{
    char bytes[KEY_BYTES];
    for (const char *at = list + strspn(list, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (terminal && terminal_key(at, length, false, bytes) == 0)
            return err_set(err, NACRE_EINVAL,
                           "keys: there is no key \"%.*s\"; they are named like up, pgdn, f5, esc, "
                           "enter, C-x, M-x",
                           (int)MIN(length, (size_t)20), at);
        if (!terminal && !find_key(at, length))
            return err_set(err, NACRE_EINVAL,
                           "keys: \"%.*s\" needs a terminal, or is no key; without one there are "
                           "C-c, C-\\, C-d, enter, tab and space",
                           (int)MIN(length, (size_t)20), at);
        at += length;
    }
    return 0;
}

/* -- Doing it --------------------------------------------------------------------------------- */

static int write_stdin(nacre_call *c, const char *data, size_t size, nacre_error *err)
{
    struct input *in = c->state;
    snprintf(in->word, sizeof in->word, "wrote %zu bytes", size);
    return feeding_write(&in->feeding, c, &in->id, data, size, false, err);
}

static int close_stdin(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    snprintf(in->word, sizeof in->word, "closed its stdin");
    return feeding_write(&in->feeding, c, &in->id, "", 0, true, err);
}

/* By the modes that are in force now: the key before may have changed them. */
static int press_on_terminal(nacre_call *c, const char *name, size_t length, nacre_error *err)
{
    struct input *in = c->state;
    nacre_screen screen = NACRE_SCREEN_INIT;
    int r = session_screen(c->session, &in->id, &screen, err);
    if (r < 0)
        return r;
    size_t size = terminal_key(name, length, screen.cursor_keys != 0, in->pressed);
    nacre_screen_done(&screen);
    snprintf(in->word, sizeof in->word, "pressed %.*s", (int)MIN(length, (size_t)20), name);
    return feeding_write(&in->feeding, c, &in->id, in->pressed, size, false, err);
}

/* In brackets, for a program that wants to know where it ends; the end is not in what is pasted. */
static int paste(nacre_call *c, const struct arg_bytes *text, nacre_error *err)
{
    static const char begin[] = "\x1b[200~", end[] = "\x1b[201~";
    struct input *in = c->state;
    nacre_screen screen = NACRE_SCREEN_INIT;
    int r = session_screen(c->session, &in->id, &screen, err);
    bool brackets = r == 0 && screen.paste;
    nacre_screen_done(&screen);
    if (r < 0)
        return r;
    in->pasted = BUF_UP_TO(text->size + sizeof begin + sizeof end);
    r = brackets ? buf_str(&in->pasted, begin) : 0;
    for (size_t i = 0; r == 0 && i < text->size; i++)
        if (!brackets || text->data[i] != 0x1b)
            r = buf_append(&in->pasted, &text->data[i], 1);
    if (r == 0 && brackets)
        r = buf_str(&in->pasted, end);
    if (r < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    snprintf(in->word, sizeof in->word, "pasted %zu bytes", text->size);
    return feeding_write(&in->feeding, c, &in->id, in->pasted.data, in->pasted.len, false, err);
}

static int resize(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    snprintf(in->word, sizeof in->word, "resized it to %dx%d", in->columns, in->rows);
    return feeding_resize(&in->feeding, c, &in->id, in->columns, in->rows, err);
}

static int press(nacre_call *c, const char *name, size_t length, nacre_error *err)
{
    struct input *in = c->state;
    char signal[16];
    if (in->terminal)
        return press_on_terminal(c, name, length, err);
    const struct key *key = find_key(name, length);
    if (key->text)
        return write_stdin(c, key->text, strlen(key->text), err);
    if (key->eof)
        return close_stdin(c, err);
    snprintf(in->word, sizeof in->word, "sent %s",
             nacre_signal_name(key->signal, signal, sizeof signal));
    return feeding_signal(&in->feeding, c, &in->id, key->signal, err);
}

/* Begins what comes next. Nothing is left when the stage is to watch. */
static int begin_word(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    in->word[0] = '\0';
    switch (in->stage) {
    case STAGE_RESIZE:
        in->stage = STAGE_TEXT;
        return a->resize ? resize(c, err) : TOOL_DONE;
    case STAGE_PASTE:
        in->stage = STAGE_KEYS;
        in->key = a->keys ? a->keys : "";
        return a->paste.size > 0 ? paste(c, &a->paste, err) : TOOL_DONE;
    case STAGE_TEXT:
        in->stage = STAGE_PASTE;
        return a->input.size > 0 ? write_stdin(c, a->input.data, a->input.size, err) : TOOL_DONE;
    case STAGE_KEYS:
        in->key += strspn(in->key, " ");
        if (*in->key) {
            const char *key = in->key;
            in->key += strcspn(key, " ");
            return press(c, key, (size_t)(in->key - key), err);
        }
        in->stage = STAGE_EOF;
        return TOOL_DONE;
    case STAGE_EOF:
        in->stage = STAGE_WATCH;
        return a->eof ? close_stdin(c, err) : TOOL_DONE;
    case STAGE_WATCH:
        break;
    }
    return TOOL_DONE;
}

/* What was done before something went wrong is said with it. */
static int explain(const struct input *in, int r, nacre_error *err)
{
    nacre_error cause = *err;
    if (in->wrote.len > 0)
        err_set(err, r, "%.300s (before that: %.100s)", cause.msg, in->wrote.data);
    return r;
}

/* TOOL_DONE when there is nothing more to do. */
static int feed_words(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    while (in->feeding.op || in->stage != STAGE_WATCH) {
        int r = in->feeding.op ? feeding_step(&in->feeding, c, err) : begin_word(c, err);
        if (r == TOOL_WAIT)
            return TOOL_WAIT;
        if (r < 0)
            return explain(in, r, err);
        if (in->word[0])
            buf_printf(&in->wrote, "%s%s", in->wrote.len > 0 ? ", " : "", in->word);
    }
    return TOOL_DONE;
}

static int check_shell(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    void *self;
    int r = call_find(c, a->id, &in->id, err);
    if (r == 0)
        r = session_check_id(c->session, &in->id, false, err);
    if (r == 0)
        r = session_record(c->session, &in->id, HOME_PLAIN, &record, NULL, err);
    if (r < 0)
        return r;
    in->over = record.outcome != NACRE_RUNNING;
    in->terminal = record.columns > 0;
    in->printed = record.bytes[NACRE_STDOUT];
    if (!in->terminal && (a->paste.data || a->resize))
        return err_set(err, NACRE_EINVAL,
                       "shell %s has no terminal: paste and resize are for one that was started "
                       "with tty",
                       nacre_id_short(&in->id).s);
    bool feeds = a->input.size > 0 || a->eof;
    if (!in->over && feeds && !session_ops_of(c->session, &in->id, &self)->input)
        r = err_set(err, NACRE_EUNSUPPORTED,
                    "shell %s runs in a terminal of the client's, which takes no input",
                    nacre_id_short(&in->id).s);
    else if (!in->over && feeds && record.input != NACRE_STDIN_PIPE)
        r = err_set(err, NACRE_ECLOSED,
                    "shell %s has no stdin to write to: it was started without keep_stdin; C-c "
                    "works all the same",
                    nacre_id_short(&in->id).s);
    return r;
}

/* Whether nothing was drawn for a while since the first thing that was. */
static bool is_still(struct input *in)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (!in->terminal || nacre_watch_record(in->watch, &record, NULL) < 0)
        return false;
    if (record.bytes[NACRE_STDOUT] > in->printed) {
        in->printed = record.bytes[NACRE_STDOUT];
        in->still_ns = clock_deadline(STILL_MS);
    }
    return in->still_ns > 0 && clock_left_ms(in->still_ns) == 0;
}

/* Once somebody reads again, what was typed has had its effect. */
static int await_reader(nacre_call *c)
{
    struct input *in = c->state;
    nacre_op *op;
    nacre_error ignored;
    if (!in->reading.op &&
        (session_reads(c->session, &in->id, NACRE_READS_TYPED, 0, &op, &ignored) < 0 ||
         beside_begin(&in->reading, op, nacre_watch_fd(in->watch), &ignored) < 0))
        return TOOL_WAIT;
    int r = beside_step(&in->reading, &ignored);
    if (r > 0)
        in->look.read = *(const nacre_reading *)in->reading.op->result;
    if (r > 0)
        return TOOL_DONE;
    if (r == 0) {
        c->fd = beside_fd(&in->reading);
        c->wake_ns = MIN(c->wake_ns, beside_wake_ns(&in->reading));
    }
    return TOOL_WAIT;
}

/* Waits for what a key or the end of file may do to it. */
static int await_effect(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    for (;;) {
        nacre_event event;
        int r = nacre_watch_next(in->watch, NULL, 0, &event, err);
        if (r < 0)
            return r;
        if (event.kind == NACRE_EVENT_SETTLED || event.kind == NACRE_EVENT_END)
            return TOOL_DONE;
        if (event.kind == NACRE_EVENT_NONE)
            break;
    }
    bool still = is_still(in);
    c->fd = session_watch_fd(in->watch);
    c->wake_ns = in->still_ns > 0 ? MIN(in->deadline_ns, in->still_ns) : in->deadline_ns;
    if (still || clock_left_ms(in->deadline_ns) == 0)
        return TOOL_DONE;
    return in->terminal ? await_reader(c) : TOOL_WAIT;
}

/* TOOL_DONE when nothing more is to be waited for; then who reads is looked at. */
static int await_what_comes(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    int r = in->look.looked    ? TOOL_DONE
            : in->await.follow ? await_step(&in->await, c, err)
                               : await_effect(c, err);
    if (r != TOOL_DONE || c->fresh || in->look.read.size > 0)
        return r;
    return reading_look(&in->look, c, &in->id);
}

static int input_step(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    if (in->deadline_ns == 0) {
        int r = feed_words(c, err);
        if (r != TOOL_DONE)
            return r;
        bool waits = a->keys || a->eof || in->terminal;
        int64_t most = in->terminal && in->await.waited_ms > 0 ? in->await.waited_ms : MOMENT_MS;
        in->deadline_ns = clock_deadline(waits ? most : 0);
        await_start(&in->await);
        /* Its keeper has answered this very moment. */
        c->fresh = !in->terminal && !a->keys && !a->eof && !session_mirrors(c->session, &in->id);
    }
    return await_what_comes(c, err);
}

/* From before what is done on: what comes of it shall be heard. */
static int await_answer(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    struct await_args wanted = a->await;
    wanted.port = -1;
    int r = await_read(&in->await, c, &wanted, err);
    /* A terminal is waited for until it is still, unless something else is asked for. */
    bool follows = !in->terminal || a->await.until || a->await.idle >= 0;
    if (r == 0 && await_is_wanted(&in->await) && follows) {
        r = session_record(c->session, &in->id, HOME_LIGHT, &record, NULL, err);
        uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
        return r < 0 ? r : await_listen(&in->await, c, &wanted, &in->id, &end, 1, err);
    }
    if (r == 0)
        r = nacre_watch_open(c->session, &in->id, UINT64_MAX, &in->watch, err);
    if (r == 0)
        nacre_watch_skip_output(in->watch);
    return r;
}

static int parse_resize(const char *text, struct input *in, nacre_error *err)
{
    char end;
    if (sscanf(text, "%3dx%3d%c", &in->columns, &in->rows, &end) != 2)
        return err_set(err, NACRE_EINVAL,
                       "resize: columns and rows are missing, such as \"resize\": \"80x24\"; got "
                       "\"%.20s\"",
                       text);
    return 0;
}

static int input_begin(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    in->wrote = BUF_UP_TO(4096);
    call_set_budget(c, a->tokens);
    if (!a->input.data && !a->paste.data && !a->keys && !a->eof && !a->resize)
        return err_set(err, NACRE_EINVAL,
                       "input, keys or eof is missing, such as \"keys\": \"C-c\"");
    int r = a->resize ? parse_resize(a->resize, in, err) : 0;
    if (r == 0)
        r = check_shell(c, err);
    if (r == 0 && a->keys)
        r = check_keys(a->keys, in->terminal, err);
    if (r < 0 || in->over)
        return r < 0 ? r : TOOL_DONE;
    r = await_answer(c, err);
    return r < 0 ? r : input_step(c, err);
}

/* What it printed says more than what was written. */
static int answer_with_output(struct answer *a, const struct input *in, const nacre_record *record,
                              nacre_error *err)
{
    if (!in->await.until || !follow_matched(in->await.follow, 0))
        await_note(&in->await, a, 0, record);
    await_note_time(&in->await, a);
    answer_reading(a, record, &in->look.read);
    return answer_news(a, record, answer_room(a), err);
}

/* What it looks like now; its end is one that was shown. */
static int answer_terminal(const struct input *in, struct answer *a, const nacre_record *record,
                           nacre_error *err)
{
    int r = answer_screen(a, record, err);
    if (in->await.follow && (!in->await.until || !follow_matched(in->await.follow, 0)))
        await_note(&in->await, a, 0, record);
    await_note_time(&in->await, a);
    answer_reading(a, record, &in->look.read);
    answer_note(a, "%s", in->wrote.data ? in->wrote.data : "wrote nothing");
    bool ended = record->outcome != NACRE_RUNNING;
    return r == 0 && ended ? answer_shows(a, &record->id, NULL, true, err) : r;
}

static int input_answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct input *in = c->state;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    char status[64];
    int r = call_record(c, &in->id, &record, err);
    if (r < 0)
        return r;
    if (in->terminal && !in->over)
        return answer_terminal(in, a, &record, err);
    if (in->await.follow)
        return answer_with_output(a, in, &record, err);
    bool ended = record.outcome != NACRE_RUNNING;
    r = answer_line(a, err, "[shell %s \xe2\x80\x94 %s]", nacre_id_short(&in->id).s,
                    nacre_status(&record, status, sizeof status));
    if (r == 0)
        r = answer_text(a,
                        in->over         ? "it has ended and takes no input any more"
                        : in->wrote.data ? in->wrote.data
                                         : "wrote nothing",
                        err);
    if (r == 0)
        r = answer_text(a, "\n", err);
    a->is_error = in->over;
    answer_run(a, &record);
    if (r == 0 && ended)
        r = answer_shows(a, &in->id, NULL, true, err);
    return r;
}

static const nacre_id *input_subjects(const nacre_call *c, size_t *ret_count)
{
    const struct input *in = c->state;
    *ret_count = 1;
    return &in->id;
}

static void input_done(nacre_call *c)
{
    struct input *in = c->state;
    feeding_done(&in->feeding);
    beside_end(&in->reading);
    reading_look_end(&in->look);
    nacre_watch_close(in->watch);
    await_done(&in->await);
    buf_done(&in->wrote);
    buf_done(&in->pasted);
}

const struct tool tool_bash_input = {
    .name = "bash_input",
    .title = "Write to a background shell",
    .description = "Writes text or keys to the stdin of a shell that was started with keep_stdin, "
                   "or interrupts one with C-c. With wait, until or idle it answers with what that "
                   "printed: one call for each line typed. Without, it says what was written and "
                   "whether it still runs. Of a shell with a terminal the answer is its screen.",
    .args = input_args_table,
    .args_size = sizeof(struct input_args),
    .state_size = sizeof(struct input),
    .destructive = true,
    .open_world = true,
    .begin = input_begin,
    .step = input_step,
    .answer = input_answer,
    .subjects = input_subjects,
    .done = input_done,
};
