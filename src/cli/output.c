/* nacre output: what a shell printed, from any place on, once or as it comes. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/shells.h"
#include "cli/tail.h"
#include "view/utf8.h"

#define CHUNK    65536
#define HELD_MAX 3 /* bytes of a character whose end has not come yet */

struct output_options {
    bool follow;
    uint64_t tail; /* UINT64_MAX = all */
    uint64_t offset;
    const char *stream;
    bool raw;
};

struct reader {
    nacre_session *session;
    nacre_id id;
    unsigned streams;
    bool harmless; /* nothing may reach the terminal's own controls */
    char held[2][HELD_MAX];
    size_t held_size[2];
    char room[HELD_MAX + CHUNK];
};

/* A character for people's eyes: controls are written out. */
static void show_point(uint32_t point, const char *bytes, size_t size)
{
    bool plain = point == '\n' || point == '\t' || (point >= 0x20 && point < 0x7f) ||
                 (point >= 0xa0 && point != UTF8_INVALID);
    if (plain)
        fwrite(bytes, 1, size, stdout);
    else if (point < 0x80)
        printf("^%c", (int)(point ^ 0x40));
    else
        fputs(UTF8_REPLACEMENT, stdout);
}

/* Shows the text at data, before which the caller left room for what was held back. */
static void show_harmless(struct reader *r, nacre_stream s, char *data, size_t size)
{
    data -= r->held_size[s];
    size += r->held_size[s];
    memcpy(data, r->held[s], r->held_size[s]);
    while (size > 0) {
        uint32_t point;
        size_t n = utf8_next(data, size, &point);
        if (n == 0)
            break;
        show_point(point, data, n);
        data += n;
        size -= n;
    }
    memcpy(r->held[s], data, size);
    r->held_size[s] = size;
}

static void show_held(struct reader *r)
{
    for (int s = 0; s < 2; s++)
        if (r->held_size[s] > 0)
            fputs(UTF8_REPLACEMENT, stdout);
}

/* Names what is missing before an offset. The record has it per stream, if it did not grow. */
static void name_gap(struct reader *r, uint64_t gap, uint64_t offset)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    if (nacre_get(r->session, &r->id, &record, NULL) < 0)
        record.dropped_errno = EIO;
    const char *cause = record.dropped_errno ? err_text(record.dropped_errno) : "over the quota";
    const uint64_t *bytes = record.dropped_bytes, *lines = record.dropped_lines;
    if (r->streams != NACRE_BOTH && bytes[r->streams == NACRE_ERR] == 0)
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

/* Shows a piece whose bytes are in the room. */
static int show_piece(struct reader *r, const nacre_piece *piece, size_t size)
{
    char *data = r->room + HELD_MAX;
    if (piece->gap_bytes > 0)
        name_gap(r, piece->gap_bytes, piece->offset);
    if ((r->streams & 1u << piece->stream) == 0)
        return STATUS_OK;
    if (r->harmless)
        show_harmless(r, piece->stream, data, size);
    else
        fwrite(data, 1, size, stdout);
    return ferror(stdout) ? finish_output() : STATUS_OK;
}

/* Everything up to where the log ended when we came. */
static int show_until(struct reader *r, uint64_t offset, uint64_t end)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_piece piece = {0};
    for (uint64_t cursor = offset; cursor < end;) {
        int64_t n = nacre_read(r->session, &r->id, &cursor, r->streams, r->room + HELD_MAX, CHUNK,
                               &piece, &error);
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
        if (nacre_watch_wait(watch, -1, r->room + HELD_MAX, CHUNK, &event, &error) < 0)
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

static int show(struct reader *r, const struct output_options *o)
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
    show_held(r);
    return status;
}

static int output(const void *options, char **words, UNUSED size_t count)
{
    static struct reader reader;
    const struct output_options *o = options;
    int status = parse_stream("output", o->stream, &reader.streams);
    if (status == STATUS_OK && o->offset > 0 && o->tail != UINT64_MAX)
        status = usage_error("output: --offset and --tail exclude each other");
    if (status == STATUS_OK)
        status = check_ids(words, 1);
    if (status != STATUS_OK)
        return status;
    nacre_session *session cleanup_session = NULL;
    if ((status = open_session(&session)) != STATUS_OK)
        return status;
    if ((status = find_shell(session, words[0], &reader.id)) != STATUS_OK)
        return status;
    reader.session = session;
    reader.harmless = !o->raw && isatty(STDOUT_FILENO);
    return show(&reader, o);
}

static const struct option options[] = {
    {"follow", NULL, "go on as it prints, until everything it started has ended", OPTION_FLAG,
     false, offsetof(struct output_options, follow)},
    {"tail", "N", "only the last N lines", OPTION_COUNT, false,
     offsetof(struct output_options, tail)},
    {"offset", "N", "from byte N of the log on", OPTION_COUNT, false,
     offsetof(struct output_options, offset)},
    {"stream", "out|err", "only its stdout, or only its stderr", OPTION_TEXT, false,
     offsetof(struct output_options, stream)},
    {"raw", NULL, "on a terminal: control characters as they are", OPTION_FLAG, false,
     offsetof(struct output_options, raw)},
    {0},
};

const struct verb verb_output = {
    .name = "output",
    .words = "ID",
    .summary = "print what a shell has printed, as often as you like",
    .details =
        "Both streams go to stdout, in the order in which they were read. The bytes are those the\n"
        "command wrote; only on a terminal, and without --raw, control characters are written out\n"
        "(^[) and what is not UTF-8 is replaced. What is no longer in the log is named on stderr.\n"
        "\n"
        "examples:\n"
        "  nacre output 1a2b3c4d --tail 50\n"
        "  nacre output 1a2b3c4d --stream err --follow\n",
    .options = options,
    .options_size = sizeof(struct output_options),
    .defaults = &(const struct output_options){.tail = UINT64_MAX},
    .min_words = 1,
    .max_words = 1,
    .run = output,
};
