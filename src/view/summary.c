#include "view/summary.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "view/utf8.h"

#define CHUNK         16384
#define HEADING_MAX   112 /* the longest heading with three 20-digit numbers */
#define ELLIPSIS      "\xe2\x80\xa6"
#define ELLIPSIS_SIZE (sizeof ELLIPSIS - 1)

/* The last bytes of one stream, and which of them are shown. */
struct part {
    char *data; /* room for 2 * keep bytes, so that moving them up is rare */
    size_t len;
    size_t keep;
    bool torn;      /* data does not begin where the stream or a line does */
    bool early;     /* what came after data is no longer in the log */
    size_t start;   /* shown: data from here on, */
    uint64_t shown; /* so many lines */
};

static void part_done(struct part *p)
{
    free(p->data);
}

static int part_init(struct part *p, uint64_t keep)
{
    *p = (struct part){.keep = MAX(keep, 1)};
    p->data = malloc(2 * p->keep);
    return p->data ? 0 : -ENOMEM;
}

static void part_take(struct part *p, const char *data, size_t size)
{
    if (size > p->keep) {
        data += size - p->keep;
        size = p->keep;
        p->len = 0;
        p->torn = true;
    } else if (p->len + size > 2 * p->keep) {
        size_t stay = p->keep - size;
        memmove(p->data, p->data + p->len - stay, stay);
        p->len = stay;
        p->torn = true;
    }
    memcpy(p->data + p->len, data, size);
    p->len += size;
}

/* Nothing from before a gap may be shown as if it stood right before what follows. */
static void part_gap(struct part *p)
{
    p->len = 0;
    p->torn = true;
}

/* What is kept becomes the last keep bytes, beginning with a character; nothing is shown yet. */
static void part_finish(struct part *p)
{
    size_t extra = p->len > p->keep ? p->len - p->keep : 0;
    p->torn |= extra > 0;
    if (p->torn)
        extra += utf8_torn(p->data + extra, p->len - extra);
    p->len -= extra;
    memmove(p->data, p->data + extra, p->len);
    p->start = p->len;
}

/* Takes in the log up to the end the record knew. */
static int read_log(struct part parts[2], const nacre_record *record, summary_read_fn *read,
                    void *self)
{
    char chunk[CHUNK];
    nacre_piece piece = {0};
    uint64_t cursor = 0, seen = 0;
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];

    while (seen < end) {
        int64_t n = read(self, &cursor, NACRE_BOTH, chunk, sizeof chunk, &piece);
        if (n < 0)
            return (int)n;
        if (n == 0 || piece.offset >= end)
            break;
        for (int s = 0; s < 2 && piece.gap_bytes > 0; s++)
            if (record->dropped_bytes[s] > 0)
                part_gap(&parts[s]);
        uint64_t size = MIN((uint64_t)n, end - piece.offset);
        part_take(&parts[piece.stream == NACRE_STDERR], chunk, size);
        seen = piece.offset + size;
    }
    for (int s = 0; s < 2; s++) {
        parts[s].early = seen < end && record->dropped_bytes[s] > 0;
        part_finish(&parts[s]);
    }
    return 0;
}

/* Where the line begins that ends before end. */
static size_t line_start(const struct part *p, size_t end)
{
    const char *newline = memrchr(p->data, '\n', end - 1);
    return newline ? (size_t)(newline - p->data) + 1 : 0;
}

/* What it costs to show data from one place to another, in which a line begins and ends. */
static size_t cost(const struct part *p, size_t from, size_t to)
{
    size_t size = utf8_clean_size(p->data + from, to - from);
    if (p->data[to - 1] != '\n')
        size++;
    if (from == 0 && p->torn)
        size += ELLIPSIS_SIZE;
    return size;
}

/* Whether what is shown begins inside a line. */
static bool mid_line(const struct part *p)
{
    return p->start > 0 ? p->start < p->len && p->data[p->start - 1] != '\n' : p->torn;
}

/* Shows more whole lines before those already shown, until there are so many or the room is
 * used up. Returns what they cost. */
static size_t show_lines(struct part *p, uint64_t lines, size_t room)
{
    size_t used = 0;
    while (p->start > 0 && p->shown < lines) {
        size_t from = line_start(p, p->start);
        size_t more = cost(p, from, p->start);
        if (more > room - used)
            break;
        used += more;
        p->start = from;
        p->shown++;
    }
    return used;
}

/* Shows the end of the last line, which alone is longer than the room. */
static size_t show_line_end(struct part *p, size_t room)
{
    size_t end = p->len;
    if (end == 0 || room <= ELLIPSIS_SIZE + 1)
        return 0;
    size_t from = end - MIN(end, room);
    from = MAX(from, line_start(p, end));
    from += utf8_torn(p->data + from, end - from);

    size_t size = utf8_clean_size(p->data + from, end - from) + ELLIPSIS_SIZE + 1;
    while (from < end && size > room) {
        uint32_t point;
        size_t length = utf8_next(p->data + from, end - from, &point);
        length = length > 0 ? length : end - from;
        size -= utf8_clean_size(p->data + from, length);
        from += length;
    }
    if (from == end)
        return 0;
    p->start = from;
    p->shown = 1;
    return size;
}

static size_t show_safe(struct part *p, uint64_t lines, size_t room)
{
    size_t used = show_lines(p, lines, room);
    return p->shown > 0 ? used : show_line_end(p, room);
}

/* What whole lines would cost, without showing them. */
static size_t lines_cost(const struct part *p, uint64_t lines)
{
    struct part copy = *p;
    return show_lines(&copy, lines, SIZE_MAX);
}

/* Chooses what is shown of two streams that do not fit: the safe lines of each, or an equal share
 * of the room if even they do not fit, then more of stderr, then more of stdout. */
static void choose(struct part parts[2], size_t room)
{
    struct part *out = &parts[NACRE_STDOUT], *err = &parts[NACRE_STDERR];
    size_t need_err = lines_cost(err, SUMMARY_STDERR_LINES);
    size_t need_out = lines_cost(out, SUMMARY_STDOUT_LINES);
    size_t half = room / 2;
    size_t for_err = need_err <= half          ? need_err
                     : need_out <= room - half ? MIN(need_err, room - need_out)
                                               : half;

    size_t left = room - show_safe(err, SUMMARY_STDERR_LINES, for_err);
    left -= show_safe(out, SUMMARY_STDOUT_LINES, MIN(need_out, left));
    if (err->shown > 0 && !mid_line(err))
        left -= show_lines(err, UINT64_MAX, left);
    if (out->shown > 0 && !mid_line(out))
        show_lines(out, UINT64_MAX, left);
}

static const char *stream_name(nacre_stream s)
{
    return s == NACRE_STDERR ? "stderr" : "stdout";
}

static uint64_t hidden_bytes(const struct part *p, const nacre_record *record, nacre_stream s)
{
    return record->bytes[s] - MIN((uint64_t)(p->len - p->start), record->bytes[s]);
}

static uint64_t hidden_lines(const struct part *p, const nacre_record *record, nacre_stream s)
{
    return record->lines[s] - MIN(p->shown, record->lines[s]);
}

/* The status as the first line says it. */
static int write_outcome(struct buf *out, const nacre_record *record)
{
    char name[16];
    switch (record->outcome) {
    case NACRE_RUNNING:
        return buf_str(out, "Running");
    case NACRE_EXITED:
        return buf_printf(out, "Exit code: %d", record->exit_code);
    case NACRE_SIGNALED:
        return buf_printf(out, "Signal: %s%s", nacre_signal_name(record->signal, name, sizeof name),
                          record->core_dumped ? " (core dumped)" : "");
    case NACRE_KILLED:
        return buf_str(out, "Killed");
    case NACRE_TIMED_OUT:
        return buf_printf(out, "Timed out after %.15gs (killed)",
                          (double)record->timeout_ms / 1000);
    case NACRE_CANCELLED:
        return buf_str(out, "Cancelled");
    case NACRE_LOST:
        return buf_str(out, "Lost");
    }
    return buf_str(out, "Unknown");
}

static int write_header(struct buf *out, const nacre_record *record)
{
    int r = write_outcome(out, record);
    if (r == 0)
        r = buf_printf(out, " | stdout: %llu lines | stderr: %llu lines\n",
                       (unsigned long long)record->lines[NACRE_STDOUT],
                       (unsigned long long)record->lines[NACRE_STDERR]);
    return r;
}

/* One process that outlived the command. Its command line is a stranger's text: it stays on
 * this line. */
static int write_leftover(struct buf *out, const nacre_process *process)
{
    char command[sizeof process->command];
    size_t size = strnlen(process->command, sizeof command);
    for (size_t i = 0; i < size; i++)
        command[i] = (unsigned char)process->command[i] < ' ' ? ' ' : process->command[i];

    int r = buf_printf(out, "Left running: pid %d (", (int)process->pid);
    if (r == 0)
        r = utf8_clean(out, command, size);
    if (r == 0)
        r = buf_str(out, ")");
    for (int i = 0; r == 0 && i < NACRE_PORTS_MAX && process->ports[i] != 0; i++)
        r = buf_printf(out, "%s%u", i == 0 ? ", listening on " : ", ", (unsigned)process->ports[i]);
    return r == 0 ? buf_str(out, "\n") : r;
}

static int write_leftovers(struct buf *out, const nacre_record *record)
{
    if (record->outcome == NACRE_RUNNING || record->tree == NACRE_TREE_EMPTY)
        return 0;
    if (record->leftover_count == 0)
        return buf_str(out, "Left running: something that could not be named\n");
    int r = 0;
    for (int i = 0; r == 0 && i < record->leftover_count; i++)
        r = write_leftover(out, &record->leftover[i]);
    if (r == 0 && record->leftover_count == NACRE_LEFTOVER_MAX)
        r = buf_str(out, "Left running: perhaps more, which are not named here\n");
    return r;
}

/* "<before>stdout 3 lines (17 bytes), stderr ...": the streams of which there is any. */
static int write_amounts(struct buf *out, const char *before, const uint64_t lines[2],
                         const uint64_t bytes[2])
{
    int r = 0;
    for (int s = 0; s < 2; s++) {
        if (bytes[s] == 0 || r < 0)
            continue;
        r = buf_printf(out, "%s%s %llu lines (%llu bytes)", before, stream_name(s),
                       (unsigned long long)lines[s], (unsigned long long)bytes[s]);
        before = ", ";
    }
    return r;
}

/* The line that says how much was left out, and how to get it back. */
static int write_note(struct buf *out, const nacre_record *record, const struct part parts[2])
{
    uint64_t lines[2], bytes[2];
    for (int s = 0; s < 2; s++) {
        lines[s] = hidden_lines(&parts[s], record, s);
        bytes[s] = hidden_bytes(&parts[s], record, s);
    }
    if (bytes[0] == 0 && bytes[1] == 0)
        return 0;

    int r = write_amounts(out, "Left out: ", lines, bytes);
    if (r == 0)
        r = buf_printf(out, ". Read it with: nacre output %s [--stream out|err]",
                       nacre_id_short(&record->id).s);
    if (r == 0 && (record->dropped_bytes[0] > 0 || record->dropped_bytes[1] > 0)) {
        r = write_amounts(out, ". No longer in the log: ", record->dropped_lines,
                          record->dropped_bytes);
        if (r == 0)
            r = buf_printf(out, ": %s",
                           record->dropped_errno ? err_text(record->dropped_errno)
                                                 : "over the quota");
    }
    return r == 0 ? buf_str(out, "\n") : r;
}

#define WHOLE_HEADING "--- %s (%llu lines) ---\n"

static size_t whole_heading_size(const nacre_record *record, nacre_stream s)
{
    return (size_t)snprintf(NULL, 0, WHOLE_HEADING, stream_name(s),
                            (unsigned long long)record->lines[s]);
}

static int write_heading(struct buf *out, const nacre_record *record, const struct part *p,
                         nacre_stream s)
{
    const char *name = stream_name(s);
    unsigned long long all = record->lines[s], shown = p->shown,
                       hidden = hidden_lines(p, record, s);
    if (hidden_bytes(p, record, s) == 0)
        return buf_printf(out, WHOLE_HEADING, name, all);
    if (p->early)
        return buf_printf(out, "--- %s (%llu of %llu, the last were not kept) ---\n", name, shown,
                          all);
    if (s == NACRE_STDERR)
        return buf_printf(out, "--- %s (last %llu of %llu, %llu skipped) ---\n", name, shown, all,
                          hidden);
    return buf_printf(out, "--- %s (last %llu of %llu) ---\n", name, shown, all);
}

static int write_section(struct buf *out, const nacre_record *record, const struct part *p,
                         nacre_stream s)
{
    if (record->bytes[s] == 0)
        return 0;
    int r = write_heading(out, record, p, s);
    if (r < 0 || p->start == p->len)
        return r;
    if (mid_line(p))
        r = buf_str(out, ELLIPSIS);
    if (r == 0)
        r = utf8_clean(out, p->data + p->start, p->len - p->start);
    if (r == 0 && p->data[p->len - 1] != '\n')
        r = buf_str(out, "\n");
    return r;
}

/* Decides what is shown, given what the lines around it take if something is left out and if
 * nothing is. */
static void fit(struct part parts[2], const nacre_record *record, size_t budget, size_t frame,
                size_t note)
{
    size_t whole = frame, cut = frame + note;
    bool complete = true;
    for (int s = 0; s < 2; s++) {
        if (record->bytes[s] == 0)
            continue;
        whole += whole_heading_size(record, s) + lines_cost(&parts[s], UINT64_MAX);
        cut += HEADING_MAX;
        complete &= parts[s].len == record->bytes[s];
    }
    if (complete && whole <= budget) {
        for (int s = 0; s < 2; s++)
            show_lines(&parts[s], UINT64_MAX, SIZE_MAX);
        return;
    }
    choose(parts, budget > cut ? budget - cut : 0);
}

static int compose(struct buf *out, const nacre_record *record, size_t budget, struct part parts[2])
{
    struct buf leftovers cleanup_buf, longest_note cleanup_buf;
    buf_init(&leftovers, SUMMARY_FRAME_MAX);
    buf_init(&longest_note, SUMMARY_FRAME_MAX);
    size_t before = out->len;
    int r = write_header(out, record);
    if (r == 0)
        r = write_leftovers(&leftovers, record);
    if (r == 0)
        r = write_note(&longest_note, record, parts);
    if (r < 0)
        return r;

    fit(parts, record, budget, out->len - before + leftovers.len, longest_note.len);
    r = write_note(out, record, parts);
    if (r == 0)
        r = buf_append(out, leftovers.data, leftovers.len);
    if (r == 0)
        r = write_section(out, record, &parts[NACRE_STDERR], NACRE_STDERR);
    if (r == 0)
        r = write_section(out, record, &parts[NACRE_STDOUT], NACRE_STDOUT);
    return r;
}

int summary_write(struct buf *out, const nacre_record *record, size_t budget, summary_read_fn *read,
                  void *self)
{
    struct part parts[2] = {0};
    int r = 0;
    for (int s = 0; r == 0 && s < 2; s++)
        r = part_init(&parts[s], MIN((uint64_t)budget, record->bytes[s]));
    if (r == 0)
        r = read_log(parts, record, read, self);
    if (r == 0)
        r = compose(out, record, budget, parts);
    part_done(&parts[0]);
    part_done(&parts[1]);
    return r;
}
