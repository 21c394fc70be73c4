#include "session/audit.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hold.h"
#include "sys/fd.h"
#include "sys/fsize.h"
#include "text/utf8.h"

#define TEXT_MAX ((size_t)64 * 1024) /* of a command in the log */
#define SUFFIX   ".jsonl"

struct audit {
    pthread_mutex_t lock;
    nacre_id session;
    char *home; /* NULL = not known yet */
    int fd;
};

struct audit *audit_new(const nacre_id *session)
{
    struct audit *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    a->session = *session;
    a->fd = -EBADF;
    return a;
}

void audit_free(struct audit *a)
{
    if (!a)
        return;
    close_fd(&a->fd);
    pthread_mutex_destroy(&a->lock);
    free(a->home);
    free(a);
}

void audit_set_home(struct audit *a, const char *home)
{
    if (!a)
        return;
    HOLD(&a->lock);
    if (!a->home)
        a->home = strdup(home);
}

static void path_of(const char *home, const nacre_id *session, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/audit/%s" SUFFIX, home, nacre_id_format(session).s);
}

static int open_in(const char *home, const nacre_id *session)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/audit", home);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    path_of(home, session, path, sizeof path);
    return fd_open_file_at(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT);
}

static int open_log(struct audit *a)
{
    struct stat st;
    if (a->fd >= 0 && fstat(a->fd, &st) == 0 && st.st_nlink > 0)
        return a->fd;
    close_fd(&a->fd);
    if (!a->home)
        return -ENOENT;
    a->fd = open_in(a->home, &a->session);
    return a->fd;
}

static void put_text(json_t *line, const char *key, const char *text)
{
    text = text ? text : "";
    struct buf clean cleanup_buf = BUF_UP_TO(TEXT_MAX * 3);
    size_t size = MIN(strlen(text), (size_t)TEXT_MAX);
    if (utf8_clean(&clean, text, size) == 0)
        json_object_set_new(line, key, json_string(clean.data ? clean.data : ""));
}

static void time_text(char *ret_text, size_t size)
{
    struct tm tm;
    int64_t now = clock_real_ns();
    time_t seconds = (time_t)(now / NS_PER_S);
    gmtime_r(&seconds, &tm);
    size_t n = strftime(ret_text, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret_text + n, size - n, ".%03dZ", (int)(now % NS_PER_S / NS_PER_MS));
}

static json_t *line_new(const char *event, const nacre_id *id)
{
    char time[40];
    json_t *line = json_object();
    if (!line)
        return NULL;
    time_text(time, sizeof time);
    put_text(line, "time", time);
    put_text(line, "event", event);
    if (id)
        put_text(line, "id", nacre_id_format(id).s);
    return line;
}

/* One write for a line: lines of several threads do not mix. */
static void append(struct audit *a, const char *line, size_t size)
{
    HOLD(&a->lock);
    FSIZE_SHELTER();
    if (open_log(a) >= 0)
        fd_write_all(a->fd, line, size);
}

/* With its newline in the place of the last byte, and its size; NULL if out of memory. */
static char *line_text(json_t *line, size_t *ret_size)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    *ret_size = text ? strlen(text) + 1 : 0;
    if (text)
        text[*ret_size - 1] = '\n';
    return text;
}

static void write_line(struct audit *a, json_t *line)
{
    size_t size;
    cleanup_free char *text = line_text(line, &size);
    if (text)
        append(a, text, size);
}

/* Names only: values are nobody's business. */
static json_t *names_of(const char *const *env)
{
    json_t *names = json_array();
    for (; names && env && *env; env++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*env, "="), *env);
        json_array_append_new(names, json_string(name));
    }
    return names;
}

static void put_argv(json_t *line, const char *const *argv)
{
    struct buf joined cleanup_buf = BUF_UP_TO(TEXT_MAX);
    for (const char *const *arg = argv; *arg; arg++)
        if (buf_printf(&joined, "%s%s", arg == argv ? "" : " ", *arg) < 0)
            break;
    put_text(line, "command", joined.data ? joined.data : "");
}

static void put_audit_command(json_t *line, const nacre_command *command)
{
    if (command->text)
        put_text(line, "command", command->text);
    else if (command->argv)
        put_argv(line, command->argv);
    if (command->cwd)
        put_text(line, "cwd", command->cwd);
    if (command->name && *command->name)
        put_text(line, "name", command->name);
    if (command->env && *command->env)
        json_object_set_new(line, "env", names_of(command->env));
    json_object_set_new(line, "background", json_boolean(command->background));
    json_object_set_new(line, "kept", json_boolean(command->lifetime == NACRE_LIFE_KEEP));
}

/* Indexed by nacre_answer_kind. */
static const char *const answers[] = {"no",     "once",   "session", "cancelled",
                                      "cannot", "always", "never"};

/* What the rules said, if there are any. */
static void put_verdict(json_t *line, const struct admission *admission)
{
    if (!admission->judged)
        return;
    put_text(line, "verdict", nacre_verdict_name(admission->verdict));
    put_text(line, "reason", admission->reason);
    if (!admission->answered)
        return;
    put_text(line, "answer", answers[admission->answer.kind]);
    if (*admission->answer.way)
        put_text(line, "way", admission->answer.way);
}

void audit_start(struct audit *a, const nacre_id *id, const nacre_command *command,
                 const struct admission *admission)
{
    json_t *line = a ? line_new("start", id) : NULL;
    if (!line)
        return;
    put_audit_command(line, command);
    put_verdict(line, admission);
    write_line(a, line);
}

static json_t *question_line(const char *event, const struct question *q)
{
    json_t *line = line_new(event, NULL);
    if (!line)
        return NULL;
    put_text(line, "question", nacre_id_format(&q->id).s);
    put_text(line, "command", q->texts[QUESTION_COMMAND]);
    return line;
}

void audit_question(struct audit *a, const struct question *q)
{
    json_t *line = a ? question_line("question", q) : NULL;
    if (!line)
        return;
    put_text(line, "reason", q->texts[QUESTION_REASON]);
    if (q->texts[QUESTION_WANTS] && *q->texts[QUESTION_WANTS])
        put_text(line, "wants", q->texts[QUESTION_WANTS]);
    write_line(a, line);
}

void audit_answer(struct audit *a, const struct question *q, const struct desk_answer *answer)
{
    json_t *line = a ? question_line("answer", q) : NULL;
    if (!line)
        return;
    put_text(line, "answer", answers[answer->kind]);
    put_text(line, "way", answer->way);
    if (answer->kind == NACRE_ANSWER_ALWAYS)
        put_text(line, "rule", q->texts[QUESTION_ALWAYS]);
    write_line(a, line);
}

/* Somebody may be waiting for the answer, and nothing here needs quoting. */
void audit_end(struct audit *a, const nacre_record *record)
{
    char time[40], status[64], line[512];
    if (!a)
        return;
    time_text(time, sizeof time);
    int n = snprintf(line, sizeof line,
                     "{\"time\":\"%s\",\"event\":\"end\",\"id\":\"%s\",\"status\":\"%s\","
                     "\"exit_code\":%d,\"signal\":%d,\"elapsed_ms\":%lld,"
                     "\"stdout_bytes\":%llu,\"stderr_bytes\":%llu}\n",
                     time, nacre_id_format(&record->id).s,
                     nacre_status(record, status, sizeof status), record->exit_code, record->signal,
                     (long long)record->elapsed_ms, (unsigned long long)record->bytes[NACRE_STDOUT],
                     (unsigned long long)record->bytes[NACRE_STDERR]);
    if (n > 0 && (size_t)n < sizeof line)
        append(a, line, (size_t)n);
}

static json_t *kill_line(const nacre_id *id, const nacre_kill_options *options,
                         const nacre_kill_result *result)
{
    char name[16];
    int signal = options && options->signal ? options->signal : SIGTERM;
    json_t *line = line_new("kill", id);
    if (!line)
        return NULL;
    put_text(line, "signal", nacre_signal_name(signal, name, sizeof name));
    json_object_set_new(line, "was_alive", json_boolean(result->was_alive));
    json_object_set_new(line, "signalled", json_integer(result->signalled));
    json_object_set_new(line, "force_killed", json_integer(result->force_killed));
    json_object_set_new(line, "survivors", json_integer(result->survivors));
    return line;
}

void audit_kill(struct audit *a, const nacre_id *id, const nacre_kill_options *options,
                const nacre_kill_result *result)
{
    if (a)
        write_line(a, kill_line(id, options, result));
}

void audit_kill_by_person(const char *home, const nacre_id *session, const nacre_id *id,
                          const nacre_kill_options *options, const nacre_kill_result *result)
{
    size_t size;
    json_t *line = kill_line(id, options, result);
    if (line)
        put_text(line, "by", "person");
    cleanup_free char *text = line_text(line, &size);
    FSIZE_SHELTER();
    cleanup_close int fd = text ? open_in(home, session) : -EBADF;
    if (fd >= 0)
        fd_write_all(fd, text, size);
}

void audit_denial(struct audit *a, const nacre_command *command, const struct admission *admission,
                  const nacre_error *err)
{
    json_t *line = a ? line_new("denial", NULL) : NULL;
    if (!line)
        return;
    put_audit_command(line, command);
    put_verdict(line, admission);
    if (err) {
        put_text(line, "code", nacre_code_name(err->code));
        put_text(line, "why", err->msg);
    }
    write_line(a, line);
}

void audit_refused_exec(struct audit *a, const nacre_id *id, const nacre_denial *denial)
{
    json_t *line = a ? line_new("denial", id) : NULL;
    if (!line)
        return;
    put_text(line, "command", denial->target);
    put_text(line, "by", denial->program);
    put_text(line, "why", denial->why);
    write_line(a, line);
}

int audit_read(const char *home, const nacre_id *session, off_t offset, struct buf *out)
{
    char path[PATH_MAX + 64], data[65536];
    path_of(home, session, path, sizeof path);
    cleanup_close int fd = fd_open_file_at(AT_FDCWD, path, O_RDONLY);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    ssize_t n;
    int r = 0;
    for (; r == 0 && (n = RETRY(pread(fd, data, sizeof data, offset))) != 0; offset += n)
        r = n < 0 ? -errno : buf_append(out, data, (size_t)n);
    return r;
}

void audit_remove(const char *home, const nacre_id *session)
{
    char path[PATH_MAX + 64];
    path_of(home, session, path, sizeof path);
    unlink(path);
}

struct each {
    int dir;
    audit_fn *fn;
    void *userdata;
};

static int each_log(const char *name, void *userdata)
{
    const struct each *each = userdata;
    char id_text[NACRE_ID_DIGITS + 1];
    nacre_id id;
    struct stat st;
    if (strlen(name) != NACRE_ID_DIGITS + strlen(SUFFIX) ||
        strcmp(name + NACRE_ID_DIGITS, SUFFIX) != 0)
        return 0;
    snprintf(id_text, sizeof id_text, "%.*s", NACRE_ID_DIGITS, name);
    if (nacre_id_parse(id_text, &id) == NACRE_OK &&
        fstatat(each->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        each->fn(&id, (int64_t)st.st_mtim.tv_sec * 1000, fd_cost_at(each->dir, name),
                 each->userdata);
    return 0;
}

void audit_each(const char *home, audit_fn *fn, void *userdata)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/audit", home);
    cleanup_close int dir = fd_open_dir_at(AT_FDCWD, path);
    struct each each = {.dir = dir, .fn = fn, .userdata = userdata};
    if (dir >= 0)
        fd_walk(dir, each_log, &each);
}
