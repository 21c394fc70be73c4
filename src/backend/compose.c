#include "backend/compose.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/environment.h"
#include "base/defs.h"
#include "base/err.h"
#include "run/log.h"
#include "run/spec.h"
#include "sys/fd.h"
#include "sys/proc.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE /* the wrapper does the same with one more eval */
#endif

#define SPEC_MAX    ((size_t)512 * 1024 * 1024)
#define TIMEOUT_MAX (INT64_C(1000) * 60 * 60 * 24 * 365)

int compose_check(const nacre_command *command, nacre_error *err)
{
    if (!command || command->size != sizeof *command)
        return err_set(err, NACRE_EINVAL, "the command must start from NACRE_COMMAND_INIT");
    if (!command->text == !command->argv)
        return err_set(err, NACRE_EINVAL, "a command has either a text or an argv");
    if (command->argv && !command->argv[0])
        return err_set(err, NACRE_EINVAL, "the argv is empty; its first entry is the program");
    if (command->timeout_ms < 0 || command->timeout_ms > TIMEOUT_MAX)
        return err_set(err, NACRE_EINVAL,
                       "the timeout must be between 1 ms and 365 days, or 0 for none");
    if (command->grace_ms > TIMEOUT_MAX)
        return err_set(err, NACRE_EINVAL, "the grace must be at most 365 days");
    if (command->quota && command->quota < LOG_QUOTA_MIN)
        return err_set(err, NACRE_EINVAL, "the quota must be at least 256 KiB");
    if (command->lifetime != NACRE_LIFE_SESSION && command->lifetime != NACRE_LIFE_KEEP)
        return err_set(err, NACRE_EINVAL, "the lifetime is neither session nor keep");
    if (command->input < NACRE_STDIN_NULL || command->input > NACRE_STDIN_PIPE)
        return err_set(err, NACRE_EINVAL, "the kind of stdin is unknown");
    if (command->input == NACRE_STDIN_BYTES && !command->input_data && command->input_size)
        return err_set(err, NACRE_EINVAL, "input_data is missing");
    for (const char *const *entry = command->env; entry && *entry; entry++)
        if (!**entry || **entry == '=')
            return err_set(err, NACRE_EINVAL, "an environment entry has no name: \"%.80s\"",
                           *entry);
    return 0;
}

int compose_cwd(const struct compose *c, char *ret_path, nacre_error *err)
{
    const char *wanted = c->command->cwd ? c->command->cwd : c->cwd ? c->cwd : "";
    size_t used = 0;
    if (wanted[0] != '/') {
        if (!getcwd(ret_path, PATH_MAX))
            return err_sys(err, NACRE_ESTART, errno, "chdir", "cannot tell the current directory");
        used = strlen(ret_path);
        used -= used == 1; /* "/" brings its own slash */
    }
    int n = snprintf(ret_path + used, PATH_MAX - used, "%s%s",
                     *wanted && wanted[0] != '/' ? "/" : "", wanted);
    if (!ret_path[0])
        memcpy(ret_path, "/", sizeof "/");
    if (n < 0 || (size_t)n >= PATH_MAX - used)
        return err_sys(err, NACRE_ESTART, ENAMETOOLONG, "chdir",
                       "cannot use the directory \"%.150s\"", wanted);
    return 0;
}

int compose_input(const nacre_command *command, int *ret_fd, nacre_error *err)
{
    *ret_fd = -EBADF;
    if (command->input == NACRE_STDIN_FD) {
        *ret_fd = fd_dup(command->input_fd);
        return *ret_fd < 0 ? err_sys(err, NACRE_EINVAL, -*ret_fd, "stdin", "cannot use input_fd %d",
                                     command->input_fd)
                           : 0;
    }
    if (command->input != NACRE_STDIN_BYTES)
        return 0;
    cleanup_close int fd = fd_lift_consume(memfd_create("stdin", MFD_CLOEXEC));
    int r = fd < 0 ? -errno : fd_write_all(fd, command->input_data, command->input_size);
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    if (r < 0)
        return err_sys(err, NACRE_ELIMIT, -r, "stdin", "cannot hold %zu bytes of input",
                       command->input_size);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/*
 * umask(2) cannot be read without changing it under other threads' feet. A file without a name
 * shows what it leaves of 0777, for a fraction of what reading it in /proc costs.
 */
static uint32_t read_umask(void)
{
    struct stat st;
    cleanup_close int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0777);
    if (fd >= 0 && fstat(fd, &st) == 0)
        return ~st.st_mode & 0777;
    char text[1024];
    if (fd_slurp_at(AT_FDCWD, "/proc/thread-self/status", text, sizeof text) > 0) {
        const char *at = strstr(text, "\nUmask:");
        if (at)
            return (uint32_t)strtoul(at + strlen("\nUmask:"), NULL, 8);
    }
    return 022;
}

void compose_host(struct spec_host *ret_host)
{
    *ret_host = (struct spec_host){.umask = read_umask(), .nice = getpriority(PRIO_PROCESS, 0)};
    for (int i = 0; i < SPEC_LIMITS && i < (int)RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            ret_host->limits[i] = (struct spec_limit){limit.rlim_cur, limit.rlim_max};
    }
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp() would find it, in the PATH the command will see; itself if it is not found, so
 * that the exec says why. */
static void resolve(const char *name, const char *search, char *ret_path)
{
    snprintf(ret_path, PATH_MAX, "%s", name);
    if (strchr(name, '/'))
        return;
    if (!search)
        search = "/usr/local/bin:/usr/bin:/bin";
    for (const char *dir = search; *dir;) {
        size_t n = strcspn(dir, ":");
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, n ? dir : ".", name);
        if (len > 0 && len < PATH_MAX && is_program(path)) {
            memcpy(ret_path, path, (size_t)len + 1);
            return;
        }
        dir += n + (dir[n] == ':');
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the call asks for, or the session; NULL if neither does. */
static const char *wanted_shell(const struct compose *c)
{
    const char *shell = c->command->shell;
    return shell && *shell ? shell : c->shell;
}

static void choose_shell(const struct compose *c, char *ret_program)
{
    const char *search = environment_lookup(c->command->env, c->secrets, "PATH");
    if (wanted_shell(c)) {
        resolve(wanted_shell(c), search, ret_program);
        return;
    }
    static const char *const usual[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        if (is_program(usual[i])) {
            snprintf(ret_program, PATH_MAX, "%s", usual[i]);
            return;
        }
    }
    resolve("bash", search, ret_program);
    if (!strchr(ret_program, '/'))
        snprintf(ret_program, PATH_MAX, "/bin/sh");
}

/* Whether a program is dynamically linked, for this very kind of machine: only then does its
 * loader read LD_PRELOAD. */
static bool takes_preload(const char *program)
{
    _Alignas(ElfW(Ehdr)) char buf[2048];
    cleanup_close int fd = open(program, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_pread_all(fd, buf, sizeof buf, 0);
    const ElfW(Ehdr) *elf = (const void *)buf;
    if (n < (ssize_t)sizeof *elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
        elf->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        elf->e_machine != OUR_MACHINE || elf->e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    for (size_t i = 0; i < elf->e_phnum; i++) {
        size_t at = elf->e_phoff + i * sizeof(ElfW(Phdr));
        ElfW(Phdr) header;
        if (at + sizeof header > (size_t)n)
            return false;
        memcpy(&header, buf + at, sizeof header);
        if (header.p_type == PT_INTERP)
            return true;
    }
    return false;
}

/* The same, remembered for as long as the file is the same. */
static bool takes_preload_cached(struct compose_shells *shells, const char *program)
{
    struct stat st;
    if (stat(program, &st) < 0)
        return false;
    pthread_mutex_lock(&shells->lock);
    if (shells->device != st.st_dev || shells->inode != st.st_ino ||
        memcmp(&shells->changed, &st.st_ctim, sizeof st.st_ctim) != 0) {
        shells->device = st.st_dev;
        shells->inode = st.st_ino;
        shells->changed = st.st_ctim;
        shells->takes_preload = takes_preload(program);
    }
    bool takes = shells->takes_preload;
    pthread_mutex_unlock(&shells->lock);
    return takes;
}

struct layout {
    struct buf *out;
    int error;
};

static uint32_t put(struct layout *l, const char *s)
{
    uint32_t at = (uint32_t)l->out->len;
    if (l->error == 0)
        l->error = buf_append(l->out, s ? s : "", s ? strlen(s) + 1 : 1);
    return at;
}

static void put_command(struct layout *l, const struct compose *c, struct spec_head *head)
{
    const nacre_command *command = c->command;
    char program[PATH_MAX];
    if (c->elsewhere)
        snprintf(program, sizeof program, "%s", command->text ? c->shell : command->argv[0]);
    else if (command->text)
        choose_shell(c, program);
    else
        resolve(command->argv[0], environment_lookup(command->env, c->secrets, "PATH"), program);
    head->program = put(l, program);
    if (l->error == 0)
        l->error = buf_str(l->out, SPEC_TEXT_NAME);
    head->text = put(l, command->text);
    head->text_size = command->text ? (uint32_t)strlen(command->text) : 0;
    head->argv = (uint32_t)l->out->len;
    if (command->text) {
        head->kind = strcmp(base_name(program), "bash") == 0 ? SPEC_BASH : SPEC_SH;
        head->preload = !c->elsewhere && takes_preload_cached(c->shells, program);
        head->pipeline = strchr(command->text, '|') != NULL;
        put(l, wanted_shell(c) ? wanted_shell(c) : base_name(program));
        head->argc = 1;
        return;
    }
    head->kind = SPEC_ARGV;
    for (const char *const *arg = command->argv; *arg; arg++, head->argc++)
        put(l, *arg);
}

int compose_spec(const struct compose *c, const nacre_id *id, const char *cwd, struct buf *out,
                 nacre_error *err)
{
    const nacre_command *command = c->command;
    struct spec_head head;
    struct layout l = {.out = out};
    spec_head_init(&head);
    head.id = *id;
    head.session = *c->session;
    head.timeout_ms = command->timeout_ms;
    head.grace_ms = command->grace_ms >= 0 ? command->grace_ms : c->grace_ms;
    head.quota = command->quota ? command->quota : c->quota;
    head.lifetime = command->lifetime;
    head.input = command->input;
    head.background = command->background != 0;
    head.fleeting = c->fleeting && command->lifetime == NACRE_LIFE_SESSION;
    head.owner_pid = c->owner.pid;
    head.owner_start = c->owner.start;
    head.successor = c->successor;
    head.paced = command->paced != 0;
    buf_init(out, SPEC_MAX);
    l.error = buf_append(out, &head, sizeof head);
    put_command(&l, c, &head);
    head.cwd = put(&l, cwd);
    head.run_path = put(&l, c->run_path);
    head.name = put(&l, command->name);
    head.description = put(&l, command->description);
    head.session_name = put(&l, c->session_name);
    head.session_cwd = put(&l, c->session_cwd);
    head.env = (uint32_t)out->len;
    if (l.error == 0)
        l.error = c->elsewhere
                      ? environment_own(command->env, out, &head.envc)
                      : environment_build(id, cwd, command->env, c->secrets, out, &head.envc);
    if (l.error == 0)
        put(&l, "");
    if (l.error < 0)
        return l.error == -E2BIG
                   ? err_set(err, NACRE_EINVAL, "the command and its environment are over 512 MiB")
                   : err_set(err, NACRE_ENOMEM, "out of memory");
    head.size = (uint32_t)out->len;
    spec_head_seal(&head);
    memcpy(out->data, &head, sizeof head);
    return 0;
}
