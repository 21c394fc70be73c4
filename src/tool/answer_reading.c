#include "tool/answer_reading.h"

#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/clock.h"
#include "base/defs.h"
#include "session/session.h"

#define LOOK_MS      1000 /* a keeper that lives has looked twice by then */
#define WORDS_MAX    160
#define QUESTION_MAX 120 /* bytes of what is quoted, its end */

int reading_look(struct reading_look *l, nacre_call *c, const nacre_id *id)
{
    nacre_error ignored;
    if (!l->looked && session_reads(c->session, id, 0, 0, &l->op, &ignored) < 0)
        l->op = NULL;
    if (!l->looked)
        l->deadline_ns = clock_deadline(LOOK_MS);
    l->looked = true;
    int r = l->op ? call_step_op(c, l->op, &ignored) : TOOL_DONE;
    if (r == TOOL_WAIT && clock_left_ms(l->deadline_ns) > 0) {
        c->wake_ns = MIN(c->wake_ns, l->deadline_ns);
        return TOOL_WAIT;
    }
    if (l->op && r == TOOL_DONE)
        l->read = *(const nacre_reading *)l->op->result;
    op_end(&l->op);
    return TOOL_DONE;
}

void reading_look_end(struct reading_look *l)
{
    op_end(&l->op);
}

/* The row of the cursor. */
static void find_question(nacre_session *s, const nacre_id *id, char *ret, size_t size)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    ret[0] = '\0';
    if (session_screen(s, id, &screen, NULL) < 0)
        return;
    const char *line = screen.text;
    for (int row = 1; row < screen.row && line; row++) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    size_t length = line ? strcspn(line, "\n") : 0;
    while (length > 0 && line[length - 1] == ' ')
        length--;
    size_t skipped = length >= size ? length - size + 1 : 0;
    while (skipped > 0 && skipped < length && ((unsigned char)line[skipped] & 0xc0) == 0x80)
        skipped++;
    if (length > 0)
        snprintf(ret, size, "%.*s", (int)(length - skipped), line + skipped);
    nacre_screen_done(&screen);
}

void answer_reading(struct answer *a, const nacre_record *record, const nacre_reading *reading)
{
    char words[WORDS_MAX], question[QUESTION_MAX] = "";
    nacre_reading_text(reading, words, sizeof words);
    if (!words[0])
        return;
    bool line = reading->reads == NACRE_READS_LINE || reading->reads == NACRE_READS_PASSWORD;
    if (record->columns > 0 && line)
        find_question(a->session, &record->id, question, sizeof question);
    const char *quote = question[0] ? "\"" : "";
    if (reading->reads == NACRE_READS_PASSWORD)
        answer_note(a, "%s%s%s%s%s. A person can type it: nacre attach --input %s", words,
                    question[0] ? ": " : "", quote, question, quote, nacre_id_short(&record->id).s);
    else
        answer_note(a, "%s%s%s%s%s", words, question[0] ? ": " : "", quote, question, quote);
}
