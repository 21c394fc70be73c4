/* How a shell is found by what somebody calls it: the beginning of its id, or its name. */
#include <string.h>

#include "backend/op.h"
#include "base/err.h"
#include "home/door.h"
#include "session/session.h"

/* -- By the beginning of its id -----------------------------------------------------------------
 */

struct prefix_of {
    const char *prefix;
    size_t size;
};

static bool begins_so(const struct shell *shell, const void *argument)
{
    const struct prefix_of *of = argument;
    return !shell->foreign && shell->life != SHELL_OVER &&
           strncmp(nacre_id_format(&shell->id).s, of->prefix, of->size) == 0;
}

/* Whether a keeper that listens has put its files back into this home: it may be that of another.
 */
static bool is_of_this_home(nacre_session *s, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    nacre_op *op;
    return home_look(s->home, id, 0, &op, NULL) == 0 && op_finish(op, NULL, 0, NULL) == 0 &&
           home_open_run(s->home, id, &run, NULL) == 0;
}

/* One of ours, or, for a person, one that has a keeper: files may be gone, and are about to be put
 * back. */
static bool find_without_files(nacre_session *s, const char *prefix, nacre_id *ret_id)
{
    struct prefix_of of = {prefix, strlen(prefix)};
    struct shell shell;
    if (registry_select(s->registry, begins_so, &of, &shell, 1) == 1) {
        *ret_id = shell.id;
        return true;
    }
    if (!s->person)
        return false;
    if (door_find(prefix, ret_id) == 1 && is_of_this_home(s, ret_id))
        return true;
    /* Who looks at the whole home has written down what was left of it. */
    struct catalog *catalog;
    return session_has_catalog(s) && ends_refresh_home(s, ENDS_WAIT, &catalog, NULL) == 0 &&
           home_find_run(s->home, prefix, ret_id, NULL) == 0;
}

static bool may_be_id(const char *word)
{
    size_t n = strlen(word);
    return n >= NACRE_ID_PREFIX_MIN && n <= NACRE_ID_DIGITS &&
           strspn(word, "0123456789abcdef") == n;
}

static int find_by_id(nacre_session *s, const char *prefix, nacre_id *ret_id, nacre_error *err)
{
    int r = home_find_run(s->home, prefix, ret_id, err);
    return r == NACRE_ENOTFOUND && find_without_files(s, prefix, ret_id) ? 0 : r;
}

/* -- By its name --------------------------------------------------------------------------------
 */

struct name_search {
    nacre_session *session;
    const char *name;
    nacre_id id; /* the best so far */
    int worth;   /* 0 = there is none */
};

/* What runs before what has ended, what is one's own before what others left; of equals the latest,
 * which is looked at first. */
static int look_at_named(struct name_search *n, const nacre_id *id, bool alive)
{
    int worth = 1 + (scope_is_own(n->session, id) ? 1 : 0) + (alive ? 2 : 0);
    if (worth > n->worth && scope_check(n->session, id, false, NULL) == 0) {
        n->id = *id;
        n->worth = worth;
    }
    return 0;
}

static int look_at_row(const struct catalog_run *run, void *userdata)
{
    return look_at_named(userdata, &run->id, !run->final);
}

static bool is_not_foreign(const struct shell *shell, const void *argument UNUSED)
{
    return !shell->foreign;
}

/* The catalog may not have heard of the latest yet. */
static int look_at_own(struct name_search *n, nacre_error *err)
{
    struct registry *registry = n->session->registry;
    size_t count = registry_select(registry, is_not_foreign, NULL, NULL, 0);
    cleanup_free struct shell *shells = calloc(count + 1, sizeof *shells);
    if (!shells)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    count = MIN(count, registry_select(registry, is_not_foreign, NULL, shells, count));
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    for (size_t i = count; i > 0; i--)
        if (session_record(n->session, &shells[i - 1].id, HOME_PLAIN, &record, NULL, NULL) == 0 &&
            strcmp(record.name, n->name) == 0)
            look_at_named(n, &shells[i - 1].id, record.outcome == NACRE_RUNNING);
    return 0;
}

static int find_by_name(nacre_session *s, const char *name, nacre_id *ret_id, nacre_error *err)
{
    struct name_search search = {.session = s, .name = name};
    struct catalog_filter filter = {.name = name};
    struct catalog *catalog;
    int r = look_at_own(&search, err);
    if (r == 0 && search.worth < 4 && session_has_catalog(s) &&
        session_catalog(s, false, &catalog, NULL) == 0 && catalog_sync(catalog, NULL) >= 0)
        catalog_each_run(catalog, &filter, look_at_row, &search, NULL);
    *ret_id = search.id;
    return r < 0 ? r : search.worth > 0 ? 0 : NACRE_ENOTFOUND;
}

int nacre_find(nacre_session *session, const char *word, nacre_id *ret_id, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    word = word ? word : "";
    bool id = may_be_id(word);
    r = id ? find_by_id(session, word, ret_id, reterr) : NACRE_ENOTFOUND;
    if (r != NACRE_ENOTFOUND)
        return r;
    r = *word ? find_by_name(session, word, ret_id, reterr) : NACRE_ENOTFOUND;
    if (r != NACRE_ENOTFOUND)
        return r;
    return id ? err_set(reterr, NACRE_ENOTFOUND, "no shell with id or name \"%.40s\"", word)
              : err_set(
                    reterr, NACRE_EINVAL,
                    "no shell is called \"%.40s\", and it is no id: those are 4 to 32 lowercase "
                    "hex digits",
                    word);
}
