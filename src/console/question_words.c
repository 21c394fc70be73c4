#include "console/question_words.h"

#include <string.h>

/* Each line of a text, indented, behind a heading. */
static int write_lines(struct buf *out, const char *heading, const char *text)
{
    int r = *text ? buf_printf(out, "%s\n", heading) : 0;
    while (r == 0 && *text) {
        size_t size = strcspn(text, "\n");
        r = buf_printf(out, "  %.*s\n", (int)size, text);
        text += size + (text[size] ? 1 : 0);
    }
    return r;
}

int question_write(struct buf *out, const nacre_question *q)
{
    int r = buf_printf(out, "  %s\n", q->command);
    if (r == 0 && strcmp(q->command, q->commands) != 0)
        r = write_lines(out, "commands in it:", q->commands);
    if (r == 0 && *q->cwd)
        r = buf_printf(out, "in %s\n", q->cwd);
    if (r == 0 && *q->description)
        r = buf_printf(out, "said to be: %s\n", q->description);
    if (r == 0)
        r = buf_printf(out, "asked because of: %s\n", q->reason);
    return r == 0 ? write_lines(out, "always would write into your configuration:", q->always) : r;
}
