/* bash_input: text, keys and the end of file for a shell whose stdin was kept open. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "tool/tool.h"

#define FEED_MS   2000 /* a shell that does not read has a pipe of 64 KiB to fill first */
#define MOMENT_MS 300  /* what a signal does is seen by then */

struct input_args {
    const char *id;
    struct arg_bytes input;
    const char *keys;
    bool eof;
};

struct input {
    nacre_id id;
    nacre_watch *watch;
    int64_t deadline_ns;
    struct buf wrote; /* what was done, in words */
    bool over;        /* there is nobody to feed */
};

/* clang-format off */
static const struct arg args[] = {
    {"id", ARG_TEXT, offsetof(struct input_args, id), .required = true, .least = 1,
     .aliases = "shell_id task_id bash_id session_id", .example = "\"ab12cd34\"",
     .help = "The id of the shell."},
    {"input", ARG_BYTES, offsetof(struct input_args, input), .aliases = "text",
     .example = "\"yes\\n\"",
     .help = "Text to write, as it is: a line needs its \\n."},
    {"keys", ARG_TEXT, offsetof(struct input_args, keys), .least = 1, .example = "\"C-c\"",
     .help = "Keys to press after the text, with blanks between: C-c interrupts (also a shell "
             "whose stdin was not kept), C-\\ quits, C-d ends the input, enter, tab, space."},
    {"eof", ARG_FLAG, offsetof(struct input_args, eof), .example = "true",
     .help = "Close its stdin afterwards."},
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
static int check_keys(const char *list, nacre_error *err)
{
    for (const char *at = list + strspn(list, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (!find_key(at, length))
            return err_set(err, NACRE_EINVAL,
                           "keys: \"%.*s\" needs a terminal, or is no key; without one there are "
                           "C-c, C-\\, C-d, enter, tab and space",
                           (int)MIN(length, (size_t)20), at);
        at += length;
    }
    return 0;
}

/* -- Doing it --------------------------------------------------------------------------------- */

static void say(struct input *in, const char *what)
{
    buf_printf(&in->wrote, "%s%s", in->wrote.len > 0 ? ", " : "", what);
}

static int write_bytes(nacre_call *c, const char *data, size_t size, nacre_error *err)
{
    struct input *in = c->state;
    char what[96];
    int64_t n = nacre_input(c->session, &in->id, data, size, 0, FEED_MS, err);
    if (n < 0)
        return (int)n;
    snprintf(what, sizeof what,
             (size_t)n < size ? "wrote only %lld of %zu bytes" : "wrote %lld bytes", (long long)n,
             size);
    say(in, what);
    return (size_t)n < size ? err_set(err, NACRE_ETIMEOUT, "%s: shell %s does not read its stdin",
                                      what, nacre_id_short(&in->id).s)
                            : 0;
}

static int close_stdin(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    int64_t n = nacre_input(c->session, &in->id, "", 0, 1, FEED_MS, err);
    if (n >= 0)
        say(in, "closed its stdin");
    return (int)MIN(n, INT64_C(0));
}

static int press(nacre_call *c, const struct key *key, nacre_error *err)
{
    struct input *in = c->state;
    char what[64], name[16];
    if (key->text)
        return write_bytes(c, key->text, strlen(key->text), err);
    if (key->eof)
        return close_stdin(c, err);
    int r = nacre_signal(c->session, &in->id, key->signal, err);
    snprintf(what, sizeof what, "sent %s", nacre_signal_name(key->signal, name, sizeof name));
    if (r == 0)
        say(in, what);
    return r;
}

static int press_all(nacre_call *c, const char *list, nacre_error *err)
{
    int r = 0;
    for (const char *at = list + strspn(list, " "); r == 0 && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        r = press(c, find_key(at, length), err);
        at += length;
    }
    return r;
}

static int do_all(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    int r = a->input.size > 0 ? write_bytes(c, a->input.data, a->input.size, err) : 0;
    if (r == 0 && a->keys)
        r = press_all(c, a->keys, err);
    if (r == 0 && a->eof)
        r = close_stdin(c, err);
    return r;
}

static int check_shell(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    nacre_record record = NACRE_RECORD_INIT;
    int r = call_find(c, a->id, &in->id, err);
    if (r == 0)
        r = nacre_get(c->session, &in->id, &record, err);
    if (r < 0)
        return r;
    in->over = record.outcome != NACRE_RUNNING;
    bool feeds = a->input.size > 0 || a->eof;
    if (!in->over && feeds && record.input != NACRE_STDIN_PIPE)
        r = err_set(err, NACRE_ECLOSED,
                    "shell %s has no stdin to write to: it was started without keep_stdin; C-c "
                    "works all the same",
                    nacre_id_short(&in->id).s);
    nacre_record_done(&record);
    return r;
}

static int begin(nacre_call *c, nacre_error *err)
{
    const struct input_args *a = c->args;
    struct input *in = c->state;
    buf_init(&in->wrote, 4096);
    if (!a->input.data && !a->keys && !a->eof)
        return err_set(err, NACRE_EINVAL,
                       "input, keys or eof is missing, such as \"keys\": \"C-c\"");
    int r = a->keys ? check_keys(a->keys, err) : 0;
    if (r == 0)
        r = check_shell(c, err);
    if (r < 0 || in->over)
        return r < 0 ? r : TOOL_DONE;
    /* From before what is done on: its end shall be heard. */
    r = nacre_watch_open(c->session, &in->id, UINT64_MAX, &in->watch, err);
    if (r == 0)
        r = do_all(c, err);
    if (r < 0)
        return r;
    nacre_watch_skip_output(in->watch);
    in->deadline_ns = clock_deadline(a->keys || a->eof ? MOMENT_MS : 0);
    c->wake_ns = in->deadline_ns;
    c->fd = nacre_watch_fd(in->watch);
    return TOOL_WAIT;
}

static int step(nacre_call *c, nacre_error *err)
{
    struct input *in = c->state;
    for (;;) {
        nacre_event event;
        int r = nacre_watch_next(in->watch, NULL, 0, &event, err);
        if (r < 0)
            return r;
        if (event.kind == NACRE_EVENT_NONE)
            return clock_left_ms(in->deadline_ns) > 0 ? TOOL_WAIT : TOOL_DONE;
        if (event.kind == NACRE_EVENT_SETTLED || event.kind == NACRE_EVENT_END)
            return TOOL_DONE;
    }
}

static int answer(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct input *in = c->state;
    nacre_record record = NACRE_RECORD_INIT;
    char status[64];
    int r = nacre_get(c->session, &in->id, &record, err);
    if (r < 0)
        return r;
    bool ended = record.outcome != NACRE_RUNNING;
    r = answer_printf(a, err, "[shell %s \xe2\x80\x94 %s]\n", nacre_id_short(&in->id).s,
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
    nacre_record_done(&record);
    return r;
}

static void done(nacre_call *c)
{
    struct input *in = c->state;
    nacre_watch_close(in->watch);
    buf_done(&in->wrote);
}

const struct tool tool_bash_input = {
    .name = "bash_input",
    .title = "Write to a background shell",
    .description = "Writes text or keys to the stdin of a shell that was started with keep_stdin, "
                   "or interrupts one with C-c. Says what was written and whether it still runs; "
                   "read what it answers with bash_output.",
    .args = args,
    .args_size = sizeof(struct input_args),
    .state_size = sizeof(struct input),
    .destructive = true,
    .open_world = true,
    .begin = begin,
    .step = step,
    .answer = answer,
    .done = done,
};
