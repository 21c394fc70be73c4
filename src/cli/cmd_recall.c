/* nacre recall: a search over everything any shell printed, or lines of one by their numbers. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "cli/verbs.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "recall/parse_query.h"
#include "recall/show.h"

struct recall_options {
    bool ignore_case;
    bool fixed;
    const char *id;
    const char *session;
    bool all;
    const char *stream;
    const char *lines;
    const char *since;
    uint64_t context;
    uint64_t limit;
    int64_t timeout;
    bool json;
};

struct found_lines {
    struct paint paint;
    bool separate; /* groups of lines that do not follow one another get a line between them */
    bool any;
    nacre_id last_id;
    uint64_t last_line[2];
    json_t *array; /* NULL unless JSON is wanted */
};

/* Whether a line follows the last one that was shown of its stream. */
static bool follows(struct found_lines *f, const nacre_recall_line *line)
{
    if (!f->any || !nacre_id_equal(&f->last_id, &line->record->id))
        f->last_line[0] = f->last_line[1] = 0;
    bool result = f->last_line[line->stream] + 1 == line->line;
    f->last_id = line->record->id;
    f->last_line[line->stream] = line->line;
    return result;
}

static int print_found(const nacre_recall_line *line, struct found_lines *f)
{
    struct buf origin cleanup_buf = BUF_UP_TO(256);
    struct buf text cleanup_buf = BUF_UP_TO(SHOW_LINE_MAX * 8);
    struct shown_match match = {0};
    bool next = follows(f, line);
    if (f->separate && f->any && !next)
        printf("%s--%s\n", f->paint.dim, f->paint.off);
    f->any = true;
    if (buf_str(&text, "") < 0 || show_origin(&origin, line) < 0 ||
        show_text(&text, line, SHOW_LINE_MAX, &match) < 0)
        return failure("out of memory");
    printf("%s%s%s%.*s%s%.*s%s%s\n", f->paint.dim, origin.data, f->paint.off, (int)match.start,
           text.data, f->paint.bad, (int)(match.end - match.start), text.data + match.start,
           f->paint.off, text.data + match.end);
    return ferror(stdout) ? finish_output() : STATUS_OK;
}

static int add_found(const nacre_recall_line *line, struct found_lines *f)
{
    json_t *value = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:o, s:I, s:I, s:b, s:b}", "id",
        nacre_id_format(&line->record->id).s, "session", nacre_id_format(&line->record->session).s,
        "stream", line->stream == NACRE_STDOUT ? "stdout" : "stderr", "line",
        (json_int_t)line->line, "offset", (json_int_t)line->offset, "time_ms",
        (json_int_t)line->time_ms, "match", line->is_match, "text",
        json_text(line->text, line->size), "left_before", (json_int_t)line->left_before,
        "left_after", (json_int_t)line->left_after, "cut", line->cut_start || line->cut_end,
        "unfinished", line->unfinished);
    if (!value || json_array_append_new(f->array, value) < 0)
        return failure("out of memory");
    return STATUS_OK;
}

static int take_found(const nacre_recall_line *line, void *userdata)
{
    struct found_lines *f = userdata;
    return f->array ? add_found(line, f) : print_found(line, f);
}

/* What was not shown, exactly; the totals of a search that ended early are not all there is. */
static void print_totals(const nacre_recall_totals *t, bool complete)
{
    uint64_t more = t->matches - t->shown;
    if (more > 0)
        printf("[%s%" PRIu64 " more matching line%s; --limit shows more]\n",
               complete ? "" : "at least ", more, more == 1 ? "" : "s");
    if (t->dropped_bytes > 0)
        say("%" PRIu64 " bytes are no longer in the logs and could not be searched",
            t->dropped_bytes);
    if (t->unreadable > 0)
        say("%" PRIu64 " shell%s could not be searched: what is kept of %s is damaged",
            t->unreadable, t->unreadable == 1 ? "" : "s", t->unreadable == 1 ? "it" : "them");
}

static int print_all_json(struct found_lines *f, const nacre_recall_totals *t, bool complete)
{
    return print_json(json_pack(
        "{s:o, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "lines", f->array, "matches",
        (json_int_t)t->matches, "more", (json_int_t)(t->matches - t->shown), "complete", complete,
        "shells", (json_int_t)t->shells, "shells_left", (json_int_t)t->shells_left, "unreadable",
        (json_int_t)t->unreadable, "dropped_bytes", (json_int_t)t->dropped_bytes));
}

static int run_query(nacre_session *session, const nacre_recall_query *query, bool json)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    struct found_lines f = {.paint = paint_for(stdout), .separate = query->context > 0};
    if (json && !(f.array = json_array()))
        return failure("out of memory");
    int r = nacre_recall(session, query, take_found, &f, &totals, &error);
    bool complete = r == 0, late = r == NACRE_ETIMEOUT;
    if (!complete && !late) {
        json_decref(f.array);
        return r > 0               ? r
               : r == NACRE_EINVAL ? usage_error("recall: %s", error.msg)
                                   : library_failure(&error);
    }
    r = STATUS_OK;
    if (json)
        r = print_all_json(&f, &totals, complete);
    else
        print_totals(&totals, complete);
    if (r != STATUS_OK)
        return r;
    if (late) {
        say("%s", error.msg);
        return STATUS_TIMEOUT;
    }
    return totals.matches == 0 ? STATUS_FAILED : STATUS_OK;
}

static int check_recall(const struct recall_options *o, size_t words)
{
    if (words == 0 && !o->lines)
        return usage_error("recall: what shall it look for? nacre recall PATTERN, or nacre recall "
                           "--id ID --lines A-B");
    if (o->lines && words == 0 && !o->id)
        return usage_error("recall: --lines without a pattern needs --id");
    if (o->session && o->all)
        return usage_error("recall: --session and --all exclude each other");
    return STATUS_OK;
}

static int fill_recall(const struct recall_options *o, nacre_recall_query *q)
{
    if (o->lines && !parse_lines(o->lines, &q->from, &q->to))
        return usage_error("recall: --lines takes %s; got \"%s\"", LINES_HINT, o->lines);
    int status = parse_since("recall", o->since, &q->since_ms);
    if (status != STATUS_OK)
        return status;
    q->literal = o->fixed;
    q->ignore_case = o->ignore_case;
    q->session = o->session;
    q->context = o->context;
    q->limit = o->limit;
    q->timeout_ms = o->timeout;
    return parse_stream("recall", o->stream, &q->streams);
}

static int recall(const void *options, char **words, size_t count)
{
    const struct recall_options *o = options;
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    nacre_session *session cleanup_session = NULL;
    nacre_id id;
    int status = check_recall(o, count);
    if (status == STATUS_OK)
        status = fill_recall(o, &query);
    if (status == STATUS_OK)
        status = open_session(&session);
    if (status == STATUS_OK && o->id) {
        status = find_shell(session, o->id, &id);
        query.id = &id;
    }
    if (status != STATUS_OK)
        return status;
    query.pattern = count > 0 ? words[0] : NULL;
    /* Lines that were asked for by their numbers are all wanted. */
    if (!query.pattern && query.limit == 0)
        query.limit = UINT64_MAX;
    return run_query(session, &query, o->json);
}

const struct verb verb_recall = {
    .name = "recall",
    .words = "[PATTERN]",
    .summary = "search everything that any shell has printed",
    .details =
        "PATTERN is a Perl-compatible regular expression, matched within lines. The newest shell\n"
        "comes first. A line reads \"1a2b3c4d stderr:123: text\": id, stream, and the number of "
        "the\n"
        "line in its stream; context has \"-\" instead of the colons. Running shells are searched\n"
        "as far as they have come, ended and lost ones as well.\n"
        "\n"
        "exit status: 0, 1 if nothing matched, 124 if the time was over before the end.\n"
        "\n"
        "examples:\n"
        "  nacre recall -i 'error|warning' --since 1h -C 2\n"
        "  nacre recall -F 'undefined reference to' --stream err\n"
        "  nacre recall --id 1a2b3c4d --lines 120-160\n",
    .options = {{"ignore-case", NULL, "upper and lower case are the same", OPTION_FLAG, false,
                 offsetof(struct recall_options, ignore_case), 'i'},
                {"fixed", NULL, "PATTERN is the text itself, no regular expression", OPTION_FLAG,
                 false, offsetof(struct recall_options, fixed), 'F'},
                {"context", "N", "also N lines before and after each match", OPTION_COUNT, false,
                 offsetof(struct recall_options, context), 'C'},
                {"id", "ID", "only this shell", OPTION_TEXT, false,
                 offsetof(struct recall_options, id), 0, OFFERED_SHELLS},
                {"lines", "A-B", "only these lines of each stream; -50 = the last 50", OPTION_TEXT,
                 false, offsetof(struct recall_options, lines), 0},
                {"stream", "out|err", "only stdout, or only stderr", OPTION_TEXT, false,
                 offsetof(struct recall_options, stream), 0},
                {"since", "T", "only lines since then: 10m, 2h, 1d, 2026-11-15T14:30", OPTION_TEXT,
                 false, offsetof(struct recall_options, since), 0},
                {"session", "S", "only shells of the session whose id begins so", OPTION_TEXT,
                 false, offsetof(struct recall_options, session), 0, OFFERED_SESSIONS},
                {"all", NULL, "shells of all sessions (the default)", OPTION_FLAG, false,
                 offsetof(struct recall_options, all), 'a'},
                {"limit", "N", "show N matches (100) and count the rest", OPTION_COUNT, true,
                 offsetof(struct recall_options, limit), 'n'},
                {"timeout", "S", "search S seconds at most (10)", OPTION_SECONDS, true,
                 offsetof(struct recall_options, timeout), 't'},
                {"json", NULL, "an object with the lines and the totals", OPTION_FLAG, false,
                 offsetof(struct recall_options, json), 0}},
    .options_size = sizeof(struct recall_options),
    .max_words = 1,
    .run = recall,
};
