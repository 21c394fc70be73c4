#include "systemd/ask_scope.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/defs.h"
#include "sys/cgroup.h"
#include "sys/sock.h"
#include "sys/user.h"
#include "systemd/dbus.h"

#define BUS_NAME   "org.freedesktop.DBus"
#define BUS_PATH   "/org/freedesktop/DBus"
#define NAME       "org.freedesktop.systemd1"
#define PATH       "/org/freedesktop/systemd1"
#define MANAGER    "org.freedesktop.systemd1.Manager"
#define HEARD_MAX  ((size_t)16 * 1024)
#define REASON_MAX 160
#define JOB_MAX    128

/* The numbers of our calls. */
enum call { CALL_HELLO = 1, CALL_MATCH, CALL_SUBSCRIBE, CALL_START };

enum ask_phase {
    ASK_LOGIN, /* the bus is to say that it is us */
    ASK_START, /* the manager is to say that it takes the job */
    ASK_JOB,   /* the job is to be done */
    ASK_DONE,
};

struct scope_ask {
    int bus;
    enum ask_phase phase;
    char job[JOB_MAX];
    char reason[REASON_MAX];
    size_t heard_size;
    _Alignas(8) unsigned char heard[HEARD_MAX];
};

/* -- Whether ---------------------------------------------------------------------------------- */

/* A host in a session of somebody else's, or in none, may outlive our service manager, and what is
 * in a scope of that does not. */
int scope_is_wanted(void)
{
    char path[CGROUP_PATH_MAX], slice[32];
    int r = cgroup_own(path, sizeof path);
    if (r < 0)
        return r;
    snprintf(slice, sizeof slice, "/user-%u.slice/", geteuid());
    if (!strstr(path, slice) || strstr(path, "/" CGROUP_PREFIX) || user_variable("NACRE_ID"))
        return -ESRCH;
    return cgroup_is_divided(path) ? -EALREADY : 0;
}

bool scope_outlives_login(void)
{
    char path[512], buf[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, buf, sizeof buf, &found) != 0 || !found)
        return false;
    snprintf(path, sizeof path, "/var/lib/systemd/linger/%s", found->pw_name);
    return access(path, F_OK) == 0;
}

/* -- What is said ----------------------------------------------------------------------------- */

static void say_login(struct message_writer *w)
{
    char uid[16], login[64];
    int n = snprintf(uid, sizeof uid, "%u", geteuid());
    size_t size = (size_t)snprintf(login, sizeof login, "%cAUTH EXTERNAL ", '\0');
    for (int i = 0; i < n; i++)
        size += (size_t)snprintf(login + size, sizeof login - size, "%02x", (unsigned)uid[i]);
    size += (size_t)snprintf(login + size, sizeof login - size, "\r\nBEGIN\r\n");
    message_put_bytes(w, login, size);
}

static void say_bus(struct message_writer *w, enum call call, const char *member,
                    const char *argument)
{
    message_begin(w, call,
                  &(struct message_call){.destination = BUS_NAME,
                                         .path = BUS_PATH,
                                         .interface = BUS_NAME,
                                         .member = member,
                                         .signature = argument ? "s" : NULL,
                                         .answered = call == CALL_HELLO});
    if (argument)
        message_put_string(w, argument);
    message_end(w);
}

static void put_property(struct message_writer *w, const char *name, const char *type)
{
    message_align(w, 8);
    message_put_string(w, name);
    message_put_signature(w, type);
}

/* A scope of one process; what is below is ours. */
static void put_properties(struct message_writer *w, pid_t pid)
{
    size_t properties = message_begin_array(w, 8);
    put_property(w, "Description", "s");
    message_put_string(w, "shells of nacre");
    put_property(w, "CollectMode", "s");
    message_put_string(w, "inactive-or-failed");
    put_property(w, "Delegate", "b");
    message_put_u32(w, true);
    put_property(w, "PIDs", "au");
    size_t pids = message_begin_array(w, sizeof(uint32_t));
    message_put_u32(w, (uint32_t)pid);
    message_end_array(w, pids, sizeof(uint32_t));
    message_end_array(w, properties, 8);
}

static void say_start(struct message_writer *w, const char *name, pid_t pid)
{
    message_begin(
        w, CALL_SUBSCRIBE,
        &(struct message_call){
            .destination = NAME, .path = PATH, .interface = MANAGER, .member = "Subscribe"});
    message_end(w);
    message_begin(w, CALL_START,
                  &(struct message_call){.destination = NAME,
                                         .path = PATH,
                                         .interface = MANAGER,
                                         .member = "StartTransientUnit",
                                         .signature = "ssa(sv)a(sa(sv))",
                                         .answered = true});
    message_put_string(w, name);
    message_put_string(w, "fail");
    put_properties(w, pid);
    message_end_array(w, message_begin_array(w, 8), 8);
    message_end(w);
}

/* All at once: the bus answers in order, and of what it refuses nothing follows. In a login that is
 * quite new we may be the first on the bus, before the manager itself: then the bus keeps what is
 * for him, as long as nobody forbids it to start him. */
static int say_everything(int bus, const char *name, pid_t pid)
{
    struct message_writer w = {0};
    say_login(&w);
    say_bus(&w, CALL_HELLO, "Hello", NULL);
    say_bus(&w, CALL_MATCH, "AddMatch",
            "type='signal',sender='" NAME "',interface='" MANAGER "',member='JobRemoved'");
    say_start(&w, name, pid);
    if (w.full)
        return -EMSGSIZE;
    ssize_t n = RETRY(send(bus, w.data, w.size, MSG_NOSIGNAL | MSG_DONTWAIT));
    return n < 0 ? -errno : (size_t)n == w.size ? 0 : -EIO;
}

int scope_ask_of(int bus, const char *name, pid_t pid, struct scope_ask **ret_ask)
{
    struct scope_ask *ask = malloc(sizeof *ask);
    int r = ask ? say_everything(bus, name, pid) : -ENOMEM;
    if (r < 0) {
        close_fd(&bus);
        free(ask);
        return r;
    }
    ask->bus = bus;
    ask->phase = ASK_LOGIN;
    ask->job[0] = ask->reason[0] = '\0';
    ask->heard_size = 0;
    *ret_ask = ask;
    return 0;
}

/* Whose pids are not ours would be told of somebody else's process. */
int scope_ask_begin(const char *name, pid_t pid, struct scope_ask **ret_ask)
{
    char path[128];
    const char *runtime = user_variable("XDG_RUNTIME_DIR");
    int n = runtime ? snprintf(path, sizeof path, "%s/bus", runtime)
                    : snprintf(path, sizeof path, "/run/user/%u/bus", geteuid());
    cleanup_close int bus = (size_t)n < sizeof path ? sock_connect_stream(path) : -ENAMETOOLONG;
    if (bus < 0)
        return bus;
    if (!sock_peer_is_us(bus) || sock_peer_pid(bus) <= 0)
        return -EPERM;
    return scope_ask_of(TAKE_FD(bus), name, pid, ret_ask);
}

/* -- What is heard ---------------------------------------------------------------------------- */

/* The bytes that were understood, 0 if more are needed, or -errno. */
static long hear_login(struct scope_ask *ask)
{
    const unsigned char *end = memchr(ask->heard, '\n', ask->heard_size);
    if (!end)
        return ask->heard_size < REASON_MAX ? 0 : -EBADMSG;
    if (ask->heard_size < 3 || memcmp(ask->heard, "OK ", 3) != 0)
        return -EACCES;
    ask->phase = ASK_START;
    return end + 1 - ask->heard;
}

static int hear_refusal(struct scope_ask *ask, struct message *m)
{
    const char *words = *m->signature == 's' ? message_get_string(&m->body) : "";
    snprintf(ask->reason, sizeof ask->reason, "%s", *words ? words : m->error);
    return -EACCES;
}

static int hear_start(struct scope_ask *ask, struct message *m)
{
    if (m->type == MESSAGE_ERROR && (m->answers == CALL_START || m->answers == CALL_HELLO))
        return hear_refusal(ask, m);
    if (m->type != MESSAGE_RETURN || m->answers != CALL_START)
        return 0;
    const char *job = strcmp(m->signature, "o") == 0 ? message_get_string(&m->body) : "";
    if (m->body.bad || !*job || strlen(job) >= sizeof ask->job)
        return -EBADMSG;
    memcpy(ask->job, job, strlen(job) + 1);
    ask->phase = ASK_JOB;
    return 0;
}

/* Of other jobs we hear, too. */
static int hear_job(struct scope_ask *ask, struct message *m)
{
    if (m->type != MESSAGE_SIGNAL || strcmp(m->member, "JobRemoved") != 0 ||
        strcmp(m->interface, MANAGER) != 0 || strcmp(m->signature, "uoss") != 0)
        return 0;
    message_get_u32(&m->body);
    const char *job = message_get_string(&m->body);
    message_get_string(&m->body);
    const char *result = message_get_string(&m->body);
    if (m->body.bad)
        return -EBADMSG;
    if (strcmp(job, ask->job) != 0)
        return 0;
    ask->phase = ASK_DONE;
    if (strcmp(result, "done") == 0)
        return 0;
    snprintf(ask->reason, sizeof ask->reason, "its job ended as \"%s\"", result);
    return -EACCES;
}

static long hear_word_of_bus(struct scope_ask *ask)
{
    struct message m;
    long size = message_parse(ask->heard, ask->heard_size, sizeof ask->heard, &m);
    if (size <= 0)
        return size;
    int r = ask->phase == ASK_START ? hear_start(ask, &m) : hear_job(ask, &m);
    return r < 0 ? r : size;
}

/* All that is there in full; the rest begins the buffer. Messages are aligned to their beginning.
 */
static int understand(struct scope_ask *ask)
{
    long used = 1;
    while (used > 0 && ask->phase != ASK_DONE) {
        used = ask->phase == ASK_LOGIN ? hear_login(ask) : hear_word_of_bus(ask);
        if (used < 0)
            return (int)used;
        ask->heard_size -= (size_t)used;
        memmove(ask->heard, ask->heard + used, ask->heard_size);
    }
    return ask->phase == ASK_DONE;
}

int scope_ask_step(struct scope_ask *ask)
{
    for (;;) {
        int r = understand(ask);
        if (r != 0)
            return r;
        ssize_t n = RETRY(recv(ask->bus, ask->heard + ask->heard_size,
                               sizeof ask->heard - ask->heard_size, MSG_DONTWAIT));
        if (n <= 0)
            return n == 0 ? -ECONNRESET : errno == EAGAIN ? 0 : -errno;
        ask->heard_size += (size_t)n;
    }
}

int scope_ask_fd(const struct scope_ask *ask)
{
    return ask->bus;
}

const char *scope_ask_reason(const struct scope_ask *ask)
{
    return ask->reason;
}

void scope_ask_end(struct scope_ask *ask)
{
    if (ask)
        close_fd(&ask->bus);
    free(ask);
}
