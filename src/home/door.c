#include "home/door.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "home/keeper_line.h"
#include "run/sign.h"
#include "sys/fd.h"
#include "sys/proc.h"
#include "sys/sock.h"

void door_wake(int sock)
{
    struct proc_stat stat;
    if (proc_stat(sock_peer_pid(sock), &stat) == 0 && stat.state == 'T')
        proc_kill(&stat.ref, SIGCONT);
}

void door_force(struct door *d)
{
    struct proc_stat stat;
    if (d->sock >= 0 && proc_stat(sock_peer_pid(d->sock), &stat) == 0)
        proc_kill(&stat.ref, SIGKILL);
    door_close(d);
}

void door_close(struct door *d)
{
    close_fd(&d->sock);
}

/* By a connection that watches: the first word on it is the state. */
static int knock_at(struct door *d)
{
    struct wire_head watch = keeper_line_head(WIRE_WATCH);
    d->sock = keeper_line_open(&d->run->id, d->run->dir);
    if (d->sock < 0)
        return d->sock;
    d->until_ns = clock_deadline(DOOR_MS);
    int r = keeper_line_send(d->sock, &watch, sizeof watch);
    if (r < 0)
        door_close(d);
    return r;
}

/* 1 = its word is there; 0 = not yet; or it is gone, or deaf. */
static int hear_answer(struct door *d)
{
    struct wire_event event;
    ssize_t n = sock_recv(d->sock, &event, sizeof event, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN) {
        door_wake(d->sock);
        return clock_left_ms(d->until_ns) > 0 ? 0 : -ETIMEDOUT;
    }
    door_close(d);
    d->until_ns = 0;
    if (n != sizeof event || event.head.type != WIRE_EVENT ||
        !nacre_id_equal(&event.state.id, &d->run->id))
        return -ECONNREFUSED;
    *d->state = event.state;
    d->answered = true;
    return 1;
}

static int open_files(struct door *d, nacre_error *err)
{
    nacre_id id = d->run->id;
    if (d->run->dir >= 0 && run_is_gone(d->run))
        run_close(d->run);
    int r = d->run->dir >= 0 ? 0 : home_open_run(d->home, &id, d->run, err);
    d->run->id = id;
    return r;
}

static int look_at_files(struct door *d, nacre_error *err)
{
    struct run_state state = {0};
    if (d->sweeping->fd >= 0)
        return sweep_step(d->run, d->sweeping, d->state, err);
    int r = open_files(d, err);
    if (r == 0)
        r = sweep_look(d->run, d->sweeping, &state, err);
    if (r > 0)
        *d->state = state;
    return r > 0 && !state_is_final(&state) && !run_has_log(d->run) ? NACRE_EIO : r;
}

static bool is_known(const struct door *d)
{
    return d->state->phase == PHASE_RUN && nacre_id_equal(&d->state->id, &d->run->id);
}

/* A damaged run of which nobody knows anything stays as it is, unless something of it lives: then
 * it is swept by what can be guessed. One that was only prepared never becomes a run that way,
 * though its child may be alive for a moment. */
static void guess_state(struct door *d)
{
    struct run_state guess;
    if (is_known(d))
        return;
    bool has_begun = home_guess_state(d->home, &d->run->id, &guess);
    if (d->began || (has_begun && sweep_finds_life(&guess)))
        *d->state = guess;
}

/* Nobody is there, and no files: they are written anew, once. */
static int write_anew(struct door *d, int r, nacre_error *err)
{
    guess_state(d);
    if (!is_known(d) || home_rewrite_run(d->home, d->state) < 0)
        return r;
    run_close(d->run);
    return look_at_files(d, err);
}

int door_begin(struct door *d, nacre_error *err)
{
    int r = open_files(d, err);
    if (!door_is_lost(r))
        return r;
    if (knock_at(d) == 0)
        return 0;
    guess_state(d);
    return is_known(d) ? 0 : r;
}

static int not_answered(const struct door *d, nacre_error *err)
{
    return err_set(err, NACRE_EBACKEND,
                   "the directory of shell %s is gone, and its keeper does not answer",
                   nacre_id_short(&d->run->id).s);
}

static bool is_crowded_for_long(struct door *d)
{
    if (d->until_ns == 0)
        d->until_ns = clock_deadline(DOOR_MS);
    return clock_left_ms(d->until_ns) == 0;
}

int door_look(struct door *d, nacre_error *err)
{
    if (d->sock >= 0) {
        int heard = hear_answer(d);
        if (heard == 0)
            return 0;
        if (heard == -ETIMEDOUT)
            return not_answered(d, err);
    }
    int r = look_at_files(d, err);
    if (!door_is_lost(r) || d->answered) {
        d->answered = false;
        return door_is_lost(r) ? 1 : r;
    }
    int e = knock_at(d);
    if (e == -EAGAIN)
        return is_crowded_for_long(d) ? not_answered(d, err) : 0;
    return e == 0 ? 0 : write_anew(d, r, err);
}

/* -- By the names of their sockets ------------------------------------------------------------- */

static bool is_ours(const nacre_id *id)
{
    cleanup_close int sock = keeper_line_open(id, -1);
    return sock >= 0;
}

struct door_search {
    const char *prefix;
    nacre_id id;
    int count;
};

static int match_door(const char *name, void *userdata)
{
    struct door_search *search = userdata;
    nacre_id id;
    if (strncmp(name, search->prefix, strlen(search->prefix)) != 0 ||
        nacre_id_parse(name, &id) != NACRE_OK ||
        (search->count > 0 && nacre_id_equal(&id, &search->id)) || !is_ours(&id))
        return 0;
    search->id = id;
    search->count++;
    return 0;
}

int door_find(const char *prefix, nacre_id *ret_id)
{
    struct door_search search = {.prefix = prefix};
    sock_each_abstract(match_door, &search);
    if (search.count > 0)
        *ret_id = search.id;
    return search.count;
}

struct sign_search {
    char prefix[SIGN_MAX];
    run_fn *fn;
    void *userdata;
};

static int match_sign(const char *name, void *userdata)
{
    const struct sign_search *search = userdata;
    size_t n = strlen(search->prefix);
    nacre_id id;
    if (strncmp(name, search->prefix, n) != 0 || nacre_id_parse(name + n, &id) != NACRE_OK)
        return 0;
    return search->fn(&id, search->userdata);
}

int door_each_signed(nacre_home *h, run_fn *fn, void *userdata)
{
    struct sign_search search = {.fn = fn, .userdata = userdata};
    sign_format(home_number(h), "", search.prefix);
    return sock_each_abstract(match_sign, &search);
}
