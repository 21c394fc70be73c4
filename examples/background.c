/* A command in the background, and its end: offered until somebody says that it arrived. */
#include <nacre/nacre.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const nacre_error *err)
{
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

/* Shows what is offered. Returns how many there were: the descriptor may be readable for none. */
static int64_t show_offer(nacre_session *session)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_offer *offer = NULL;
    int64_t count = nacre_offer_take(session, 0, &offer, &err);

    if (count < 0)
        fail(&err);
    if (count == 0)
        return 0;
    for (size_t i = 0; i < nacre_offer_count(offer); i++) {
        char *text = NULL;

        if (nacre_offer_text(offer, i, 2000, &text, &err) < 0)
            fail(&err);
        printf("%s\n", text);
        free(text);
    }
    /* Without this the same would be offered again, to this session or to a later one. */
    if (nacre_offer_acknowledge(offer, &err) < 0)
        fail(&err);
    return count;
}

int main(void)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_session *session = NULL;
    nacre_command command = NACRE_COMMAND_INIT;
    struct pollfd fd;
    nacre_id id;

    command.text = "sleep 0.2; echo built";
    command.name = "build";
    command.background = 1;
    if (nacre_open(NULL, &session, &err) < 0 ||
        nacre_start(session, &command, &id, NULL, &err) < 0 ||
        (fd.fd = nacre_completion_fd(session, &err)) < 0)
        fail(&err);
    printf("started %s\n", nacre_id_format(&id).s);
    fd.events = POLLIN;
    do {
        if (poll(&fd, 1, -1) < 0)
            return 1;
    } while (show_offer(session) == 0);
    return nacre_close(session, NULL);
}
