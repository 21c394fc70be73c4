/* What a model may call, in a poll loop of the host's own: a call is stepped, never waited for. */
#include <nacre/nacre.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const nacre_error *err)
{
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

/* Steps a call to its end. A real host polls its other descriptors, and other calls, beside it. */
static void drive(nacre_call *call)
{
    nacre_error err = NACRE_ERROR_INIT;
    const char *news;
    int finished;

    while ((finished = nacre_call_step(call, &err)) == 0) {
        struct pollfd fd;

        if ((news = nacre_call_progress(call)))
            printf("progress: %s\n", news);
        fd.fd = nacre_call_fd(call); /* -1, which poll leaves out, while there is nothing */
        fd.events = POLLIN;
        if (poll(&fd, 1, (int)nacre_call_timeout(call)) < 0)
            exit(1);
    }
    if (finished < 0)
        fail(&err);
}

int main(void)
{
    static const char arguments[] = "{\"command\": \"echo from a tool; sleep 0.2; exit 3\"}";
    nacre_error err = NACRE_ERROR_INIT;
    nacre_session *session = NULL;
    nacre_call *call = NULL;
    char *tools = NULL;

    if (nacre_open(NULL, &session, &err) < 0 || nacre_tools_json(session, &tools, &err) < 0)
        fail(&err);
    printf("%d bytes about the tools, for the model\n", (int)strlen(tools));
    free(tools);

    if (nacre_call_begin(session, "bash", arguments, strlen(arguments), NULL, &call, &err) < 0)
        fail(&err);
    drive(call);
    printf("%s\n", nacre_call_result(call)); /* one line of JSON */
    nacre_call_delivered(call);              /* the model has it: nothing of it is said again */
    nacre_call_free(call);
    return nacre_close(session, NULL);
}
