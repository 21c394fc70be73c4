/* Prompts, resources and completion of everything.json. */
#include <string.h>

#include "everything.h"

#define TTL_MS 300000

/* -- Lists ------------------------------------------------------------------------------------ */

/* The entries of a list that have a member, each with the members named, up to the first NULL. */
static json_t *listed(const char *list, const char *const *members)
{
    size_t i;
    json_t *entry, *all = json_array();
    json_array_foreach(json_object_get(everything, list), i, entry)
    {
        json_t *shown = json_object();
        for (size_t m = 0; members[m]; m++)
            if (json_object_get(entry, members[m]))
                json_object_set(shown, members[m], json_object_get(entry, members[m]));
        if (json_object_get(entry, members[0]))
            json_array_append(all, shown);
        json_decref(shown);
    }
    return all;
}

static void list_prompts(const struct mcp_request *q)
{
    static const char *const members[] = {"name", "description", "arguments", NULL};
    mcp_reply_cacheable(q, json_pack("{s:o}", "prompts", listed("prompts", members)), TTL_MS, true);
}

static void list_resources(const struct mcp_request *q)
{
    static const char *const members[] = {"uri", "name", "mimeType", NULL};
    mcp_reply_cacheable(q, json_pack("{s:o}", "resources", listed("resources", members)), TTL_MS,
                        true);
}

static void list_templates(const struct mcp_request *q)
{
    static const char *const members[] = {"uriTemplate", "name", "mimeType", NULL};
    mcp_reply_cacheable(q, json_pack("{s:o}", "resourceTemplates", listed("resources", members)),
                        TTL_MS, true);
}

/* -- Prompts ---------------------------------------------------------------------------------- */

static void get_prompt(const struct mcp_request *q)
{
    bool refused;
    const char *name = mcp_require(q, "name");
    const json_t *prompt = name ? everything_find("prompts", "name", name) : NULL;
    if (name && !prompt)
        mcp_fail_params(q, "there is no prompt of this name");
    if (!prompt)
        return;
    json_t *wants = rounds_next(q, prompt, &refused);
    if (!refused)
        mcp_reply(q, wants ? wants
                           : json_pack("{s:o}", "messages",
                                       everything_fill(json_object_get(prompt, "messages"),
                                                       mcp_arguments(q))));
}

/* -- Resources -------------------------------------------------------------------------------- */

/* What {id} is in a uri of a template; NULL if it is none of it. */
static json_t *match_template(const char *template, const char *uri)
{
    const char *open = strchr(template, '{'), *close = open ? strchr(open, '}') : NULL;
    size_t head = open ? (size_t)(open - template) : 0, tail = close ? strlen(close + 1) : 0;
    size_t size = strlen(uri);
    if (!close || size <= head + tail || strncmp(uri, template, head) != 0 ||
        strcmp(uri + size - tail, close + 1) != 0)
        return NULL;
    return json_pack("{s:s%}", "id", uri + head, size - head - tail);
}

/* The resource of a uri, and the words of its template. */
static const json_t *find_resource(const char *uri, json_t **ret_words)
{
    size_t i;
    json_t *entry;
    *ret_words = NULL;
    json_array_foreach(json_object_get(everything, "resources"), i, entry)
    {
        const char *own = json_string_value(json_object_get(entry, "uri"));
        const char *template = json_string_value(json_object_get(entry, "uriTemplate"));
        if (own && strcmp(own, uri) == 0)
            return entry;
        *ret_words = template ? match_template(template, uri) : NULL;
        if (*ret_words)
            return entry;
    }
    return NULL;
}

static void read_resource(const struct mcp_request *q)
{
    json_t *found;
    const char *uri = mcp_require(q, "uri");
    const json_t *resource = uri ? find_resource(uri, &found) : NULL;
    if (uri && !resource)
        mcp_no_resource(q, uri, "there is no resource of this uri");
    if (!resource)
        return;
    json_auto_t *words = found;
    json_t *text = json_object_get(resource, "text"), *blob = json_object_get(resource, "blob");
    json_t *content = json_pack("{s:s, s:O, s:o*, s:O*}", "uri", uri, "mimeType",
                                json_object_get(resource, "mimeType"), "text",
                                text ? everything_fill(text, words) : NULL, "blob", blob);
    mcp_reply_cacheable(q, json_pack("{s:[o]}", "contents", content), TTL_MS, false);
}

static void take_subscription(const struct mcp_request *q)
{
    if (mcp_require(q, "uri"))
        mcp_reply(q, json_object());
}

static void complete(const struct mcp_request *q)
{
    mcp_reply(q,
              json_pack("{s:{s:[], s:i, s:b}}", "completion", "values", "total", 0, "hasMore", 0));
}

const struct mcp_method everything_methods[] = {
    {"prompts/list", MCP_BOTH_ERAS, list_prompts},
    {"prompts/get", MCP_BOTH_ERAS, get_prompt},
    {"resources/list", MCP_BOTH_ERAS, list_resources},
    {"resources/templates/list", MCP_BOTH_ERAS, list_templates},
    {"resources/read", MCP_BOTH_ERAS, read_resource},
    {"resources/subscribe", MCP_LEGACY_ONLY, take_subscription},
    {"resources/unsubscribe", MCP_LEGACY_ONLY, take_subscription},
    {"subscriptions/listen", MCP_MODERN_ONLY, mcp_listen},
    {"completion/complete", MCP_BOTH_ERAS, complete},
    {0},
};
