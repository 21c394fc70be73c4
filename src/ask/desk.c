#include "ask/desk.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "ask/desk_door.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hold.h"
#include "sys/fd.h"
#include "sys/host.h"

struct open_question {
    struct open_question *next;
    struct question question;
    char *key;
    size_t key_size;
    int bell;  /* an eventfd: it was answered */
    int epoll; /* of the bell and the desk's door */
    bool ahead;
    bool has_always;
    bool taken; /* somebody is about to answer it */
    bool answered;
    struct desk_answer answer;
};

/* What a person has allowed, or refused for good: for the next one who comes with the key, or for
 * all of them. */
struct grant {
    struct grant *next;
    bool once;
    struct desk_answer answer;
    size_t size;
    char key[];
};

struct desk {
    pthread_mutex_t lock;
    nacre_id session;
    struct desk_hooks hooks;
    char *home; /* NULL = not known yet */
    struct open_question *first;
    size_t count;
    uint64_t numbers; /* that were given */
    struct grant *grants;
    struct desk_door door;
    bool attended;
    bool over;
};

struct desk *desk_new(const nacre_id *session, const struct desk_hooks *hooks)
{
    struct desk *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->session = *session;
    d->hooks = *hooks;
    d->door = (struct desk_door){.epoll = -EBADF, .listener = -EBADF};
    return d;
}

static void free_question(struct open_question *o)
{
    close_fd(&o->epoll);
    close_fd(&o->bell);
    question_done(&o->question);
    free(o->key);
    free(o);
}

void desk_free(struct desk *d, bool forked)
{
    if (!d)
        return;
    while (d->first) {
        struct open_question *o = d->first;
        d->first = o->next;
        free_question(o);
    }
    while (d->grants) {
        struct grant *g = d->grants;
        d->grants = g->next;
        free(g);
    }
    desk_door_done(&d->door, forked);
    pthread_mutex_destroy(&d->lock);
    free(d->home);
    free(d);
}

void desk_set_home(struct desk *d, const char *home)
{
    HOLD(&d->lock);
    if (!d->home)
        d->home = strdup(home);
}

/* -- What was granted ------------------------------------------------------------------------- */

/* With the lock. Without memory it is asked again. */
static void add_grant(struct desk *d, const struct open_question *o,
                      const struct desk_answer *answer)
{
    struct grant *g = malloc(sizeof *g + o->key_size);
    if (!g)
        return;
    *g = (struct grant){.next = d->grants,
                        .once = answer->kind == NACRE_ANSWER_ONCE,
                        .answer = *answer,
                        .size = o->key_size};
    memcpy(g->key, o->key, o->key_size);
    d->grants = g;
}

bool desk_is_granted(struct desk *d, const struct buf *key, struct desk_answer *ret_answer)
{
    HOLD(&d->lock);
    for (struct grant **at = &d->grants; *at; at = &(*at)->next) {
        struct grant *g = *at;
        if (g->size != key->len || memcmp(g->key, key->data, key->len) != 0)
            continue;
        *ret_answer = g->answer;
        if (g->once) {
            *at = g->next;
            free(g);
        }
        return true;
    }
    return false;
}

/* -- Opening and closing ---------------------------------------------------------------------- */

/* With the lock. The door is open while there is something to answer behind it. */
static void mind_door(struct desk *d)
{
    if (d->count == 0 || d->over)
        desk_door_close(&d->door);
    else if (d->home)
        (void)desk_door_open(&d->door, d->home, &d->session);
}

/* With the lock. */
static void remove_question(struct desk *d, struct open_question *o)
{
    UNLINK(d->first, o);
    d->count--;
    free_question(o);
    mind_door(d);
}

static bool is_keyed(const struct open_question *o, const struct buf *key)
{
    return o->key_size == key->len && memcmp(o->key, key->data, key->len) == 0;
}

/* With the lock. What a person was shown is what they answer: other texts are another question. */
static struct open_question *take_up_again(struct desk *d, const struct question *q,
                                           const struct buf *key)
{
    for (struct open_question *o = d->first; o; o = o->next) {
        if (!o->ahead || o->taken || o->answered || !is_keyed(o, key))
            continue;
        if (question_shows_same(&o->question, q))
            return o;
        remove_question(d, o);
        return NULL;
    }
    return NULL;
}

static int watch_bells(struct open_question *o, const struct desk_door *door)
{
    struct epoll_event event = {.events = EPOLLIN};
    o->bell = fd_lift_consume(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    o->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    if (o->bell < 0 || o->epoll < 0 || epoll_ctl(o->epoll, EPOLL_CTL_ADD, o->bell, &event) < 0 ||
        epoll_ctl(o->epoll, EPOLL_CTL_ADD, door->epoll, &event) < 0)
        return -errno;
    return 0;
}

/* With the lock; q is consumed if that succeeds. */
static struct open_question *new_question(struct desk *d, struct question *q, const struct buf *key)
{
    struct open_question *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->bell = o->epoll = -EBADF;
    o->key = malloc(MAX(key->len, (size_t)1));
    if (!o->key || watch_bells(o, &d->door) < 0 || host_random(&q->id, sizeof q->id) < 0) {
        free_question(o);
        return NULL;
    }
    memcpy(o->key, key->data, key->len);
    o->key_size = key->len;
    o->question = *q;
    *q = (struct question){0};
    o->question.session = d->session;
    o->question.number = ++d->numbers;
    o->question.asked_ms = clock_real_ns() / NS_PER_MS;
    struct open_question **last = &d->first;
    while (*last)
        last = &(*last)->next;
    *last = o;
    d->count++;
    return o;
}

static int open_with_lock(struct desk *d, struct question *q, const struct buf *key,
                          struct open_question **ret, nacre_error *err)
{
    if (d->over)
        return err_set(err, NACRE_ECLOSED, "the session is being closed; nobody is asked any more");
    int r = d->door.epoll >= 0 ? 0 : desk_door_init(&d->door);
    *ret = take_up_again(d, q, key);
    if (!*ret && d->count >= DESK_OPEN_MAX)
        return err_set(err, NACRE_ELIMIT,
                       "%zu questions wait for the user already; \"nacre pending\" shows them",
                       d->count);
    if (!*ret && r == 0)
        *ret = new_question(d, q, key);
    if (!*ret)
        return err_set(err, NACRE_ENOMEM, "out of memory or descriptors");
    (*ret)->ahead = false;
    mind_door(d);
    return 0;
}

int desk_open(struct desk *d, struct question *q, const struct buf *key, bool has_always,
              struct open_question **ret, nacre_error *err)
{
    pthread_mutex_lock(&d->lock);
    int r = open_with_lock(d, q, key, ret, err);
    if (r == 0)
        (*ret)->has_always = has_always;
    pthread_mutex_unlock(&d->lock);
    question_done(q);
    return r;
}

const struct question *open_question_of(const struct open_question *o)
{
    return &o->question;
}

void desk_close(struct desk *d, struct open_question *o)
{
    if (!o)
        return;
    HOLD(&d->lock);
    remove_question(d, o);
}

/* With the lock. */
static void limit_ahead(struct desk *d)
{
    size_t ahead = 0;
    struct open_question *oldest = NULL;
    for (struct open_question *o = d->first; o; o = o->next) {
        ahead += o->ahead && !o->taken;
        if (!oldest && o->ahead && !o->taken)
            oldest = o;
    }
    if (ahead > DESK_AHEAD_MAX)
        remove_question(d, oldest);
}

void desk_leave_ahead(struct desk *d, struct open_question *o)
{
    HOLD(&d->lock);
    if (o->answered || d->over) {
        remove_question(d, o);
        return;
    }
    o->ahead = true;
    limit_ahead(d);
}

int open_question_fd(const struct open_question *o)
{
    return o->epoll;
}

int open_question_bell(const struct open_question *o)
{
    return o->bell;
}

bool desk_has_answer(struct desk *d, const struct open_question *o, struct desk_answer *ret_answer)
{
    HOLD(&d->lock);
    *ret_answer = o->answer;
    return o->answered;
}

/* -- Answering -------------------------------------------------------------------------------- */

/* With the lock. Who waits for it hears of it; else it is a grant, or forgotten. */
static void set_answer(struct desk *d, struct open_question *o, const struct desk_answer *answer)
{
    bool lasts = answer->kind == NACRE_ANSWER_SESSION || answer->kind == NACRE_ANSWER_NEVER ||
                 answer->kind == NACRE_ANSWER_ALWAYS;
    if (lasts || (o->ahead && answer->kind == NACRE_ANSWER_ONCE))
        add_grant(d, o, answer);
    o->answered = true;
    o->answer = *answer;
    (void)eventfd_write(o->bell, 1);
    if (o->ahead)
        remove_question(d, o);
}

static struct open_question *find_open(struct desk *d, const nacre_id *id, uint64_t number)
{
    for (struct open_question *o = d->first; o; o = o->next)
        if (!o->answered && !o->taken &&
            (id ? nacre_id_equal(&o->question.id, id) : o->question.number == number))
            return o;
    return NULL;
}

static int not_open(const nacre_id *id, uint64_t number, nacre_error *err)
{
    char name[NACRE_ID_DIGITS + 1];
    if (id)
        snprintf(name, sizeof name, "%s", nacre_id_short(id).s);
    else
        snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    return err_set(err, NACRE_ENOTFOUND,
                   "question %s is not open: it was answered, or nobody waits for it any more",
                   name);
}

/* Takes one so that nobody else answers it meanwhile; what is needed of it is copied, since it may
 * be closed. */
static int take_question(struct desk *d, const nacre_id *id, uint64_t number,
                         nacre_answer_kind kind, struct question *ret_copy, nacre_error *err)
{
    HOLD(&d->lock);
    struct open_question *o = find_open(d, id, number);
    if (!o)
        return not_open(id, number, err);
    if (kind == NACRE_ANSWER_ALWAYS && !o->has_always)
        return err_set(err, NACRE_EINVAL,
                       "that cannot be allowed for always: no rule of words says exactly this");
    *ret_copy = o->question;
    for (size_t i = 0; i < QUESTION_TEXTS; i++)
        ret_copy->texts[i] = o->question.texts[i] ? strdup(o->question.texts[i]) : NULL;
    o->taken = true;
    return 0;
}

/* r: what making it permanent came to. */
static int put_answer(struct desk *d, uint64_t number, const struct desk_answer *answer, int r,
                      nacre_error *err)
{
    HOLD(&d->lock);
    struct open_question *o = d->first;
    while (o && o->question.number != number)
        o = o->next;
    if (o)
        o->taken = false;
    if (r < 0)
        return r;
    if (!o || o->answered)
        return not_open(NULL, number, err);
    set_answer(d, o, answer);
    return 0;
}

static int answer_open(struct desk *d, const nacre_id *id, uint64_t number, nacre_answer_kind kind,
                       const char *way, nacre_error *err)
{
    struct question copy cleanup_question = {0};
    struct desk_answer answer = {.kind = kind};
    snprintf(answer.way, sizeof answer.way, "%s", way);
    if (kind < NACRE_ANSWER_NO || kind > NACRE_ANSWER_NEVER)
        return err_set(err, NACRE_EINVAL, "%d is no answer; see ask.h", (int)kind);
    int r = take_question(d, id, number, kind, &copy, err);
    if (r < 0)
        return r;
    if (kind == NACRE_ANSWER_ALWAYS)
        r = d->hooks.make_permanent(&copy, d->hooks.userdata, err);
    r = put_answer(d, copy.number, &answer, r, err);
    if (r == 0)
        d->hooks.answered(&copy, &answer, d->hooks.userdata);
    return r;
}

int desk_answer_number(struct desk *d, uint64_t number, nacre_answer_kind kind, const char *way,
                       nacre_error *err)
{
    return answer_open(d, NULL, number, kind, way, err);
}

int desk_answer_id(struct desk *d, const nacre_id *id, nacre_answer_kind kind, const char *way,
                   nacre_error *err)
{
    return answer_open(d, id, 0, kind, way, err);
}

bool desk_is_open(struct desk *d, uint64_t number)
{
    HOLD(&d->lock);
    return find_open(d, NULL, number) != NULL;
}

int desk_each(struct desk *d, desk_fn *fn, void *userdata)
{
    HOLD(&d->lock);
    int r = 0;
    for (const struct open_question *o = d->first; r == 0 && o; o = o->next)
        r = o->answered ? 0 : fn(&o->question, userdata);
    return r;
}

void desk_end(struct desk *d)
{
    HOLD(&d->lock);
    d->over = true;
    for (struct open_question *o = d->first; o; o = o->next) {
        if (o->answered)
            continue;
        o->answered = true;
        o->answer = (struct desk_answer){.kind = NACRE_ANSWER_CANCELLED};
        (void)eventfd_write(o->bell, 1);
    }
    desk_door_close(&d->door);
}

/* -- The door --------------------------------------------------------------------------------- */

int desk_fd(struct desk *d, nacre_error *err)
{
    HOLD(&d->lock);
    int r = d->door.epoll >= 0 ? 0 : desk_door_init(&d->door);
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "asking", "questions cannot be heard of");
    d->attended = true;
    return d->door.epoll;
}

bool desk_is_attended(struct desk *d)
{
    HOLD(&d->lock);
    return d->attended;
}

int desk_watch(struct desk *d, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(d->door.epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void desk_unwatch(struct desk *d, int fd)
{
    if (fd >= 0)
        epoll_ctl(d->door.epoll, EPOLL_CTL_DEL, fd, NULL);
}

void desk_step(struct desk *d)
{
    struct door_word words[DOOR_CALLERS];
    pthread_mutex_lock(&d->lock);
    size_t count = desk_door_hear(&d->door, words);
    pthread_mutex_unlock(&d->lock);
    for (size_t i = 0; i < count; i++) {
        desk_door_serve(d, &words[i]);
        close_fd(&words[i].fd);
    }
}
