/*
 * Names: a named start is idempotent. A name is a session's own, or, of a kept shell, the home's;
 * named starts of a session, and of kept shells in a home, happen one at a time.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend/op.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "session/session.h"
#include "sys/fd.h"

#define NAMING_MS 5000
#define ROUND_MS  2
#define TEXT_MAX  ((size_t)512 * 1024 * 1024)
#define OWN_MAX   1024

enum naming_phase {
    NAMING_TURN,    /* another named start of the session goes first */
    NAMING_LOCK,    /* so does one of another process, if the shell is to be kept */
    NAMING_FIND,    /* who has the name */
    NAMING_ADOPT,   /* the same command, which comes back to whoever asks for it */
    NAMING_REPLACE, /* another one, which is ended */
    NAMING_FREE,    /* nobody has it any more */
};

struct naming {
    nacre_session *session;
    const nacre_command *command;
    bool kept;
    enum naming_phase phase;
    bool has_turn;
    int lock; /* of the names of the home */
    int64_t deadline_ns;
    nacre_record holder; /* who has the name; found = somebody has */
    bool found;
    nacre_op *op; /* that adopts or ends it */
};

/* -- One at a time ---------------------------------------------------------------------------- */

static bool take_turn(struct naming *n)
{
    nacre_session *s = n->session;
    HOLD(&s->lock);
    n->has_turn = !s->naming;
    s->naming = true;
    return n->has_turn;
}

static void give_turn(struct naming *n)
{
    nacre_session *s = n->session;
    HOLD(&s->lock);
    if (n->has_turn)
        s->naming = false;
}

static int open_lock(struct naming *n, nacre_error *err)
{
    const char *home;
    char path[PATH_MAX + 16];
    int r = home_make_runs(n->session->home, err);
    if (r >= 0)
        r = home_path(n->session->home, &home, NULL, err);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s/names", home);
    n->lock = fd_open_file_at(AT_FDCWD, path, O_RDWR | O_CREAT);
    n->deadline_ns = clock_deadline(NAMING_MS);
    if (n->lock == -EINVAL)
        return err_set(err, NACRE_EPERM, "%.150s is a link or no file; remove it", path);
    return n->lock < 0 ? err_sys(err, NACRE_EIO, -n->lock, "names", "cannot open %.150s", path) : 0;
}

/* 1 = it is ours, 0 = not yet. */
static int take_names_lock(struct naming *n, nacre_error *err)
{
    int r = n->lock >= 0 ? 0 : open_lock(n, err);
    if (r < 0)
        return r;
    int e = lock_take(n->lock);
    if (e == -EAGAIN && clock_left_ms(n->deadline_ns) != 0)
        return 0;
    return e < 0 ? err_set(err, NACRE_EBUSY, "another process is starting a named shell; try again")
                 : 1;
}

/* -- Who has it ------------------------------------------------------------------------------- */

static int look_at_holder(struct naming *n, const nacre_id *id)
{
    n->found = session_record(n->session, id, HOME_PLAIN, &n->holder, NULL, NULL) == 0 &&
               n->holder.outcome == NACRE_RUNNING && strcmp(n->holder.name, n->command->name) == 0;
    return n->found;
}

static int look_at_kept(const struct catalog_run *run, void *userdata)
{
    return run->lifetime == NACRE_LIFE_KEEP ? look_at_holder(userdata, &run->id) : 0;
}

static bool may_hold(const struct shell *shell, const void *argument)
{
    const bool *kept = argument;
    return shell->life == SHELL_RUNNING && !shell->foreign && shell->kept == *kept;
}

static int find_own(struct naming *n, nacre_error *err)
{
    cleanup_free struct shell *shells = calloc(OWN_MAX, sizeof *shells);
    if (!shells)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    size_t count = registry_select(n->session->registry, may_hold, &n->kept, shells, OWN_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)OWN_MAX) && !n->found; i++)
        look_at_holder(n, &shells[i].id);
    return 0;
}

static int find_kept(struct naming *n, nacre_error *err)
{
    struct catalog *catalog;
    struct catalog_filter filter = {.name = n->command->name, .state = CATALOG_OPEN};
    int r = session_catalog(n->session, true, &catalog, err);
    if (r == 0)
        r = catalog_sync(catalog, err);
    if (r >= 0)
        r = catalog_each_run(catalog, &filter, look_at_kept, n, err);
    return MIN(r, 0);
}

static int join_words(const nacre_command *command, struct buf *out)
{
    int r = 0;
    if (command->text)
        return buf_str(out, command->text);
    for (const char *const *arg = command->argv; r == 0 && arg && *arg; arg++)
        r = buf_printf(out, "%s%s", arg == command->argv ? "" : " ", *arg);
    return r;
}

/* 1 if what runs is what is asked for. */
static int is_same(const struct naming *n, nacre_error *err)
{
    char cwd[PATH_MAX];
    struct buf text cleanup_buf = BUF_UP_TO(TEXT_MAX);
    if (join_words(n->command, &text) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = home_command_cwd(n->session->home, n->command, cwd, err);
    return r < 0 ? r
                 : strcmp(n->holder.command, text.data ? text.data : "") == 0 &&
                       strcmp(n->holder.cwd, cwd) == 0;
}

/* It comes back to whoever asks for it, unless somebody else has it in hand. A person needs not own
 * it to use it, and takes it away from nobody. */
static int begin_adoption(struct naming *n, nacre_error *err)
{
    n->phase = NAMING_ADOPT;
    return n->session->person || scope_is_own(n->session, &n->holder.id)
               ? 0
               : session_adopt(n->session, &n->holder.id, &n->op, err);
}

static int find_holder(struct naming *n, nacre_error *err)
{
    int r = n->kept ? find_kept(n, err) : find_own(n, err);
    if (r == 0 && !n->found)
        n->phase = NAMING_FREE;
    if (r < 0 || !n->found)
        return r;
    r = is_same(n, err);
    if (r != 0)
        return r < 0 ? r : begin_adoption(n, err);
    if (!n->command->replace)
        return err_set(err, NACRE_EBUSY,
                       "the name \"%.40s\" belongs to shell %s, which runs another command or "
                       "runs elsewhere; kill it, ask to replace it, or take another name",
                       n->command->name, nacre_id_short(&n->holder.id).s);
    n->phase = NAMING_REPLACE;
    return session_kill(n->session, &n->holder.id, NULL, &n->op, err);
}

static int check_replaced(const struct naming *n, nacre_error *err)
{
    const nacre_kill_result *result = n->op->result;
    return result->survivors > 0
               ? err_set(err, NACRE_EBUSY, "shell %s has %d processes that cannot be ended",
                         nacre_id_short(&n->holder.id).s, result->survivors)
               : 1;
}

/* -- The whole -------------------------------------------------------------------------------- */

int naming_new(nacre_session *s, const nacre_command *command, struct naming **ret,
               nacre_error *err)
{
    struct naming *n = malloc(sizeof *n);
    if (!n)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    *n = (struct naming){.session = s,
                         .command = command,
                         .kept = command->lifetime == NACRE_LIFE_KEEP,
                         .lock = -EBADF,
                         .holder = NACRE_RECORD_INIT};
    *ret = n;
    return 0;
}

/* What a phase that has to be stepped once more waits for. */
static int wait_a_round(nacre_op *waiting)
{
    waiting->fd = -1;
    waiting->wake_ns = clock_deadline(ROUND_MS);
    return 0;
}

int naming_step(struct naming *n, nacre_op *waiting, bool *ret_joined, nacre_id *ret_id,
                nacre_error *err)
{
    int r = 1;
    *ret_joined = false;
    if (n->phase == NAMING_TURN) {
        if (!take_turn(n))
            return wait_a_round(waiting);
        n->phase = n->kept ? NAMING_LOCK : NAMING_FIND;
    }
    if (n->phase == NAMING_LOCK) {
        r = take_names_lock(n, err);
        if (r <= 0)
            return r < 0 ? r : wait_a_round(waiting);
        n->phase = NAMING_FIND;
    }
    if (n->phase == NAMING_FIND) {
        r = find_holder(n, err);
        if (r < 0)
            return r;
    }
    if (n->phase == NAMING_FREE)
        return 1;
    r = n->op ? op_step_inner(waiting, n->op, err) : 1;
    if (r > 0 && n->phase == NAMING_REPLACE)
        return check_replaced(n, err);
    *ret_joined = r > 0;
    *ret_id = n->holder.id;
    return r;
}

void naming_free(struct naming *n)
{
    if (!n)
        return;
    give_turn(n);
    op_end(&n->op);
    close_fd(&n->lock);
    nacre_record_done(&n->holder);
    free(n);
}
