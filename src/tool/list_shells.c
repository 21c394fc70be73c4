/* list_shells: one line for each shell of the session. */
#include <nacre/registry.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "session/session.h"
#include "text/brief.h"
#include "tool/tool.h"

#define COLUMNS 120

struct list_args {
    int state;
};

enum { STATE_ALL, STATE_RUNNING, STATE_ENDED };

static const char *const states[] = {"all", "running", "ended", NULL};

/* clang-format off */
static const struct arg list_arg_table[] = {
    {"state", ARG_CHOICE, offsetof(struct list_args, state), .choices = states,
     .example = "\"running\"",
     .help = "Which: running also has those whose command has ended but left processes. "
             "Default: all."},
    {0},
};
/* clang-format on */

static int begin_list(nacre_call *c UNUSED, nacre_error *err UNUSED)
{
    return TOOL_DONE;
}

struct shell_listing {
    struct answer *answer;
    int state;
    int64_t now_ms;
    size_t count;
    size_t left_out;
    bool left_behind; /* these are kept shells of the directory, which nobody has */
};

/* What it listens on now. */
static int append_ports(struct buf *line, nacre_session *session, const nacre_record *record)
{
    nacre_usage usage = NACRE_USAGE_INIT;
    int r = 0;
    if (record->tree == NACRE_TREE_EMPTY || nacre_get_usage(session, &record->id, &usage, NULL) < 0)
        return 0;
    for (int i = 0; r == 0 && i < NACRE_USAGE_PORTS_MAX && usage.ports[i] != 0; i++)
        r = buf_printf(line, i == 0 ? ", listening on %u" : " and %u", (unsigned)usage.ports[i]);
    return r;
}

/* Where it runs, unless that is where all do. */
static int append_cwd(struct buf *line, const nacre_session *session, const nacre_record *record)
{
    if (strcmp(record->cwd, session->cwd) == 0)
        return 0;
    int r = buf_str(line, ", in ");
    return r == 0 ? brief_inline(line, record->cwd, strlen(record->cwd)) : r;
}

static int append_shell(struct buf *line, const struct shell_listing *l, const nacre_listed *listed)
{
    nacre_session *session = l->answer->session;
    const nacre_record *record = listed->record;
    char status[64], age[AGE_TEXT], unread[BYTES_TEXT];
    struct buf command cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = *record->name ? buf_printf(&command, "[%s] ", record->name) : 0;
    if (r == 0)
        r = buf_str(&command, record->command);
    if (r == 0)
        r = buf_printf(line, "%s %s, %s old, %s bytes unread",
                       nacre_status(record, status, sizeof status), nacre_id_short(&record->id).s,
                       brief_age(l->now_ms - record->started_ms, age),
                       brief_bytes(listed->unread, unread));
    if (r == 0 && l->left_behind)
        r = buf_str(line, ", kept by an ended session");
    if (r == 0)
        r = append_ports(line, session, record);
    if (r == 0)
        r = append_cwd(line, session, record);
    if (r == 0)
        r = buf_str(line, ": ");
    if (r == 0)
        r = brief_line(line, command.data, COLUMNS);
    return r == 0 ? buf_str(line, "\n") : r;
}

static int show_shell(const nacre_listed *listed, void *userdata)
{
    struct shell_listing *l = userdata;
    const nacre_record *record = listed->record;
    bool over = record->outcome != NACRE_RUNNING && record->tree == NACRE_TREE_EMPTY;
    struct buf line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (l->state == STATE_ENDED && !over)
        return 0;
    if (append_shell(&line, l, listed) < 0)
        return NACRE_ENOMEM;
    l->count++;
    if (line.len > answer_room(l->answer))
        l->left_out++;
    else if (answer_text(l->answer, line.data, NULL) < 0)
        return NACRE_ENOMEM;
    return 0;
}

/* Kept ones that an ended session has left in this session's directory. */
static int show_left_behind(const nacre_listed *listed, void *userdata)
{
    struct shell_listing *l = userdata;
    return scope_is_left_to(l->answer->session, listed->record) && !listed->session_alive
               ? show_shell(listed, userdata)
               : 0;
}

static int answer_list(nacre_call *c, struct answer *a, nacre_error *err)
{
    const struct list_args *la = c->args;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    struct shell_listing l = {
        .answer = a, .state = la->state, .now_ms = clock_real_ns() / NS_PER_MS};
    options.only_alive = la->state == STATE_RUNNING;
    int r = nacre_list(c->session, &options, show_shell, &l, err);
    options.which = NACRE_LIST_HOME;
    options.only_alive = 1;
    l.left_behind = true;
    if (r == 0 && l.state != STATE_ENDED && session_has_catalog(c->session))
        r = nacre_list(c->session, &options, show_left_behind, &l, err);
    if (r == NACRE_ENOMEM)
        return err_set(err, r, "out of memory");
    if (r == 0 && l.count == 0)
        r = answer_text(a, "no background shells\n", err);
    if (l.left_out > 0)
        answer_note(a, "%zu more do not fit; ask for state \"running\" or \"ended\"", l.left_out);
    return r;
}

const struct tool tool_list_shells = {
    .name = "list_shells",
    .title = "List background shells",
    .description = "Lists the background shells of this session, oldest first, and the kept ones "
                   "that an ended session left in its directory: status, id, age, bytes of output "
                   "not read yet, ports, [name], command. The list holds {listed}; older ended "
                   "ones leave it, and can still be read by their ids.",
    .args = list_arg_table,
    .args_size = sizeof(struct list_args),
    .read_only = true,
    .idempotent = true,
    .begin = begin_list,
    .answer = answer_list,
};
