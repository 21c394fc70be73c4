/* Arguments of the tools: every wrong type of every one, other tools' names, and what is unknown.
 */
#include "tool.h"

#include <unistd.h>

static json_t *tools_of(nacre_session *s)
{
    char *text = NULL;
    CHECK_OK(nacre_tools_json(s, &text, ERR));
    json_t *tools = json_loads(text, 0, NULL);
    CHECK(json_is_array(tools));
    free(text);
    return tools;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* -- The table -------------------------------------------------------------------------------- */

TEST(table)
{
    static const char *const names[] = {"bash",       "bash_output", "bash_input",
                                        "kill_shell", "list_shells", "recall"};
    nacre_session *s = open_tool(NULL);
    json_t *tools = tools_of(s), *tool;
    size_t i;

    CHECK_EQ_INT(6, json_array_size(tools));
    json_array_foreach(tools, i, tool)
    {
        json_t *schema = json_object_get(tool, "inputSchema"),
               *hints = json_object_get(tool, "annotations"), *property;
        const char *name;
        bool reads = i == 1 || i == 4 || i == 5;
        CHECK_TEXT(text_of(tool, "name"), names[i]);
        CHECK(strlen(text_of(tool, "title")) > 0);
        CHECK_RANGE(50, strlen(text_of(tool, "description")), 900);
        CHECK(!strpbrk(text_of(tool, "description"), "{}"));
        CHECK_TEXT(text_of(schema, "type"), "object");
        CHECK(json_is_false(json_object_get(schema, "additionalProperties")));
        CHECK_EQ_INT(reads, json_is_true(json_object_get(hints, "readOnlyHint")));
        CHECK(
            json_is_true(json_object_get(json_object_get(tool, "_meta"), "anthropic/alwaysLoad")));
        json_object_foreach(json_object_get(schema, "properties"), name, property)
        {
            CHECK(text_of(property, "type"));
            CHECK_RANGE(10, strlen(text_of(property, "description")), 250);
            CHECK(!strpbrk(text_of(property, "description"), "{}"));
        }
    }
    json_decref(tools);
    /* Nothing is made by being asked. */
    CHECK(access(test_home(), F_OK) < 0);
    close_session(s);
}

TEST(limits_in_force_are_told)
{
    char *text = NULL;
    setenv("NACRE_YIELD", "7s", 1);
    setenv("NACRE_SHELLS", "3", 1);
    setenv("NACRE_TIMEOUT_MAX", "11m", 1);
    nacre_session *s = open_tool(NULL);
    json_t *tools = tools_of(s), *bash = json_array_get(tools, 0);

    CHECK_STR(text_of(bash, "description"), "after 7s ");
    CHECK_STR(text_of(bash, "description"), "(3 at a time)");
    const json_t *properties = json_object_get(json_object_get(bash, "inputSchema"), "properties");
    CHECK_STR(text_of(json_object_get(properties, "timeout"), "description"), "11m at most");
    json_decref(tools);
    CHECK_OK(nacre_instructions(s, &text, ERR));
    CHECK_STR(text, "answers after 7s at the latest");
    CHECK_RANGE(200, strlen(text), 1500);
    free(text);
    close_session(s);
}

/* -- Wrong types ------------------------------------------------------------------------------ */

/* Values, and the types of the schema that they are right for. */
static const struct {
    const char *json;
    const char *fits;
} values[] = {
    {"\"nonsense\"", "string"}, {"1.5", "number"},    {"3", "number integer"},
    {"true", "boolean"},        {"[]", ""},           {"[1]", ""},
    {"[\"abcd\"]", "array"},    {"{\"a\": [1]}", ""}, {"{\"a\": \"b\"}", "object"},
    {"\"\\u0000\"", ""},
};

static bool is_right(const json_t *property, const char *fits)
{
    return strstr(fits, text_of(property, "type")) && !json_object_get(property, "enum");
}

/* Right values for what is required besides. */
static json_t *others(const json_t *schema, const char *but)
{
    json_t *object = json_object(), *name;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i,
                       name) if (strcmp(json_string_value(name), but) != 0)
        json_object_set_new(object, json_string_value(name), json_string("exit"));
    return object;
}

static struct reply try(nacre_session *s, const json_t *tool, const char *name, const char *value)
{
    json_t *arguments = others(json_object_get(tool, "inputSchema"), name);
    json_object_set_new(arguments, name, json_loads(value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    char *text = json_dumps(arguments, 0);
    struct reply r = call(s, text_of(tool, "name"), "%s", text);
    free(text);
    json_decref(arguments);
    return r;
}

TEST(every_wrong_type_of_every_argument)
{
    nacre_session *s = open_tool(NULL);
    json_t *tools = tools_of(s), *tool, *property;
    const char *name;
    size_t i, tried = 0;

    json_array_foreach(tools, i, tool) json_object_foreach(
        json_object_get(json_object_get(tool, "inputSchema"), "properties"), name,
        property) for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
    {
        /* Bytes may hold a NUL. */
        bool bytes =
            strcmp(name, "stdin") == 0 || strcmp(name, "input") == 0 || strcmp(name, "paste") == 0;
        if (is_right(property, values[v].fits) || (bytes && values[v].json[1] == '\\'))
            continue;
        struct reply r = try(s, tool, name, values[v].json);
        if (!r.error || strncmp(r.text, name, strlen(name)) != 0)
            FAIL("%s of %s as %s: %s", name, text_of(tool, "name"), values[v].json, r.text);
        bool nul = values[v].json[1] == '\\' && is_right(property, "string");
        CHECK_STR(r.text, nul ? " contains a NUL byte at offset 0;" : " must be ");
        CHECK_STR(r.text, nul ? "leave it out" : ", such as ");
        tried++;
    }
    json_decref(tools);
    CHECK_RANGE(200, tried, 1000);
    CHECK(access(test_home(), F_OK) < 0);
    close_session(s);
}

TEST(numbers_out_of_range)
{
    static const struct {
        const char *tool, *arguments, *error;
    } cases[] = {
        {"bash", "{\"command\": \"\"}", "command must be a string that is not empty"},
        {"bash", "{\"command\": \"x\", \"timeout\": -0.5}", "timeout must be a number of seconds"},
        {"bash", "{\"command\": \"x\", \"yield\": -1}", "yield must be a number of seconds from 0"},
        {"bash", "{\"command\": \"x\", \"timeout_ms\": 0}", "timeout_ms must be"},
        {"bash", "{\"command\": \"x\", \"max_output_tokens\": 0}", "max_output_tokens must be"},
        {"bash", "{\"command\": \"x\", \"lifetime\": \"ever\"}",
         "lifetime must be one of \"session\", \"keep\""},
        {"bash_output", "{\"id\": \"abcd\", \"offset\": -1}", "offset must be a whole number"},
        {"bash_output", "{\"id\": \"abcd\", \"tail\": 0}", "tail must be a whole number from 1"},
        {"bash_output", "{\"id\": \"abcd\", \"idle\": 0}", "idle must be"},
        {"bash_output", "{\"id\": \"abcd\", \"offset\": 0, \"tail\": 1}", "give offset or tail"},
        {"bash_output", "{}", "give id or ids"},
        {"bash_output", "{\"id\": \"abcd\", \"ids\": [\"abcd\"]}", "give id or ids"},
        {"bash_output", "{\"id\": \"abcd\", \"all\": true}", "all goes with ids"},
        {"recall", "{\"pattern\": \"x\", \"limit\": 0}", "limit must be"},
        {"kill_shell", "{}", "id is missing, such as"},
        {"bash", "{}", "command is missing, such as"},
        {"bash", "{\"command\": \"x\", \"env\": {\"GOOD\": 1, \"BAD\": [1]}}",
         "env.BAD must be a string, a number, or true or false, such as "},
        {"bash", "{\"command\": \"x\", \"replace\": true}", "replace goes with name"},
        {"bash", "{\"command\": null}", "command is missing, such as"},
        {"bash", "[]", "the arguments must be an object"},
        {"bash", "{\"command\": ", "the arguments are not valid JSON"},
        {"bash", "", "the arguments are not valid JSON"},
        {"bash", "{\"command\": \"a\", \"command\": \"b\"}", "the arguments are not valid JSON"},
        {"bash", "{\"command\": \"a\", \"cmd\": \"b\"}", "command was given twice"},
        {"bash", "{\"command\": \"a\", \"tiemout\": 1}", "did you mean \"timeout\"?"},
        {"bash", "{\"command\": \"a\", \"zzzzzzzzzz\": 1}", "there are command, timeout, "},
        {"list_shells", "{\"id\": \"abcd\"}", "there is no argument \"id\""},
        {"bash", "{\"command\": \"a\", \"limits\": {\"memory\": \"much\"}}",
         "limits.memory must be above 0 and within 0 to 1024TiB, such as 512MiB; it is \"much\""},
        {"bash", "{\"command\": \"a\", \"limits\": {\"processes\": 0}}", "limits.processes must"},
        {"bash", "{\"command\": \"a\", \"limits\": {\"processes\": 1.5}}", "limits.processes must"},
        {"bash", "{\"command\": \"a\", \"limits\": {\"cpu\": -1}}", "limits.cpu must"},
        {"bash", "{\"command\": \"a\", \"limits\": {\"cpu_time\": true}}", "limits.cpu_time must"},
        {"bash", "{\"command\": \"a\", \"limits\": {\"ram\": 1}}",
         "limits.ram must be one of memory, processes, "},
    };
    nacre_session *s = open_tool(NULL);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reply r = call(s, cases[i].tool, "%s", cases[i].arguments);
        CHECK(r.error);
        CHECK_STR(r.text, cases[i].error);
    }
    CHECK(access(test_home(), F_OK) < 0);
    close_session(s);
}

TEST(names_of_other_tools)
{
    static const char *const right[] = {
        "{\"cmd\": \"echo ran\"}",
        "{\"command\": \"echo ran\", \"timeout_secs\": 5}",
        "{\"command\": \"echo ran\", \"timeout_ms\": 5000, \"workdir\": \"/\"}",
        "{\"command\": \"echo ran\", \"working_dir\": \"/\", \"is_background\": false}",
        "{\"command\": \"echo ran\", \"directory\": \"/\", \"yield_time_ms\": 5000}",
        "{\"command\": \"echo ran\", \"dir_path\": \"/\", \"run_in_background\": true}",
        "{\"command\": \"echo ran\", \"timeout\": null, \"cwd\": null, \"name\": null}",
        "{\"command\": \"echo ran\", \"timeout\": 5.0, \"max_output_tokens\": 1000.0}",
    };
    nacre_session *s = open_tool(NULL);

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct reply r = call(s, "bash", "%s", right[i]);
        if (r.error)
            FAIL("%s: %s", right[i], r.text);
        CHECK_STR(r.text, "ran\n");
    }
    const char *id = launch(s, "sleep 300");
    static const char *const ids[] = {"id", "shell_id", "task_id", "bash_id", "session_id"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct reply r = call(s, "bash_output", "{\"%s\": \"%.4s\"}", ids[i], id);
        CHECK(!r.error);
        CHECK_STR(r.text, "running]");
    }
    close_session(s);
}

TEST(unknown_tool_and_misuse)
{
    nacre_session *s = open_tool(NULL);
    nacre_call_options options = NACRE_CALL_OPTIONS_INIT;
    nacre_call *c;
    char *text;

    CHECK_CODE(NACRE_ENOTFOUND, nacre_tool_call(s, "zsh", "{}", &text, ERR));
    CHECK_CODE(NACRE_ENOTFOUND, nacre_call_begin(s, "", "{}", 2, NULL, &c, ERR));
    options.size = 3;
    CHECK_CODE(NACRE_EINVAL, nacre_call_begin(s, "bash", "{}", 2, &options, &c, ERR));
    CHECK_OK(nacre_tool_call(s, "list_shells", NULL, &text, ERR));
    free(text);
    nacre_call_free(NULL);
    /* Not NUL-terminated, and finished from the beginning. */
    CHECK_OK(nacre_call_begin(s, "list_shells", "{}garbage", 2, NULL, &c, ERR));
    CHECK_EQ_INT(1, nacre_call_step(c, ERR));
    CHECK_EQ_INT(-1, nacre_call_fd(c));
    CHECK(nacre_call_result(c));
    CHECK(!nacre_call_progress(c));
    nacre_call_cancel(c);
    nacre_call_delivered(c);
    nacre_call_free(c);
    close_session(s);
}
