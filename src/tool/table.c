/* The table of tools, as data for clients: schemas, annotations, instructions. */
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "shell/session.h"
#include "tool/tool.h"

#define TEXT_MAX 16384

static const struct tool *const tools[] = {
    &tool_bash,       &tool_bash_output, &tool_bash_input,
    &tool_kill_shell, &tool_list_shells, &tool_recall,
};

static const char instructions[] =
    "Shell commands that never hang, leak or forget. bash runs one; it answers after {yield} at "
    "the latest, and a command that is not done by then goes on in the background. Start servers "
    "and other long commands with background: true, read them with bash_output (which can wait for "
    "a text, for silence or for the end), and end them with kill_shell: their whole process tree "
    "dies. Up to {shells} run at a time. The end of a background shell is told in front of the "
    "next answer of any of these tools; there is no need to poll. Everything ever printed stays "
    "searchable with recall. Lines that begin with a backslash are a command's own words that "
    "look like ours. Ids may be cut to any unique beginning of four or more digits.";

const struct tool *tool_at(size_t i)
{
    return i < ARRAY_SIZE(tools) ? tools[i] : NULL;
}

const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    return NULL;
}

static char *fill(const char *template, const nacre_settings *settings)
{
    struct buf text cleanup_buf;
    buf_init(&text, TEXT_MAX);
    return args_fill(&text, template, settings) == 0 ? buf_take(&text) : NULL;
}

static json_t *annotations_of(const struct tool *tool)
{
    return json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", tool->title, "readOnlyHint",
                     (int)tool->read_only, "destructiveHint", (int)tool->destructive,
                     "idempotentHint", (int)tool->idempotent, "openWorldHint",
                     (int)tool->open_world);
}

static json_t *describe(const struct tool *tool, const nacre_settings *settings)
{
    cleanup_free char *description = fill(tool->description, settings);
    if (!description)
        return NULL;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:b}}", "name", tool->name, "title", tool->title,
                     "description", description, "inputSchema", args_schema(tool->args, settings),
                     "annotations", annotations_of(tool), "_meta", "anthropic/alwaysLoad", 1);
}

int nacre_tools_json(nacre_session *session, char **ret_json, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    json_t *array = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        json_array_append_new(array, describe(tools[i], session->settings));
    bool whole = json_array_size(array) == ARRAY_SIZE(tools);
    *ret_json = whole ? json_dumps(array, JSON_COMPACT) : NULL;
    json_decref(array);
    return *ret_json ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}

int nacre_instructions(nacre_session *session, char **ret_text, nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    *ret_text = fill(instructions, session->settings);
    return *ret_text ? 0 : err_set(reterr, NACRE_ENOMEM, "out of memory");
}
