/* nacre log: what was started, ended, killed, refused and asked in this home, by whom, in the order
 * of time. */
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "base/grow.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "session/audit.h"

#define LOOK_MS 1000 /* while there is no log that could be watched */

struct log_options {
    bool follow;
    uint64_t last; /* UINT64_MAX = all */
    const char *since;
    const char *session;
    bool json;
};

/* One line of the log of a session. */
struct log_event {
    json_t *line;
    nacre_id session;
    const char *time; /* borrowed of the line, "" if it has none */
};

/* How far the log of a session was read. */
struct progress {
    nacre_id session;
    off_t offset;
};

struct log_show {
    const struct log_options *options;
    nacre_session *session;
    const char *home;
    struct sessions only; /* if a session was asked for */
    char since[40];       /* as lines have their time; "" = from the beginning */
    struct paint paint;
    bool person; /* stdout is a terminal */
    struct progress *logs;
    size_t log_count, log_cap;
    struct log_event *entries; /* that are not printed yet */
    size_t entry_count, entry_cap;
    int error; /* -errno */
};

/* -- Reading ---------------------------------------------------------------------------------- */

static int show_event(struct log_show *l, const nacre_id *session, const char *text, size_t size)
{
    json_t *line = json_loadb(text, size, 0, NULL);
    const char *time = json_string_value(json_object_get(line, "time"));
    struct log_event entry = {line, *session, time ? time : ""};
    if (!line || strcmp(entry.time, l->since) < 0) {
        json_decref(line);
        return 0;
    }
    if (GROW(l->entries, l->entry_count, l->entry_cap) < 0) {
        json_decref(line);
        return -ENOMEM;
    }
    l->entries[l->entry_count++] = entry;
    return 0;
}

static struct progress *progress_of(struct log_show *l, const nacre_id *session)
{
    for (size_t i = 0; i < l->log_count; i++)
        if (nacre_id_equal(&l->logs[i].session, session))
            return &l->logs[i];
    if (GROW(l->logs, l->log_count, l->log_cap) < 0)
        return NULL;
    l->logs[l->log_count] = (struct progress){.session = *session};
    return &l->logs[l->log_count++];
}

/* What came since the last look; a line that is not whole yet is left for the next one. */
static void read_events(const nacre_id *session, UNUSED int64_t changed_ms, UNUSED uint64_t cost,
                        void *userdata)
{
    struct log_show *l = userdata;
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (l->error < 0 || (l->options->session && !sessions_have(&l->only, session)))
        return;
    struct progress *progress = progress_of(l, session);
    l->error = progress ? audit_read(l->home, session, progress->offset, &text) : -ENOMEM;
    size_t at = 0;
    for (const char *end;
         l->error == 0 && text.len > at && (end = memchr(text.data + at, '\n', text.len - at));) {
        size_t size = (size_t)(end - text.data) - at;
        l->error = show_event(l, session, text.data + at, size);
        at += size + 1;
    }
    if (progress)
        progress->offset += (off_t)at;
}

static int by_time(const void *a, const void *b)
{
    return strcmp(((const struct log_event *)a)->time, ((const struct log_event *)b)->time);
}

/* -- Printing --------------------------------------------------------------------------------- */

static const char *text_in(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

static long long number_in(const json_t *line, const char *key)
{
    return (long long)json_integer_value(json_object_get(line, key));
}

/* "  (ask: once, by form)" */
static int describe_verdict(const json_t *line, struct buf *out)
{
    const char *verdict = text_in(line, "verdict"), *answer = text_in(line, "answer");
    const char *way = text_in(line, "way");
    return *verdict ? buf_printf(out, "  (%s%s%s%s%s)", verdict, *answer ? ": " : "", answer,
                                 *way ? ", by " : "", way)
                    : 0;
}

static int describe_start(const json_t *line, struct buf *out)
{
    const char *name = text_in(line, "name");
    int r = buf_printf(out, "%s%s%s%s%s", *name ? "[" : "", name, *name ? "] " : "",
                       text_in(line, "command"),
                       json_is_true(json_object_get(line, "background")) ? "  (background)" : "");
    return r == 0 ? describe_verdict(line, out) : r;
}

static int describe_question(const json_t *line, struct buf *out)
{
    return buf_printf(out, "%.8s: %s  (%s)", text_in(line, "question"), text_in(line, "command"),
                      text_in(line, "reason"));
}

static int describe_answer(const json_t *line, struct buf *out)
{
    return buf_printf(out, "%.8s: %s, by %s: %s", text_in(line, "question"),
                      text_in(line, "answer"), text_in(line, "way"), text_in(line, "command"));
}

static int describe_end(const json_t *line, struct buf *out)
{
    char took[AGE_TEXT], bytes[BYTES_TEXT];
    long long printed = number_in(line, "stdout_bytes") + number_in(line, "stderr_bytes");
    return buf_printf(out, "%s after %s, %s bytes", text_in(line, "status"),
                      brief_duration(number_in(line, "elapsed_ms"), took),
                      brief_bytes((uint64_t)printed, bytes));
}

static int describe_kill(const json_t *line, struct buf *out)
{
    bool person = strcmp(text_in(line, "by"), "person") == 0;
    return buf_printf(out, "%s%s: %lld signalled, %lld needed SIGKILL, %lld survived",
                      text_in(line, "signal"), person ? " by a person" : "",
                      number_in(line, "signalled"), number_in(line, "force_killed"),
                      number_in(line, "survivors"));
}

static int describe_denial(const json_t *line, struct buf *out)
{
    int r = buf_printf(out, "%s: %s", text_in(line, "command"), text_in(line, "why"));
    return r == 0 && *text_in(line, "answer") ? describe_verdict(line, out) : r;
}

static const struct event_words {
    const char *name;
    int (*describe_entry)(const json_t *line, struct buf *out);
} event_words[] = {{"start", describe_start},       {"end", describe_end},
                   {"kill", describe_kill},         {"denial", describe_denial},
                   {"question", describe_question}, {"answer", describe_answer}};

static int describe_entry(const json_t *line, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(event_words); i++)
        if (strcmp(event_words[i].name, text_in(line, "event")) == 0)
            return event_words[i].describe_entry(line, out);
    return 0;
}

static bool is_bad(const json_t *line)
{
    const char *status = text_in(line, "status");
    return strcmp(text_in(line, "event"), "denial") == 0 || status_has_failed(status);
}

/* "2026-11-18 19:09:24", where the terminal is. */
static void local_time(const char *time, char *ret_text, size_t size)
{
    struct tm utc = {0}, local;
    time_t seconds = strptime(time, "%Y-%m-%dT%H:%M:%S", &utc) ? timegm(&utc) : 0;
    if (!localtime_r(&seconds, &local) || strftime(ret_text, size, "%F %T", &local) == 0)
        snprintf(ret_text, size, "-");
}

static int print_for_person(const struct log_show *l, const struct log_event *e, const char *text)
{
    static const size_t before =
        19 + 2 + 8 + 2 + 8 + 2; /* columns of what stands before the text */
    size_t columns = output_columns();
    char when[40];
    struct buf fit cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    local_time(e->time, when, sizeof when);
    if (brief_line(&fit, text, columns > before + 8 ? columns - before : 8) < 0)
        return -ENOMEM;
    printf("%s%s%s  %-8.8s  %-8.8s  %s%s%s\n", l->paint.dim, when, l->paint.off,
           text_in(e->line, "event"), text_in(e->line, "id"), is_bad(e->line) ? l->paint.bad : "",
           fit.data ? fit.data : "", l->paint.off);
    return 0;
}

static int print_entry_json(const struct log_event *e)
{
    json_object_set_new(e->line, "session", json_string(nacre_id_format(&e->session).s));
    cleanup_free char *text = json_dumps(e->line, JSON_COMPACT | JSON_ENSURE_ASCII);
    return text && puts(text) >= 0 ? 0 : -ENOMEM;
}

static int print_log_line(const struct log_show *l, const struct log_event *e)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    struct buf inline_text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (l->options->json)
        return print_entry_json(e);
    if (describe_entry(e->line, &text) < 0 ||
        brief_line(&inline_text, text.data ? text.data : "", COLUMNS_UNLIMITED) < 0)
        return -ENOMEM;
    const char *words = inline_text.data ? inline_text.data : "";
    if (l->person)
        return print_for_person(l, e, words);
    printf("%s\t%s\t%s\t%s\t%s\n", e->time, text_in(e->line, "event"),
           *text_in(e->line, "id") ? text_in(e->line, "id") : "-", nacre_id_format(&e->session).s,
           words);
    return 0;
}

/* Prints what was read since the last time, and forgets it. */
static int print_entries(struct log_show *l, uint64_t last)
{
    int r = l->error;
    if (l->entry_count > 1)
        qsort(l->entries, l->entry_count, sizeof *l->entries, by_time);
    for (size_t i = 0; i < l->entry_count; i++) {
        if (r == 0 && l->entry_count - i <= last)
            r = print_log_line(l, &l->entries[i]);
        json_decref(l->entries[i].line);
    }
    l->entry_count = 0;
    if (r < 0)
        return failure("log: cannot read what happened: %s", err_text(-r));
    return finish_output();
}

/* -- Following -------------------------------------------------------------------------------- */

/* Until something was written; false when nobody reads any more. */
static bool wait_for_more(struct log_show *l, int *watch)
{
    char path[PATH_MAX + 16], events[4096];
    snprintf(path, sizeof path, "%s/audit", l->home);
    if (*watch < 0 && (*watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) >= 0 &&
        inotify_add_watch(*watch, path, IN_MODIFY | IN_CREATE | IN_ONLYDIR) < 0)
        close_fd(watch);
    else if (*watch >= 0 && l->log_count == 0)
        return true; /* what came before there was a watch */
    struct pollfd fds[] = {{.fd = *watch, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    poll(fds, ARRAY_SIZE(fds), *watch >= 0 ? -1 : LOOK_MS);
    while (*watch >= 0 && read(*watch, events, sizeof events) > 0)
        ;
    return !(fds[1].revents & (POLLERR | POLLHUP));
}

static int show_log(struct log_show *l)
{
    cleanup_close int watch = -EBADF;
    audit_each(l->home, read_events, l);
    int status = print_entries(l, l->options->last);
    while (status == STATUS_OK && l->options->follow && wait_for_more(l, &watch)) {
        audit_each(l->home, read_events, l);
        status = print_entries(l, UINT64_MAX);
    }
    return status;
}

/* As the lines of logs have it, so that texts can be compared. */
static int take_since(struct log_show *l)
{
    int64_t ms;
    struct tm tm;
    int status = parse_since("log", l->options->since, &ms);
    if (status != STATUS_OK || !l->options->since)
        return status;
    time_t seconds = (time_t)(ms / 1000);
    gmtime_r(&seconds, &tm);
    strftime(l->since, sizeof l->since, "%Y-%m-%dT%H:%M:%S", &tm);
    return STATUS_OK;
}

static int print_log(const void *options, UNUSED char **words, UNUSED size_t count)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    struct log_show l = {
        .options = options, .paint = paint_for(stdout), .person = isatty(STDOUT_FILENO)};
    int status = take_since(&l);
    if (status == STATUS_OK)
        status = open_session(&session);
    if (status == STATUS_OK && l.options->session)
        status = sessions_find(session, l.options->session, &l.only);
    if (status == STATUS_OK && nacre_session_home(session, &l.home, NULL, &error) < 0)
        status = library_failure(&error);
    if (status == STATUS_OK)
        status = show_log(&l);
    free(l.logs);
    free(l.entries);
    free_sessions(&l.only);
    return status;
}

const struct verb verb_log = {
    .name = "log",
    .words = "",
    .summary = "print what was started, ended, killed and refused, and when",
    .details =
        "One line per event, of all sessions, oldest first: time, start, end, kill, denial (a\n"
        "start that was refused, or what a rule refused a shell to run), question or answer, id, "
        "and what there is to say. On a pipe "
        "there is a tab\n"
        "between the parts, the session's id before the last one, and nothing is cut. Logs go\n"
        "with their sessions (\"nacre help gc\"); the setting audit switches them off.\n"
        "\n"
        "examples:\n"
        "  nacre log --last 20\n"
        "  nacre log --follow --session agent\n",
    .options = {{"follow", NULL, "go on as things happen", OPTION_FLAG, false,
                 offsetof(struct log_options, follow), 'f'},
                {"last", "N", "only the last N events", OPTION_COUNT, false,
                 offsetof(struct log_options, last), 'n'},
                {"since", "T", "only events since then: 10m, 2h, 1d, 2026-11-15T14:30", OPTION_TEXT,
                 false, offsetof(struct log_options, since)},
                {"session", "S", "only those of a session, by its name or id", OPTION_TEXT, false,
                 offsetof(struct log_options, session), 0, OFFERED_SESSIONS},
                {"json", NULL, "an object for each event, on a line of its own", OPTION_FLAG, false,
                 offsetof(struct log_options, json)}},
    .options_size = sizeof(struct log_options),
    .defaults = &(const struct log_options){.last = UINT64_MAX},
    .run = print_log,
};
