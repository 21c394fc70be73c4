#include "ask/desk_door.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "ask/desk.h"
#include "ask/standing.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fsize.h"
#include "sys/sock.h"

/* -- Open and closed -------------------------------------------------------------------------- */

int desk_door_init(struct desk_door *door)
{
    door->epoll = fd_lift_consume(epoll_create1(EPOLL_CLOEXEC));
    door->listener = -EBADF;
    return door->epoll < 0 ? -errno : 0;
}

/* Who finds a name there finds somebody who listens: it appears when all is ready. */
static int listen_in(const char *home, const nacre_id *session, char *path, size_t size)
{
    char dir[4096], name[NACRE_ID_DIGITS + 1], making[NACRE_ID_DIGITS + 8];
    if (snprintf(dir, sizeof dir, "%s/" DOOR_DIR, home) >= (int)sizeof dir)
        return -ENAMETOOLONG;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    cleanup_close int dirfd = fd_open_dir_at(AT_FDCWD, dir);
    if (dirfd < 0)
        return dirfd;
    snprintf(name, sizeof name, "%s", nacre_id_format(session).s);
    snprintf(making, sizeof making, "%s.new", name);
    unlinkat(dirfd, making, 0);
    cleanup_close int fd = sock_listen_at(dirfd, making);
    if (fd < 0)
        return fd;
    if (renameat(dirfd, making, dirfd, name) < 0) {
        int r = -errno;
        unlinkat(dirfd, making, 0);
        return r;
    }
    snprintf(path, size, "%s/%s", dir, name);
    return TAKE_FD(fd);
}

int desk_door_open(struct desk_door *door, const char *home, const nacre_id *session)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct stat st;
    if (door->path[0] && lstat(door->path, &st) == 0 && S_ISSOCK(st.st_mode))
        return 0;
    desk_door_close(door);
    door->listener = listen_in(home, session, door->path, sizeof door->path);
    if (door->listener < 0)
        return door->listener;
    return epoll_ctl(door->epoll, EPOLL_CTL_ADD, door->listener, &event) < 0 ? -errno : 0;
}

void desk_door_close(struct desk_door *door)
{
    while (door->caller_count > 0)
        close_fd(&door->callers[--door->caller_count]);
    close_fd(&door->listener);
    if (door->path[0])
        unlink(door->path);
    door->path[0] = '\0';
}

void desk_door_done(struct desk_door *door, bool forked)
{
    if (forked)
        door->path[0] = '\0';
    desk_door_close(door);
    close_fd(&door->epoll);
}

/* -- Callers ---------------------------------------------------------------------------------- */

static void drop_caller(struct desk_door *door, size_t index)
{
    door->caller_count--;
    memmove(&door->callers[index], &door->callers[index + 1],
            (door->caller_count - index) * sizeof door->callers[0]);
}

static void accept_callers(struct desk_door *door)
{
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; door->listener >= 0 && i < DOOR_CALLERS; i++) {
        int fd = fd_lift_consume(accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0)
            return;
        if (door->caller_count == DOOR_CALLERS) {
            close_fd(&door->callers[0]);
            drop_caller(door, 0);
        }
        epoll_ctl(door->epoll, EPOLL_CTL_ADD, fd, &event);
        door->callers[door->caller_count++] = fd;
    }
}

size_t desk_door_hear(struct desk_door *door, struct door_word words[DOOR_CALLERS])
{
    size_t count = 0;
    accept_callers(door);
    for (size_t i = 0; i < door->caller_count;) {
        struct door_word *word = &words[count];
        ssize_t n = sock_recv(door->callers[i], word->text, DOOR_WORD_MAX, NULL, 0, MSG_DONTWAIT);
        if (n == -EAGAIN) {
            i++;
            continue;
        }
        word->fd = door->callers[i];
        epoll_ctl(door->epoll, EPOLL_CTL_DEL, word->fd, NULL);
        drop_caller(door, i);
        if (n <= 0) {
            close_fd(&word->fd);
            continue;
        }
        word->text[n] = '\0';
        count++;
    }
    return count;
}

/* -- What they want --------------------------------------------------------------------------- */

static void say_result(int fd, int code, const char *msg)
{
    char text[DOOR_WORD_MAX];
    json_auto_t *json = json_pack("{s:i, s:s}", "code", code, "message", msg);
    cleanup_free char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int n = snprintf(text, sizeof text, "%s", line ? line : "{\"code\":-2,\"message\":\"\"}");
    sock_send(fd, text, MIN((size_t)n, sizeof text - 1), NULL, 0, MSG_DONTWAIT);
}

static int list_question(const struct question *q, void *userdata)
{
    return json_array_append_new(userdata, question_json(q)) < 0 ? -ENOMEM : 0;
}

/* A text of any length goes as a file that has no name. */
static int make_sheet(const char *text)
{
    cleanup_close int fd = fd_lift_consume(memfd_create("questions", MFD_CLOEXEC));
    FSIZE_SHELTER();
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        return -ENOMEM;
    return TAKE_FD(fd);
}

static void show_questions(struct desk *d, int fd)
{
    json_auto_t *list = json_array();
    int r = list ? desk_each(d, list_question, list) : -ENOMEM;
    cleanup_free char *text = r == 0 ? json_dumps(list, JSON_COMPACT) : NULL;
    cleanup_close int sheet = text ? make_sheet(text) : -ENOMEM;
    if (sheet < 0)
        say_result(fd, NACRE_ENOMEM, "out of memory");
    else
        sock_send(fd, "{\"code\":0}", 10, &sheet, 1, MSG_DONTWAIT);
}

/* Ways by which others answer; what they call themselves is no more than that. */
static const char *known_way(const char *way)
{
    static const char *const ways[] = {"nacre allow", "page"};
    for (size_t i = 0; way && i < ARRAY_SIZE(ways); i++)
        if (strcmp(way, ways[i]) == 0)
            return ways[i];
    return "another program";
}

static void take_answer(struct desk *d, int fd, const json_t *word)
{
    nacre_error err = NACRE_ERROR_INIT;
    nacre_id id;
    const char *text = json_string_value(json_object_get(word, "id"));
    json_int_t kind = json_integer_value(json_object_get(word, "answer"));
    int r = standing_check(fd, &err);
    if (r == 0 && (!text || nacre_id_parse(text, &id) < 0))
        r = err_set(&err, NACRE_EINVAL, "an answer needs the id of a question");
    if (r == 0)
        r = desk_answer_id(d, &id, (nacre_answer_kind)kind,
                           known_way(json_string_value(json_object_get(word, "way"))), &err);
    say_result(fd, r, r < 0 ? err.msg : "");
}

void desk_door_serve(struct desk *d, struct door_word *word)
{
    json_auto_t *json = json_loads(word->text, JSON_REJECT_DUPLICATES, NULL);
    const char *wish = json_string_value(json_object_get(json, "do"));
    if (!sock_peer_is_us(word->fd))
        return;
    if (wish && strcmp(wish, "show") == 0)
        show_questions(d, word->fd);
    else if (wish && strcmp(wish, "answer") == 0)
        take_answer(d, word->fd, json);
    else
        say_result(word->fd, NACRE_EINVAL, "that is not understood here");
}
