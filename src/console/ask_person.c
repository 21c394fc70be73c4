#include "console/ask_person.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/defs.h"
#include "console/out.h"
#include "console/question_words.h"
#include "session/asking.h"
#include "sys/fd.h"

#define LOOK_MS 100 /* signals are taken by others, so they are looked for */

struct terminal_question {
    nacre_session *session;
    const nacre_question *question;
    int fd;
};

/* One that the person can type into: in the background a read would stop us. */
static int open_terminal(void)
{
    cleanup_close int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || tcgetpgrp(fd) != getpgrp())
        return -EBADF;
    tcflush(fd, TCIFLUSH); /* what was typed before was no answer */
    return TAKE_FD(fd);
}

static const char *offered_letters(const nacre_question *q)
{
    return *q->always ? "[o]nce, for this [s]ession, [a]lways, [n]o: "
                      : "[o]nce, for this [s]ession, [n]o: ";
}

static int show_question(int fd, const nacre_question *q)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int r = buf_str(&text, "nacre: may this run?\n");
    if (r == 0)
        r = question_write(&text, q);
    if (r == 0)
        r = buf_str(&text, offered_letters(q));
    return r == 0 ? fd_write_all(fd, text.data, text.len) : r;
}

/* A signal that ends us is the end of the question. */
static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

/* Whether there is something to read; false: it is over, or was answered from elsewhere, for which
 * is looked meanwhile. */
static bool wait_for_typing(const struct terminal_question *t)
{
    struct pollfd fds[] = {{.fd = t->fd, .events = POLLIN},
                           {.fd = nacre_asking_fd(t->session, NULL), .events = POLLIN}};
    while (!is_interrupted() && nacre_is_asked(t->session, t->question->number)) {
        int r = poll(fds, ARRAY_SIZE(fds), LOOK_MS);
        if (r < 0 && errno != EINTR)
            return false;
        if (r > 0 && fds[1].revents)
            nacre_asking_step(t->session, NULL);
        if (r > 0 && fds[0].revents)
            return true;
    }
    return false;
}

/* The first letter of the next line; 0 if there is none. */
static char read_letter(const struct terminal_question *t)
{
    char line[256];
    ssize_t n = wait_for_typing(t) ? read(t->fd, line, sizeof line) : 0;
    return n > 0 ? line[0] : '\0';
}

static nacre_answer_kind read_answer_of_person(const struct terminal_question *t)
{
    for (;;) {
        char letter = read_letter(t);
        if (letter == 'o')
            return NACRE_ANSWER_ONCE;
        if (letter == 's')
            return NACRE_ANSWER_SESSION;
        if (letter == 'a' && *t->question->always)
            return NACRE_ANSWER_ALWAYS;
        if (letter == 'n')
            return NACRE_ANSWER_NO;
        if (letter == '\0')
            return NACRE_ANSWER_CANCELLED;
        dprintf(t->fd, *t->question->always ? "o, s, a or n: " : "o, s or n: ");
    }
}

/* What could not be made so is asked once more. */
static void take_answer_of_person(const struct terminal_question *t)
{
    nacre_error err = NACRE_ERROR_INIT;
    for (;;) {
        nacre_answer_kind kind = read_answer_of_person(t);
        int r = asking_answer(t->session, t->question->number, kind, "terminal", &err);
        if (r == NACRE_ENOTFOUND)
            dprintf(t->fd, "\nnacre: it was answered elsewhere\n");
        if (r == 0 || r == NACRE_ENOTFOUND)
            return;
        dprintf(t->fd, "nacre: %s\n%s", err.msg, offered_letters(t->question));
    }
}

int ask_person_at_terminal(nacre_session *session, const nacre_question *question,
                           void *userdata UNUSED)
{
    cleanup_close int fd = open_terminal();
    if (fd < 0)
        return NACRE_ASK_CANNOT;
    fflush(stdout);
    if (show_question(fd, question) < 0)
        return NACRE_ASK_CANNOT;
    take_answer_of_person(&(struct terminal_question){session, question, fd});
    return NACRE_ASK_WAITS;
}
