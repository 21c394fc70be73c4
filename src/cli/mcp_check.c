#include "cli/mcp_check.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "acp/proxy_child.h"
#include "base/clock.h"
#include "base/err.h"
#include "console/out.h"
#include "console/print_json.h"
#include "console/shells.h"
#include "sys/fd.h"

#define ANSWER_MS 20000
#define GRACE_MS  5000

struct talk {
    struct acp_child server;
    struct buf heard; /* what it said that was not taken yet */
};

/* The answer to a request, or NULL with a sentence said. What else it says is passed over. */
static json_t *hear_response(struct talk *t, int id, const char *what)
{
    int64_t deadline = clock_deadline(ANSWER_MS);
    char data[65536];
    for (;;) {
        char *end = t->heard.len ? memchr(t->heard.data, '\n', t->heard.len) : NULL;
        if (end) {
            size_t size = (size_t)(end - t->heard.data) + 1;
            json_t *message = json_loadb(t->heard.data, size, 0, NULL);
            t->heard.len -= size;
            memmove(t->heard.data, end + 1, t->heard.len);
            if (json_integer_value(json_object_get(message, "id")) == id)
                return message;
            json_decref(message);
            continue;
        }
        struct pollfd fd = {.fd = t->server.out, .events = POLLIN};
        ssize_t n = poll(&fd, 1, clock_left_ms(deadline)) > 0
                        ? RETRY(read(fd.fd, data, sizeof data))
                        : -ETIMEDOUT;
        if (n <= 0 || buf_append(&t->heard, data, (size_t)n) < 0) {
            say(n == 0 ? "the server ended before it answered %s"
                       : "the server did not answer %s in time",
                what);
            return NULL;
        }
    }
}

/* Asks, and gives back the result; NULL with a sentence said. */
static json_t *ask_server(struct talk *t, int id, const char *method, json_t *params)
{
    cleanup_free char *line = NULL;
    json_auto_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", id, "method",
                                     method, "params", params);
    line = request ? json_dumps(request, JSON_COMPACT) : NULL;
    if (!line || fd_write_all(t->server.in, line, strlen(line)) < 0 ||
        fd_write_all(t->server.in, "\n", 1) < 0) {
        say("the server does not read %s", method);
        return NULL;
    }
    json_auto_t *answer = hear_response(t, id, method);
    json_t *result = json_object_get(answer, "result");
    if (answer && !result)
        say("the server refused %s: %s", method,
            json_string_value(json_object_get(json_object_get(answer, "error"), "message")));
    return json_incref(result);
}

static bool greet_server(struct talk *t)
{
    int64_t begin = clock_mono_ns();
    json_auto_t *hello = ask_server(t, 1, "initialize",
                                    json_pack("{s:s, s:{}, s:{s:s, s:s}}", "protocolVersion",
                                              "2025-11-25", "capabilities", "clientInfo", "name",
                                              "nacre mcp --check", "version", nacre_version()));
    int64_t took = (clock_mono_ns() - begin) / NS_PER_MS;
    json_auto_t *tools = hello ? ask_server(t, 2, "tools/list", json_object()) : NULL;
    if (!tools)
        return false;
    const json_t *info = json_object_get(hello, "serverInfo");
    printf("server: nacre %s answers after %lld ms, with %zu tools\n",
           json_string_value(json_object_get(info, "version")), (long long)took,
           json_array_size(json_object_get(tools, "tools")));
    return true;
}

static bool run_true(struct talk *t)
{
    int64_t begin = clock_mono_ns();
    json_auto_t *result =
        ask_server(t, 3, "tools/call",
                   json_pack("{s:s, s:{s:s}}", "name", "bash", "arguments", "command", "true"));
    int64_t took = (clock_mono_ns() - begin) / NS_PER_MS;
    if (!result)
        return false;
    const json_t *content = json_array_get(json_object_get(result, "content"), 0);
    const char *text = json_string_value(json_object_get(content, "text"));
    if (json_is_true(json_object_get(result, "isError"))) {
        say("the command \"true\" could not be run: %s", text ? text : "");
        return false;
    }
    printf("command: \"true\" ended after %lld ms: %.*s\n", (long long)took,
           text ? (int)strcspn(text, "\n") : 0, text ? text : "");
    return true;
}

struct trace {
    int32_t pid; /* of the server */
    nacre_id session, run;
    nacre_tier tier;
    bool found;
};

static int find_server(const nacre_session_info *info, void *userdata)
{
    struct trace *trace = userdata;
    if (info->pid == trace->pid)
        trace->session = info->id;
    return 0;
}

static int find_run(const nacre_listed *listed, void *userdata)
{
    struct trace *trace = userdata;
    if (!nacre_id_equal(&listed->record->session, &trace->session))
        return 0;
    trace->run = listed->record->id;
    trace->tier = listed->record->tier;
    trace->found = true;
    return 0;
}

/* What held the command, from its record, which then is of no use any more. */
static int tell_containment(nacre_session *session, struct trace *trace)
{
    struct paint paint = paint_for(stdout);
    nacre_error error = NACRE_ERROR_INIT;
    const char *home = NULL;
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    options.which = NACRE_LIST_HOME;
    if (nacre_session_home(session, &home, NULL, &error) < 0 ||
        nacre_list(session, &options, find_run, trace, &error) < 0)
        return library_failure(&error);
    if (!trace->found)
        return failure("the command \"true\" is not in the home %s", home);
    printf("home: %s\ncontainment: %s%s%s\n  %s\n", home, paint.bold, nacre_tier_name(trace->tier),
           paint.off, tier_meaning(trace->tier));
    return STATUS_OK;
}

static int check_server(struct talk *t)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_session *session cleanup_session = NULL;
    struct trace trace = {.pid = (int32_t)t->server.pid};
    if (!greet_server(t) || !run_true(t))
        return STATUS_FAILED;
    int status = open_session(&session);
    if (status != STATUS_OK)
        return status;
    if (nacre_list_sessions(session, find_server, &trace, &error) < 0)
        return library_failure(&error);
    status = tell_containment(session, &trace);
    if (trace.found)
        nacre_remove(session, &trace.run, NULL);
    return status;
}

/* A place where no session has worked: in another one the server would be told what an earlier
 * session was not, and the agent that works there would not hear of it. */
static bool go_apart(char *dir)
{
    return mkdtemp(dir) && chdir(dir) == 0;
}

int mcp_check(const char *program)
{
    char dir[] = "/tmp/nacre-check.XXXXXX";
    struct talk t = {.heard = BUF_UP_TO((size_t)16 << 20)};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    if (!go_apart(dir))
        return failure("cannot make a directory in /tmp: %s", err_text(errno));
    int r = acp_child_start((char *[]){(char *)program, (char *)"mcp", NULL}, &t.server);
    int status = r < 0 ? failure("cannot start %s: %s", program, err_text(-r)) : check_server(&t);
    if (r >= 0)
        acp_child_end(&t.server, GRACE_MS);
    rmdir(dir);
    buf_done(&t.heard);
    return status;
}
