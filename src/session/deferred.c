#include "session/deferred.h"

#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>

#include "ask/desk.h"
#include "backend/op.h"
#include "base/err.h"
#include "base/hold.h"
#include "session/session.h"
#include "sys/fd.h"
#include "text/brief.h"

#define DECIDED_MAX     64 /* that are remembered; the oldest go */
#define TOLD_AT_ONCE    8
#define COMMAND_COLUMNS 60

struct deferred {
    struct deferred *next;
    nacre_id question;
    nacre_op *start;    /* NULL = it was decided */
    int watched;        /* in the desk's epoll, or -1 */
    nacre_id shell;     /* once it runs */
    char why[240];      /* "" = it runs */
    char *command;      /* a line of it */
    bool told;          /* it arrived */
    const void *teller; /* whose answer says it */
};

static int no_start(nacre_error *err, const char *word)
{
    return err_set(err, NACRE_ENOTFOUND, "no question has the id \"%.40s\"", word);
}

/* -- Taking over ------------------------------------------------------------------------------ */

static int need_timer(nacre_session *s)
{
    if (s->deferred_timer >= 0)
        return 0;
    s->deferred_timer =
        fd_lift_consume(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (s->deferred_timer < 0 || desk_watch(s->desk, s->deferred_timer) < 0)
        return -errno;
    return 0;
}

static void free_deferred(struct deferred *d)
{
    op_end(&d->start);
    free(d->command);
    free(d);
}

/* With the lock. */
static void forget_old_ones(nacre_session *s)
{
    size_t count = 0;
    for (struct deferred **at = &s->deferred; *at && !s->deferring;) {
        struct deferred *d = *at;
        if (d->start || ++count <= DECIDED_MAX) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        free_deferred(d);
    }
}

static char *first_line_of(const char *command)
{
    struct buf line cleanup_buf = BUF_UP_TO((size_t)8 * COMMAND_COLUMNS);
    return brief_line(&line, command, COMMAND_COLUMNS) == 0 ? buf_take(&line) : NULL;
}

int deferred_take(nacre_session *s, nacre_op *start, nacre_id *ret_question, nacre_error *err)
{
    const struct question *q = session_start_question(start);
    struct deferred *d = NULL;
    if (!q || !desk_is_attended(s->desk))
        return err_set(err, NACRE_EUNSUPPORTED, "nobody would go on with it");
    if (need_timer(s) == 0)
        d = calloc(1, sizeof *d);
    if (!d || session_start_detach(start) < 0) {
        free(d);
        return err_set(err, NACRE_ENOMEM, "out of memory or descriptors");
    }
    d->question = *ret_question = q->id;
    d->command = first_line_of(q->texts[QUESTION_COMMAND]);
    d->start = start;
    d->watched = session_start_bell(start);
    desk_watch(s->desk, d->watched);
    HOLD(&s->lock);
    d->next = s->deferred;
    s->deferred = d;
    forget_old_ones(s);
    return 0;
}

/* -- Going on --------------------------------------------------------------------------------- */

static void note_decided(struct deferred *d, int r, const nacre_error *err)
{
    const struct session_started *started = d->start->result;
    if (r > 0)
        d->shell = started->started.id;
    else
        snprintf(d->why, sizeof d->why, "%s", err->msg);
    op_end(&d->start);
}

/* One thread at a time. */
static void go_on_with(nacre_session *s, struct deferred *d, int64_t *wake_ns)
{
    nacre_error err = NACRE_ERROR_INIT;
    desk_unwatch(s->desk, d->watched);
    d->watched = -1;
    int r = d->start->step(d->start, &err);
    if (r != 0) {
        note_decided(d, r, &err);
        return;
    }
    d->watched = session_start_asks(d->start) ? session_start_bell(d->start) : d->start->fd;
    desk_watch(s->desk, d->watched);
    *wake_ns = MIN(*wake_ns, d->start->wake_ns);
}

static bool begin_deferring(nacre_session *s)
{
    HOLD(&s->lock);
    if (s->deferring || !s->deferred)
        return false;
    return s->deferring = true;
}

void deferred_step(nacre_session *s)
{
    int64_t wake_ns = INT64_MAX;
    if (!begin_deferring(s))
        return;
    for (struct deferred *d = s->deferred; d; d = d->next)
        if (d->start)
            go_on_with(s, d, &wake_ns);
    fd_arm_timer(s->deferred_timer, wake_ns == INT64_MAX ? 0 : wake_ns);
    HOLD(&s->lock);
    s->deferring = false;
}

/* -- What is known of them -------------------------------------------------------------------- */

/* With the lock. */
static struct deferred *find_deferred(nacre_session *s, const char *word)
{
    size_t size = strlen(word);
    for (struct deferred *d = s->deferred; d && size >= NACRE_ID_PREFIX_MIN; d = d->next)
        if (strncmp(nacre_id_format(&d->question).s, word, size) == 0)
            return d;
    return NULL;
}

int deferred_find(nacre_session *s, const char *word, nacre_id *ret_shell, nacre_error *err)
{
    HOLD(&s->lock);
    const struct deferred *d = find_deferred(s, word);
    if (!d)
        return no_start(err, word);
    if (d->start)
        return err_set(err, NACRE_EBUSY,
                       "the user has not answered question %s yet; nothing runs until they say yes",
                       nacre_id_short(&d->question).s);
    if (d->why[0])
        return err_set(err, NACRE_EPERM, "%s", d->why);
    *ret_shell = d->shell;
    return 0;
}

bool deferred_withdraw(nacre_session *s, const char *word)
{
    HOLD(&s->lock);
    struct deferred *d = s->deferring ? NULL : find_deferred(s, word);
    if (!d || !d->start)
        return false;
    struct deferred taken = *d;
    d->start = NULL;
    d->told = true;
    snprintf(d->why, sizeof d->why, "nothing was started: the question was withdrawn");
    pthread_mutex_unlock(&s->lock);
    desk_unwatch(s->desk, taken.watched);
    op_end(&taken.start);
    pthread_mutex_lock(&s->lock);
    return true;
}

static int write_decided(const struct deferred *d, struct buf *out)
{
    int r = buf_printf(out, "[Question %s: ", nacre_id_short(&d->question).s);
    if (r == 0)
        r = d->why[0] ? buf_str(out, d->why)
                      : buf_printf(out, "the user said yes; background shell %s was started",
                                   nacre_id_short(&d->shell).s);
    return r == 0 ? buf_printf(out, ": %s]\n", d->command ? d->command : "") : r;
}

int deferred_tell(nacre_session *s, const void *teller, struct buf *out)
{
    HOLD(&s->lock);
    int r = 0, count = 0;
    for (struct deferred *d = s->deferred; r == 0 && d && count < TOLD_AT_ONCE; d = d->next) {
        if (d->start || d->told || d->teller)
            continue;
        count++;
        r = write_decided(d, out);
        d->teller = r == 0 ? teller : NULL;
    }
    return r;
}

void deferred_told(nacre_session *s, const void *teller, bool arrived)
{
    HOLD(&s->lock);
    for (struct deferred *d = s->deferred; d; d = d->next)
        if (d->teller == teller) {
            d->told = d->told || arrived;
            d->teller = NULL;
        }
}

/* -- The end ---------------------------------------------------------------------------------- */

void deferred_end(nacre_session *s)
{
    for (struct deferred *d = s->deferred; d; d = d->next)
        op_end(&d->start);
}

void deferred_free(nacre_session *s)
{
    while (s->deferred) {
        struct deferred *d = s->deferred;
        s->deferred = d->next;
        free_deferred(d);
    }
    close_fd(&s->deferred_timer);
}
