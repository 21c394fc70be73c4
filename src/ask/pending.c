#include "ask/pending.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "ask/desk_door.h"
#include "ask/standing.h"
#include "backend/op.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define ASKERS_MAX 256
#define SHEET_MAX  ((off_t)256 << 20) /* of one session: each text of a question has its limit */
#define SHOW_MS    1000               /* for all of them to say what they ask */
#define ANSWER_MS  10000              /* a configuration may have to be written first */
#define WAY_MAX    32

struct asker {
    int fd;
    char name[NACRE_ID_DIGITS + 1];
    bool within;
};

enum pending_stage { PENDING_HEARS, PENDING_ANSWERS, PENDING_DONE };

struct pending_op {
    nacre_op op;
    enum pending_stage stage;
    int dir; /* of the sockets, or -EBADF */
    int epoll;
    int64_t deadline_ns;
    struct asker askers[ASKERS_MAX];
    size_t asker_count;
    struct pending_list list;
    bool answers;
    char prefix[NACRE_ID_DIGITS + 1];
    char way[WAY_MAX];
    nacre_answer_kind kind;
    int fd; /* to the one that has the question */
    struct question chosen;
};

/* -- Talking to those who ask ----------------------------------------------------------------- */

static int tell_asker(int fd, json_t *word)
{
    cleanup_free char *text = word ? json_dumps(word, JSON_COMPACT) : NULL;
    json_decref(word);
    return text ? sock_send(fd, text, strlen(text), NULL, 0, MSG_DONTWAIT) : -ENOMEM;
}

/* Nobody listens at a socket that is there all the same: its process was killed. */
static int call_asker(const struct pending_op *o, const char *name)
{
    int fd = sock_connect_at(o->dir, name);
    if (fd == -ECONNREFUSED)
        unlinkat(o->dir, name, 0);
    return fd;
}

static int call_one(const char *name, void *userdata)
{
    struct pending_op *o = userdata;
    struct epoll_event event = {.events = EPOLLIN};
    if (strlen(name) != NACRE_ID_DIGITS || o->asker_count == ASKERS_MAX)
        return 0;
    cleanup_close int fd = call_asker(o, name);
    if (fd < 0 || !sock_peer_is_us(fd) || tell_asker(fd, json_pack("{s:s}", "do", "show")) < 0) {
        o->list.silent += fd == -EAGAIN || fd >= 0;
        return 0;
    }
    epoll_ctl(o->epoll, EPOLL_CTL_ADD, fd, &event);
    struct asker *asker = &o->askers[o->asker_count++];
    asker->within = standing_is_within(fd);
    snprintf(asker->name, sizeof asker->name, "%s", name);
    asker->fd = TAKE_FD(fd);
    return 0;
}

static int add_question(struct pending_op *o, const struct asker *asker, const json_t *json)
{
    struct pending_list *list = &o->list;
    struct question q;
    if (!question_read(json, &q) || strcmp(nacre_id_format(&q.session).s, asker->name) != 0) {
        question_done(&q);
        return 0;
    }
    if (GROW(list->items, list->count, list->room) < 0) {
        question_done(&q);
        return -ENOMEM;
    }
    q.within = asker->within;
    list->items[list->count++] = q;
    return 0;
}

static int read_sheet(struct pending_op *o, const struct asker *asker, int sheet)
{
    struct stat st;
    size_t i;
    json_t *item;
    if (fstat(sheet, &st) < 0 || st.st_size > SHEET_MAX)
        return -EINVAL;
    cleanup_free char *text = malloc((size_t)st.st_size + 1);
    ssize_t n = text ? fd_pread_all(sheet, text, (size_t)st.st_size, 0) : -ENOMEM;
    if (n < 0)
        return (int)n;
    json_auto_t *list = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
    int r = 0;
    json_array_foreach(list, i, item) if (r == 0) r = add_question(o, asker, item);
    return r;
}

/* 1 = it has said what it asks, or never will; 0 = not yet. */
static int hear_asker(struct pending_op *o, struct asker *asker)
{
    char text[DOOR_WORD_MAX];
    cleanup_close int sheet = -EBADF;
    ssize_t n = sock_recv(asker->fd, text, sizeof text, &sheet, 1, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return 0;
    if (n > 0 && sheet >= 0 && read_sheet(o, asker, sheet) < 0)
        o->list.silent++;
    close_fd(&asker->fd);
    return 1;
}

static bool hear_askers(struct pending_op *o)
{
    for (size_t i = 0; i < o->asker_count;)
        if (hear_asker(o, &o->askers[i]) > 0)
            o->askers[i] = o->askers[--o->asker_count];
        else
            i++;
    return o->asker_count == 0;
}

/* -- Choosing one ----------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
    int64_t x = ((const struct question *)a)->asked_ms, y = ((const struct question *)b)->asked_ms;
    return x < y ? -1 : x > y;
}

static int choose_question(struct pending_op *o, nacre_error *err)
{
    struct question *found = NULL;
    for (size_t i = 0; i < o->list.count; i++) {
        struct question *q = &o->list.items[i];
        if (strncmp(nacre_id_format(&q->id).s, o->prefix, strlen(o->prefix)) != 0)
            continue;
        if (found)
            return err_set(err, NACRE_EAMBIGUOUS, "the ids of several questions begin with \"%s\"",
                           o->prefix);
        found = q;
    }
    if (!found)
        return err_set(err, NACRE_ENOTFOUND,
                       "no question with an id that begins with \"%s\" is open%s", o->prefix,
                       o->list.silent ? "; a session that may have it did not say anything" : "");
    o->chosen = *found;
    *found = (struct question){0};
    return 0;
}

static int pass_answer(struct pending_op *o, nacre_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    o->fd = call_asker(o, nacre_id_format(&o->chosen.session).s);
    int r = o->fd < 0 ? o->fd
                      : tell_asker(o->fd, json_pack("{s:s, s:s, s:i, s:s}", "do", "answer", "id",
                                                    nacre_id_format(&o->chosen.id).s, "answer",
                                                    (int)o->kind, "way", o->way));
    if (r < 0)
        return err_sys(err, NACRE_ENOTFOUND, -r, "asking", "the session that asked is not there");
    epoll_ctl(o->epoll, EPOLL_CTL_ADD, o->fd, &event);
    o->deadline_ns = clock_deadline(ANSWER_MS);
    o->stage = PENDING_ANSWERS;
    return 0;
}

static int hear_result(struct pending_op *o, nacre_error *err)
{
    char text[DOOR_WORD_MAX];
    ssize_t n = sock_recv(o->fd, text, sizeof text, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN && clock_left_ms(o->deadline_ns) > 0)
        return 0;
    json_auto_t *json = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    const char *message = json_string_value(json_object_get(json, "message"));
    int code = (int)json_integer_value(json_object_get(json, "code"));
    if (!json || code > 0)
        return err_set(err, NACRE_EBACKEND, "the session that asked does not say whether it heard");
    o->stage = PENDING_DONE;
    return code < 0 ? err_set(err, code, "%s", message ? message : "") : 1;
}

/* -- The operation ---------------------------------------------------------------------------- */

static int hear_all(struct pending_op *o, nacre_error *err)
{
    if (!hear_askers(o) && clock_left_ms(o->deadline_ns) > 0)
        return 0;
    o->list.silent += (int)o->asker_count;
    if (o->list.count > 1)
        qsort(o->list.items, o->list.count, sizeof *o->list.items, by_age);
    o->stage = PENDING_DONE;
    int r = o->answers ? choose_question(o, err) : 1;
    return r == 0 ? pass_answer(o, err) : r;
}

static int step_pending(nacre_op *op, nacre_error *err)
{
    struct pending_op *o = (struct pending_op *)op;
    int r = o->stage == PENDING_HEARS ? hear_all(o, err) : 0;
    if (r == 0 && o->stage == PENDING_ANSWERS)
        r = hear_result(o, err);
    o->op.wake_ns = o->deadline_ns;
    return r;
}

static void end_pending(nacre_op *op)
{
    struct pending_op *o = (struct pending_op *)op;
    for (size_t i = 0; i < o->asker_count; i++)
        close_fd(&o->askers[i].fd);
    for (size_t i = 0; i < o->list.count; i++)
        question_done(&o->list.items[i]);
    free(o->list.items);
    question_done(&o->chosen);
    close_fd(&o->fd);
    close_fd(&o->epoll);
    close_fd(&o->dir);
    free(o);
}

static struct pending_op *begin_pending(const char *home, nacre_error *err)
{
    char dir[4200];
    struct pending_op *o = calloc(1, sizeof *o);
    if (!o) {
        err_set(err, NACRE_ENOMEM, "out of memory");
        return NULL;
    }
    o->op = (nacre_op)OP_INIT(step_pending, end_pending);
    o->fd = -EBADF;
    o->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    snprintf(dir, sizeof dir, "%.4000s/" DOOR_DIR, home);
    o->dir = fd_open_dir_at(AT_FDCWD, dir);
    o->deadline_ns = clock_deadline(SHOW_MS);
    o->op.fd = o->epoll;
    o->op.events = POLLIN;
    if (o->dir >= 0 && o->epoll >= 0)
        fd_walk(o->dir, call_one, o);
    return o;
}

int pending_show(const char *home, nacre_op **ret_op, nacre_error *err)
{
    struct pending_op *o = begin_pending(home, err);
    if (!o)
        return NACRE_ENOMEM;
    o->op.result = &o->list;
    *ret_op = &o->op;
    return 0;
}

int pending_answer(const char *home, const struct pending_wish *wish, nacre_op **ret_op,
                   nacre_error *err)
{
    size_t size = wish->prefix ? strlen(wish->prefix) : 0;
    if (size < NACRE_ID_PREFIX_MIN || size > NACRE_ID_DIGITS ||
        strspn(wish->prefix, "0123456789abcdef") != size)
        return err_set(err, NACRE_EINVAL,
                       "the id of a question is 4 to 32 lowercase hex digits; \"nacre pending\" "
                       "shows them");
    struct pending_op *o = begin_pending(home, err);
    if (!o)
        return NACRE_ENOMEM;
    o->answers = true;
    o->kind = wish->kind;
    snprintf(o->prefix, sizeof o->prefix, "%s", wish->prefix);
    snprintf(o->way, sizeof o->way, "%s", wish->way);
    o->op.result = &o->chosen;
    *ret_op = &o->op;
    return 0;
}
