#include "console/ask_person.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/defs.h"
#include "console/out.h"

#define LOOK_MS 100 /* signals are taken by others, so they are looked for */

/* One that the person can type into: in the background a read would stop us. */
static int open_terminal(void)
{
    cleanup_close int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || tcgetpgrp(fd) != getpgrp())
        return -EBADF;
    tcflush(fd, TCIFLUSH); /* what was typed before was no answer */
    return TAKE_FD(fd);
}

static void show(int fd, const nacre_question *q)
{
    dprintf(fd, "nacre: may this run?\n  %s\n", q->command);
    if (strcmp(q->command, q->commands) != 0) {
        dprintf(fd, "commands in it:\n");
        for (const char *line = q->commands; *line;) {
            size_t size = strcspn(line, "\n");
            dprintf(fd, "  %.*s\n", (int)size, line);
            line += size + (line[size] ? 1 : 0);
        }
    }
    if (*q->cwd)
        dprintf(fd, "in %s\n", q->cwd);
    if (*q->description)
        dprintf(fd, "said to be: %s\n", q->description);
    dprintf(fd, "asked because of: %s\n[o]nce, for this [s]ession, [n]o: ", q->reason);
}

/* A signal that ends us is the end of the question. */
static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

/* The first letter of the next line; 0 if there is none. */
static char read_letter(int fd)
{
    char line[256];
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    while (!is_interrupted()) {
        int r = poll(&poller, 1, LOOK_MS);
        if (r < 0 && errno != EINTR)
            return '\0';
        if (r <= 0)
            continue;
        ssize_t n = read(fd, line, sizeof line);
        return n > 0 ? line[0] : '\0';
    }
    return '\0';
}

static nacre_answer_kind read_answer_of_person(int fd)
{
    for (;;) {
        switch (read_letter(fd)) {
        case 'o':
            return NACRE_ANSWER_ONCE;
        case 's':
            return NACRE_ANSWER_SESSION;
        case 'n':
            return NACRE_ANSWER_NO;
        case '\0':
            return NACRE_ANSWER_CANCELLED;
        default:
            dprintf(fd, "o, s or n: ");
        }
    }
}

int ask_person_at_terminal(nacre_session *session, const nacre_question *question,
                           void *userdata UNUSED)
{
    cleanup_close int fd = open_terminal();
    if (fd < 0)
        return 0;
    fflush(stdout);
    show(fd, question);
    nacre_answer(session, question->number, read_answer_of_person(fd), NULL);
    return 1;
}
