#include "mcp/clients.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"

/* What of an entry differs from client to client. */
enum client_form {
    FORM_PLAIN,    /* "command" and "args" */
    FORM_STDIO,    /* likewise, with "type": "stdio" */
    FORM_COPILOT,  /* with "type": "local", and all tools */
    FORM_OPENCODE, /* "command" has the arguments, "environment" the variables */
    FORM_QWEN,     /* with "alwaysLoadTools": else the model would have to search for them */
    FORM_ZED,      /* with "source": "custom" */
    FORM_CODEX     /* TOML */
};

/* In texts @COMMAND@ is the server as words of a shell, @FRAGMENT@ what belongs into the file, and
 * @LINE@ an entry with its name on one line. */
struct mcp_client {
    const char *name;
    const char *file;
    const char *key; /* of the object that servers are in */
    enum client_form form;
    const char *add;
    const char *next;
};

static const struct mcp_client clients[] = {
    {"claude", "~/.claude.json", "mcpServers", FORM_STDIO,
     "Add it to Claude Code, for all projects:\n"
     "\n"
     "  claude mcp add --scope user nacre -- @COMMAND@\n"
     "\n"
     "or in ~/.claude.json:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own shell off, and let it use this one without asking, in\n"
     "~/.claude/settings.json:\n"
     "\n"
     "  {\"permissions\": {\"deny\": [\"Bash\"], \"allow\": [\"mcp__nacre\"]}}\n"},
    {"codex", "~/.codex/config.toml", "mcp_servers.nacre", FORM_CODEX,
     "Add it to Codex:\n"
     "\n"
     "  codex mcp add nacre -- @COMMAND@\n"
     "\n"
     "or in ~/.codex/config.toml:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own shell off, in ~/.codex/config.toml:\n"
     "\n"
     "  [features]\n"
     "  shell_tool = false\n"
     "\n"
     "It asks before each call, and \"codex exec\", which cannot ask, refuses them all. To\n"
     "let it use the tools without asking, add below [mcp_servers.nacre]:\n"
     "\n"
     "  default_tools_approval_mode = \"approve\"\n"},
    {"copilot", "~/.copilot/mcp-config.json", "mcpServers", FORM_COPILOT,
     "Add it to Copilot CLI:\n"
     "\n"
     "  copilot mcp add nacre -- @COMMAND@\n"
     "\n"
     "or in ~/.copilot/mcp-config.json:\n"
     "\n"
     "@FRAGMENT@",
     "Start it without its own shell, and let it use this one without asking:\n"
     "\n"
     "  copilot --excluded-tools bash,read_bash,stop_bash,list_bash --allow-tool nacre\n"},
    {"cursor", "~/.cursor/mcp.json", "mcpServers", FORM_PLAIN,
     "Add it to Cursor, in ~/.cursor/mcp.json, or .cursor/mcp.json of a project:\n"
     "\n"
     "@FRAGMENT@",
     "Its own terminal cannot be switched off there. Say in its rules that it shall run\n"
     "commands with the tool bash of nacre.\n"},
    {"gemini", "~/.gemini/settings.json", "mcpServers", FORM_PLAIN,
     "Add it to Gemini CLI:\n"
     "\n"
     "  gemini mcp add --scope user nacre @COMMAND@\n"
     "\n"
     "or in ~/.gemini/settings.json:\n"
     "\n"
     "@FRAGMENT@",
     "It starts no server in a folder that you did not trust. Switch its own shell off, in\n"
     "~/.gemini/policies/nacre.toml:\n"
     "\n"
     "  [[rule]]\n"
     "  toolName = \"run_shell_command\"\n"
     "  decision = \"deny\"\n"
     "  priority = 900\n"},
    {"opencode", "$CONFIG/opencode/opencode.json", "mcp", FORM_OPENCODE,
     "Add it to opencode, in opencode.json or ~/.config/opencode/opencode.json:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own shell off in the same file:\n"
     "\n"
     "  {\"permission\": {\"bash\": \"deny\"}}\n"},
    {"qwen", "~/.qwen/settings.json", "mcpServers", FORM_QWEN,
     "Add it to Qwen Code, in ~/.qwen/settings.json. Without alwaysLoadTools the model would\n"
     "have to search for the tools first:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own shell off in the same file:\n"
     "\n"
     "  {\"permissions\": {\"deny\": [\"run_shell_command\"]}}\n"},
    {"vscode", "$CONFIG/Code/User/mcp.json", "servers", FORM_STDIO,
     "Add it to VS Code:\n"
     "\n"
     "  code --add-mcp '@LINE@'\n"
     "\n"
     "or in .vscode/mcp.json of a project:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own terminal off in the tool picker of the chat (runInTerminal).\n"},
    {"zed", "$CONFIG/zed/settings.json", "context_servers", FORM_ZED,
     "Add it to Zed, in settings.json:\n"
     "\n"
     "@FRAGMENT@",
     "Switch its own terminal off in the profile \"write\", in the same file:\n"
     "\n"
     "  {\"agent\": {\"profiles\": {\"write\": {\"name\": \"Write\", "
     "\"tools\": {\"terminal\": false}}}}}\n"},
};

const struct mcp_client *mcp_client_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    return NULL;
}

const char *mcp_client_names(void)
{
    return "claude, codex, copilot, cursor, gemini, opencode, qwen, vscode, zed";
}

const char *mcp_client_file(const struct mcp_client *client)
{
    return client->file;
}

/* -- The entry of the server ------------------------------------------------------------------ */

static json_t *env_object(const char *const *env)
{
    json_t *object = json_object();
    for (; object && *env; env++) {
        const char *equals = strchr(*env, '=');
        json_object_setn_new(object, *env, (size_t)(equals - *env), json_string(equals + 1));
    }
    return object;
}

static json_t *make_entry(enum client_form form, const struct mcp_launch *launch)
{
    json_t *entry = json_object();
    if (form == FORM_STDIO)
        json_object_set_new(entry, "type", json_string("stdio"));
    else if (form == FORM_COPILOT || form == FORM_OPENCODE)
        json_object_set_new(entry, "type", json_string("local"));
    else if (form == FORM_ZED)
        json_object_set_new(entry, "source", json_string("custom"));
    if (form == FORM_OPENCODE) {
        json_object_set_new(entry, "command", json_pack("[s, s]", launch->program, "mcp"));
        json_object_set_new(entry, "enabled", json_true());
    } else {
        json_object_set_new(entry, "command", json_string(launch->program));
        json_object_set_new(entry, "args", json_pack("[s]", "mcp"));
    }
    if (form == FORM_COPILOT)
        json_object_set_new(entry, "tools", json_pack("[s]", "*"));
    if (form == FORM_QWEN)
        json_object_set_new(entry, "alwaysLoadTools", json_true());
    if (*launch->env || form == FORM_ZED)
        json_object_set_new(entry, form == FORM_OPENCODE ? "environment" : "env",
                            env_object(launch->env));
    return entry;
}

static int put_json(struct buf *out, json_t *value, size_t flags)
{
    cleanup_free char *text = value ? json_dumps(value, flags | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(value);
    return text ? buf_str(out, text) : -ENOMEM;
}

/* The escapes of JSON are those of TOML's basic strings. */
static int put_toml(struct buf *out, const struct mcp_launch *launch)
{
    int r = buf_str(out, "[mcp_servers.nacre]\ncommand = ");
    if (r == 0)
        r = put_json(out, json_string(launch->program), JSON_ENCODE_ANY);
    if (r == 0)
        r = buf_str(out, "\nargs = [\"mcp\"]\ntool_timeout_sec = 300\n");
    for (const char *const *env = launch->env; r == 0 && *env; env++) {
        const char *equals = strchr(*env, '=');
        r = buf_printf(out, "env.%.*s = ", (int)(equals - *env), *env);
        if (r == 0)
            r = put_json(out, json_string(equals + 1), JSON_ENCODE_ANY);
        if (r == 0)
            r = buf_str(out, "\n");
    }
    return r;
}

int mcp_client_fragment(const struct mcp_client *client, const struct mcp_launch *launch,
                        struct buf *out)
{
    if (client->form == FORM_CODEX)
        return put_toml(out, launch);
    int r = put_json(out,
                     json_pack("{s:{s:o}}", client->key, "nacre", make_entry(client->form, launch)),
                     JSON_INDENT(2));
    return r < 0 ? r : buf_str(out, "\n");
}

/* -- The entry of a server that runs already --------------------------------------------------- */

/* How each of them calls the parts of it. */
static const struct {
    const char *client;
    const char *type; /* NULL = it has none */
    const char *url;
} http_forms[] = {
    {"claude", "http", "url"}, {"codex", NULL, "url"},      {"copilot", "http", "url"},
    {"cursor", NULL, "url"},   {"gemini", NULL, "httpUrl"}, {"opencode", "remote", "url"},
    {"qwen", NULL, "httpUrl"}, {"vscode", "http", "url"},   {"zed", NULL, "url"},
};

static size_t http_form_of(const struct mcp_client *client)
{
    size_t i = 0;
    while (strcmp(http_forms[i].client, client->name) != 0)
        i++;
    return i;
}

static json_t *make_http_entry(const struct mcp_client *client, const char *url, const char *token)
{
    size_t i = http_form_of(client);
    json_t *entry = json_object();
    if (http_forms[i].type)
        json_object_set_new(entry, "type", json_string(http_forms[i].type));
    json_object_set_new(entry, http_forms[i].url, json_string(url));
    json_object_set_new(entry, "headers", json_pack("{s:s+}", "Authorization", "Bearer ", token));
    if (client->form == FORM_COPILOT)
        json_object_set_new(entry, "tools", json_pack("[s]", "*"));
    if (client->form == FORM_OPENCODE)
        json_object_set_new(entry, "enabled", json_true());
    if (client->form == FORM_QWEN)
        json_object_set_new(entry, "alwaysLoadTools", json_true());
    return entry;
}

int mcp_client_http(const struct mcp_client *client, const char *url, const char *token,
                    struct buf *out)
{
    if (client->form == FORM_CODEX)
        return buf_printf(out,
                          "[mcp_servers.nacre]\nurl = \"%s\"\n"
                          "http_headers = { Authorization = \"Bearer %s\" }\n"
                          "tool_timeout_sec = 300\n",
                          url, token);
    int r = put_json(
        out, json_pack("{s:{s:o}}", client->key, "nacre", make_http_entry(client, url, token)),
        JSON_INDENT(2));
    return r < 0 ? r : buf_str(out, "\n");
}

/* -- What a person is told -------------------------------------------------------------------- */

/* As one word of a shell. */
static int put_word(struct buf *out, const char *word)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_-+=./:,@%";
    if (*word && strspn(word, harmless) == strlen(word))
        return buf_str(out, word);
    int r = buf_str(out, "'");
    for (; r == 0 && *word; word++)
        r = *word == '\'' ? buf_str(out, "'\\''") : buf_append(out, word, 1);
    return r < 0 ? r : buf_str(out, "'");
}

static int put_command(struct buf *out, const struct mcp_launch *launch)
{
    int r = *launch->env ? buf_str(out, "env ") : 0;
    for (const char *const *env = launch->env; r == 0 && *env; env++) {
        r = put_word(out, *env);
        if (r == 0)
            r = buf_str(out, " ");
    }
    if (r == 0)
        r = put_word(out, launch->program);
    return r < 0 ? r : buf_str(out, " mcp");
}

static int put_line(struct buf *out, const struct mcp_client *client,
                    const struct mcp_launch *launch)
{
    json_t *line = json_pack("{s:s}", "name", "nacre");
    json_t *entry = make_entry(client->form, launch);
    json_object_update(line, entry);
    json_decref(entry);
    return put_json(out, line, JSON_COMPACT);
}

static int put_indented(struct buf *out, const struct mcp_client *client,
                        const struct mcp_launch *launch)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = mcp_client_fragment(client, launch, &text);
    for (const char *at = text.data; r == 0 && at && *at; at += strcspn(at, "\n") + 1)
        r = buf_printf(out, "  %.*s\n", (int)strcspn(at, "\n"), at);
    return r;
}

int mcp_client_explain(const struct mcp_client *client, const struct mcp_launch *launch,
                       struct buf *out)
{
    int r = 0;
    for (const char *at = client->add; r == 0 && *at;) {
        size_t plain = strcspn(at, "@");
        r = buf_append(out, at, plain);
        at += plain;
        size_t mark = *at ? strcspn(at + 1, "@") + 2 : 0;
        if (r < 0 || mark == 0)
            break;
        r = at[1] == 'C'   ? put_command(out, launch)
            : at[1] == 'L' ? put_line(out, client, launch)
                           : put_indented(out, client, launch);
        at += mark;
    }
    if (r == 0)
        r = buf_str(out, "\n");
    return r < 0 ? r : mcp_client_next(client, out);
}

int mcp_client_next(const struct mcp_client *client, struct buf *out)
{
    return buf_str(out, client->next);
}

/* -- Into a file that has more ---------------------------------------------------------------- */

/* Whether a line of a TOML file begins the table of the server, in whichever of the usual forms. */
static bool has_table(const char *text)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *at = text + strspn(text, " \t");
        if (strncmp(at, "[mcp_servers.nacre", 18) == 0 ||
            strncmp(at, "[mcp_servers.\"nacre\"", 20) == 0)
            return true;
    }
    return false;
}

static int merge_toml(const struct mcp_launch *launch, const char *text, struct buf *out,
                      nacre_error *err)
{
    struct buf table cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (put_toml(&table, launch) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (strstr(text, table.data))
        return 0;
    if (has_table(text))
        return err_set(err, NACRE_EBUSY,
                       "it has a table [mcp_servers.nacre] of another form; remove that first");
    size_t size = strlen(text);
    bool open = size > 0 && text[size - 1] != '\n';
    int r = buf_printf(out, "%s%s%s%s", text, open ? "\n" : "", size > 0 ? "\n" : "", table.data);
    return r < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
}

static int merge_json(const struct mcp_client *client, const struct mcp_launch *launch,
                      const char *text, struct buf *out, nacre_error *err)
{
    json_error_t where;
    bool empty = text[strspn(text, " \t\r\n")] == '\0';
    json_auto_t *file = empty ? json_object() : json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!file)
        return err_set(err, NACRE_EINVAL, "line %d: %s", where.line, where.text);
    json_t *servers = json_object_get(file, client->key);
    if (!json_is_object(file) || (servers && !json_is_object(servers)))
        return err_set(err, NACRE_EINVAL, "it, or its \"%s\", is no object", client->key);
    if (!servers) {
        servers = json_object();
        json_object_set_new(file, client->key, servers);
    }
    json_auto_t *entry = make_entry(client->form, launch);
    if (json_equal(entry, json_object_get(servers, "nacre")))
        return 0;
    if (json_object_set(servers, "nacre", entry) < 0 ||
        put_json(out, json_incref(file), JSON_INDENT(2)) < 0 || buf_str(out, "\n") < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    return 0;
}

int mcp_client_merge(const struct mcp_client *client, const struct mcp_launch *launch,
                     const char *text, struct buf *out, nacre_error *err)
{
    return client->form == FORM_CODEX ? merge_toml(launch, text, out, err)
                                      : merge_json(client, launch, text, out, err);
}
