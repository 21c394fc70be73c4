#include "session/asking.h"

#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/err.h"
#include "base/hold.h"
#include "base/text.h"
#include "session/session.h"
#include "sys/fd.h"
#include "text/legible.h"

#define ASKED_MAX ((size_t)4 * 1024 * 1024) /* of one question */
#define PIECE     ((size_t)128)             /* of a text that is made legible at once */

struct open_question {
    struct open_question *next;
    uint64_t number;
    char *key;
    size_t key_size;
    int fd;
    bool answered;
    nacre_answer_kind answer;
};

/* A command that was allowed until the session ends. */
struct settled {
    struct settled *next;
    size_t size;
    char key[];
};

/* -- What is the same command ----------------------------------------------------------------- */

static int add_command_key(struct buf *key, const char *text)
{
    return text ? buf_append(key, text, strlen(text) + 1) : buf_append(key, "\1", 2);
}

static int add_keys(struct buf *key, const char *const *list)
{
    int r = 0;
    for (; r == 0 && list && *list; list++)
        r = add_command_key(key, *list);
    return r == 0 ? add_command_key(key, NULL) : r;
}

/* Everything that decides what it does: two are the same if all of it is. */
static int write_key(struct buf *key, const nacre_command *command)
{
    int r = add_command_key(key, command->text);
    if (r == 0)
        r = add_keys(key, command->text ? NULL : command->argv);
    if (r == 0)
        r = add_command_key(key, command->shell);
    if (r == 0)
        r = add_command_key(key, command->cwd);
    if (r == 0)
        r = add_keys(key, command->env);
    if (r == 0)
        r = add_keys(key, command->permissions.write);
    if (r == 0)
        r = add_keys(key, command->permissions.hosts);
    if (r == 0)
        r = add_keys(key, command->permissions.sockets);
    return r == 0 ? add_command_key(key, command->permissions.full ? "full" : NULL) : r;
}

bool asking_is_settled(nacre_session *s, const nacre_command *command)
{
    struct buf key cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (write_key(&key, command) < 0)
        return false;
    HOLD(&s->lock);
    for (const struct settled *one = s->settled; one; one = one->next)
        if (one->size == key.len && memcmp(one->key, key.data, key.len) == 0)
            return true;
    return false;
}

static void remember_allowed(nacre_session *s, const struct open_question *asking)
{
    struct settled *one = malloc(sizeof *one + asking->key_size);
    if (!one)
        return; /* it is asked again then */
    one->size = asking->key_size;
    memcpy(one->key, asking->key, asking->key_size);
    one->next = s->settled;
    s->settled = one;
}

void asking_forget(nacre_session *s)
{
    while (s->settled) {
        struct settled *one = s->settled;
        s->settled = one->next;
        free(one);
    }
}

/* -- What a person is shown ------------------------------------------------------------------- */

/* All of it, however long: nothing is decided about what was not shown. */
static int write_legible(struct buf *out, const char *text)
{
    int r = buf_str(out, "");
    for (size_t left = strlen(text); r == 0 && left > 0;) {
        size_t size = left > PIECE ? text_whole(text, PIECE) : left;
        size = size > 0 ? size : MIN(left, PIECE);
        r = legible_write(out, text, size);
        text += size;
        left -= size;
    }
    return r;
}

static int write_found(struct buf *out, const struct script *script)
{
    int r = buf_str(out, "");
    for (size_t i = 0; r == 0 && i < script->count; i++) {
        struct buf words cleanup_buf = BUF_UP_TO(ASKED_MAX);
        r = policy_write_command(&words, &script->commands[i]);
        if (r == 0 && i > 0)
            r = buf_str(out, "\n");
        if (r == 0)
            r = write_legible(out, words.data ? words.data : "");
    }
    return r;
}

static int write_asked(struct buf *out, const nacre_command *command)
{
    if (command->text)
        return write_legible(out, command->text);
    int r = 0;
    for (const char *const *word = command->argv; r == 0 && word && *word; word++) {
        r = word == command->argv ? 0 : buf_str(out, " ");
        r = r == 0 ? write_legible(out, *word) : r;
    }
    return r;
}

/* The rule, and all that is wanted beyond the sandbox. */
static int write_reason(struct buf *out, const struct permissions *wanted,
                        const struct deliberation *d)
{
    struct buf wants cleanup_buf = BUF_UP_TO(ASKED_MAX);
    char rule[240];
    policy_reason(d, rule, sizeof rule);
    if (permissions_are_none(wanted))
        return buf_str(out, rule);
    int r = permissions_describe(wanted, &wants);
    if (r == 0)
        r = buf_str(out, "it wants more than its sandbox gives: ");
    if (r == 0)
        r = write_legible(out, wants.data ? wants.data : "");
    return r < 0 || d->ruling.verdict == NACRE_ALLOW ? r : buf_printf(out, "; and %s", rule);
}

/* What it is for, and why it needs what it wants. */
static int write_said(struct buf *out, const nacre_command *command)
{
    const char *why = command->justification ? command->justification : "";
    const char *what = command->description ? command->description : "";
    int r = write_legible(out, what);
    if (r == 0 && *what && *why)
        r = buf_str(out, "; ");
    return r == 0 ? write_legible(out, why) : r;
}

static bool ask_person(nacre_session *s, uint64_t number, const nacre_command *command,
                       const struct permissions *wanted, const struct deliberation *d)
{
    struct buf whole cleanup_buf = BUF_UP_TO(ASKED_MAX), found cleanup_buf = BUF_UP_TO(ASKED_MAX);
    struct buf cwd cleanup_buf = BUF_UP_TO(ASKED_MAX), said cleanup_buf = BUF_UP_TO(ASKED_MAX);
    struct buf reason cleanup_buf = BUF_UP_TO(ASKED_MAX);
    if (write_asked(&whole, command) < 0 || write_found(&found, &d->script) < 0 ||
        write_legible(&cwd, command->cwd ? command->cwd : "") < 0 ||
        write_said(&said, command) < 0 || write_reason(&reason, wanted, d) < 0)
        return false; /* what cannot be shown whole is not asked */
    nacre_question question = {number, whole.data, found.data, cwd.data, reason.data, said.data};
    return s->ask(s, &question, s->ask_userdata) == 1;
}

/* -- Questions -------------------------------------------------------------------------------- */

static void asking_free(struct open_question *asking)
{
    close_fd(&asking->fd);
    free(asking->key);
    free(asking);
}

static struct open_question *asking_new(const nacre_command *command)
{
    struct buf key cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    struct open_question *asking = calloc(1, sizeof *asking);
    if (!asking)
        return NULL;
    asking->fd = fd_lift_consume(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (asking->fd < 0 || write_key(&key, command) < 0) {
        asking_free(asking);
        return NULL;
    }
    asking->key_size = key.len;
    asking->key = buf_take(&key);
    return asking;
}

struct open_question *asking_open(nacre_session *s, const nacre_command *command,
                                  const struct permissions *wanted, const struct deliberation *d)
{
    struct open_question *asking = s->ask ? asking_new(command) : NULL;
    if (!asking)
        return NULL;
    pthread_mutex_lock(&s->lock);
    asking->number = ++s->questions;
    asking->next = s->askings;
    s->askings = asking;
    pthread_mutex_unlock(&s->lock);
    if (ask_person(s, asking->number, command, wanted, d))
        return asking;
    asking_close(s, asking);
    return NULL;
}

int asking_fd(const struct open_question *asking)
{
    return asking->fd;
}

bool asking_has_answer(nacre_session *s, const struct open_question *asking,
                       nacre_answer_kind *ret_answer)
{
    HOLD(&s->lock);
    *ret_answer = asking->answer;
    return asking->answered;
}

void asking_close(nacre_session *s, struct open_question *asking)
{
    if (!asking)
        return;
    pthread_mutex_lock(&s->lock);
    UNLINK(s->askings, asking);
    pthread_mutex_unlock(&s->lock);
    asking_free(asking);
}

static void set_answer(struct open_question *asking, nacre_answer_kind kind)
{
    asking->answered = true;
    asking->answer = kind;
    (void)eventfd_write(asking->fd, 1);
}

void asking_cancel_all(nacre_session *s)
{
    for (struct open_question *asking = s->askings; asking; asking = asking->next)
        if (!asking->answered)
            set_answer(asking, NACRE_ANSWER_CANCELLED);
}

int nacre_answer(nacre_session *session, uint64_t question, nacre_answer_kind kind,
                 nacre_error *reterr)
{
    int r = session_check(session, reterr);
    if (r < 0)
        return r;
    if (kind < NACRE_ANSWER_NO || kind > NACRE_ANSWER_CANNOT)
        return err_set(reterr, NACRE_EINVAL, "%d is no answer; see ask.h", (int)kind);
    HOLD(&session->lock);
    for (struct open_question *asking = session->askings; asking; asking = asking->next) {
        if (asking->number != question || asking->answered)
            continue;
        if (kind == NACRE_ANSWER_SESSION)
            remember_allowed(session, asking);
        set_answer(asking, kind);
        return 0;
    }
    return err_set(reterr, NACRE_ENOTFOUND,
                   "question %llu is not open: it was answered, or nobody waits for it any more",
                   (unsigned long long)question);
}
