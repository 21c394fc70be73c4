#include "home/compose.h"

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

#include "base/err.h"
#include "base/hold.h"
#include "config/limits.h"
#include "run/log.h"
#include "run/spec.h"
#include "screen/terminal.h"
#include "sys/cgroup.h"
#include "sys/controller.h"
#include "sys/fd.h"
#include "sys/fsize.h"
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

/* 0 = the usual one. */
static bool in_bounds(int given, unsigned least, unsigned most)
{
    return given == 0 || (given > 0 && (unsigned)given >= least && (unsigned)given <= most);
}

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
    if (command->tty && command->input != NACRE_STDIN_NULL && command->input != NACRE_STDIN_PIPE)
        return err_set(err, NACRE_EINVAL,
                       "a terminal is typed on: a command with tty takes no other stdin");
    if (!in_bounds(command->columns, TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX) ||
        !in_bounds(command->rows, TERMINAL_ROWS_MIN, TERMINAL_ROWS_MAX))
        return err_set(err, NACRE_EINVAL, "a terminal has %u to %u columns and %u to %u rows",
                       TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX, TERMINAL_ROWS_MIN,
                       TERMINAL_ROWS_MAX);
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
    FSIZE_SHELTER();
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
static void resolve_program(const char *name, const char *search, char *ret_path)
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
        resolve_program(wanted_shell(c), search, ret_program);
        return;
    }
    static const char *const usual[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        if (is_program(usual[i])) {
            snprintf(ret_program, PATH_MAX, "%s", usual[i]);
            return;
        }
    }
    resolve_program("bash", search, ret_program);
    if (!strchr(ret_program, '/'))
        snprintf(ret_program, PATH_MAX, "/bin/sh");
}

/* Whether a program's loader is that of glibc, which the preload is made for: another one calls it
 * in another way. */
static bool is_our_loader(int fd, const ElfW(Phdr) * header)
{
    static const char *const names[] = {"ld-linux", "ld.so.", "ld64.so."};
    char path[PATH_MAX] = "";
    size_t size = MIN((size_t)header->p_filesz, sizeof path - 1);
    if (fd_pread_all(fd, path, size, (off_t)header->p_offset) != (ssize_t)size)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(base_name(path), names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Whether a program is dynamically linked with glibc, for this very kind of machine: only then
 * does its loader read LD_PRELOAD as we mean it. */
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
            return is_our_loader(fd, &header);
    }
    return false;
}

/* The same, remembered for as long as the file is the same. */
static bool takes_preload_cached(struct compose_shells *shells, const char *program)
{
    struct stat st;
    if (stat(program, &st) < 0)
        return false;
    HOLD(&shells->lock);
    if (shells->device != st.st_dev || shells->inode != st.st_ino ||
        memcmp(&shells->changed, &st.st_ctim, sizeof st.st_ctim) != 0) {
        shells->device = st.st_dev;
        shells->inode = st.st_ino;
        shells->changed = st.st_ctim;
        shells->takes_preload = takes_preload(program);
    }
    return shells->takes_preload;
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

static void put_spec_command(struct layout *l, const struct compose *c, struct spec_head *head)
{
    const nacre_command *command = c->command;
    char program[PATH_MAX];
    if (c->elsewhere)
        snprintf(program, sizeof program, "%s", command->text ? c->shell : command->argv[0]);
    else if (command->text)
        choose_shell(c, program);
    else
        resolve_program(command->argv[0], environment_lookup(command->env, c->secrets, "PATH"),
                        program);
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

/* Where a controller of version 1 may hold a limit: our own groups, as long as we have them. */
static void put_groups(struct layout *l, const struct compose *c, struct spec_head *head)
{
    head->groups = (uint32_t)l->out->len;
    for (int i = 0; i < SPEC_GROUPS; i++) {
        char path[CGROUP_PATH_MAX] = "";
        if (c->elsewhere || !spec_is_bounded(head) ||
            controller_own((enum controller)i, path, sizeof path) < 0)
            path[0] = '\0';
        put(l, path);
    }
}

static void put_granted(struct layout *l, const struct compose *c, struct spec_head *head)
{
    head->gated = c->gated;
    head->granted = (uint32_t)l->out->len;
    head->granted_size = (uint32_t)c->granted_size;
    if (l->error == 0 && c->granted_size > 0)
        l->error = buf_append(l->out, c->granted, c->granted_size);
}

static void put_bounds(const struct compose *c, struct spec_head *head)
{
    const nacre_limits *limits = &c->command->limits;
    for (nacre_limit i = NACRE_LIMIT_MEMORY; i < NACRE_LIMIT_COUNT; i++)
        head->bounds[i] = limits_get(limits, i);
    head->strict = limits->strict != 0;
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
    head.input = command->tty ? NACRE_STDIN_PIPE : command->input;
    if (command->tty) {
        head.columns = (uint16_t)(command->columns ? (unsigned)command->columns : TERMINAL_COLUMNS);
        head.rows = (uint16_t)(command->rows ? (unsigned)command->rows : TERMINAL_ROWS);
    }
    head.background = command->background != 0;
    head.fleeting = c->fleeting && command->lifetime == NACRE_LIFE_SESSION;
    head.owner_pid = c->owner.pid;
    head.owner_start = c->owner.start;
    head.successor = c->successor;
    head.paced = command->paced != 0;
    put_bounds(c, &head);
    head.person = c->person;
    *out = BUF_UP_TO(SPEC_MAX);
    l.error = buf_append(out, &head, sizeof head);
    put_spec_command(&l, c, &head);
    head.cwd = put(&l, cwd);
    head.run_path = put(&l, c->run_path);
    head.name = put(&l, command->name);
    head.description = put(&l, command->description);
    head.session_name = put(&l, c->session_name);
    head.session_cwd = put(&l, c->session_cwd);
    head.sandbox = put(&l, c->sandbox);
    put_granted(&l, c, &head);
    put_groups(&l, c, &head);
    head.env = (uint32_t)out->len;
    if (l.error == 0)
        l.error = c->elsewhere ? environment_own(command->env, out, &head.envc)
                               : environment_build(id, cwd, command->tty != 0, c->fenced,
                                                   command->env, c->secrets, out, &head.envc);
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

/* -- The environment -------------------------------------------------------------------------- */

/* No pager, no editor, no prompt, no colours, and no output held back where a variable can say so.
 * An editor that fails, never one that succeeds: a rebase whose editor says yes is a rebase that is
 * run. */
static const char *const quiet[] = {
    "PAGER=cat",
    "GIT_PAGER=cat",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_EDITOR=false",
    "GIT_SEQUENCE_EDITOR=false",
    "GCM_INTERACTIVE=never",
    "DEBIAN_FRONTEND=noninteractive",
    "EDITOR=false",
    "VISUAL=false",
    "PYTHONUNBUFFERED=1",
    "GFORTRAN_UNBUFFERED_PRECONNECTED=1",
    NULL,
};

/* What programs are to think of their terminal, without one and with one. */
static const char *const of_pipes[] = {"TERM=dumb", "NO_COLOR=1", NULL};
static const char *const of_terminal[] = {"TERM=xterm-256color", NULL};

/* Ours; never inherited. */
static const char *const reserved[] = {"NACRE_ID", "NACRE_COMMAND", "NACRE_COMMAND_FD", "NACRE_RUN",
                                       NULL};

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static bool same_name(const char *a, const char *b)
{
    while (*a == *b && *a && *a != '=') {
        a++;
        b++;
    }
    return (!*a || *a == '=') && (!*b || *b == '=');
}

/* In a list that is short, or that is looked at once. */
static const char *find_variable(const char *const *list, const char *name)
{
    const char *found = NULL;
    for (; list && *list; list++)
        if (same_name(*list, name))
            found = *list;
    return found;
}

const char *environment_lookup(const char *const *extra, const struct secret_rules *rules,
                               const char *name)
{
    const char *entry = find_variable(extra, name);
    if (entry)
        return entry[name_length(entry)] ? entry + name_length(entry) + 1 : NULL;
    return secrets_is_secret(name, rules) ? NULL : getenv(name);
}

static int add_variable(struct buf *out, uint32_t *count, const char *entry)
{
    int r = buf_append(out, entry, strlen(entry) + 1);
    if (r == 0)
        ++*count;
    return r;
}

/* What the call says of one name: of several entries the last. */
struct override {
    const char *entry;
    size_t place; /* in the call's list */
};

/* All of them, by name. A call may have as many as it likes, and each is looked for by each of the
 * host's: sorted once, that takes no longer than reading them. */
struct overrides {
    struct override *items;
    size_t count;
};

static int compare_names(const char *a, const char *b)
{
    while (*a == *b && *a && *a != '=') {
        a++;
        b++;
    }
    return (*a == '=' ? 0 : (unsigned char)*a) - (*b == '=' ? 0 : (unsigned char)*b);
}

static int by_name_and_place(const void *a, const void *b)
{
    const struct override *one = a, *other = b;
    int order = compare_names(one->entry, other->entry);
    return order ? order : (one->place > other->place) - (one->place < other->place);
}

static int by_name_alone(const void *name, const void *item)
{
    return compare_names(name, ((const struct override *)item)->entry);
}

static void overrides_done(struct overrides *o)
{
    free(o->items);
}

static int overrides_make(const char *const *extra, struct overrides *ret)
{
    size_t total = 0, kept = 0;
    *ret = (struct overrides){0};
    while (extra && extra[total])
        total++;
    if (total == 0)
        return 0;
    ret->items = calloc(total, sizeof *ret->items);
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < total; i++)
        ret->items[i] = (struct override){extra[i], i};
    qsort(ret->items, total, sizeof *ret->items, by_name_and_place);
    for (size_t i = 0; i < total; i++)
        if (i + 1 == total || compare_names(ret->items[i].entry, ret->items[i + 1].entry) != 0)
            ret->items[kept++] = ret->items[i];
    ret->count = kept;
    return 0;
}

static const struct override *overrides_find(const struct overrides *o, const char *name)
{
    return o->count ? bsearch(name, o->items, o->count, sizeof *o->items, by_name_alone) : NULL;
}

static int add_list(const struct overrides *o, const char *const *list, struct buf *out,
                    uint32_t *count)
{
    int r = 0;
    for (const char *const *entry = list; r == 0 && *entry; entry++)
        if (!overrides_find(o, *entry))
            r = add_variable(out, count, *entry);
    return r;
}

static int add_quiet(const struct overrides *o, bool terminal, struct buf *out, uint32_t *count)
{
    int r = add_list(o, quiet, out, count);
    return r < 0 ? r : add_list(o, terminal ? of_terminal : of_pipes, out, count);
}

/* In the order of the call. */
static int add_extra(const struct overrides *o, const char *const *extra, struct buf *out,
                     uint32_t *count)
{
    int r = 0;
    for (size_t i = 0; r == 0 && extra && extra[i]; i++)
        if (strchr(extra[i], '=') && !find_variable(reserved, extra[i]) &&
            overrides_find(o, extra[i])->place == i)
            r = add_variable(out, count, extra[i]);
    return r;
}

static int add_ours(const nacre_id *id, const char *cwd, bool terminal, const struct overrides *o,
                    struct buf *out, uint32_t *count)
{
    char mark[64];
    snprintf(mark, sizeof mark, "NACRE_ID=%s", nacre_id_format(id).s);
    int r = add_variable(out, count, mark);
    if (r == 0)
        r = add_quiet(o, terminal, out, count);
    if (r == 0 && !overrides_find(o, "PWD")) {
        r = buf_str(out, "PWD=");
        if (r == 0)
            r = add_variable(out, count, cwd);
    }
    return r;
}

/* What the fence sets, unless the call says otherwise. */
static int add_fenced(const struct overrides *o, const char *const *fenced, struct buf *out,
                      uint32_t *count)
{
    int r = 0;
    for (; r == 0 && fenced && *fenced; fenced++)
        if (strchr(*fenced, '=') && !overrides_find(o, *fenced))
            r = add_variable(out, count, *fenced);
    return r;
}

int environment_build(const nacre_id *id, const char *cwd, bool terminal, const char *const *fenced,
                      const char *const *extra, const struct secret_rules *rules, struct buf *out,
                      uint32_t *ret_count)
{
    __attribute__((cleanup(overrides_done))) struct overrides o;
    uint32_t count = 0;
    int r = overrides_make(extra, &o);
    for (char **entry = environ; r == 0 && entry && *entry; entry++)
        if (strchr(*entry, '=') && !overrides_find(&o, *entry) && !find_variable(quiet, *entry) &&
            !find_variable(of_pipes, *entry) && !find_variable(reserved, *entry) &&
            !find_variable(fenced, *entry) && !same_name(*entry, "PWD") &&
            !secrets_is_secret(*entry, rules))
            r = add_variable(out, &count, *entry);
    if (r == 0)
        r = add_ours(id, cwd, terminal, &o, out, &count);
    if (r == 0)
        r = add_fenced(&o, fenced, out, &count);
    if (r == 0)
        r = add_extra(&o, extra, out, &count);
    *ret_count = count;
    return r;
}

int environment_own(const char *const *extra, struct buf *out, uint32_t *ret_count)
{
    __attribute__((cleanup(overrides_done))) struct overrides o;
    *ret_count = 0;
    int r = overrides_make(extra, &o);
    if (r == 0)
        r = add_quiet(&o, false, out, ret_count);
    return r < 0 ? r : add_extra(&o, extra, out, ret_count);
}
