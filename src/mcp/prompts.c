/* Questions about shells that a person may pick: the answer to each is a message to the model with
 * what there is to know already in it. */
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "mcp/peer.h"
#include "text/brief.h"

#define PROMPTS_TTL_MS 3600000
#define TEXT_MAX       ((size_t)64 << 10)
#define COLUMNS        120

struct prompt {
    const char *name, *title, *description;
    bool takes_id; /* of a shell; without it the last one that is meant */
    int (*write)(const struct mcp_request *q, const char *id, struct buf *text, nacre_error *err);
};

/* -- What they say ---------------------------------------------------------------------------- */

struct listing {
    struct buf *text;
    size_t count;
};

static int add_shell_line(const nacre_listed *listed, void *userdata)
{
    struct listing *l = userdata;
    const nacre_record *record = listed->record;
    char status[64], age[AGE_TEXT];
    nacre_id_text id = nacre_id_format(&record->id);
    int64_t ms = clock_real_ns() / NS_PER_MS - record->started_ms;
    l->count++;
    int r = buf_printf(l->text, "- %.8s, %s, %s old: ", id.s,
                       nacre_status(record, status, sizeof status), brief_age(ms, age));
    if (r == 0)
        r = brief_line(l->text, record->command, COLUMNS);
    return r == 0 ? buf_str(l->text, "\n") : r;
}

static int write_running(const struct mcp_request *q, const char *id UNUSED, struct buf *text,
                         nacre_error *err)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    struct listing l = {.text = text};
    buf_str(text, "These are the background shells of this session:\n\n");
    int r = nacre_list(q->peer->session, &options, add_shell_line, &l, err);
    if (r == 0 && l.count == 0)
        r = buf_str(text, "(none)\n");
    return r < 0 ? r
                 : buf_str(text, "\nSay what each of them is for and whether it does well. Look at "
                                 "what was printed since you last read it where that helps, and "
                                 "end those that nobody needs any more.");
}

/* The last one that did not end well. */
static int note_failure(const nacre_listed *listed, void *userdata)
{
    const nacre_record *record = listed->record;
    bool failed = record->outcome != NACRE_RUNNING &&
                  (record->outcome != NACRE_EXITED || record->exit_code != 0);
    if (failed)
        *(nacre_id *)userdata = record->id;
    return 0;
}

static int find_failure(const struct mcp_request *q, const char *id, nacre_id *ret,
                        nacre_error *err)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    *ret = (nacre_id){{0}};
    return id && *id ? nacre_find(q->peer->session, id, ret, err)
                     : nacre_list(q->peer->session, &options, note_failure, ret, err);
}

static int write_failure(const struct mcp_request *q, const char *id, struct buf *text,
                         nacre_error *err)
{
    static const nacre_id none;
    nacre_id shell;
    cleanup_free char *summary = NULL;
    int r = find_failure(q, id, &shell, err);
    if (r == 0 && nacre_id_equal(&shell, &none))
        return buf_str(text, "No background shell of this session has failed. Say so.");
    if (r == 0)
        r = nacre_summary(q->peer->session, &shell, NULL, &summary, NULL, err);
    if (r < 0)
        return r;
    nacre_id_text name = nacre_id_format(&shell);
    return buf_printf(text,
                      "This is what shell %.8s came to:\n\n%s\n\nSay why it failed, from what it "
                      "printed; search the rest of it with recall where that is not enough. Then "
                      "say what to change.",
                      name.s, summary);
}

static const struct prompt prompts[] = {
    {"running", "What runs?",
     "Asks what the background shells of this session do, and which of "
     "them nobody needs any more",
     false, write_running},
    {"failure", "Why did it fail?", "Asks why a shell failed, with the summary of its output", true,
     write_failure},
};

/* -- Methods ---------------------------------------------------------------------------------- */

static json_t *describe_prompt(const struct prompt *prompt)
{
    json_t *value = json_pack("{s:s, s:s, s:s}", "name", prompt->name, "title", prompt->title,
                              "description", prompt->description);
    if (prompt->takes_id)
        json_object_set_new(value, "arguments",
                            json_pack("[{s:s, s:s, s:b}]", "name", "id", "description",
                                      "the shell; without it the last one that failed", "required",
                                      0));
    return value;
}

void mcp_list_prompts(const struct mcp_request *q)
{
    const char *cursor = mcp_param(q, "cursor");
    json_t *list = json_array();
    if (cursor && *cursor) {
        json_decref(list);
        mcp_fail_params(q, "there is no page with this cursor");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
        json_array_append_new(list, describe_prompt(&prompts[i]));
    mcp_reply_cacheable(q, json_pack("{s:o}", "prompts", list), PROMPTS_TTL_MS, true);
}

static const struct prompt *find_prompt(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
        if (strcmp(prompts[i].name, name) == 0)
            return &prompts[i];
    return NULL;
}

bool mcp_prompt_exists(const char *name)
{
    return find_prompt(name) != NULL;
}

static void fail_prompt(const struct mcp_request *q, int r, const nacre_error *err)
{
    bool wrong = r == NACRE_ENOTFOUND || r == NACRE_EINVAL || r == NACRE_EAMBIGUOUS;
    mcp_fail(q, wrong ? RPC_INVALID_PARAMS : RPC_INTERNAL, "%s",
             *err->msg ? err->msg : "out of memory");
}

void mcp_get_prompt(const struct mcp_request *q)
{
    nacre_error err = NACRE_ERROR_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(TEXT_MAX);
    const char *name = mcp_require(q, "name");
    if (!name)
        return;
    const struct prompt *prompt = find_prompt(name);
    if (!prompt) {
        mcp_fail_params(q, "there is no prompt of this name; they are running and failure");
        return;
    }
    const char *id = rpc_text(json_object_get(json_object_get(q->params, "arguments"), "id"));
    int r = prompt->write(q, id, &text, &err);
    if (r < 0)
        fail_prompt(q, r, &err);
    else
        mcp_reply(q, json_pack("{s:s, s:[{s:s, s:{s:s, s:s%}}]}", "description",
                               prompt->description, "messages", "role", "user", "content", "type",
                               "text", "text", text.data, text.len));
}
