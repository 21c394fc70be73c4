/* Short ways to start shells and to look at them, for cases that check something else. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

nacre_session *open_options(const nacre_options *options)
{
    nacre_session *session = NULL;

    CHECK_OK(nacre_open(options, &session, ERR));
    CHECK(session);
    return session;
}

nacre_session *open_session(void)
{
    nacre_options options = NACRE_OPTIONS_INIT;

    options.person = 1;
    return open_options(&options);
}

nacre_session *open_tool(const char *const *settings)
{
    return open_tool_on(NULL, settings);
}

nacre_session *open_tool_on(const nacre_backend *backend, const char *const *settings)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *own = NULL;

    CHECK_OK(nacre_settings_load(NULL, &own, ERR));
    for (; settings && *settings; settings++) {
        const char *value = strchr(*settings, '=') + 1;
        const char *name = format("%.*s", (int)(value - *settings - 1), *settings);
        CHECK_OK(nacre_settings_set(own, name, value, NULL, ERR));
    }
    options.settings = own;
    options.backend = backend;
    nacre_session *session = open_options(&options);
    nacre_settings_free(own);
    return session;
}

int list_home(nacre_session *session, bool only_alive, nacre_list_fn *fn, void *userdata)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;

    options.which = NACRE_LIST_HOME;
    options.only_alive = only_alive;
    return nacre_list(session, &options, fn, userdata, ERR);
}

void close_session(nacre_session *session)
{
    int survivors = nacre_close(session, ERR);

    CHECK_OK(survivors);
    CHECK_EQ_INT(0, survivors);
}

/* -- Starting -------------------------------------------------------------------------------- */

const char *scattered(const char *mark)
{
    return format("%s sleep 300.%s & nohup sleep 301.%s & (sleep 302.%s &) ; "
                  "sleep 303.%s | cat",
                  own_session(), mark, mark, mark, mark);
}

nacre_id start_command(nacre_session *session, const nacre_command *command)
{
    nacre_id id;

    CHECK_OK(nacre_start(session, command, &id, NULL, ERR));
    return id;
}

nacre_id start_text(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    return start_command(session, &command);
}

nacre_id start_background(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.background = 1;
    return start_command(session, &command);
}

nacre_id start_held(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.background = 1;
    command.input = NACRE_STDIN_PIPE;
    return start_command(session, &command);
}

void release_shell(nacre_session *session, const nacre_id *id)
{
    CHECK_EQ_INT(1, nacre_input(session, id, "\n", 1, 0, soon(2000), ERR));
}

nacre_counts counts_of(nacre_session *session)
{
    nacre_counts counts = NACRE_COUNTS_INIT;

    CHECK_OK(nacre_get_counts(session, &counts, ERR));
    return counts;
}

struct run run_command(nacre_session *session, const nacre_command *command)
{
    struct run run = {.record = NACRE_RECORD_INIT};

    CHECK_OK(nacre_run(session, command, -1, &run.record, ERR));
    run.out = output_of(session, &run.record.id, NACRE_OUT, &run.out_size);
    run.err = output_of(session, &run.record.id, NACRE_ERR, &run.err_size);
    return run;
}

struct run run_text(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    return run_command(session, &command);
}

void run_done(struct run *run)
{
    nacre_record_done(&run->record);
    free(run->out);
    free(run->err);
}

/* -- Looking --------------------------------------------------------------------------------- */

nacre_record record_of(nacre_session *session, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;

    CHECK_OK(nacre_get(session, id, &record, ERR));
    return record;
}

uint64_t bytes_printed(nacre_session *session, const nacre_id *id)
{
    nacre_record record = record_of(session, id);
    uint64_t bytes = record.bytes[0] + record.bytes[1];

    nacre_record_done(&record);
    return bytes;
}

const char *status_of(nacre_session *session, const nacre_id *id)
{
    nacre_record record = record_of(session, id);
    char status[64];
    const char *kept = format("%s", nacre_status(&record, status, sizeof(status)));

    nacre_record_done(&record);
    return kept;
}

bool tree_empty(nacre_session *session, const nacre_id *id)
{
    nacre_record record = record_of(session, id);
    bool empty = record.tree == NACRE_TREE_EMPTY;

    nacre_record_done(&record);
    return empty;
}

char *output_of(nacre_session *session, const nacre_id *id, unsigned streams, size_t *ret_size)
{
    size_t size = 0, room = 1 << 16;
    char *data = malloc(room + 1);
    uint64_t cursor = 0;
    int64_t got;

    CHECK(data);
    while ((got = nacre_read(session, id, &cursor, streams, data + size, room - size, NULL, ERR)) >
           0) {
        size += (size_t)got;
        if (size == room)
            data = realloc(data, (room *= 2) + 1);
        CHECK(data);
    }
    CHECK_OK(got);
    data[size] = 0;
    if (ret_size)
        *ret_size = size;
    return data;
}

bool output_has(nacre_session *session, const nacre_id *id, unsigned streams, const char *needle)
{
    size_t size;
    char *data = output_of(session, id, streams, &size);
    bool has = memmem(data, size, needle, strlen(needle)) != NULL;

    free(data);
    return has;
}

void wait_outcome(nacre_session *session, const nacre_id *id, int64_t ms)
{
    CHECK_OK(nacre_wait(session, id, 1, NACRE_WAIT_ALL, soon(ms), NULL, ERR));
}

void check_ended(nacre_session *session, const nacre_id *id, nacre_outcome outcome,
                 nacre_reason reason)
{
    nacre_record record = record_of(session, id);

    CHECK_EQ_INT(outcome, record.outcome);
    CHECK_EQ_INT(reason, record.reason);
    CHECK_EQ_INT(NACRE_TREE_EMPTY, record.tree);
    CHECK_EQ_INT(0, record.survivors);
    CHECK_EQ_INT(0, record.leftover_count);
    CHECK(record.exited_ms >= record.started_ms);
    nacre_record_done(&record);
}

const char *run_path(const nacre_id *id, const char *file)
{
    nacre_id_text text = nacre_id_format(id);

    return format("%s/runs/%s%s%s", test_home(), text.s, *file ? "/" : "", file);
}

/* The keeper is the parent of the command for as long as that lives. */
struct process keeper_of(nacre_session *session, const nacre_id *id)
{
    nacre_record record = record_of(session, id);
    struct process keeper = {0, 0};

    if (record.pid > 0)
        keeper = process_of(process_parent(record.pid));
    CHECK(process_alive(keeper));
    nacre_record_done(&record);
    return keeper;
}

nacre_tier tier_in_force(void)
{
    nacre_session *session = open_session();
    struct run run = run_text(session, "true");
    nacre_tier tier = run.record.tier;

    run_done(&run);
    close_session(session);
    return tier;
}

bool group_tier(void)
{
    const char *tier = getenv("NACRE_TIER");

    return tier && strcmp(tier, "group") == 0;
}

const char *own_session(void)
{
    return group_tier() ? "" : "setsid";
}

void need_tree(void)
{
    if (group_tier())
        SKIP("the group tier does not hold what leaves the process group");
}

nacre_kill_result kill_shell(nacre_session *session, const nacre_id *id, int64_t grace_ms)
{
    nacre_kill_options options = NACRE_KILL_OPTIONS_INIT;
    nacre_kill_result result;

    memset(&result, 0xff, sizeof(result));
    options.grace_ms = grace_ms;
    CHECK_OK(nacre_kill(session, id, &options, &result, ERR));
    CHECK_EQ_INT(0, result.survivors);
    CHECK(tree_empty(session, id));
    return result;
}
