/* Runs as resources: what a model would see of each, and the raw text of its log. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "mcp/peer.h"
#include "text/brief.h"
#include "text/utf8.h"

#define PREFIX           "nacre://run/"
#define PAGE             50 /* runs, of two resources each */
#define TITLE_COLUMNS    80
#define LOG_MAX          ((size_t)1 << 20)
#define TEMPLATES_TTL_MS 3600000
#define COMPLETIONS_MAX  100

static const struct {
    const char *name;
    const char *title;
    const char *description;
} kinds[] = {
    [RESOURCE_SUMMARY] = {"summary", "Summary of a run",
                          "How a run ended, and what matters of its output, as the tools show it"},
    [RESOURCE_LOG] =
        {"log", "Output of a run",
         "The last MiB that a run printed on both streams, in order, as it was printed"},
};

/* -- Lists ------------------------------------------------------------------------------------ */

struct page {
    json_t *resources;
    uint64_t from; /* runs to pass over */
    uint64_t seen;
};

/* The command, as the title of what belongs to its run. */
static json_t *title_of(const nacre_record *record)
{
    struct buf text cleanup_buf = BUF_UP_TO(1024);
    if (brief_line(&text, *record->name ? record->name : record->command, TITLE_COLUMNS) < 0)
        return NULL;
    return json_stringn(text.data ? text.data : "", text.len);
}

static json_t *describe_resource(const nacre_record *record, enum resource_kind kind)
{
    char uri[64], name[64], status[64], description[128];
    nacre_id_text id = nacre_id_format(&record->id);
    snprintf(uri, sizeof uri, PREFIX "%s/%s", id.s, kinds[kind].name);
    snprintf(name, sizeof name, "%.8s %s", id.s, kinds[kind].name);
    snprintf(description, sizeof description, "%s of a shell, %s", kinds[kind].name,
             nacre_status(record, status, sizeof status));
    return json_pack("{s:s, s:s, s:o*, s:s, s:s}", "uri", uri, "name", name, "title",
                     title_of(record), "description", description, "mimeType", "text/plain");
}

static int add_run(const nacre_listed *listed, void *userdata)
{
    struct page *page = userdata;
    if (page->seen++ < page->from)
        return 0;
    if (page->seen > page->from + PAGE)
        return 1;
    json_array_append_new(page->resources, describe_resource(listed->record, RESOURCE_SUMMARY));
    json_array_append_new(page->resources, describe_resource(listed->record, RESOURCE_LOG));
    return 0;
}

void mcp_list_resources(const struct mcp_request *q)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    struct page page = {0};
    const char *cursor = mcp_param(q, "cursor");
    if (cursor && *cursor && !number_parse(cursor, &page.from)) {
        mcp_fail_params(q, "there is no page with this cursor");
        return;
    }
    page.resources = json_array();
    int r = nacre_list(q->peer->session, &options, add_run, &page, &err);
    if (r < 0) {
        json_decref(page.resources);
        mcp_fail(q, RPC_INTERNAL, "%s", err.msg);
        return;
    }
    json_t *result = json_pack("{s:o}", "resources", page.resources);
    char next[24];
    snprintf(next, sizeof next, "%" PRIu64, page.from + PAGE);
    if (r > 0)
        json_object_set_new(result, "nextCursor", json_string(next));
    mcp_reply_cacheable(q, result, 0, false);
}

static json_t *describe_template(enum resource_kind kind)
{
    char uri[64];
    snprintf(uri, sizeof uri, PREFIX "{id}/%s", kinds[kind].name);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "uriTemplate", uri, "name", kinds[kind].name,
                     "title", kinds[kind].title, "description", kinds[kind].description, "mimeType",
                     "text/plain");
}

void mcp_list_templates(const struct mcp_request *q)
{
    const char *cursor = mcp_param(q, "cursor");
    if (cursor && *cursor)
        mcp_fail_params(q, "there is no page with this cursor");
    else
        mcp_reply_cacheable(q,
                            json_pack("{s:[o, o]}", "resourceTemplates",
                                      describe_template(RESOURCE_SUMMARY),
                                      describe_template(RESOURCE_LOG)),
                            TEMPLATES_TTL_MS, true);
}

/* -- Reading ---------------------------------------------------------------------------------- */

int mcp_find_resource(const struct mcp_peer *p, const char *uri, nacre_id *ret_id,
                      enum resource_kind *ret_kind, nacre_error *reterr)
{
    char id[NACRE_ID_DIGITS + 1];
    size_t skip = strlen(PREFIX);
    const char *rest = strncmp(uri, PREFIX, skip) == 0 ? uri + skip : "";
    size_t length = strcspn(rest, "/");
    for (size_t i = 0; length <= NACRE_ID_DIGITS && i < ARRAY_SIZE(kinds); i++)
        if (rest[length] == '/' && strcmp(rest + length + 1, kinds[i].name) == 0) {
            snprintf(id, sizeof id, "%.*s", (int)length, rest);
            *ret_kind = (enum resource_kind)i;
            return nacre_find(p->session, id, ret_id, reterr);
        }
    return err_set(reterr, NACRE_ENOTFOUND,
                   "there is no such resource; they are called " PREFIX "ID/summary and " PREFIX
                   "ID/log");
}

static int copy_log(nacre_session *session, const nacre_id *id, struct buf *text, nacre_error *err)
{
    nacre_snapshot snapshot = {0};
    int r = nacre_output(session, id, NACRE_BOTH, LOG_MAX, &snapshot, err);
    if (r < 0)
        return r;
    r = utf8_clean(text, snapshot.data, snapshot.size);
    free(snapshot.data);
    return r < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static int copy_summary(nacre_session *session, const nacre_id *id, struct buf *text,
                        nacre_error *err)
{
    cleanup_free char *summary = NULL;
    int r = nacre_summary(session, id, NULL, &summary, NULL, err);
    if (r < 0)
        return r;
    return buf_str(text, summary) < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

/* The text is written by our own hand: it may be long. */
static bool append_contents(struct buf *line, const struct mcp_request *q, const char *uri,
                            const struct buf *text)
{
    const char *modern = "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",";
    return rpc_begin_result(line, q->id) == 0 && buf_str(line, "{") == 0 &&
           buf_str(line, q->modern ? modern : "") == 0 &&
           buf_str(line, "\"contents\":[{\"mimeType\":\"text/plain\",\"uri\":") == 0 &&
           rpc_append_string(line, uri, strlen(uri)) == 0 && buf_str(line, ",\"text\":") == 0 &&
           rpc_append_string(line, text->data ? text->data : "", text->len) == 0 &&
           buf_str(line, "}]}}") == 0;
}

static void fail_resource(const struct mcp_request *q, const char *uri, const nacre_error *err)
{
    bool missing =
        err->code == NACRE_ENOTFOUND || err->code == NACRE_EINVAL || err->code == NACRE_EAMBIGUOUS;
    if (missing)
        mcp_no_resource(q, uri, err->msg);
    else
        mcp_fail(q, RPC_INTERNAL, "%s", err->msg);
}

void mcp_read_resource(const struct mcp_request *q)
{
    nacre_session *session = q->peer->session;
    nacre_error err = NACRE_ERROR_INIT;
    const char *uri = mcp_require(q, "uri");
    enum resource_kind kind;
    nacre_id id;
    struct buf text cleanup_buf = BUF_UP_TO(4 * LOG_MAX);
    struct buf line cleanup_buf = BUF_UP_TO(RPC_MESSAGE_MAX);
    if (!uri)
        return;
    int r = mcp_find_resource(q->peer, uri, &id, &kind, &err);
    if (r == 0)
        r = kind == RESOURCE_LOG ? copy_log(session, &id, &text, &err)
                                 : copy_summary(session, &id, &text, &err);
    if (r < 0)
        fail_resource(q, uri, &err);
    else if (!append_contents(&line, q, uri, &text))
        mcp_fail(q, RPC_INTERNAL, "out of memory");
    else
        mcp_answer(q, &line, MCP_RESULT, NULL);
}

/* -- Completion of ids ------------------------------------------------------------------------ */

struct completion {
    const char *prefix;
    json_t *values;
    json_int_t total;
};

static int add_matching_id(const nacre_listed *listed, void *userdata)
{
    struct completion *completion = userdata;
    nacre_id_text id = nacre_id_format(&listed->record->id);
    if (strncmp(id.s, completion->prefix, strlen(completion->prefix)) != 0)
        return 0;
    if (completion->total++ < COMPLETIONS_MAX)
        json_array_append_new(completion->values, json_string(id.s));
    return 0;
}

/* Whether what is to be completed is the id in one of our templates, or of a prompt. */
static bool is_of_ours(const struct mcp_request *q)
{
    const json_t *ref = json_object_get(q->params, "ref");
    const char *type = rpc_text(json_object_get(ref, "type"));
    const char *uri = rpc_text(json_object_get(ref, "uri"));
    const char *name = rpc_text(json_object_get(ref, "name"));
    if (type && strcmp(type, "ref/prompt") == 0)
        return name && mcp_prompt_exists(name);
    return type && strcmp(type, "ref/resource") == 0 && uri &&
           strncmp(uri, PREFIX, strlen(PREFIX)) == 0;
}

void mcp_complete(const struct mcp_request *q)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    const json_t *argument = json_object_get(q->params, "argument");
    const char *name = rpc_text(json_object_get(argument, "name"));
    struct completion completion = {.prefix = rpc_text(json_object_get(argument, "value"))};
    if (!name || !completion.prefix) {
        mcp_fail_params(q, "argument must be an object with the strings name and value");
        return;
    }
    if (!is_of_ours(q)) {
        mcp_fail_params(q, "ref must be of type ref/resource, with the uri of a template, or of "
                           "type ref/prompt, with the name of a prompt");
        return;
    }
    completion.values = json_array();
    if (strcmp(name, "id") == 0 &&
        nacre_list(q->peer->session, &options, add_matching_id, &completion, &err) < 0) {
        json_decref(completion.values);
        mcp_fail(q, RPC_INTERNAL, "%s", err.msg);
        return;
    }
    mcp_reply(q,
              json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", completion.values, "total",
                        completion.total, "hasMore", completion.total > COMPLETIONS_MAX));
}
