/* What the tests of the tools share: calls, blocking and stepped, and what is in their results. */
#ifndef TESTS_TOOL_H
#define TESTS_TOOL_H

#include "harness/harness.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SMALL_BACKEND
#include "without_keeper.h"
#endif

#define SHARED __attribute__((unused)) static

struct reply {
    json_t *json;
    const char *text;        /* the tool's own item, which is the last */
    const char *completions; /* the item in front of it, or "" */
    bool error;
    json_t *run; /* the record, or NULL */
};

SHARED struct reply read_reply(const char *result)
{
    json_error_t error;
    struct reply reply = {.json = json_loads(result, 0, &error)};
    static json_t *replies; /* until the case ends */
    if (!reply.json)
        FAIL("%s: %s", error.text, result);
    replies = replies ? replies : json_array();
    json_array_append_new(replies, reply.json);
    const json_t *content = json_object_get(reply.json, "content");
    size_t count = json_array_size(content);
    CHECK_RANGE(1, count, 2);
    reply.text = json_string_value(json_object_get(json_array_get(content, count - 1), "text"));
    reply.completions =
        count > 1 ? json_string_value(json_object_get(json_array_get(content, 0), "text")) : "";
    CHECK(json_is_boolean(json_object_get(reply.json, "isError")));
    reply.error = json_is_true(json_object_get(reply.json, "isError"));
    reply.run = json_object_get(json_object_get(reply.json, "_meta"), "nacre/run");
    CHECK(reply.text && reply.completions);
    return reply;
}

/* A blocking call with its arguments as printf() makes them. */
__attribute__((format(printf, 3, 4))) SHARED struct reply call(nacre_session *s, const char *tool,
                                                               const char *arguments, ...)
{
    static char text[1 << 20];
    char *result = NULL;
    va_list ap;
    va_start(ap, arguments);
    vsnprintf(text, sizeof text, arguments, ap);
    va_end(ap);
    CHECK_OK(nacre_tool_call(s, tool, text, &result, ERR));
    struct reply reply = read_reply(result);
    free(result);
    return reply;
}

SHARED const char *id_of(const struct reply *reply)
{
    const char *id = json_string_value(json_object_get(reply->run, "id"));
    if (!id)
        FAIL("no record in: %s", reply->text);
    return id;
}

/* The shell of a background command that was just started. */
SHARED const char *launch(nacre_session *s, const char *command)
{
    json_t *arguments = json_pack("{s:s, s:b}", "command", command, "background", 1);
    char *text = json_dumps(arguments, 0);
    struct reply reply = call(s, "bash", "%s", text);
    CHECK(!reply.error);
    free(text);
    json_decref(arguments);
    return id_of(&reply);
}

/* One that begins with let_go(), so that its start shows nothing of it, however long that takes. */
SHARED const char *launch_held(nacre_session *s, const char *command)
{
    return launch(s, format("%s; %s", gate(), command));
}

SHARED nacre_id id_from(const char *text)
{
    nacre_id id;
    CHECK_OK(nacre_id_parse(text, &id));
    return id;
}

SHARED nacre_id parsed_id(const struct reply *reply)
{
    return id_from(id_of(reply));
}

SHARED void await_output(nacre_session *s, const char *text, const char *needle)
{
    nacre_id id = id_from(text);
    CHECK(AWAIT(output_has(s, &id, NACRE_BOTH, needle), 10000));
}

/* It has ended, and its session knows: the ring comes right after the outcome. */
SHARED void await_end(nacre_session *s, const char *text)
{
    nacre_id id = id_from(text);
    wait_outcome(s, &id, 10000);
    nacre_record record = record_of(s, &id);
    nacre_record_done(&record);
}

SHARED nacre_call *begin_call(nacre_session *s, const char *tool, const char *arguments)
{
    nacre_call *c = NULL;
    CHECK_OK(nacre_call_begin(s, tool, arguments, strlen(arguments), NULL, &c, ERR));
    return c;
}

/* Steps as a host's loop does, until it is finished or the time is over. */
SHARED bool drive(nacre_call *c, int64_t ms)
{
    int64_t until = now_ms() + ms;
    for (;;) {
        int r = nacre_call_step(c, ERR);
        CHECK_OK(r);
        if (r == 1)
            return true;
        int64_t left = until - now_ms(), wanted = nacre_call_timeout(c);
        if (left <= 0)
            return false;
        CHECK(wanted >= 0);
        struct pollfd poller = {.fd = nacre_call_fd(c), .events = POLLIN};
        poll(&poller, 1, (int)(wanted < left ? wanted : left));
    }
}

SHARED bool contains(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

SHARED int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

#endif
