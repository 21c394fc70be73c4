#include "tool/answer_screen.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "session/session.h"
#include "text/frame.h"
#include "tool/tool.h"

#define LEAD_MAX   ((size_t)256)
#define NOTES_MOST ((size_t)1024) /* of what stands out */

static void describe_terminal(const nacre_screen *screen, char *ret, size_t size)
{
    if (!screen->terminal)
        snprintf(ret, size, "no terminal; as one of %dx%d would show it", screen->columns,
                 screen->rows);
    else
        snprintf(ret, size, "terminal %dx%d, cursor %d,%d%s%s", screen->columns, screen->rows,
                 screen->row, screen->column, screen->shown ? "" : " hidden",
                 screen->alternate ? ", full screen" : "");
}

/* Where the last rows begin that have room. */
static const char *first_shown(const char *text, size_t room, int *ret_left_out)
{
    size_t size = strlen(text);
    *ret_left_out = 0;
    while (size > room) {
        size_t line = (size_t)(strchr(text, '\n') - text) + 1;
        text += line;
        size -= line;
        ++*ret_left_out;
    }
    return text;
}

static int write_rows(struct answer *a, const char *text, nacre_error *err)
{
    int r = 0;
    for (const char *end; r == 0 && (end = strchr(text, '\n')); text = end + 1) {
        r = frame_write(&a->text, text, (size_t)(end - text));
        if (r == 0)
            r = buf_str(&a->text, "\n");
    }
    return r < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static void note_marked(struct answer *a, const nacre_screen *screen)
{
    const char *line = screen->text;
    int row = 1;
    for (int i = 0; i < NACRE_SCREEN_MARKED && screen->marked[i]; i++) {
        for (; row < screen->marked[i] && line; row++) {
            line = strchr(line, '\n');
            line = line ? line + 1 : NULL;
        }
        size_t blanks = line ? strspn(line, " ") : 0;
        if (line)
            answer_note(a, "highlighted: row %d \"%.*s\"", row,
                        (int)MIN(strcspn(line + blanks, "\n"), (size_t)60), line + blanks);
    }
}

int answer_screen(struct answer *a, const nacre_record *record, nacre_error *err)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    char status[64], lead[LEAD_MAX];
    int left_out;
    int r = session_screen(a->session, &record->id, &screen, err);
    if (r < 0)
        return r;
    describe_terminal(&screen, lead, sizeof lead);
    r = answer_line(a, err, "[shell %s \xe2\x80\x94 %s, %s]", nacre_id_short(&record->id).s,
                    nacre_status(record, status, sizeof status), lead);
    size_t room = answer_room(a);
    const char *text = first_shown(screen.text, room - MIN(room, NOTES_MOST), &left_out);
    if (r == 0)
        r = write_rows(a, text, err);
    if (left_out > 0)
        answer_note(a, "the first %d rows have no room in the answer", left_out);
    if (screen.partial)
        answer_note(a, "output before this was dropped; rows not drawn since then may be missing");
    note_marked(a, &screen);
    answer_run(a, record);
    nacre_screen_done(&screen);
    return r;
}
