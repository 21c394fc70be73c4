#include "tool/excerpt.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "recall/pattern.h"
#include "run/log.h"
#include "session/session.h"

#define CHUNK        ((size_t)64 * 1024)
#define TAIL_MAX     ((uint64_t)1024 * 1024)

#define TIME_MS      1000 /* for one text */

#define WINDOW_LEAST ((uint64_t)256)

struct match {
    const char *field;
    bool spans;
    struct watchdog dog;
    struct pattern *pattern;
};

/* What is wrong with a pattern is said of the field that it came in. */
static int blame(const char *field, int code, const nacre_error *error, nacre_error *err)
{
    return err_set(err, code, "%s: %.200s", field, error->msg);
}

/* A newline, or \n or \R. What else may match one (\s, a negated class) is meant for lines. */
static bool has_newline(const char *pattern)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '\n')
            return true;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'n' || *at == 'R')
            return true;
        if (!*at)
            break;
    }
    return false;
}

int match_new(const char *field, const char *pattern, bool may_span, struct match **ret,
              nacre_error *err)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct match *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    m->field = field;
    m->dog.deadline_ns = INT64_MAX;
    m->spans = may_span && has_newline(pattern);
    int r = m->spans ? pattern_new_spanning(pattern, &m->dog, &m->pattern, &error)
                     : pattern_new(pattern, false, false, &m->dog, &m->pattern, &error);
    if (r < 0) {
        match_free(m);
        return blame(field, r, &error, err);
    }
    *ret = m;
    return 0;
}

bool match_spans(const struct match *m)
{
    return m->spans;
}

void match_free(struct match *m)
{
    if (!m)
        return;
    pattern_free(m->pattern);
    free(m);
}

int match_find(struct match *m, const char *text, size_t size, nacre_error *err)
{
    nacre_error error = NACRE_ERROR_INIT;
    struct text lines = {.data = text, .size = size};
    struct hit hit;
    if (size == 0)
        return 0;
    m->dog.deadline_ns = clock_deadline(TIME_MS);
    m->dog.verdict = 0;
    m->dog.timed_out = 0;
    pattern_begin(m->pattern, &lines);
    int r = pattern_find(m->pattern, &lines, 0, &hit, &error);
    if (r >= 0)
        return r;
    if (m->dog.timed_out)
        err_set(&error, NACRE_ELIMIT, "the pattern takes too long; make it simpler");
    return blame(m->field, NACRE_ELIMIT, &error, err);
}

/* -- Positions and lines ----------------------------------------------------------------------- */

static uint64_t end_of(const nacre_record *record)
{
    return record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
}

/* -- Positions -------------------------------------------------------------------------------- */

/* Lines and bytes of each stream before an offset: what was dropped is dropped between the two
 * ends of the log, and the record knows how much. */
int excerpt_at(nacre_session *session, const nacre_record *record, uint64_t offset,
               nacre_position *ret, nacre_error *err)
{
    nacre_position position = NACRE_POSITION_INIT;
    cleanup_free char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    position.offset = MIN(offset, end_of(record));
    for (uint64_t cursor = 0; cursor < position.offset;) {
        nacre_piece piece = {0};
        size_t want = (size_t)MIN((uint64_t)CHUNK, position.offset - cursor);
        int64_t n =
            output_read(session, &record->id, &cursor, NACRE_BOTH, chunk, want, &piece, err);
        if (n < 0)
            return (int)n;
        for (int s = 0; piece.gap_bytes > 0 && s < 2; s++) {
            position.lines[s] += record->dropped_lines[s];
            position.bytes[s] += record->dropped_bytes[s];
        }
        if (n == 0 || piece.offset >= position.offset)
            break;
        size_t size = (size_t)MIN((uint64_t)n, position.offset - piece.offset);
        position.lines[piece.stream] += log_count_newlines(chunk, size);
        position.bytes[piece.stream] += size;
    }
    *ret = position;
    return 0;
}

/* Where the last lines began, oldest first, in a ring. */
struct starts {
    uint64_t *at;
    size_t cap, count;
    bool begins[2]; /* the next byte of a stream begins a line */
};

static void note_starts(struct starts *starts, const nacre_piece *piece, const char *data)
{
    bool *begins = &starts->begins[piece->stream];
    for (size_t i = 0; i < piece->size;) {
        if (*begins)
            starts->at[starts->count++ % starts->cap] = piece->offset + i;
        const char *newline = memchr(data + i, '\n', piece->size - i);
        *begins = newline != NULL;
        i = newline ? (size_t)(newline + 1 - data) : piece->size;
    }
}

static int find_starts(nacre_session *session, const nacre_record *record, unsigned streams,
                       struct starts *starts, uint64_t cursor, nacre_error *err)
{
    cleanup_free char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    while (cursor < end_of(record)) {
        nacre_piece piece = {0};
        int64_t n = output_read(session, &record->id, &cursor, streams, chunk, CHUNK, &piece, err);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= end_of(record))
            break;
        note_starts(starts, &piece, chunk);
    }
    return 0;
}

int excerpt_tail(nacre_session *session, const nacre_record *record, uint64_t lines,
                 unsigned streams, nacre_position *ret, nacre_error *err)
{
    uint64_t end = end_of(record), from = end > TAIL_MAX ? end - TAIL_MAX : 0;
    struct starts starts = {.cap = (size_t)lines, .begins = {from == 0, from == 0}};
    cleanup_free uint64_t *ring = starts.at = calloc(starts.cap, sizeof *ring);
    if (!ring)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = find_starts(session, record, streams, &starts, from, err);
    if (r < 0)
        return r;
    if (starts.count >= starts.cap)
        from = ring[starts.count % starts.cap];
    return excerpt_at(session, record, from, ret, err);
}

/* -- Filtering -------------------------------------------------------------------------------- */

/* Lines of ours stay: the first, and what says that something was left out. */
static bool is_our_line(const char *text, const char *line)
{
    return line == text || strncmp(line, "Left out: ", 10) == 0 ||
           strncmp(line, "(no new output)", 15) == 0;
}

struct filtered {
    struct buf head; /* of ours */
    struct buf body;
    size_t matched, other;
};

static int filter_lines(struct filtered *f, const char *text, struct match *filter,
                        nacre_error *err)
{
    int r = 0;
    for (const char *line = text; r == 0 && *line;) {
        const char *newline = strchr(line, '\n');
        size_t size = newline ? (size_t)(newline - line) : strlen(line);
        bool ours = is_our_line(text, line);
        int found = ours ? 1 : match_find(filter, line, size, err);
        if (found < 0)
            return found;
        struct buf *to = ours ? &f->head : &f->body;
        f->matched += !ours && found;
        f->other += !found;
        if (found && (buf_append(to, line, size) < 0 || buf_str(to, "\n") < 0))
            r = err_set(err, NACRE_ENOMEM, "out of memory");
        line += size + (newline != NULL);
    }
    return r;
}

/* The last lines that fit. */
static const char *last_lines(const struct buf *body, size_t room, size_t *ret_left)
{
    const char *at = body->data ? body->data : "";
    *ret_left = 0;
    while (strlen(at) > room) {
        at = strchr(at, '\n') + 1;
        ++*ret_left;
    }
    return at;
}

int excerpt_filter(struct answer *a, const nacre_record *record, nacre_position *position,
                   unsigned streams, struct match *filter, size_t room, nacre_error *err)
{
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    cleanup_free char *text = NULL;
    struct filtered f = {
        .head = BUF_UP_TO(NACRE_VIEW_BUDGET_MAX),
        .body = BUF_UP_TO(2 * (size_t)NACRE_VIEW_BUDGET_MAX),
    };
    size_t left = 0;
    options.bytes = NACRE_VIEW_BUDGET_MAX;
    options.streams = streams;
    nacre_id_text id = nacre_id_short(&record->id);
    int r = view_news(a->session, record, position, &options, &text, NULL, err);
    if (r == 0)
        r = filter_lines(&f, text, filter, err);
    if (r == 0)
        r = answer_text(a, f.head.data ? f.head.data : "", err);
    if (r == 0)
        r = answer_text(a, last_lines(&f.body, room - MIN(room, f.head.len), &left), err);
    if (f.other > 0)
        answer_note(a, "%s: %zu lines did not match the filter", id.s, f.other);
    if (left > 0)
        answer_note(a, "%s: the first %zu of %zu lines that match did not fit", id.s, left,
                    f.matched);
    buf_done(&f.head);
    buf_done(&f.body);
    return r;
}

/* -- Windows ---------------------------------------------------------------------------------- */

/* Where a window of at most size bytes ends: behind a line, if one ends in its second half, else at
 * a character. */
static int window_end(nacre_session *session, const nacre_record *record, uint64_t offset,
                      uint64_t size, uint64_t *ret_end, nacre_error *err)
{
    uint64_t end = MIN(offset + size, end_of(record)), line = 0, character = offset;
    cleanup_free char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    for (uint64_t cursor = offset; cursor < end;) {
        nacre_piece piece = {0};
        size_t want = (size_t)MIN((uint64_t)CHUNK, end - cursor);
        int64_t n =
            output_read(session, &record->id, &cursor, NACRE_BOTH, chunk, want, &piece, err);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= end)
            break;
        size_t there = (size_t)MIN((uint64_t)n, end - piece.offset);
        const char *newline = memrchr(chunk, '\n', there);
        if (newline)
            line = piece.offset + (uint64_t)(newline + 1 - chunk);
        character = piece.offset + text_whole(chunk, there);
    }
    *ret_end = end == end_of(record)      ? end
               : line > offset + size / 2 ? line
               : character > offset       ? character
                                          : end;
    return 0;
}

/* The record of the same shell when it had printed no more than that. */
static nacre_record record_until(const nacre_record *record, uint64_t end)
{
    nacre_record cut = *record;
    cut.bytes[NACRE_STDERR] = MIN(record->bytes[NACRE_STDERR], end);
    cut.bytes[NACRE_STDOUT] = end - cut.bytes[NACRE_STDERR];
    return cut;
}

int excerpt_window(struct answer *a, const nacre_record *record, uint64_t offset, unsigned streams,
                   size_t room, nacre_error *err)
{
    uint64_t size = MIN((uint64_t)(room - MIN(room / 8, (size_t)128)),
                        (uint64_t)session_setting(a->session, NACRE_SETTING_UNREAD));
    uint64_t end = 0, all = end_of(record);
    size_t before = a->text.len;
    int r = 0;
    offset = MIN(offset, all);
    /* Rendered text may be longer than what it is made from. */
    for (bool fits = false; r == 0 && !fits; size /= 2) {
        nacre_position position = NACRE_POSITION_INIT;
        position.offset = offset;
        a->text.len = before;
        r = window_end(a->session, record, offset, size, &end, err);
        if (r < 0)
            break;
        nacre_record cut = record_until(record, end);
        r = answer_read(a, &cut, &position, streams, 2 * room, err);
        fits = a->text.len - before <= room || size < WINDOW_LEAST;
    }
    if (r == 0 && end < all)
        answer_note(a, "bytes %llu to %llu of %llu; the next are at offset: %llu",
                    (unsigned long long)offset, (unsigned long long)end, (unsigned long long)all,
                    (unsigned long long)end);
    return r;
}

void excerpt_note_other(struct answer *a, const nacre_id *id, const nacre_position *before,
                        const nacre_position *after, unsigned streams)
{
    int other = streams == NACRE_OUT ? NACRE_STDERR : NACRE_STDOUT;
    const char *name = other == NACRE_STDOUT ? "stdout" : "stderr";
    uint64_t from = before->lines[other], to = after->lines[other];
    if (streams == NACRE_BOTH || to <= from)
        return;
    answer_note(a,
                "%s: passed over %llu new lines of %s: recall(id: \"%s\", stream: \"%s\", lines: "
                "\"%llu-%llu\")",
                nacre_id_short(id).s, (unsigned long long)(to - from), name, nacre_id_short(id).s,
                name, (unsigned long long)from + 1, (unsigned long long)to);
}
