/* Who reads the input of a shell: asked of whoever runs it, and said in words. */
#include <nacre/reads.h>
#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/err.h"
#include "session/session.h"
#include "text/brief.h"

#define NAME_MAX_BYTES 64 /* of a name of 15 bytes, once nothing in it can do harm */

static int check_has_input(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = session_check_id(s, id, false, err);
    if (r == 0)
        r = session_record(s, id, HOME_PLAIN, &record, NULL, err);
    if (r < 0)
        return r;
    if (record.tree == NACRE_TREE_EMPTY)
        return err_set(err, NACRE_ECLOSED, "shell %s has ended, and nobody reads",
                       nacre_id_short(id).s);
    if (record.columns == 0 && record.input != NACRE_STDIN_PIPE)
        return err_set(err, NACRE_ECLOSED,
                       "shell %s has no stdin that could be typed to: it was started without a "
                       "terminal and without keep_stdin",
                       nacre_id_short(id).s);
    return 0;
}

int session_reads(nacre_session *s, const nacre_id *id, unsigned set, int64_t held_ms,
                  nacre_op **ret_op, nacre_error *err)
{
    nacre_error spare;
    void *self;
    int r = check_has_input(s, id, err);
    if (r < 0)
        return r;
    const nacre_backend_ops *ops = session_ops_of(s, id, &self);
    if (!ops->reads)
        return session_unsupported(ops, "tell who reads", err);
    *ret_op = NULL;
    r = ops->reads(self, id, set, held_ms, ret_op, err ? err : &spare);
    return r == 0 && !*ret_op ? session_unsupported(ops, "tell who reads", err) : r;
}

static int check_reading(const nacre_reading *reading, nacre_error *err)
{
    return reading && reading->size == sizeof *reading
               ? 0
               : err_set(err, NACRE_EINVAL, "the reading must start from NACRE_READING_INIT");
}

int nacre_get_reading(nacre_session *session, const nacre_id *id, nacre_reading *ret_reading,
                      nacre_error *reterr)
{
    nacre_op *op;
    int r = check_reading(ret_reading, reterr);
    if (r == 0)
        r = session_reads(session, id, 0, 0, &op, reterr);
    return r < 0 ? r : op_finish(op, ret_reading, sizeof *ret_reading, reterr);
}

int nacre_wait_reading(nacre_session *session, const nacre_id *id, unsigned set, int64_t held_ms,
                       int64_t timeout_ms, nacre_reading *ret_reading, nacre_error *reterr)
{
    nacre_op *op cleanup_op = NULL;
    int r = check_reading(ret_reading, reterr);
    if (r == 0 && (set & ~(NACRE_READS_BIT(NACRE_READS_PASSWORD + 1) - 2)) != 0)
        r = err_set(reterr, NACRE_EINVAL, "there is no such set of readings: 0x%x", set);
    if (r == 0 && set == 0)
        r = err_set(reterr, NACRE_EINVAL, "there is nothing to wait for: the set is empty");
    if (r == 0)
        r = session_reads(session, id, set, held_ms, &op, reterr);
    if (r == 0)
        r = op_wait(op, timeout_ms, reterr);
    if (r == 0)
        return err_set(reterr, NACRE_ETIMEOUT, "nobody was seen to read in shell %s",
                       nacre_id_short(id).s);
    if (r > 0)
        *ret_reading = *(const nacre_reading *)op->result;
    return MIN(r, 0);
}

/* -- In words --------------------------------------------------------------------------------- */

/* They claim no more than was seen. */
static const char *const words[][2] = {
    [NACRE_READS_UNKNOWN] = {"who reads its stdin cannot be seen",
                             "who reads the terminal cannot be seen (setuid)"},
    [NACRE_READS_LISTENS] = {"waits for its stdin, and for other things",
                             "takes input from the terminal, and waits for other things"},
    [NACRE_READS_LINE] = {"reads its stdin", "reads a line from the terminal"},
    [NACRE_READS_KEYS] = {"reads its stdin", "reads keys from the terminal"},
    [NACRE_READS_PASSWORD] = {"reads its stdin", "waits for a password, echo off"},
};

const char *nacre_reading_text(const nacre_reading *reading, char *buf, size_t size)
{
    struct buf name cleanup_buf = BUF_UP_TO(NAME_MAX_BYTES);
    if (size > 0)
        buf[0] = '\0';
    if (reading->reads <= NACRE_READS_NO || reading->reads >= (nacre_reads)ARRAY_SIZE(words))
        return buf;
    if (brief_inline(&name, reading->name, strnlen(reading->name, sizeof reading->name)) < 0)
        name.len = 0;
    const char *what = words[reading->reads][reading->terminal != 0];
    if (reading->reads == NACRE_READS_UNKNOWN)
        snprintf(buf, size, "%s", what);
    else if (name.len == 0)
        snprintf(buf, size, "somebody %s", what);
    else
        snprintf(buf, size, "%.*s (pid %d) %s", (int)name.len, name.data, reading->pid, what);
    return buf;
}
