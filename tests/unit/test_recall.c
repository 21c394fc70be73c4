/*
 * Recall over logs made by hand: every line, number and gap against a search that knows nothing
 * of spans, blocks and windows.
 */
#include "logs.h"

#include <nacre/nacre.h>

#include "recall/parse_query.h"
#include "recall/show.h"
#include "recall/sift.h"

#define STARTED_MS INT64_C(1000000000000)

struct place {
    char home[PATH_MAX];
    struct rig rig;
    char *bytes; /* everything that was fed, by offset */
    nacre_session *session;
};

static void place_open(struct place *p, uint64_t quota)
{
    static const nacre_id id = {{1}};
    nacre_options options = NACRE_OPTIONS_INIT;
    close(unit_dir(p->home));
    char runs[PATH_MAX + 8];
    snprintf(runs, sizeof runs, "%s/runs", p->home);
    assert_int_equal(mkdir(runs, 0700), 0);
    int n =
        snprintf(p->rig.path, sizeof p->rig.path, "%s/runs/%s", p->home, nacre_id_format(&id).s);
    assert_true(n < (int)sizeof p->rig.path);
    assert_int_equal(mkdir(p->rig.path, 0700), 0);
    rig_open_at(&p->rig, quota);
    p->rig.st.phase = PHASE_RUN;
    p->rig.st.outcome = NACRE_EXITED;
    p->rig.st.tree = NACRE_TREE_EMPTY;
    p->rig.st.started_ns = STARTED_MS * 1000000;
    p->bytes = malloc(RIG_MAX);
    options.home = p->home;
    assert_int_equal(nacre_open(&options, &p->session, NULL), 0);
}

static void place_close(struct place *p)
{
    nacre_close(p->session, NULL);
    rig_close(&p->rig);
    free(p->bytes);
}

static void feed(struct place *p, int stream, const char *data, size_t size, int64_t now_us)
{
    while (size > 0) {
        size_t n = MIN(size, (size_t)32768);
        uint64_t at = p->rig.st.log.end;
        assert_true(at + n <= RIG_MAX);
        memcpy(p->bytes + at, data, n);
        memset(p->rig.origin + at, stream, n);
        assert_int_equal(write(p->rig.pipes[stream][1], data, n), n);
        for (size_t done = 0; done < n;) {
            ssize_t got =
                logw_pull(&p->rig.w, p->rig.pipes[stream][0], (nacre_stream)stream, now_us);
            assert_true(got > 0);
            done += (size_t)got;
        }
        data += n;
        size -= n;
    }
}

static void feed_str(struct place *p, int stream, const char *text, int64_t now_us)
{
    feed(p, stream, text, strlen(text), now_us);
}

/* -- What a plain search finds ----------------------------------------------------------------- */

struct line {
    int stream;
    uint64_t number;
    uint64_t offset;
    size_t size;
    char *text;
    bool cut_start, cut_end, unfinished;
};

struct lines {
    struct line *items;
    size_t count;
};

static void add_line(struct lines *all, struct line line, const char *text)
{
    line.text = malloc(line.size + 1);
    memcpy(line.text, text, line.size);
    line.text[line.size] = '\0';
    if ((all->count & (all->count - 1)) == 0) /* full: twice as many */
        all->items = realloc(all->items, MAX(all->count * 2, (size_t)1) * sizeof line);
    all->items[all->count++] = line;
}

/* The lines of a stream that the log still has. */
static void plain_lines(const struct place *p, int stream, struct lines *all)
{
    const struct log_index *x = &p->rig.st.log;
    char *text = malloc(x->end + 1);
    struct line line = {.stream = stream, .number = 1};
    bool begun = false, lost = false;
    for (uint64_t at = 0; at < x->end; at++) {
        if (p->rig.origin[at] != stream)
            continue;
        bool newline = p->bytes[at] == '\n';
        if (at >= x->head && at < rig_tail(&p->rig)) {
            line.cut_end = true;
            if (begun)
                add_line(all, line, text);
            begun = false;
            lost = true;
            line.number += newline;
            continue;
        }
        if (!begun) {
            line = (struct line){
                .stream = stream, .number = line.number, .offset = at, .cut_start = lost};
            begun = true;
            lost = false;
        }
        if (!newline) {
            text[line.size++] = p->bytes[at];
            continue;
        }
        add_line(all, line, text);
        line.number++;
        begun = false;
    }
    line.unfinished = true;
    if (begun)
        add_line(all, line, text);
    free(text);
}

static int by_offset(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static struct lines all_lines(const struct place *p, unsigned streams)
{
    struct lines all = {0};
    for (int i = 0; i < 2; i++)
        if (streams & 1u << i)
            plain_lines(p, i, &all);
    if (all.count > 0)
        qsort(all.items, all.count, sizeof all.items[0], by_offset);
    return all;
}

static void free_lines(struct lines *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].text);
    free(all->items);
}

/* -- Checks ------------------------------------------------------------------------------------ */

struct check {
    struct lines lines;
    size_t at;
    const char *needle;
    size_t found;
};

static bool has(const struct line *line, const char *needle)
{
    return !needle || memmem(line->text, line->size, needle, strlen(needle));
}

static int check_line(const nacre_recall_line *got, void *userdata)
{
    struct check *c = userdata;
    while (c->at < c->lines.count && !has(&c->lines.items[c->at], c->needle))
        c->at++;
    assert_true(c->at < c->lines.count);
    const struct line *want = &c->lines.items[c->at++];
    assert_int_equal(got->stream, want->stream);
    assert_int_equal(got->line, want->number);
    assert_int_equal(got->offset, want->offset);
    assert_int_equal(got->size, want->size);
    assert_memory_equal(got->text, want->text, want->size);
    assert_int_equal(got->cut_start, want->cut_start);
    assert_int_equal(got->cut_end, want->cut_end);
    assert_int_equal(got->unfinished, want->unfinished);
    assert_int_equal(got->left_before + got->left_after, 0);
    if (c->needle)
        assert_memory_equal(got->text + got->match_start, c->needle, strlen(c->needle));
    c->found++;
    return 0;
}

/* The needle as a literal, as a pattern, and as one without a literal in it. */
static void check_needle(struct place *p, const char *needle, unsigned streams)
{
    assert_int_equal(rig_publish(&p->rig), 0);
    for (int mode = 0; mode < (needle ? 3 : 1); mode++) {
        nacre_recall_query q = NACRE_RECALL_QUERY_INIT;
        nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
        nacre_error err = NACRE_ERROR_INIT;
        struct check c = {.lines = all_lines(p, streams), .needle = needle};
        char classes[256] = "";
        for (size_t i = 0; mode == 2 && needle[i]; i++)
            snprintf(classes + i * 3, sizeof classes - i * 3, "[%c]", needle[i]);
        q.pattern = mode == 2 ? classes : needle;
        q.literal = mode == 0;
        q.streams = streams;
        q.limit = UINT64_MAX;
        int r = nacre_recall(p->session, &q, check_line, &c, &totals, &err);
        if (r != 0)
            fail_msg("%d: %s", r, err.msg);
        size_t matching = 0;
        for (size_t i = 0; i < c.lines.count; i++)
            matching += has(&c.lines.items[i], needle);
        assert_int_equal(c.found, matching);
        assert_int_equal(totals.matches, matching);
        assert_int_equal(totals.shells, 1);
        free_lines(&c.lines);
    }
}

/* -- The cases --------------------------------------------------------------------------------- */

static void test_every_span_border(void **state)
{
    (void)state;
    static const char out[] = "one\nthe needle is here\n\nlast needle";
    for (size_t split = 0; split <= sizeof out - 1; split++) {
        struct place p;
        place_open(&p, 16 << 20);
        feed(&p, 0, out, split, 0);
        feed_str(&p, 1, "err needle\nnee", 20000);
        feed(&p, 0, out + split, sizeof out - 1 - split, 40000);
        feed_str(&p, 1, "dle\n", 60000);
        check_needle(&p, "needle", NACRE_BOTH);
        check_needle(&p, "needle", NACRE_OUT);
        check_needle(&p, "needle", NACRE_ERR);
        check_needle(&p, NULL, NACRE_BOTH);
        place_close(&p);
    }
}

/* A needle at every place around the end of the sift's buffer, where blocks meet. */
static void test_every_block_border(void **state)
{
    (void)state;
    size_t border = SIFT_LINE * 2;
    char *text = malloc(border + 200);
    for (size_t shift = 0; shift < 40; shift++) {
        struct place p;
        place_open(&p, 64 << 20);
        for (size_t i = 0; i < border + 200; i++)
            text[i] = i % 100 == 37 ? '\n' : 'x';
        memcpy(text + border - 20 - shift, "needle", 6);
        feed(&p, 0, text, border + 200, 0);
        check_needle(&p, "needle", NACRE_BOTH);
        place_close(&p);
    }
    free(text);
}

static void test_gaps(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "needle",      "nee",  "dle",      "\n",   "\n",
        " some text ", "\r\n", "\xc3\xa9", "\xff", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct place p;
        struct unit_random random = {seed};
        place_open(&p, LOG_QUOTA_MIN);
        while (p.rig.st.log.end < 700000) {
            char chunk[8192];
            size_t size = 0, want = unit_below(&random, 4000);
            while (size < want) {
                const char *piece = pieces[unit_below(&random, ARRAY_SIZE(pieces))];
                memcpy(chunk + size, piece, strlen(piece));
                size += strlen(piece);
            }
            feed(&p, (int)unit_below(&random, 2), chunk, size, (int64_t)p.rig.st.log.end);
        }
        check_needle(&p, "needle", NACRE_BOTH);
        check_needle(&p, "text", NACRE_ERR);
        place_close(&p);
    }
}

struct seen {
    char text[8192];
    size_t count;
    int stop_at;
};

/* Lines as they would be shown, one after another. */
static int note(const nacre_recall_line *line, void *userdata)
{
    struct seen *seen = userdata;
    struct buf out;
    struct shown_match match;
    out = BUF_UP_TO(65536);
    assert_int_equal(buf_printf(&out, "%s%c%llu%c", line->stream == NACRE_STDOUT ? "out" : "err",
                                line->is_match ? ':' : '-', (unsigned long long)line->line,
                                line->is_match ? ':' : '-'),
                     0);
    assert_int_equal(show_text(&out, line, 200, &match), 0);
    assert_true(strlen(seen->text) + out.len + 2 < sizeof seen->text);
    strcat(seen->text, out.data);
    strcat(seen->text, "\n");
    buf_done(&out);
    seen->count++;
    return seen->stop_at > 0 && seen->count == (size_t)seen->stop_at ? 7 : 0;
}

static struct seen *recalled(struct place *p, const nacre_recall_query *q, int want,
                             nacre_recall_totals *ret_totals)
{
    static struct seen seen;
    nacre_error err = NACRE_ERROR_INIT;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(rig_publish(&p->rig), 0);
    int r = nacre_recall(p->session, q, note, &seen, &totals, &err);
    if (r != want)
        fail_msg("%d instead of %d: %s", r, want, err.msg);
    if (ret_totals)
        *ret_totals = totals;
    return &seen;
}

#define QUERY(...) ((nacre_recall_query){.size = sizeof(nacre_recall_query), __VA_ARGS__})
#define CHECK_SEEN(p, want, ...) \
    assert_string_equal(recalled(p, &QUERY(__VA_ARGS__), 0, NULL)->text, want)

static void test_context(void **state)
{
    (void)state;
    struct place p;
    place_open(&p, 16 << 20);
    feed_str(&p, 0, "1\n2\n3 x\n4\n5\n6\n7 x\n8 x\n9\n", 0);
    feed_str(&p, 1, "a\nb x", 20000);
    CHECK_SEEN(&p,
               "out-2-2\nout:3:3 x\nout-4-4\nout-6-6\nout:7:7 x\nout:8:8 x\nout-9-9\n"
               "err-1-a\nerr:2:b x\n",
               .pattern = "x", .context = 1);
    CHECK_SEEN(&p,
               "out-1-1\nout-2-2\nout:3:3 x\nout-4-4\nout-5-5\nout-6-6\nout:7:7 x\nout:8:8 x\n"
               "out-9-9\n",
               .pattern = "x", .context = 100, .streams = NACRE_OUT);
    /* The last one shown keeps its context, up to the next match. */
    nacre_recall_totals totals;
    nacre_recall_query q = QUERY(.pattern = "x", .context = 5, .limit = 1);
    assert_string_equal(recalled(&p, &q, 0, &totals)->text,
                        "out-1-1\nout-2-2\nout:3:3 x\nout-4-4\nout-5-5\nout-6-6\n");
    assert_int_equal(totals.matches, 4);
    assert_int_equal(totals.shown, 1);
    place_close(&p);
}

static void test_ranges(void **state)
{
    (void)state;
    struct place p;
    place_open(&p, 16 << 20);
    feed_str(&p, 0, "1\n2\n3\n4\n5", 0);
    feed_str(&p, 1, "a\nb\n", 20000);
    CHECK_SEEN(&p, "out:2:2\nout:3:3\nerr:2:b\n", .from = 2, .to = 3);
    CHECK_SEEN(&p, "out:4:4\nout:5:5\nerr:1:a\nerr:2:b\n", .from = -2);
    CHECK_SEEN(&p, "out:1:1\nout:2:2\nout:3:3\n", .to = -3);
    CHECK_SEEN(&p, "out:5:5\n", .from = 5, .pattern = "\\d");
    CHECK_SEEN(&p, "", .from = 6);
    CHECK_SEEN(&p, "out:1:1\nerr:1:a\n", .to = 1, .from = -100);
    nacre_recall_totals totals;
    nacre_recall_query q = QUERY(.limit = 2);
    assert_string_equal(recalled(&p, &q, 0, &totals)->text, "out:1:1\nout:2:2\n");
    assert_int_equal(totals.matches, 7);
    place_close(&p);
}

/* A line counts by its first byte. */
static void test_since(void **state)
{
    (void)state;
    struct place p;
    place_open(&p, 16 << 20);
    feed_str(&p, 0, "old\nbegun ", 0);
    feed_str(&p, 1, "e-old\n", 500000);
    feed_str(&p, 0, "and ended\nnew\n", 2000000);
    feed_str(&p, 1, "e-new\n", 3000000);
    feed_str(&p, 0, "newest\n", 4000000);
    CHECK_SEEN(&p, "out:3:new\nerr:2:e-new\nout:4:newest\n", .since_ms = STARTED_MS + 1000);
    CHECK_SEEN(&p, "err:1:e-old\nout:3:new\nerr:2:e-new\nout:4:newest\n",
               .since_ms = STARTED_MS + 100);
    CHECK_SEEN(&p, "out:4:newest\n", .since_ms = STARTED_MS + 4000, .pattern = "new");
    CHECK_SEEN(&p, "", .since_ms = STARTED_MS + 4001);
    CHECK_SEEN(&p, "out:1:old\nerr:1:e-old\n", .since_ms = STARTED_MS - 5, .pattern = "old");
    place_close(&p);
}

static void test_odd_lines(void **state)
{
    (void)state;
    struct place p;
    place_open(&p, 16 << 20);
    feed_str(&p, 0, "crlf end\r\n\n\ncaf\xe9 bytes\n\xc3\x84RGER\n10%\r20%\r\n\x1b[31mred\x1b[0m",
             0);
    CHECK_SEEN(&p, "out:1:crlf end\n", .pattern = "end$");
    CHECK_SEEN(&p, "out:2:\nout:3:\n", .pattern = "^$");
    CHECK_SEEN(&p, "out:4:caf\xef\xbf\xbd bytes\n", .pattern = "^.*bytes");
    CHECK_SEEN(&p, "out:5:\xc3\x84RGER\n", .pattern = "\xc3\xa4rger", .ignore_case = 1);
    CHECK_SEEN(&p, "out:6:10%[5 bytes]\n", .pattern = "10%");
    CHECK_SEEN(&p, "out:6:20%\n", .from = 6, .to = 6);
    CHECK_SEEN(&p, "out:7:red\n", .pattern = "red");
    place_close(&p);
}

/* One line of megabytes, found wherever the needle is, and shown in part. */
static void test_giant_line(void **state)
{
    (void)state;
    size_t size = (size_t)3 << 20;
    char *text = malloc(size);
    size_t window = SIFT_LINE * 2;
    size_t places[] = {0,          1,          window - 3, window, window + SIFT_LINE,
                       window * 3, size - 106, size / 2,   40000,  window * 2 - SIFT_OVERLAP - 3};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct place p;
        place_open(&p, 64 << 20);
        memset(text, 'x', size);
        memcpy(text + places[i], "needle", 6);
        feed_str(&p, 0, "first\n", 0);
        feed(&p, 0, text, size - 100, 0);
        feed_str(&p, 1, "between needle\n", 20000);
        feed(&p, 0, text + size - 100, 100, 40000);
        feed_str(&p, 0, "\nlast needle\n", 40000);
        nacre_recall_query q = QUERY(.pattern = i % 2 ? "needle" : "n[e]+dle");
        struct seen *seen = recalled(&p, &q, 0, NULL);
        assert_int_equal(seen->count, 3);
        assert_non_null(strstr(seen->text, "out:2:"));
        assert_non_null(strstr(strstr(seen->text, "out:2:"), "needle"));
        assert_non_null(strstr(seen->text, "bytes]"));
        assert_non_null(strstr(seen->text, "out:3:last needle"));
        /* Anchors are the line's, not the window's. */
        CHECK_SEEN(&p, "", .pattern = "^x+y|y$", .streams = NACRE_OUT);
        q = QUERY(.pattern = "^x", .streams = NACRE_OUT);
        assert_int_equal(recalled(&p, &q, 0, NULL)->count, places[i] > 0);
        q = QUERY(.pattern = "[x]$", .streams = NACRE_OUT);
        assert_int_equal(recalled(&p, &q, 0, NULL)->count, 1);
        place_close(&p);
    }
    free(text);
}

static int always(void *userdata)
{
    (void)userdata;
    return 5;
}

static void test_ends(void **state)
{
    (void)state;
    struct place p;
    nacre_recall_totals totals;
    place_open(&p, 16 << 20);
    for (int i = 0; i < 1000; i++)
        feed_str(&p, 0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n", 0);
    nacre_recall_query q = QUERY(.pattern = "b", .cancelled = always);
    recalled(&p, &q, 5, &totals);
    assert_int_equal(totals.shells_left, 1);
    q = QUERY(.pattern = "(a+)+$");
    recalled(&p, &q, NACRE_ELIMIT, NULL);
    q = QUERY(.pattern = "(a*)*(?:a*)*[c-d]", .timeout_ms = 1);
    recalled(&p, &q, NACRE_ETIMEOUT, &totals);
    assert_int_equal(totals.shells_left, 1);
    q = QUERY(.pattern = "(", );
    recalled(&p, &q, NACRE_EINVAL, NULL);
    q = QUERY(.pattern = "b", .streams = 8);
    recalled(&p, &q, NACRE_EINVAL, NULL);
    q = QUERY(.pattern = "b", .session = "xyz");
    recalled(&p, &q, NACRE_EINVAL, NULL);
    q = QUERY(.pattern = "b", .from = 5, .to = 3);
    recalled(&p, &q, NACRE_EINVAL, NULL);
    q = QUERY(.pattern = "b", .session = "1234");
    assert_int_equal(recalled(&p, &q, 0, NULL)->count, 0);
    q = QUERY(.pattern = "b", .session = "01");
    recalled(&p, &q, 0, &totals);
    assert_int_equal(totals.matches, 1000);
    assert_int_equal(totals.shown, NACRE_RECALL_LIMIT);
    static const nacre_id other = {{9}};
    q = QUERY(.pattern = "b", .id = &other);
    recalled(&p, &q, NACRE_ENOTFOUND, NULL);
    q.size--;
    recalled(&p, &q, NACRE_EINVAL, NULL);
    place_close(&p);
}

static void test_stop(void **state)
{
    (void)state;
    struct place p;
    struct seen seen = {.stop_at = 2};
    place_open(&p, 16 << 20);
    feed_str(&p, 0, "a\na\na\n", 0);
    assert_int_equal(rig_publish(&p.rig), 0);
    nacre_recall_query q = QUERY(.pattern = "a");
    assert_int_equal(nacre_recall(p.session, &q, note, &seen, NULL, NULL), 7);
    assert_int_equal(seen.count, 2);
    place_close(&p);
}

/* -- Another backend --------------------------------------------------------------------------- */

static int keep_home(void *self, nacre_home *home, nacre_error *err)
{
    (void)err;
    *(nacre_home **)self = home;
    return 0;
}

/* What a backend heard of a command is searched while it is written. */
static void test_mirror(void **state)
{
    (void)state;
    static const struct {
        nacre_stream stream;
        const char *text;
    } pieces[] = {
        {NACRE_STDOUT, "one\ntw"}, {NACRE_STDERR, "x\nneedle\n"}, {NACRE_STDOUT, "o needle\n"}};
    static const nacre_backend_ops ops = {
        .version = NACRE_BACKEND_VERSION, .size = sizeof ops, .name = "fake", .open = keep_home};
    nacre_home *home = NULL;
    nacre_backend backend = {.ops = &ops, .self = &home};
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_session *session;
    nacre_mirror *mirror;
    struct seen seen = {0};
    char path[PATH_MAX];
    close(unit_dir(path));
    options.home = path;
    options.backend = &backend;
    options.person = 1;
    command.text = "fake";
    assert_int_equal(nacre_open(&options, &session, NULL), 0);
    assert_int_equal(nacre_mirror_new(home, &command, &mirror, NULL, NULL), 0);
    assert_int_equal(nacre_mirror_begin(mirror, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        nacre_mirror_write(mirror, pieces[i].stream, pieces[i].text, strlen(pieces[i].text), 0);
    nacre_recall_query q = QUERY(.pattern = "needle");
    assert_int_equal(nacre_recall(session, &q, note, &seen, NULL, NULL), 0);
    assert_string_equal(seen.text, "out:2:two needle\nerr:2:needle\n");
    nacre_mirror_free(mirror);
    nacre_close(session, NULL);
}

/* -- Words ------------------------------------------------------------------------------------- */

static void test_moments(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* before now, or since the epoch if above 10^12 */
    } good[] = {{"90s", 90000},
                {"10m", 600000},
                {"2h", 7200000},
                {"1d", 86400000},
                {"0s", 0},
                {"2026-11-15T14:30Z", 1794753000000},
                {"2026-11-15T14:30:05+01:00", 1794749405000},
                {"2026-11-15 14:30:05-01:00", 1794756605000}};
    static const char *const bad[] = {"",
                                      "10",
                                      "m",
                                      "10x",
                                      "10m ",
                                      "-5m",
                                      "2026-13-01",
                                      "5.5h",
                                      "2026-11-15T14:30+1",
                                      "99999999999999d",
                                      "yesterday"};
    int64_t now = 1800000000000, ms;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(parse_moment(good[i].text, now, &ms));
        assert_int_equal(ms, good[i].ms > INT64_C(1000000000000) ? good[i].ms : now - good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (parse_moment(bad[i], now, &ms))
            fail_msg("\"%s\" was taken for a moment", bad[i]);
    /* Local time: noon and midnight of a day are twelve hours apart here as well. */
    int64_t noon;
    assert_true(parse_moment("2026-01-15", now, &ms));
    assert_true(parse_moment("2026-01-15 12:00", now, &noon));
    assert_int_equal(noon - ms, 12 * 3600 * 1000);
}

static void test_line_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t from, to;
    } good[] = {
        {"120-160", 120, 160}, {"120-", 120, 0}, {"-50", -50, 0}, {"7", 7, 7}, {"7-7", 7, 7}};
    static const char *const bad[] = {"",    "-",    "0",  "5-3", "a",
                                      "1-b", "1--2", "-0", "1-0", "1 - 2"};
    int64_t from, to;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(parse_lines(good[i].text, &from, &to));
        assert_int_equal(from, good[i].from);
        assert_int_equal(to, good[i].to);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (parse_lines(bad[i], &from, &to))
            fail_msg("\"%s\" was taken for lines", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_span_border),
        cmocka_unit_test(test_every_block_border),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_since),
        cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_giant_line),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_mirror),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_line_ranges),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
