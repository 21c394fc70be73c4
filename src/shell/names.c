/*
 * Names: a named start is idempotent. A name is a session's own, or, of a kept shell, the home's;
 * named starts of a session, and of kept shells in a home, happen one at a time.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/local.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "sys/fd.h"
#include "sys/lock.h"

#define NAMING_MS 5000
#define ROUND_MS  2
#define TEXT_MAX  ((size_t)512 * 1024 * 1024)

static int lock_home(nacre_session *s, nacre_error *err)
{
    const char *home;
    char path[PATH_MAX + 16];
    int r = local_prepare(s->local, err);
    if (r == 0)
        r = nacre_session_home(s, &home, NULL, err);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s/names", home);
    cleanup_close int fd =
        fd_lift_consume(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (fd < 0)
        return err_sys(err, NACRE_EIO, errno, "names", "cannot open %.150s", path);
    int64_t deadline = clock_deadline(NAMING_MS);
    while ((r = lock_take(fd)) == -EAGAIN && clock_left_ms(deadline) != 0)
        poll(NULL, 0, ROUND_MS);
    return r < 0 ? err_set(err, NACRE_EBUSY, "another process is starting a named shell; try again")
                 : TAKE_FD(fd);
}

/* Who has a name: the record of a shell that runs. */
struct search {
    nacre_session *session;
    const char *name;
    nacre_record *record;
    bool found;
};

static int look_at(struct search *search, const nacre_id *id)
{
    if (ends_look(search->session, id, search->record, NULL) == 0 &&
        search->record->outcome == NACRE_RUNNING && strcmp(search->record->name, search->name) == 0)
        search->found = true;
    return search->found;
}

static int look_at_kept(const struct catalog_run *run, void *userdata)
{
    return run->lifetime == NACRE_LIFE_KEEP ? look_at(userdata, &run->id) : 0;
}

static bool may_hold(const struct shell *shell, const void *argument)
{
    const bool *kept = argument;
    return shell->life == SHELL_RUNNING && !shell->foreign && shell->kept == *kept;
}

#define OWN_MAX 1024

static int find_own(struct search *search, bool kept, nacre_error *err)
{
    cleanup_free struct shell *shells = calloc(OWN_MAX, sizeof *shells);
    if (!shells)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    size_t count = registry_select(search->session->registry, may_hold, &kept, shells, OWN_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)OWN_MAX) && !search->found; i++)
        look_at(search, &shells[i].id);
    return 0;
}

static int find_kept(struct search *search, nacre_error *err)
{
    struct catalog *catalog;
    struct catalog_filter filter = {.name = search->name, .state = CATALOG_OPEN};
    int r = session_catalog(search->session, true, &catalog, err);
    if (r == 0)
        r = catalog_sync(catalog, err);
    if (r >= 0)
        r = catalog_each_run(catalog, &filter, look_at_kept, search, err);
    return MIN(r, 0);
}

static int join(const nacre_command *command, struct buf *out)
{
    int r = 0;
    if (command->text)
        return buf_str(out, command->text);
    for (const char *const *arg = command->argv; r == 0 && arg && *arg; arg++)
        r = buf_printf(out, "%s%s", arg == command->argv ? "" : " ", *arg);
    return r;
}

/* 1 if what runs is what is asked for. */
static int is_same(nacre_session *s, const nacre_record *record, const nacre_command *command,
                   nacre_error *err)
{
    char cwd[PATH_MAX];
    cleanup_buf struct buf text;
    buf_init(&text, TEXT_MAX);
    if (join(command, &text) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    int r = s->local ? local_place(s->local, command, cwd, err) : 0;
    if (r < 0)
        return r;
    return strcmp(record->command, text.data ? text.data : "") == 0 &&
           (!s->local || strcmp(record->cwd, cwd) == 0);
}

/* It comes back to whoever asks for it, unless somebody else has it in hand. A person needs not
 * own it to use it, and takes it away from nobody. */
static int hand_out(nacre_session *s, const nacre_id *id, nacre_id *ret_id, nacre_watch **ret_watch,
                    nacre_error *err)
{
    struct shell shell;
    if (!s->person && (!registry_get(s->registry, id, &shell) || shell.foreign)) {
        int r = nacre_adopt(s, id, err);
        if (r < 0)
            return r;
    }
    *ret_id = *id;
    int r = ret_watch ? nacre_watch_open(s, id, 0, ret_watch, err) : 0;
    return r < 0 ? r : 1;
}

static int replace(nacre_session *s, const nacre_id *id, nacre_error *err)
{
    nacre_kill_result result;
    int r = nacre_kill(s, id, NULL, &result, err);
    if (r == 0 && result.survivors > 0)
        return err_set(err, NACRE_EBUSY, "shell %s has %d processes that cannot be ended",
                       nacre_id_short(id).s, result.survivors);
    return r;
}

static int start_named(nacre_session *s, const nacre_command *command, nacre_id *ret_id,
                       nacre_watch **ret_watch, nacre_record *record, nacre_error *err)
{
    bool kept = command->lifetime == NACRE_LIFE_KEEP;
    struct search search = {.session = s, .name = command->name, .record = record};
    int r = kept && s->books ? find_kept(&search, err) : find_own(&search, kept, err);
    if (r < 0)
        return r;
    if (search.found) {
        r = is_same(s, record, command, err);
        if (r != 0)
            return r < 0 ? r : hand_out(s, &record->id, ret_id, ret_watch, err);
        if (!command->replace)
            return err_set(err, NACRE_EBUSY,
                           "the name \"%.40s\" belongs to shell %s, which runs another command or "
                           "runs elsewhere; kill it, ask to replace it, or take another name",
                           command->name, nacre_id_short(&record->id).s);
        r = replace(s, &record->id, err);
        if (r < 0)
            return r;
    }
    return start_unnamed(s, command, ret_id, ret_watch, err);
}

int names_start(nacre_session *s, const nacre_command *command, nacre_id *ret_id,
                nacre_watch **ret_watch, nacre_error *err)
{
    nacre_record record = NACRE_RECORD_INIT;
    cleanup_close int lock = -EBADF;
    int r = 0;
    pthread_mutex_lock(&s->naming);
    if (command->lifetime == NACRE_LIFE_KEEP && s->local) {
        lock = lock_home(s, err);
        r = lock < 0 ? lock : 0;
    }
    if (r == 0)
        r = start_named(s, command, ret_id, ret_watch, &record, err);
    pthread_mutex_unlock(&s->naming);
    nacre_record_done(&record);
    return r;
}
