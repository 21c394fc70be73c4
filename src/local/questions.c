/*
 * What keepers ask: whether a process of a shell may execute something. It comes on the session's
 * line, on which no command can say anything, with the one descriptor that an answer can take.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/hold.h"
#include "home/keeper_line.h"
#include "local/local.h"
#include "local/questions.h"
#include "run/wire.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "sys/sock.h"

int local_set_policy(struct local *l, const void *packed, size_t size)
{
    FSIZE_SHELTER();
    cleanup_close int fd = fd_lift_consume(memfd_create("policy", MFD_CLOEXEC));
    int r = fd < 0 ? fd : fd_write_all(fd, packed, size);
    if (r == 0)
        l->policy_fd = TAKE_FD(fd);
    return r;
}

/* Strings as they came, each with its NUL: the words, and the directory. False if they are not. */
static bool point_at_words(struct local_question *q, const struct wire_asked *word, char *text)
{
    const char *end = text + word->size;
    for (uint32_t i = 0; i <= word->argc; i++) {
        const char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;
        if (!nul)
            return false;
        if (i < word->argc)
            q->argv[i] = text;
        else
            q->cwd = text;
        text = (char *)nul + 1;
    }
    return text == end;
}

static struct local_question *question_new(const struct wire_asked *word, size_t size)
{
    if (size < offsetof(struct wire_asked, text) || word->head.type != WIRE_ASKED ||
        word->size != size - offsetof(struct wire_asked, text) || word->argc == 0 ||
        word->argc > WIRE_ASKED_MAX)
        return NULL;
    size_t pointers = (word->argc + 1) * sizeof(char *);
    struct local_question *q = calloc(1, sizeof *q + pointers + word->size);
    if (!q)
        return NULL;
    char *text = (char *)(q->argv + word->argc + 1);
    memcpy(text, word->text, word->size);
    q->id = word->id;
    q->reply = -EBADF;
    if (point_at_words(q, word, text))
        return q;
    free(q);
    return NULL;
}

void question_add(struct local *l, const struct wire_asked *word, size_t size, int reply)
{
    cleanup_close int fd = reply;
    struct local_question *q = fd < 0 ? NULL : question_new(word, size);
    if (!q)
        return; /* its keeper sees that nobody answers */
    q->reply = TAKE_FD(fd);
    HOLD(&l->lock);
    q->next = l->questions;
    l->questions = q;
}

struct local_question *local_take_question(struct local *l)
{
    HOLD(&l->lock);
    struct local_question *q = l->questions;
    if (q)
        l->questions = q->next;
    return q;
}

void local_question_free(struct local_question *question)
{
    close_fd(&question->reply);
    free(question);
}

int local_reply(int reply, unsigned answer)
{
    struct wire_answer word = {.head = keeper_line_head(WIRE_ANSWER), .answer = answer};
    return sock_send(reply, &word, sizeof word, NULL, 0, MSG_DONTWAIT);
}
