/* What the stand-in will execute, laid out from the spec in memory of its own. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "keeper/keeper.h"
#include "sys/fd.h"

#define PRELOAD_LINK  "/proc/self/fd/4"
#define TEXT_ENV_MAX  ((size_t)96 * 1024) /* MAX_ARG_STRLEN is 128 KiB */
#define EXTRA_ENTRIES 8

struct strings {
    char **list;
    size_t count;
};

static void add_string(struct strings *strings, const char *s)
{
    strings->list[strings->count++] = (char *)s;
    strings->list[strings->count] = NULL;
}

/* Points at count consecutive strings of the spec. */
static void add_strings(struct strings *strings, const char *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, s += strlen(s) + 1)
        add_string(strings, s);
}

void plan_note_preload(struct keeper *k)
{
    struct preload *preload = &k->session.preload;
    int fd = k->fd[FD_TEXT];
    char link[32];
    struct stat st = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = fd < 0 ? -1 : readlink(link, preload->path, sizeof preload->path - 1);
    preload->path[n < 0 ? 0 : n] = '\0';
    if (strpbrk(preload->path, ": ") || preload->path[0] != '/' || fstat(fd, &st) < 0)
        preload->path[0] = '\0';
    preload->dev = st.st_dev;
    preload->ino = st.st_ino;
}

/* A path is opened faster than a descriptor by its number, but another file may lie there now. */
static bool lies_there(const struct preload *preload)
{
    struct stat st;
    return preload->path[0] && stat(preload->path, &st) == 0 && st.st_ino == preload->ino &&
           st.st_dev == preload->dev;
}

/* What was opened outside leads past the mounts of a fence: whoever has it could change the owner
 * and the mode of our file by it. So a command inside gets a copy, where it cannot see the file. */
int plan_copy_preload(const struct keeper *k, struct standin *s)
{
    off_t at = 0;
    struct stat st;
    if (s->fd[FD_TEXT] < 0 || lies_there(&k->session.preload))
        return 0;
    cleanup_close int fd = memfd_create("preload", MFD_CLOEXEC);
    if (fd < 0 || fstat(s->fd[FD_TEXT], &st) < 0)
        return -errno;
    while (at < st.st_size) {
        ssize_t n = sendfile(fd, s->fd[FD_TEXT], &at, (size_t)(st.st_size - at));
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    int copy = fd_lift_consume(TAKE_FD(fd));
    s->fd[FD_TEXT] = copy;
    return MIN(copy, 0);
}

/* Puts our preload in front of whatever the environment already asks for. */
static void add_preload(const struct keeper *k, struct standin *s, struct strings *env)
{
    const struct preload *preload = &k->session.preload;
    static const char name[] = "LD_PRELOAD=";
    const struct spec *spec = &s->plan.spec;
    const char *theirs = NULL;
    size_t slot = env->count;
    if (s->fd[FD_TEXT] < 0 || !spec->head->preload)
        return;
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->list[i], name, sizeof name - 1) == 0) {
            theirs = env->list[i] + sizeof name - 1;
            slot = i;
        }
    bool there = lies_there(preload);
    int n = snprintf(s->preload_entry, sizeof s->preload_entry, "%s%s%s%s", name,
                     there ? preload->path : PRELOAD_LINK, theirs ? ":" : "", theirs ? theirs : "");
    const char *run = spec_string(spec, spec->head->run_path);
    /* In a fence the directory of the run is not to be seen. */
    int m = enter_is_fenced(k)
                ? snprintf(s->run_entry, sizeof s->run_entry, "NACRE_RUN=" FENCE_RUN_INSIDE "/%s",
                           nacre_id_format(&k->st.id).s)
                : snprintf(s->run_entry, sizeof s->run_entry, "NACRE_RUN=%s", run);
    if (n < 0 || (size_t)n >= sizeof s->preload_entry || m < 0 || (size_t)m >= sizeof s->run_entry)
        return;
    if (slot == env->count)
        add_string(env, s->preload_entry);
    else
        env->list[slot] = s->preload_entry;
    add_string(env, s->run_entry);
    s->plan.preload = !there;
}

/* A text that is too long for a variable goes through memory that the shell reads as fd 3. */
static int long_text(const struct spec *spec)
{
    const struct spec_head *head = spec->head;
    cleanup_close int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, spec_string(spec, head->text), head->text_size) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return fd_lift_consume(TAKE_FD(fd));
}

static void shell_arguments(const struct spec *spec, bool is_long, struct strings *argv)
{
    add_strings(argv, spec_string(spec, spec->head->argv), 1);
    if (spec->head->kind == SPEC_BASH)
        add_string(argv, "--norc");
    add_string(argv, "-c");
    add_string(argv, spec_stand_in(spec->head->kind, is_long));
}

static size_t count_pointers(const struct spec_head *head)
{
    return (size_t)head->argc + head->envc + (size_t)EXTRA_ENTRIES * 2;
}

/* Room for that many pointers, already there if they are not too many. */
static char **pointer_space(struct standin *s, size_t count)
{
    if (count <= PLAN_POINTERS)
        return s->pointers;
    void *map = mmap(NULL, count * sizeof(char *), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* The spec where it arrived, or mapped if it was too long for that. */
int plan_load(struct standin *s, size_t received, int spec_fd)
{
    size_t inside = received - offsetof(struct wire_go, spec);
    if (spec_fd >= 0)
        return spec_map(spec_fd, &s->plan.spec);
    if (inside != s->go.size)
        return -EBADMSG;
    s->plan.spec = (struct spec){.head = (const void *)s->go.spec, .size = inside};
    return spec_check(s->go.spec, inside);
}

int plan_lay_out(const struct keeper *k, struct standin *s)
{
    struct plan *plan = &s->plan;
    const struct spec *spec = &plan->spec;
    const struct spec_head *head = spec->head;
    char **pointers = pointer_space(s, count_pointers(head));
    if (!pointers)
        return -ENOMEM;
    struct strings argv = {.list = pointers};
    struct strings env = {.list = pointers + head->argc + EXTRA_ENTRIES};
    bool is_shell = head->kind != SPEC_ARGV;
    bool is_long = is_shell && head->text_size > TEXT_ENV_MAX;
    plan->program = spec_string(spec, head->program);
    plan->cwd = spec_string(spec, head->cwd);
    plan->argv = argv.list;
    plan->env = env.list;
    add_strings(&env, spec_string(spec, head->env), head->envc);
    if (!is_shell) {
        add_strings(&argv, spec_string(spec, head->argv), head->argc);
        return 0;
    }
    add_preload(k, s, &env);
    shell_arguments(spec, is_long, &argv);
    /* The text stands behind its variable's name in the spec. */
    add_string(&env, is_long ? "NACRE_COMMAND_FD=3"
                             : spec_string(spec, head->text) - strlen(SPEC_TEXT_NAME));
    if (is_long)
        plan->text = long_text(spec);
    return is_long ? MIN(plan->text, 0) : 0;
}

void plan_forget(struct standin *s)
{
    const struct spec_head *head = s->plan.spec.head;
    if (s->plan.argv && s->plan.argv != s->pointers)
        munmap(s->plan.argv, count_pointers(head) * sizeof(char *));
    if (head && head != (const void *)s->go.spec)
        spec_unmap(&s->plan.spec);
}
