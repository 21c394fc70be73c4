/* The table of a server that has one of everything, and the server.
 * usage: mcp-everything everything.json [ADDRESS:PORT] */
#include <stdio.h>
#include <string.h>

#include "everything.h"
#include "serve/serve_http.h"

const json_t *everything;

const json_t *everything_find(const char *list, const char *member, const char *text)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(everything, list), i, entry)
    {
        const char *named = json_string_value(json_object_get(entry, member));
        if (named && strcmp(named, text) == 0)
            return entry;
    }
    return NULL;
}

static json_t *fill_text(const char *text, const json_t *words)
{
    struct buf out cleanup_buf = BUF_UP_TO(65536);
    while (*text) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        const json_t *word =
            end ? json_object_getn(words, text + 1, (size_t)(end - text - 1)) : NULL;
        if (word)
            buf_str(&out, json_string_value(word));
        else
            buf_append(&out, text, 1);
        text = word ? end + 1 : text + 1;
    }
    return json_stringn(out.data ? out.data : "", out.len);
}

json_t *everything_fill(const json_t *value, const json_t *words)
{
    size_t i;
    const char *key;
    json_t *part, *copy;
    if (json_is_string(value))
        return fill_text(json_string_value(value), words);
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, part)
            json_array_append_new(copy, everything_fill(part, words));
        return copy;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    copy = json_object();
    json_object_foreach((json_t *)value, key, part)
        json_object_set_new(copy, key, everything_fill(part, words));
    return copy;
}

static json_t *version(void)
{
    return json_string("1");
}

static json_t *capabilities(void)
{
    return json_deep_copy(json_object_get(everything, "capabilities"));
}

static json_t *instructions(const struct mcp_peer *p)
{
    (void)p;
    return NULL;
}

static const struct mcp_table table = {
    .name = "everything",
    .title = "One of everything",
    .version = version,
    .capabilities = capabilities,
    .instructions = instructions,
    .tools = &everything_tools,
    .methods = everything_methods,
    .hear = everything_hear,
};

static void tell_where(const char *where, void *userdata)
{
    (void)userdata;
    printf("%s\n", where);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    json_error_t fault;
    nacre_error err = NACRE_ERROR_INIT;
    json_auto_t *offered = argc > 1 ? json_load_file(argv[1], 0, &fault) : NULL;
    struct serve_options options = {.table = &table,
                                    .listen = argc > 2 ? argv[2] : "127.0.0.1:0",
                                    .no_token = true,
                                    .no_page = true,
                                    .gone_ms = SERVE_GONE_MS,
                                    .idle_ms = SERVE_IDLE_MS};
    if (!offered) {
        fprintf(stderr, "usage: mcp-everything everything.json [ADDRESS:PORT]\n%s\n",
                argc > 1 ? fault.text : "");
        return 2;
    }
    everything = offered;
    if (serve_run(&options, tell_where, NULL, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return 0;
}
