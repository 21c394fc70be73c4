/* Lists and counts: of a session's shells from memory, of the home's from the catalog. */
#include <string.h>

#include "base/err.h"
#include "home/report.h"
#include "session/owners.h"
#include "session/session.h"

/* -- Of the session --------------------------------------------------------------------------- */

static bool is_listed(const struct shell *shell, const void *argument)
{
    const nacre_list_options *options = argument;
    return !shell->foreign && (shell->background || shell->life == SHELL_LINGERING) &&
           (!options->only_alive || shell->life != SHELL_OVER);
}

static int list_own(nacre_session *s, const nacre_list_options *options, nacre_list_fn *fn,
                    void *userdata, nacre_error *reterr)
{
    size_t count = registry_select(s->registry, is_listed, options, NULL, 0);
    cleanup_free struct shell *shells = calloc(count + 1, sizeof *shells);
    if (!shells)
        return err_set(reterr, NACRE_ENOMEM, "out of memory");
    count = MIN(count, registry_select(s->registry, is_listed, options, shells, count));
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        /* One that was removed meanwhile is no reason to hide the others. */
        if (session_record(s, &shells[i].id, options->details ? HOME_FULL : HOME_PLAIN, &record,
                           NULL, NULL) < 0)
            continue;
        uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
        nacre_listed listed = {
            .size = sizeof listed,
            .record = &record,
            .unread = end - MIN(end, shells[i].read_to),
            .background = shells[i].background,
            .session_name = s->name,
            .session_alive = 1,
            .session_client = s->row.client ? s->row.client : "",
        };
        r = fn(&listed, userdata);
    }
    return r;
}

/* -- Of the home ------------------------------------------------------------------------------ */

/*
 * The catalog with every run of the home in it. One who looks at a whole home that has none makes
 * it, where that is possible: without it each look would read every directory.
 */
static int open_index(nacre_session *s, bool wait, struct catalog **ret_catalog, nacre_error *err)
{
    return ends_refresh_home(s, ENDS_INDEX | (wait ? ENDS_WAIT : 0), ret_catalog, err);
}

struct home_list {
    nacre_session *session;
    const nacre_list_options *options;
    nacre_list_fn *fn;
    void *userdata;
    nacre_record record;
    struct catalog *catalog;
    struct owners owners;
    bool nameless;  /* who reads it knows the sessions */
    nacre_id asked; /* the session of the last row that was asked about */
    bool readable;  /* and the answer, which holds for all of its rows; nobody's are readable */
};

static bool may_read(struct home_list *list, const nacre_id *id, const nacre_id *session)
{
    nacre_session *s = list->session;
    if (s->person || nacre_id_equal(session, &s->id))
        return true;
    if (!nacre_id_equal(session, &list->asked)) {
        list->asked = *session;
        list->readable = scope_check(s, id, false, NULL) == 0;
    }
    return list->readable;
}

static int report_row(const struct catalog_run *run, nacre_record *record)
{
    report_state(run->state, record);
    record->command = strdup(run->command);
    record->cwd = strdup(run->cwd);
    record->name = strdup(run->name);
    record->description = strdup(run->description);
    record->sandbox = strdup("");
    if (record->command && record->cwd && record->name && record->description && record->sandbox)
        return 0;
    nacre_record_done(record);
    return NACRE_ENOMEM;
}

/* What is over never changes again, so the catalog's word is enough, unless more is wanted. */
static int fill(struct home_list *list, const struct catalog_run *run)
{
    nacre_session *s = list->session;
    if (!run->final || !run->state || list->options->details) {
        int r = home_record(s->home, &run->id, HOME_FULL, &list->record, NULL, NULL);
        if (r == 0 && !run->final &&
            (list->record.outcome != NACRE_RUNNING || list->record.tree == NACRE_TREE_EMPTY))
            catalog_refresh(list->catalog, &run->id, NULL);
        return r;
    }
    return report_row(run, &list->record);
}

static int show_row(const struct catalog_run *run, void *userdata)
{
    struct home_list *list = userdata;
    nacre_record *record = &list->record;
    if (!may_read(list, &run->id, &run->session) || fill(list, run) < 0)
        return 0;
    bool over = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_EMPTY;
    if (list->options->only_alive && over)
        return 0;
    uint64_t end = record->bytes[NACRE_STDOUT] + record->bytes[NACRE_STDERR];
    record->session = run->session;
    /* A list without owners is better than none. */
    if (!list->owners.loaded && !list->nameless)
        owners_load(&list->owners, list->catalog);
    const struct session_owner *owner = owners_find(&list->owners, &run->session);
    nacre_listed listed = {
        .size = sizeof listed,
        .record = record,
        .unread = run->background ? end - MIN(end, run->read_to) : 0,
        .background = run->background,
        .session_name = owner ? owner->name : "",
        .session_alive = owner && owner->alive,
        .session_client = owner ? owner->client : "",
    };
    return list->fn(&listed, list->userdata);
}

/* Without a catalog the directories tell the same, only slower. */
static int show_plain(const nacre_record *record, void *userdata)
{
    struct home_list *list = userdata;
    nacre_listed listed = {
        .size = sizeof listed,
        .record = record,
        .background = record->background,
        .session_name = "",
        .session_client = "",
    };
    return may_read(list, &record->id, &record->session) ? list->fn(&listed, list->userdata) : 0;
}

static int list_home(nacre_session *s, const nacre_list_options *options, nacre_list_fn *fn,
                     void *userdata, nacre_error *reterr)
{
    struct home_list list = {.session = s,
                             .options = options,
                             .fn = fn,
                             .userdata = userdata,
                             .record = NACRE_RECORD_INIT,
                             .readable = true};
    struct catalog_filter filter = {.oldest_first = true,
                                    .state = options->only_alive ? CATALOG_OPEN : CATALOG_ANY};
    int r = open_index(s, true, &list.catalog, NULL);
    r = r >= 0 ? catalog_each_run(list.catalog, &filter, show_row, &list, reterr)
               : home_each_record(s->home, options->only_alive, show_plain, &list, reterr);
    nacre_record_done(&list.record);
    owners_done(&list.owners);
    return r;
}

int nacre_list(nacre_session *session, const nacre_list_options *options, nacre_list_fn *fn,
               void *userdata, nacre_error *reterr)
{
    nacre_list_options defaults = NACRE_LIST_OPTIONS_INIT;
    options = options ? options : &defaults;
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (options->size != sizeof *options)
        return err_set(reterr, NACRE_EINVAL, "the options must start from NACRE_LIST_OPTIONS_INIT");
    ends_hear(session);
    return options->which == NACRE_LIST_HOME ? list_home(session, options, fn, userdata, reterr)
                                             : list_own(session, options, fn, userdata, reterr);
}

/* -- For who stays and looks again ------------------------------------------------------------ */

static const nacre_list_options survey_options = NACRE_LIST_OPTIONS_INIT;

int session_survey(nacre_session *s, const struct catalog_filter *filter, nacre_list_fn *fn,
                   void *userdata, nacre_error *err)
{
    struct home_list list = {.session = s,
                             .options = &survey_options,
                             .fn = fn,
                             .userdata = userdata,
                             .record = NACRE_RECORD_INIT,
                             .nameless = true};
    int r = open_index(s, false, &list.catalog, err);
    if (r == 0)
        r = catalog_each_run(list.catalog, filter, show_row, &list, err);
    nacre_record_done(&list.record);
    return r;
}

int session_survey_one(nacre_session *s, const nacre_id *id, nacre_list_fn *fn, void *userdata,
                       nacre_error *err)
{
    nacre_record record cleanup_record = NACRE_RECORD_INIT;
    cleanup_free struct catalog_run *run = NULL;
    struct catalog *catalog;
    int r = session_record(s, id, HOME_PLAIN, &record, NULL, err);
    if (r < 0)
        return r;
    if (session_catalog(s, false, &catalog, NULL) == 0)
        catalog_get_run(catalog, id, &run, NULL);
    if (run)
        record.session = run->session;
    uint64_t end = record.bytes[NACRE_STDOUT] + record.bytes[NACRE_STDERR];
    nacre_listed listed = {
        .size = sizeof listed,
        .record = &record,
        .unread = run && run->background ? end - MIN(end, run->read_to) : 0,
        .background = record.background,
        .session_name = "",
        .session_client = "",
    };
    return fn(&listed, userdata);
}

/* -- Counts ----------------------------------------------------------------------------------- */

static bool count_one(const struct shell *shell, const void *argument)
{
    nacre_counts *counts = *(nacre_counts *const *)argument;
    if (shell->foreign)
        return false;
    bool running = shell->life == SHELL_RUNNING;
    counts->lingering += shell->life == SHELL_LINGERING;
    if (!shell->background)
        return false;
    counts->running += running;
    counts->finished += shell->life == SHELL_OVER;
    counts->unread += shell->end > shell->read_to;
    return true;
}

int nacre_get_counts(nacre_session *session, nacre_counts *ret_counts, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (ret_counts->size != sizeof *ret_counts)
        return err_set(reterr, NACRE_EINVAL, "the counts must start from NACRE_COUNTS_INIT");
    *ret_counts = (nacre_counts){.size = sizeof *ret_counts};
    ends_hear(session);
    registry_select(session->registry, count_one, &ret_counts, NULL, 0);
    ret_counts->completions = completion_count(session);
    return 0;
}

/* -- Sessions --------------------------------------------------------------------------------- */

struct session_list {
    struct host host;
    struct catalog *catalog;
    nacre_session_fn *fn;
    void *userdata;
};

static int show_session(const struct catalog_session *row, void *userdata)
{
    const struct session_list *list = userdata;
    nacre_session_info info = {
        .size = sizeof info,
        .id = row->id,
        .name = row->name,
        .cwd = row->cwd,
        .pid = row->pid,
        .alive = scope_session_lives_on(row, &list->host),
        .opened_ms = row->opened_ms,
        .closed_ms = row->closed_ms,
        .running = (int)row->counts.running,
        .shells = (int)row->counts.runs,
        .completions = (int)row->counts.due,
        .client = row->client,
        .person = row->person,
        .ends_ms = row->ends_ms,
    };
    return list->fn(&info, list->userdata);
}

static int each_session(nacre_session *s, const struct catalog_session_filter *filter,
                        nacre_session_fn *fn, void *userdata, nacre_error *err)
{
    struct session_list list = {.fn = fn, .userdata = userdata};
    int e = host_identify(&list.host);
    if (e < 0)
        return err_sys(err, NACRE_EIO, -e, "host", "cannot tell which boot this is");
    int r = filter->counts ? open_index(s, true, &list.catalog, err)
                           : session_catalog(s, false, &list.catalog, err);
    if (r == NACRE_ENOTFOUND)
        return 0;
    /* Who writes just now is not waited for: what there is can be read. */
    if (r == NACRE_EBUSY && list.catalog)
        r = 0;
    return r < 0 ? r : catalog_each_session(list.catalog, filter, show_session, &list, err);
}

int nacre_list_sessions(nacre_session *session, nacre_session_fn *fn, void *userdata,
                        nacre_error *reterr)
{
    static const struct catalog_session_filter with_counts = {.counts = true};
    int r = session_check(session, reterr);
    return r < 0 ? r : each_session(session, &with_counts, fn, userdata, reterr);
}

int session_survey_sessions(nacre_session *s, nacre_session_fn *fn, void *userdata,
                            nacre_error *err)
{
    static const struct catalog_session_filter all = {0};
    return each_session(s, &all, fn, userdata, err);
}
