#include "cli/top_find.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "console/full_screen.h"
#include "recall/show.h"
#include "text/brief.h"

#define FOUND_MAX  200
#define TIMEOUT_MS 5000

static void forget_found(struct top_find *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->lines[i].text);
    f->count = f->at = f->scrolled = 0;
}

void top_find_done(struct top_find *f)
{
    forget_found(f);
    free(f->lines);
}

static int add_found_line(const nacre_recall_line *line, void *userdata)
{
    struct top_find *f = userdata;
    struct buf text cleanup_buf = BUF_UP_TO(SHOW_LINE_MAX * 8);
    struct shown_match match;
    if (GROW(f->lines, f->count, f->room) < 0 || show_origin(&text, line) < 0 ||
        show_text(&text, line, SHOW_LINE_MAX, &match) < 0)
        return NACRE_ENOMEM;
    struct found_line *one = &f->lines[f->count];
    *one = (struct found_line){.id = line->record->id, .offset = line->offset};
    one->text = buf_take(&text);
    f->count += one->text != NULL;
    return 0;
}

static int somebody_types(void *userdata UNUSED)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&keys, 1, 0) > 0;
}

void top_find_run(struct top_find *f, nacre_session *session)
{
    nacre_recall_query query = NACRE_RECALL_QUERY_INIT;
    nacre_recall_totals totals = NACRE_RECALL_TOTALS_INIT;
    nacre_error error = NACRE_ERROR_INIT;
    forget_found(f);
    query.pattern = f->text;
    query.literal = query.ignore_case = 1;
    query.limit = FOUND_MAX;
    query.timeout_ms = TIMEOUT_MS;
    query.cancelled = somebody_types;
    int r = nacre_recall(session, &query, add_found_line, f, &totals, &error);
    snprintf(f->summary, sizeof f->summary, "%zu of %llu lines with \"%s\"%s%s", f->count,
             (unsigned long long)totals.matches, f->text,
             r == 0  ? ""
             : r > 0 ? ", ended by a key"
                     : ", ",
             r < 0 ? "not all was searched" : "");
    f->shown = true;
}

static void type_wanted(struct top_find *f, int key)
{
    size_t size = strlen(f->text);
    if ((key == 0x7f || key == '\b') && size > 0)
        f->text[size - 1] = '\0';
    else if (key >= ' ' && key < 0x7f && size + 1 < sizeof f->text) {
        f->text[size] = (char)key;
        f->text[size + 1] = '\0';
    }
}

static void move_in_found(struct top_find *f, int key)
{
    if (key == 'j' || key == KEY_DOWN)
        f->at += f->at + 1 < f->count;
    else if (key == 'k' || key == KEY_UP)
        f->at -= f->at > 0;
    else if (key == 'g' || key == KEY_HOME)
        f->at = 0;
    else if ((key == 'G' || key == KEY_LAST) && f->count > 0)
        f->at = f->count - 1;
    else if (key == KEY_ESCAPE || key == 'q')
        f->shown = false;
}

const struct found_line *top_find_press(struct top_find *f, int key, nacre_session *session)
{
    bool enters = key == '\n' || key == '\r';
    if (f->types && (enters || key == KEY_ESCAPE)) {
        f->types = false;
        if (enters && *f->text)
            top_find_run(f, session);
        return NULL;
    }
    if (f->types)
        type_wanted(f, key);
    else if (enters && f->count > 0)
        return &f->lines[f->at];
    else
        move_in_found(f, key);
    return NULL;
}

int top_find_put(struct top_find *f, size_t rows, size_t columns, struct buf *out)
{
    size_t places = rows > 1 ? rows - 1 : 1;
    if (f->at < f->scrolled)
        f->scrolled = f->at;
    if (f->at >= f->scrolled + places)
        f->scrolled = f->at - places + 1;
    int r = brief_line(out, f->summary, columns);
    if (r == 0)
        r = buf_str(out, "\n");
    for (size_t i = f->scrolled; r == 0 && i < f->scrolled + places; i++) {
        bool is_there = i < f->count;
        r = buf_str(out, !is_there ? "" : i == f->at ? "> " : "  ");
        if (r == 0 && is_there)
            r = brief_line(out, f->lines[i].text, columns > 2 ? columns - 2 : 1);
        if (r == 0)
            r = buf_str(out, "\n");
    }
    return r;
}
