/*
 * A command here is a process group whose output comes through two pipes. Nobody keeps it but this
 * process: whatever is known of it is known because somebody pumped it, and is noted in its mirror.
 * The session does the rest with signals: it ends shells, keeps their deadlines, and leaves none
 * when it closes.
 *
 * What keepers are for is missing: a command that leaves its group is out of reach, when this
 * process is killed nobody ends what it ran, and secrets stay in the environment.
 */
#include "small_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS     INT64_C(1000000)
#define ROUND  (5 * MS)  /* between two looks */
#define SETTLE (50 * MS) /* for what a command left behind in its group */

#define FAIL(err, code_, errno_, ...)                                \
    (*(err) = (nacre_error){.code = (code_), .sys_errno = (errno_)}, \
     snprintf((err)->msg, sizeof(err)->msg, __VA_ARGS__), (code_))

struct shell {
    struct shell *next;
    nacre_id id;
    nacre_mirror *mirror;
    nacre_mirror_news news; /* as it was noted last */
    int64_t settle_at;
    pid_t pid;     /* of the command, and of its group */
    int fds[3][2]; /* its stdin, stdout and stderr: of each the end that is read, and the other. All
                      are open until it is over: so no write raises SIGPIPE in the host */
};

struct small {
    nacre_home *home;
    pthread_mutex_t lock; /* over the shells */
    struct shell *shells; /* those that are not over */
};

/* What takes time: a start, or an input. */
struct small_op {
    nacre_op op;
    struct small *small;
    const nacre_command *command; /* of a start */
    nacre_started started;
    nacre_id id; /* of an input */
    const char *data;
    size_t size, taken;
    int eof;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void end_op(nacre_op *op)
{
    free(op);
}

static int begin_op(struct small_op op, int (*step)(nacre_op *, nacre_error *), nacre_op **ret_op,
                    nacre_error *err)
{
    struct small_op *o = malloc(sizeof *o);
    if (!o)
        return FAIL(err, NACRE_ENOMEM, ENOMEM, "out of memory");
    *o = op;
    void *result = op.command ? (void *)&o->started : &o->taken;
    o->op = (nacre_op){sizeof o->op, -1, POLLIN, INT64_MAX, result, step, end_op};
    *ret_op = &o->op;
    return 0;
}

/* With the lock: where it hangs, or the end of the list. */
static struct shell **find(struct small *small, const nacre_id *id)
{
    struct shell **at = &small->shells;
    while (*at && !nacre_id_equal(&(*at)->id, id))
        at = &(*at)->next;
    return at;
}

/* Its run stays, if it was begun. */
static void free_shell(struct shell *s)
{
    nacre_mirror_free(s->mirror);
    for (int i = 0; i < 6; i++)
        if (s->fds[i / 2][i % 2] >= 0)
            close(s->fds[i / 2][i % 2]);
    free(s);
}

/* -- Starting --------------------------------------------------------------------------------- */

/* Below 0 with errno. */
static int open_files(struct shell *s, const nacre_command *command)
{
    int *in = s->fds[0];
    for (int i = command->input == NACRE_STDIN_PIPE ? 0 : 1; i < 3; i++)
        if (pipe2(s->fds[i], O_CLOEXEC) < 0 || fcntl(s->fds[i][i == 0], F_SETFL, O_NONBLOCK) < 0)
            return -1;
    if (command->input == NACRE_STDIN_NULL)
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (command->input == NACRE_STDIN_FD)
        in[0] = fcntl(command->input_fd, F_DUPFD_CLOEXEC, 3);
    if (command->input == NACRE_STDIN_BYTES) {
        in[0] = memfd_create("stdin", MFD_CLOEXEC);
        if (in[0] >= 0 && pwrite(in[0], command->input_data, command->input_size, 0) < 0)
            return -1;
    }
    return in[0];
}

/* In the child: a session of its own, so that no terminal asks anybody, and signals as if nobody
 * had ever changed them. Returns only with errno. */
static void become(const struct shell *s, const nacre_command *command, const char *cwd)
{
    const char *script[] = {"sh", "-c", command->text, NULL};
    const char *const *argv = command->text ? script : command->argv;
    sigset_t none;
    sigemptyset(&none);
    setsid();
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++)
        dup2(s->fds[i][i > 0], i);
    for (const char *const *env = command->env; env && *env; env++)
        putenv((char *)*env); /* which removes what has no "=" */
    if (chdir(cwd) == 0)
        execvp(argv[0], (char *const *)argv);
}

/* 0 once it is executed, or an errno: that comes through a pipe which executing closes. */
static int launch(struct shell *s, const nacre_command *command, const char *cwd)
{
    int word[2], error = 0;
    if (open_files(s, command) < 0 || pipe2(word, O_CLOEXEC) < 0)
        return errno;
    s->pid = fork();
    if (s->pid == 0) {
        become(s, command, cwd);
        _exit(write(word[1], &errno, sizeof errno) < 0 ? 126 : 127);
    }
    error = s->pid < 0 ? errno : 0;
    close(word[1]);
    if (s->pid > 0 && read(word[0], &error, sizeof error) > 0)
        waitpid(s->pid, NULL, 0);
    close(word[0]);
    return error;
}

/* From nothing to a shell that everybody sees: so an operation that is ended before was none. */
static int step_start(nacre_op *op, nacre_error *err)
{
    struct small_op *o = (struct small_op *)op;
    const char *cwd;
    struct shell *s = malloc(sizeof *s);
    if (!s)
        return FAIL(err, NACRE_ENOMEM, ENOMEM, "out of memory");
    *s = (struct shell){.fds = {{-1, -1}, {-1, -1}, {-1, -1}}, .news = NACRE_MIRROR_NEWS_INIT};
    int r = nacre_mirror_new(o->small->home, o->command, &s->mirror, &cwd, err);
    int error = r < 0 ? 0 : launch(s, o->command, cwd);
    if (error)
        r = FAIL(err, NACRE_ESTART, error, "cannot run it in %.100s: %s", cwd, strerror(error));
    if (r < 0) {
        free_shell(s);
        return r;
    }
    nacre_mirror_begin(s->mirror, err); /* it runs, even if that cannot be written now */
    o->started.id = s->id = nacre_mirror_id(s->mirror);
    pthread_mutex_lock(&o->small->lock);
    s->next = o->small->shells;
    o->small->shells = s;
    pthread_mutex_unlock(&o->small->lock);
    return 1;
}

static int small_start(void *self, const nacre_command *command, nacre_op **ret_op,
                       nacre_error *err)
{
    if (command->lifetime == NACRE_LIFE_KEEP)
        return FAIL(err, NACRE_EUNSUPPORTED, 0, "without a keeper nothing survives its session");
    return begin_op((struct small_op){.small = self, .command = command}, step_start, ret_op, err);
}

/* -- Pumping ---------------------------------------------------------------------------------- */

static void take_output(struct shell *s, nacre_stream stream)
{
    char bytes[65536]; /* what a pipe holds; who writes faster does not keep us here */
    ssize_t n;
    for (int i = 0; i < 16 && (n = read(s->fds[1 + stream][0], bytes, sizeof bytes)) > 0; i++)
        nacre_mirror_write(s->mirror, stream, bytes, (size_t)n, 0);
}

/*
 * The exit is looked for before the output is read: what the command wrote itself is in the pipes
 * by then, and a look reads more than they hold. Its group may outlive it; only when that is empty
 * too, all is over.
 */
static void look_at(struct shell *s)
{
    nacre_mirror_news *news = &s->news, before = *news;
    int status;
    if (!news->exited && waitpid(s->pid, &status, WNOHANG) == s->pid) {
        news->exited = news->final = 1;
        news->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        news->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        s->settle_at = now() + SETTLE;
    }
    take_output(s, NACRE_STDOUT);
    take_output(s, NACRE_STDERR);
    news->over = news->exited && kill(-s->pid, 0) < 0 && errno == ESRCH;
    news->settled = news->over || (news->exited && now() >= s->settle_at);
    if (memcmp(&before, news, sizeof before) != 0)
        nacre_mirror_note(s->mirror, news);
}

/* Quiet or not, it is read: a full pipe would stop the command. */
static int64_t small_pump(void *self, const nacre_id *id, int quiet)
{
    struct small *small = self;
    (void)quiet;
    pthread_mutex_lock(&small->lock);
    struct shell **at = find(small, id), *s = *at;
    if (s)
        look_at(s);
    bool left = s && !s->news.over;
    if (s && !left) {
        *at = s->next;
        free_shell(s);
    }
    pthread_mutex_unlock(&small->lock);
    return left ? now() + ROUND : INT64_MAX;
}

/* -- Signals and input ------------------------------------------------------------------------ */

/* Done at once, so there is no operation. What the command left behind hears it too. */
static int small_signal(void *self, const nacre_id *id, int signal, nacre_op **ret_op,
                        nacre_error *err)
{
    struct small *small = self;
    (void)ret_op;
    pthread_mutex_lock(&small->lock);
    const struct shell *s = *find(small, id);
    int error = !s ? ESRCH : kill(-s->pid, signal) < 0 ? errno : 0;
    pthread_mutex_unlock(&small->lock);
    return error ? FAIL(err, error == ESRCH ? NACRE_ECLOSED : NACRE_EINVAL, error,
                        "cannot send signal %d: %s", signal, strerror(error))
                 : 0;
}

static int step_input(nacre_op *op, nacre_error *err)
{
    struct small_op *o = (struct small_op *)op;
    op->wake_ns = small_pump(o->small, &o->id, 1);
    pthread_mutex_lock(&o->small->lock);
    struct shell *s = *find(o->small, &o->id);
    int *in = s && !s->news.exited ? &s->fds[0][1] : &(int){-1};
    bool takes = *in >= 0;
    ssize_t n = takes ? write(*in, o->data + o->taken, o->size - o->taken) : 0;
    o->taken += n > 0 ? (size_t)n : 0;
    if (takes && o->taken == o->size && o->eof) {
        close(*in);
        *in = -1;
    }
    pthread_mutex_unlock(&o->small->lock);
    return takes ? o->taken == o->size
                 : FAIL(err, NACRE_ECLOSED, 0,
                        "shell %s takes no input: it has ended, or was started without",
                        nacre_id_short(&o->id).s);
}

static int small_input(void *self, const nacre_id *id, const void *data, size_t size, int eof,
                       nacre_op **ret_op, nacre_error *err)
{
    struct small_op op = {.small = self, .id = *id, .data = data, .size = size, .eof = eof};
    return begin_op(op, step_input, ret_op, err);
}

/* -- The whole -------------------------------------------------------------------------------- */

static int small_open(void *self, nacre_home *home, nacre_error *err)
{
    (void)err;
    ((struct small *)self)->home = home;
    return 0;
}

/* The session has ended what could be ended: memory is all that is left. */
static int small_close(void *self, int forked, nacre_op **ret_op, nacre_error *err)
{
    struct small *small = self;
    (void)forked, (void)ret_op, (void)err;
    for (struct shell *s; (s = small->shells); free_shell(s))
        small->shells = s->next;
    pthread_mutex_destroy(&small->lock);
    free(small);
    return 0;
}

int small_backend_new(nacre_backend *ret_backend)
{
    static const nacre_backend_ops ops = {
        .version = NACRE_BACKEND_VERSION,
        .size = sizeof ops,
        .name = "small",
        .open = small_open,
        .start = small_start,
        .input = small_input,
        .signal = small_signal,
        .pump = small_pump,
        .close = small_close,
    };
    struct small *small = calloc(1, sizeof *small);
    if (!small)
        return NACRE_ENOMEM;
    pthread_mutex_init(&small->lock, NULL);
    *ret_backend = (nacre_backend){.ops = &ops, .self = small};
    return 0;
}
