/* Two commands in one poll loop of the host's own: each is one descriptor, and nothing blocks. */
#include <nacre/nacre.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 2

static void fail(const nacre_error *err)
{
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

/* All that can be had without waiting. Returns 1 once nothing more will come. */
static int drain(int number, nacre_watch *watch)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_event event;
    char buf[4096], status[64];

    for (;;) {
        if (nacre_watch_next(watch, buf, sizeof buf, &event, &err) < 0)
            fail(&err);
        switch (event.kind) {
        case NACRE_EVENT_OUTPUT:
            printf("%d %s: %.*s", number, event.piece.stream == NACRE_STDERR ? "err" : "out",
                   (int)event.piece.size, buf);
            break;
        case NACRE_EVENT_EXIT:
            if (nacre_watch_record(watch, &record, &err) < 0)
                fail(&err);
            printf("%d %s\n", number, nacre_status(&record, status, sizeof status));
            nacre_record_done(&record);
            break;
        case NACRE_EVENT_SETTLED:
            break;
        case NACRE_EVENT_NONE:
            return 0;
        case NACRE_EVENT_END:
            return 1;
        }
    }
}

int main(void)
{
    static const char *const texts[COUNT] = {"echo one; sleep 0.2; exit 4", "echo two >&2"};
    nacre_error err = NACRE_ERROR_INIT;
    nacre_session *session = NULL;
    nacre_watch *watches[COUNT];
    struct pollfd fds[COUNT];
    int open = COUNT;

    if (nacre_open(NULL, &session, &err) < 0)
        fail(&err);
    for (int i = 0; i < COUNT; i++) {
        nacre_command command = NACRE_COMMAND_INIT;
        nacre_id id;

        command.text = texts[i];
        if (nacre_start(session, &command, &id, &watches[i], &err) < 0)
            fail(&err);
        fds[i].fd = nacre_watch_fd(watches[i]);
        fds[i].events = POLLIN;
    }
    while (open > 0) {
        if (poll(fds, COUNT, -1) < 0)
            return 1;
        for (int i = 0; i < COUNT; i++) {
            if (fds[i].fd < 0 || !fds[i].revents || !drain(i + 1, watches[i]))
                continue;
            fds[i].fd = -1; /* poll leaves it out from now on */
            nacre_watch_close(watches[i]);
            open--;
        }
    }
    return nacre_close(session, NULL);
}
