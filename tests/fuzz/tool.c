/* Arbitrary bytes as the arguments of every tool, in a session that refuses to do anything. */
#include "fuzz.h"

#include <nacre/nacre.h>

#include "tool/tool.h"

static nacre_session *session(void)
{
    static nacre_session *s;
    if (!s) {
        nacre_options options = NACRE_OPTIONS_INIT;
        options.home = "/nonexistent/nacre";
        options.backend = nacre_backend_noop();
        MUST(nacre_open(&options, &s, NULL) == 0);
    }
    return s;
}

/* Whatever comes, there is a result with a text in it. */
static void check_call(const char *tool, const char *bytes, size_t size)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_call *call = NULL;
    MUST(nacre_call_begin(session(), tool, bytes, size, NULL, &call, &error) == 0);
    while (nacre_call_step(call, &error) == 0)
        ;
    json_t *result = json_loads(nacre_call_result(call), 0, NULL);
    const json_t *item = json_array_get(json_object_get(result, "content"), 0);
    MUST(json_string_length(json_object_get(item, "text")) > 0);
    json_decref(result);
    nacre_call_delivered(call);
    nacre_call_free(call);
}

/* What is wrong is said; what is right is within the bounds of its table. */
static void check_args(const struct tool *tool, const json_t *object)
{
    nacre_error error = NACRE_ERROR_INIT;
    char *values = malloc(tool->args_size);
    int r = args_parse(tool->args, object, values, tool->args_size, &error);
    MUST(r == 0 || (r == NACRE_EINVAL && error.msg[0]));
    for (const struct arg *arg = tool->args; r == 0 && arg->name; arg++) {
        int64_t number;
        if (arg->type != ARG_SECONDS && arg->type != ARG_COUNT)
            continue;
        memcpy(&number, values + arg->offset, sizeof number);
        MUST(number == -1 || number >= (arg->type == ARG_COUNT ? arg->least : 0));
        MUST(arg->most == 0 || number <= arg->most);
    }
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    if (size > 0)
        memcpy(bytes, data, size);
    json_t *object = json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
    for (size_t i = 0; tool_at(i); i++) {
        check_call(tool_at(i)->name, bytes, size);
        if (json_is_object(object))
            check_args(tool_at(i), object);
    }
    json_decref(object);
    free(bytes);
    return 0;
}
