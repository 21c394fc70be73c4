/* What a session has read of a shell. */
#include <stdlib.h>

#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"

/* The cursor of a shell that left the list, or was never on it. */
static struct shell remembered(nacre_session *s, const nacre_id *id)
{
    struct shell shell = {.id = *id, .life = SHELL_OVER, .foreign = true};
    struct catalog *catalog;
    struct catalog_run *run = NULL;
    if (session_has_catalog(s) && session_catalog(s, false, &catalog, NULL) == 0 &&
        catalog_get_run(catalog, id, &run, NULL) == 0 && nacre_id_equal(&run->session, &s->id))
        shell.read_to = run->read_to;
    free(run);
    return shell;
}

static struct shell shell_of(nacre_session *s, const nacre_id *id)
{
    struct shell shell;
    if (!registry_get(s->registry, id, &shell)) {
        shell = remembered(s, id);
        registry_add(s->registry, &shell, false);
    }
    return shell;
}

static int peek(nacre_session *s, const nacre_id *id, nacre_record *record, nacre_error *reterr)
{
    int r = scope_check(s, id, false, reterr);
    if (r < 0)
        return r;
    return s->ops.peek ? CALL(s, peek, id, record) : CALL(s, get, id, record);
}

int nacre_get_unread(nacre_session *session, const nacre_id *id, nacre_unread *ret_unread,
                     nacre_error *reterr)
{
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (ret_unread->size != sizeof *ret_unread)
        return err_set(reterr, NACRE_EINVAL, "the unread must start from NACRE_UNREAD_INIT");
    r = peek(session, id, &record, reterr);
    if (r < 0)
        return r;
    ends_note(session, &record);
    uint64_t limit = (uint64_t)session_setting(session, NACRE_SETTING_UNREAD);
    uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    uint64_t from = MIN(shell_of(session, id).read_to, end);
    nacre_record_done(&record);
    *ret_unread = (nacre_unread){
        .size = sizeof *ret_unread, .from = from, .to = end, .head = end, .tail = end};
    if (end - from > limit) {
        ret_unread->head = from + limit / 2;
        ret_unread->tail = end - limit / 2;
    }
    return 0;
}

int nacre_mark_read(nacre_session *session, const nacre_id *id, uint64_t offset, int saw_end,
                    nacre_error *reterr)
{
    struct catalog *catalog;
    nacre_record record = NACRE_RECORD_INIT;
    int r = session_check(session, reterr);
    if (r == 0)
        r = peek(session, id, &record, reterr);
    nacre_record_done(&record);
    if (r < 0)
        return r;
    struct shell shell = shell_of(session, id);
    registry_mark_read(session->registry, id, offset, saw_end);
    /* For a person who looks at the list from outside. */
    if (shell.background && offset > shell.read_to &&
        session_catalog(session, true, &catalog, NULL) == 0)
        catalog_set_read(catalog, id, offset, NULL);
    return saw_end ? completion_told(session, id, reterr) : 0;
}

nacre_position reading_position(nacre_session *s, const nacre_id *id)
{
    struct shell shell = shell_of(s, id);
    nacre_position position = NACRE_POSITION_INIT;
    if (shell.position.size > 0 && shell.position.offset >= shell.read_to)
        return shell.position;
    position.offset = shell.read_to;
    return position;
}

int reading_move(nacre_session *s, const nacre_id *id, const nacre_position *position, bool saw_end,
                 nacre_error *err)
{
    int r = nacre_mark_read(s, id, position->offset, saw_end, err);
    registry_set_position(s->registry, id, position);
    return r;
}
