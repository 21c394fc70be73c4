/* What a reader is told of the end of a background shell. */
#include <nacre/completion.h>
#include <nacre/view.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/text.h"
#include "shell/session.h"
#include "view/brief.h"
#include "view/cut.h"

#define COMMAND_COLUMNS 200
#define COMMAND_BYTES   400
#define RAW_PER_BYTE    4 /* rendering makes text shorter */
#define OMITTED_MAX     128

/* The text behind the next newline, or its end. */
static const char *next_line(const char *text)
{
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text + strlen(text);
}

/* The last lines that fit; of a single one that does not, its beginning and its end. */
static int append_last(struct buf *out, const char *text, size_t room, bool *ret_cut)
{
    size_t size = strlen(text);
    while (size > room && *next_line(text)) {
        *ret_cut = true;
        text = next_line(text);
        size = strlen(text);
    }
    if (size <= room)
        return buf_append(out, text, size);
    char line[4096];
    uint64_t lost;
    struct cut cut = cut_of(text, size - (text[size - 1] == '\n'), 0);
    *ret_cut = true;
    if (room <= CUT_LEAST)
        return 0;
    return buf_append(out, line, cut_middle(line, MIN(room - 1, sizeof line), &cut, &lost));
}

static int append_tail(struct buf *out, nacre_session *s, const nacre_record *record, size_t room,
                       bool *ret_cut, nacre_error *err)
{
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    uint64_t raw = MAX((uint64_t)room * RAW_PER_BYTE, (uint64_t)NACRE_VIEW_BUDGET_MIN);
    nacre_view_options options = NACRE_VIEW_OPTIONS_INIT;
    nacre_position position = NACRE_POSITION_INIT;
    cleanup_free char *text = NULL;
    int is_new = 0;
    position.offset = end > raw ? end - raw : 0;
    options.bytes = MIN(8 * raw, (uint64_t)NACRE_VIEW_BUDGET_MAX);
    bool torn = position.offset > 0;
    int r = nacre_view_read(s, &record->id, &position, &options, &text, &is_new, err);
    if (r < 0 || !is_new)
        return r;
    const char *body = next_line(text);
    if (torn && *next_line(body))
        body = next_line(body);
    *ret_cut = torn;
    return append_last(out, body, room, ret_cut) < 0 ? err_set(err, NACRE_ENOMEM, "out of memory")
                                                     : 0;
}

static int append_facts(struct buf *out, const nacre_record *record, bool repeated)
{
    char status[64], code[16] = "none", command[COMMAND_BYTES + 1];
    bool success = record->outcome == NACRE_EXITED && record->exit_code == 0;
    if (record->exit_code >= 0)
        snprintf(code, sizeof code, "%d", record->exit_code);
    int r = buf_printf(
        out, "[Background task %s completed]%s\nstatus: %s\nexit_code: %s\nsuccess: %s\n",
        nacre_id_short(&record->id).s, repeated ? " (repeated)" : "",
        nacre_status(record, status, sizeof status), code, success ? "true" : "false");
    if (r == 0)
        r = buf_printf(out, "elapsed_ms: %lld\ncommand: ", (long long)record->elapsed_ms);
    size_t size = text_whole(record->command, MIN(strlen(record->command), sizeof command - 1));
    memcpy(command, record->command, size);
    command[size] = '\0';
    if (r == 0)
        r = brief_line(out, command, COMMAND_COLUMNS);
    return r == 0 ? buf_str(out, "\n") : r;
}

/* The end of the output is made first: what is said of it comes before it. */
static int write_text(nacre_session *s, const nacre_record *record, bool repeated, size_t budget,
                      struct buf *out, nacre_error *err)
{
    struct buf tail cleanup_buf;
    bool cut = false;
    buf_init(&tail, budget);
    int e = append_facts(out, record, repeated);
    size_t used = out->len + OMITTED_MAX;
    int r = e == 0 && used < budget ? append_tail(&tail, s, record, budget - used, &cut, err) : 0;
    if (r < 0)
        return r;
    if (e == 0 && cut)
        e = buf_printf(out, "omitted: what came before; bash_output(id: \"%s\") shows it\n",
                       nacre_id_short(&record->id).s);
    if (e == 0 && tail.len > 0)
        e = buf_printf(out, "\n%s", tail.data);
    return e < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

int nacre_offer_text(const nacre_offer *offer, size_t index, size_t budget, char **ret_text,
                     nacre_error *reterr)
{
    if (!offer || index >= nacre_offer_count(offer))
        return err_set(reterr, NACRE_EINVAL, "there is no completion %zu in the offer", index);
    if (budget < NACRE_VIEW_BUDGET_MIN)
        return err_set(reterr, NACRE_EINVAL, "the budget is too small: at least %d bytes",
                       NACRE_VIEW_BUDGET_MIN);
    nacre_session *s = completion_session(offer);
    nacre_id id = nacre_offer_id(offer, index);
    nacre_record record = NACRE_RECORD_INIT;
    struct buf out cleanup_buf;
    buf_init(&out, MIN(budget, (size_t)NACRE_VIEW_BUDGET_MAX));
    int r = nacre_get(s, &id, &record, reterr);
    if (r < 0)
        return r;
    r = write_text(s, &record, nacre_offer_repeated(offer, index), out.max, &out, reterr);
    nacre_record_done(&record);
    if (r < 0)
        return r;
    *ret_text = buf_take(&out);
    return *ret_text ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}
