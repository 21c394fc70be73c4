/* nacre output: what a shell printed, from any offset on, once or as it comes. */
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/verbs.h"
#include "console/out.h"
#include "console/shells.h"
#include "console/tail.h"
#include "screen/harmless.h"

#define CHUNK 65536

struct output_options {
    bool follow;
    uint64_t tail; /* UINT64_MAX = all */
    uint64_t offset;
    const char *since;
    const char *stream;
    bool timestamps;
    bool raw;
};

struct reader {
    nacre_session *session;
    nacre_id id;
    unsigned streams;
    bool harmless; /* nothing may reach the terminal's own controls */
    struct harmless seen[2];
    int64_t since_ms;   /* what came before is left out */
    bool timestamps;    /* in front of each line: when its first byte was read */
    bool in_line;       /* the last byte that was shown ended no line, */
    nacre_stream shown; /* and was of this stream */
    char room[CHUNK];
};

static void print_moment(int64_t ms)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(ms / 1000);
    localtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%FT%T", &tm);
    printf("%s.%03d ", text, (int)(ms % 1000));
}

/* Shows what may reach a terminal. Each stream has sequences and characters of its own. */
static int show_harmless(struct reader *r, nacre_stream s, const char *data, size_t size)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (harmless_feed(&r->seen[s], &text, data, size) < 0)
        return failure("out of memory");
    fwrite(text.data, 1, text.len, stdout);
    return STATUS_OK;
}

static int show_held(struct reader *r)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    for (int s = 0; s < 2; s++)
        if (harmless_end(&r->seen[s], &text) < 0)
            return failure("out of memory");
    fwrite(text.data, 1, text.len, stdout);
    return STATUS_OK;
}

/* Names what is missing before an offset. The record has it per stream, if it did not grow. */
static void name_gap(struct reader *r, uint64_t gap, uint64_t offset)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (nacre_get(r->session, &r->id, &record, NULL) < 0)
        record.dropped_errno = EIO;
    const uint64_t *bytes = record.dropped_bytes, *lines = record.dropped_lines;
    bool dropped = bytes[0] + bytes[1] > 0;
    const char *cause = record.dropped_errno ? err_text(record.dropped_errno)
                        : dropped            ? "over the quota"
                                             : "its files are damaged";
    if (dropped && r->streams != NACRE_BOTH && bytes[r->streams == NACRE_ERR] == 0)
        return;
    if (bytes[0] + bytes[1] != gap)
        say("%llu bytes before offset %llu are not in the log: %s", (unsigned long long)gap,
            (unsigned long long)offset, cause);
    else
        say("%llu bytes before offset %llu are not in the log (stdout %llu bytes in %llu lines, "
            "stderr %llu bytes in %llu lines): %s",
            (unsigned long long)gap, (unsigned long long)offset, (unsigned long long)bytes[0],
            (unsigned long long)lines[0], (unsigned long long)bytes[1],
            (unsigned long long)lines[1], cause);
}

static int show_bytes(struct reader *r, nacre_stream s, const char *data, size_t size)
{
    if (r->harmless)
        return show_harmless(r, s, data, size);
    fwrite(data, 1, size, stdout);
    return STATUS_OK;
}

/* Line by line, so that each can begin with its time. A line of the other stream that is not at its
 * end is ended first. */
static int show_timed(struct reader *r, const nacre_piece *piece, size_t size)
{
    const char *at = r->room, *end = r->room + size;
    int status = STATUS_OK;
    if (r->in_line && r->shown != piece->stream) {
        putchar('\n');
        r->in_line = false;
    }
    r->shown = piece->stream;
    while (status == STATUS_OK && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        if (!r->in_line)
            print_moment(piece->time_ms);
        status = show_bytes(r, piece->stream, at, (size_t)(next - at));
        r->in_line = !newline;
        at = next;
    }
    return status;
}

/* Shows a piece whose bytes are in the room. */
static int show_piece(struct reader *r, const nacre_piece *piece, size_t size)
{
    int status = STATUS_OK;
    if (piece->gap_bytes > 0)
        name_gap(r, piece->gap_bytes, piece->offset);
    if ((r->streams & 1u << piece->stream) == 0 || piece->time_ms < r->since_ms)
        return STATUS_OK;
    status =
        r->timestamps ? show_timed(r, piece, size) : show_bytes(r, piece->stream, r->room, size);
    return ferror(stdout) ? finish_output() : status;
}

/* Everything up to where the log ended when we came. */
static int show_until(struct reader *r, uint64_t offset, uint64_t end)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_piece piece = {0};
    for (uint64_t cursor = offset; cursor < end;) {
        int64_t n =
            nacre_read(r->session, &r->id, &cursor, r->streams, r->room, CHUNK, &piece, &error);
        if (n < 0)
            return library_failure(&error);
        if (n == 0 && piece.gap_bytes > 0)
            name_gap(r, piece.gap_bytes, piece.offset);
        if (n == 0 || piece.offset >= end)
            break;
        int status = show_piece(r, &piece, MIN((uint64_t)n, end - piece.offset));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static int show_as_it_comes(struct reader *r, uint64_t offset)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_event event = {0};
    nacre_watch *watch cleanup_watch = NULL;
    if (nacre_watch_open(r->session, &r->id, offset, &watch, &error) < 0)
        return library_failure(&error);
    while (event.kind != NACRE_EVENT_END) {
        if (nacre_watch_wait(watch, -1, r->room, CHUNK, &event, &error) < 0)
            return library_failure(&error);
        if (event.kind != NACRE_EVENT_OUTPUT)
            continue;
        int status = show_piece(r, &event.piece, event.piece.size);
        if (status == STATUS_OK)
            status = finish_output();
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static int show_output(struct reader *r, const struct output_options *o)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (nacre_get(r->session, &r->id, &record, &error) < 0)
        return library_failure(&error);
    uint64_t offset = o->offset, end = record.bytes[0] + record.bytes[1];
    if (o->tail != UINT64_MAX &&
        tail_start(r->session, &r->id, r->streams, end, o->tail, &offset, &error) < 0)
        return library_failure(&error);
    int status = o->follow ? show_as_it_comes(r, offset) : show_until(r, offset, end);
    return status == STATUS_OK && r->harmless ? show_held(r) : status;
}

static int output(const void *options, char **words, UNUSED size_t count)
{
    static struct reader reader;
    const struct output_options *o = options;
    int status = parse_stream("output", o->stream, &reader.streams);
    if (status == STATUS_OK && o->offset > 0 && o->tail != UINT64_MAX)
        status = usage_error("output: --offset and --tail exclude each other");
    if (status == STATUS_OK)
        status = parse_since("output", o->since, &reader.since_ms);
    nacre_session *session cleanup_session = NULL;
    if (status == STATUS_OK)
        status = open_shells(words, 1, &session, &reader.id);
    if (status != STATUS_OK)
        return status;
    reader.session = session;
    reader.timestamps = o->timestamps;
    reader.harmless = !o->raw && isatty(STDOUT_FILENO);
    for (int s = 0; s < 2; s++)
        reader.seen[s].colours = *paint_for(stdout).off != '\0';
    return show_output(&reader, o);
}

const struct verb verb_output = {
    .name = "output",
    .aliases = "logs",
    .words = "ID",
    .summary = "print what a shell has printed, as often as you like",
    .details =
        "Both streams go to stdout, in the order in which they were read. The bytes are those the\n"
        "command wrote; only on a terminal, and without --raw, control characters other than "
        "those\n"
        "of colours are written out (^[) and what is not UTF-8 is replaced. What is no longer in\n"
        "the log is named on stderr.\n"
        "\n"
        "examples:\n"
        "  nacre output 1a2b3c4d --tail 50\n"
        "  nacre output 1a2b3c4d --stream err --follow\n",
    .options = {{"follow", NULL, "go on as it prints, until everything it started has ended",
                 OPTION_FLAG, false, offsetof(struct output_options, follow), 'f'},
                {"tail", "N", "only the last N lines", OPTION_COUNT, false,
                 offsetof(struct output_options, tail), 'n'},
                {"offset", "N", "from byte N of the log on", OPTION_COUNT, false,
                 offsetof(struct output_options, offset)},
                {"since", "T", "only what it printed since then: 10m, 2h, 2026-11-15T14:30",
                 OPTION_TEXT, false, offsetof(struct output_options, since)},
                {"timestamps", NULL, "before each line, when it began to come", OPTION_FLAG, false,
                 offsetof(struct output_options, timestamps), 't'},
                {"stream", "out|err", "only its stdout, or only its stderr", OPTION_TEXT, false,
                 offsetof(struct output_options, stream)},
                {"raw", NULL, "on a terminal: control characters as they are", OPTION_FLAG, false,
                 offsetof(struct output_options, raw)}},
    .options_size = sizeof(struct output_options),
    .defaults = &(const struct output_options){.tail = UINT64_MAX},
    .min_words = 1,
    .max_words = 1,
    .offered = OFFERED_SHELLS,
    .run = output,
};
