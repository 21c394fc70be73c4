/* Starting a command: from a ready keeper to one that says that it runs. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "backend/client.h"
#include "backend/local_parts.h"
#include "backend/local_watch.h"
#include "backend/sweep.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "sys/fd.h"
#include "sys/sock.h"

#define FIRST_MS      100 /* to wake one that is awake does no harm */
#define STARTED_MS    1000
#define STARTED_TRIES 10

static const char *stage_name(int stage)
{
    switch ((enum wire_stage)stage) {
    case STAGE_CHDIR:
        return "chdir";
    case STAGE_STDIN:
        return "stdin";
    case STAGE_EXEC:
        return "exec";
    case STAGE_SPEC:
        return "spec";
    default:
        return "prepare";
    }
}

/* A spec that does not fit the message travels as a descriptor. */
static int wrap_spec(const struct buf *spec)
{
    cleanup_close int fd = fd_lift_consume(memfd_create("spec", MFD_CLOEXEC));
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, spec->data, spec->len);
    return r < 0 ? r : TAKE_FD(fd);
}

static int send_go(const struct launched *launched, const struct buf *spec, int input)
{
    struct wire_go go;
    int fds[2];
    size_t count = 0;
    bool inside = spec->len <= sizeof go.spec;
    cleanup_close int file = inside ? -EBADF : wrap_spec(spec);
    if (!inside && file < 0)
        return file;
    go.head = client_head(WIRE_GO);
    go.has_input = input >= 0;
    go.size = (uint32_t)spec->len;
    if (inside)
        memcpy(go.spec, spec->data, spec->len);
    if (input >= 0)
        fds[count++] = input;
    if (!inside)
        fds[count++] = file;
    size_t size = offsetof(struct wire_go, spec) + (inside ? spec->len : 0);
    return sock_send(launched->sock, &go, size, fds, count, 0);
}

static int send_sure(const struct launched *launched)
{
    struct wire_sure sure = {.head = client_head(WIRE_SURE)};
    compose_host(&sure.host);
    int r = sock_send(launched->sock, &sure, sizeof sure, NULL, 0, 0);
    /* What could not be started ended before it heard this, and left a word. */
    return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* The keeper vanished at the start: what became of the run is found out like of any other. */
static int find_out(struct local *l, const nacre_id *id)
{
    cleanup_run struct run run = RUN_NONE;
    struct run_state state;
    int r = run_open(l->runs_fd, id, &run, NULL);
    return r < 0 ? r : sweep_state(&run, &state, NULL);
}

static int start_error(const struct wire_started *started, const struct buf *spec, nacre_error *err)
{
    const struct spec_head *head = (const void *)spec->data;
    bool chdir = started->stage == STAGE_CHDIR;
    return err_sys(err, NACRE_ESTART, started->error, stage_name(started->stage),
                   chdir                          ? "cannot use the directory \"%.150s\""
                   : started->stage == STAGE_EXEC ? "cannot execute \"%.150s\""
                                                  : "cannot start \"%.150s\"",
                   spec->data + (chdir ? head->cwd : head->program));
}

/* The last word of a start, at its end; false if there was none. Whoever may stop a keeper may stop
 * it before there is a command. */
static bool hear_word(const struct launched *launched, struct wire_started *ret_word)
{
    struct pollfd poller = {.fd = launched->word};
    int n = 0;
    for (int i = 0; i < STARTED_TRIES && n == 0; i++) {
        n = RETRY(poll(&poller, 1, i == 0 ? FIRST_MS : STARTED_MS));
        if (n == 0)
            proc_kill(&launched->keeper, SIGCONT);
    }
    if (n == 0)
        proc_kill(&launched->keeper, SIGKILL);
    bool heard = false;
    while (n > 0 && RETRY(read(launched->word, ret_word, sizeof *ret_word)) == sizeof *ret_word)
        heard = true;
    return heard;
}

/* A start that failed leaves nothing behind: its keeper sees to that before it goes. */
static void await_leave(const struct launched *launched)
{
    char byte;
    struct pollfd poller = {.fd = launched->sock, .events = POLLIN};
    int64_t deadline = clock_deadline(STARTED_MS);
    while (RETRY(poll(&poller, 1, clock_left_ms(deadline))) > 0 &&
           sock_recv(launched->sock, &byte, sizeof byte, NULL, 0, MSG_DONTWAIT) > 0)
        ;
}

static int await_started(struct local *l, struct launched *launched, const struct buf *spec,
                         nacre_error *err)
{
    struct wire_started started = {0};
    const struct spec_head *head = (const void *)spec->data;
    bool heard = hear_word(launched, &started);
    close_fd(&launched->word);
    if (head->successor)
        launcher_keep(l->launcher, launched);
    close_fd(&launched->next);
    if (!heard)
        return find_out(l, &launched->id) == 0
                   ? 0
                   : err_set(err, NACRE_EBACKEND,
                             "the keeper vanished before the command was started");
    if (started.stage == STAGE_NONE)
        return 0;
    await_leave(launched);
    return start_error(&started, spec, err);
}

/*
 * Everything between a ready keeper and a running command. What takes a while to find out about the
 * host is found out when the child is already waking up. 1 = that keeper is of no use to this host
 * any more; nothing was started.
 */
static int start_on(struct local *l, struct launched *launched, bool warm, struct compose *c,
                    const char *cwd, int input, struct buf *spec, nacre_error *err)
{
    char run_path[PATH_MAX + NACRE_ID_DIGITS + 8];
    snprintf(run_path, sizeof run_path, "%s/runs/%s", l->home.path,
             nacre_id_format(&launched->id).s);
    c->run_path = run_path;
    c->successor = !l->single && launcher_wants_warm(l->launcher, launched);
    int r = compose_spec(c, &launched->id, cwd, spec, err);
    if (r < 0)
        return r;
    int e = send_go(launched, spec, input);
    if (e == 0 && warm && !launcher_is_here(l->launcher, launched))
        return 1;
    if (e == 0)
        e = send_sure(launched);
    if (e < 0)
        return err_sys(err, NACRE_EBACKEND, -e, "keeper", "cannot talk to the keeper");
    return await_started(l, launched, spec, err);
}

static int start_somewhere(struct local *l, struct launched *launched, struct compose *c,
                           const char *cwd, int input, struct buf *spec, nacre_error *err)
{
    if (launcher_take_warm(l->launcher, launched)) {
        int r = start_on(l, launched, true, c, cwd, input, spec, err);
        if (r <= 0)
            return r;
        launcher_dismiss(l->launcher, launched);
        buf_done(spec);
    }
    int r = launcher_take_new(l->launcher, launched, err);
    return r < 0 ? r : start_on(l, launched, false, c, cwd, input, spec, err);
}

int local_create(void *self, const nacre_command *command, nacre_id *ret_id,
                 nacre_watch **ret_watch, nacre_error *err)
{
    struct local *l = self;
    struct compose c = {.command = command,
                        .shells = &l->shells,
                        .session = &l->session,
                        .owner = l->owner,
                        .fleeting = l->fleeting,
                        .cwd = l->cwd,
                        .shell = l->shell,
                        .secrets = &l->secrets,
                        .session_name = l->name,
                        .session_cwd = l->place,
                        .grace_ms = l->grace_ms,
                        .quota = l->quota};
    char cwd[PATH_MAX];
    cleanup_close int input = -EBADF;
    int r = compose_check(command, err);
    if (r == 0)
        r = compose_cwd(&c, cwd, err);
    if (r == 0)
        r = compose_input(command, &input, err);
    if (r == 0)
        r = local_open_for_starting(l, err);
    if (r < 0)
        return r;
    struct launched launched = LAUNCHED_NONE;
    cleanup_buf struct buf spec = {0};
    r = start_somewhere(l, &launched, &c, cwd, input, &spec, err);
    if (r == 0 && command->lifetime == NACRE_LIFE_SESSION)
        local_remember(l, &launched.id, command->grace_ms);
    launcher_reap(l->launcher, 0);
    if (r < 0 || !ret_watch) {
        *ret_id = launched.id;
        launched_drop(&launched);
        return r;
    }
    struct local_watch *w;
    r = local_watch_new(l->runs_fd, &launched.id, TAKE_FD(launched.sock), 0, &w, err);
    *ret_id = launched.id;
    if (r < 0)
        return r;
    local_watch_give_spec(w, &spec);
    *ret_watch = local_watch_publish(w);
    if (*ret_watch)
        return 0;
    local_watch_free(w);
    return err_set(err, NACRE_ENOMEM, "out of memory");
}
