/* Running in the foreground, and waiting for several shells at once. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"

#define SLICE_MS 1000

/* An answer is due at SETTLED; the output stays in the log for whoever reads it. */
static int await_answer(nacre_watch *watch, int64_t wait_ms, nacre_error *err)
{
    int64_t deadline = clock_deadline(wait_ms);
    nacre_event event;
    nacre_watch_skip_output(watch);
    do {
        int r = nacre_watch_wait(watch, clock_left_ms(deadline), NULL, 0, &event, err);
        if (r < 0)
            return r;
        if (event.kind == NACRE_EVENT_NONE)
            return err_set(err, NACRE_ETIMEOUT, "the command goes on in the background");
    } while (event.kind != NACRE_EVENT_SETTLED && event.kind != NACRE_EVENT_END);
    return 0;
}

int nacre_run(nacre_session *session, const nacre_command *command, int64_t wait_ms,
              nacre_record *ret_record, nacre_error *reterr)
{
    nacre_id id;
    nacre_watch *watch = NULL;
    int r = nacre_start(session, command, &id, &watch, reterr);
    if (r < 0)
        return r;
    int waited = await_answer(watch, wait_ms, reterr);
    if (waited == 0 || waited == NACRE_ETIMEOUT) {
        /* Right after a start nothing may have been heard yet. */
        r = nacre_watch_record(watch, ret_record, waited == 0 ? reterr : NULL);
        if (r == NACRE_EBUSY)
            r = nacre_get(session, &id, ret_record, reterr);
    }
    nacre_watch_close(watch);
    if (r == 0)
        ends_note(session, ret_record);
    return r < 0 ? r : waited;
}

static int wait_all(nacre_session *s, const nacre_id *ids, size_t count, int64_t deadline,
                    size_t *ret_index, nacre_error *reterr)
{
    nacre_error spare;
    /* What is wrong with any of them is said before waiting for the others. */
    for (size_t i = 0; i < count && count > 1; i++) {
        int r = s->ops.wait_for_exit(s->self, &ids[i], 0, reterr ? reterr : &spare);
        if (r < 0 && r != NACRE_ETIMEOUT)
            return r;
    }
    for (size_t i = 0; i < count; i++) {
        int r = s->ops.wait_for_exit(s->self, &ids[i], clock_left_ms(deadline),
                                     reterr ? reterr : &spare);
        if (r < 0)
            return r;
        *ret_index = i;
    }
    return 0;
}

/* Everything that waits for one of several: their watches and what poll() needs. */
struct several {
    nacre_watch **watches;
    struct pollfd *polls;
    size_t count;
};

static void several_done(struct several *several)
{
    for (size_t i = 0; several->watches && i < several->count; i++)
        nacre_watch_close(several->watches[i]);
    free(several->watches);
    free(several->polls);
}

/* Index of one that has an outcome, -1 if none has, or an error below that. */
static int64_t look(struct several *several, nacre_error *err)
{
    for (size_t i = 0; i < several->count; i++) {
        nacre_event event;
        int r = nacre_watch_next(several->watches[i], NULL, 0, &event, err);
        if (r < 0)
            return (int64_t)r - 1;
        if (event.kind != NACRE_EVENT_NONE)
            return (int64_t)i;
    }
    return -1;
}

static int wait_any(nacre_session *s, const nacre_id *ids, size_t count, int64_t deadline,
                    size_t *ret_index, nacre_error *reterr)
{
    __attribute__((cleanup(several_done))) struct several several = {0};
    several.watches = calloc(count, sizeof *several.watches);
    several.polls = calloc(count, sizeof *several.polls);
    if (!several.watches || !several.polls)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++, several.count++) {
        int r = nacre_watch_open(s, &ids[i], UINT64_MAX, &several.watches[i], reterr);
        if (r < 0)
            return r;
        nacre_watch_skip_output(several.watches[i]);
    }
    for (;;) {
        int64_t found = look(&several, reterr);
        if (found >= 0) {
            *ret_index = (size_t)found;
            return 0;
        }
        if (found < -1)
            return (int)found + 1;
        int left = clock_left_ms(deadline);
        if (left == 0)
            return err_set(reterr, NACRE_ETIMEOUT, "none of the shells has ended yet");
        for (size_t i = 0; i < count; i++)
            several.polls[i] =
                (struct pollfd){.fd = nacre_watch_fd(several.watches[i]), .events = POLLIN};
        if (poll(several.polls, count, left < 0 ? SLICE_MS : MIN(left, SLICE_MS)) < 0 &&
            errno != EINTR)
            return err_sys(reterr, NACRE_EIO, errno, "poll", "cannot wait");
    }
}

int nacre_wait(nacre_session *session, const nacre_id *ids, size_t count, nacre_wait_mode mode,
               int64_t timeout_ms, size_t *ret_index, nacre_error *reterr)
{
    size_t index = 0;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (!ids || count == 0)
        return err_set(reterr, NACRE_EINVAL, "no shell to wait for");
    for (size_t i = 0; i < count; i++) {
        r = scope_check(session, &ids[i], false, reterr);
        if (r < 0)
            return r;
    }
    int64_t deadline = clock_deadline(timeout_ms);
    if (mode == NACRE_WAIT_ALL || count == 1)
        r = wait_all(session, ids, count, deadline, &index, reterr);
    else
        r = wait_any(session, ids, count, deadline, &index, reterr);
    if (r == 0 && ret_index)
        *ret_index = index;
    return r;
}
