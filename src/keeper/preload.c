/*
 * A preload for shells: `bash -c TEXT` without the text in any argv.
 *
 * `pkill -f word` must not find the shell that runs it, and a text may be longer than one
 * argument. So the shell is started with a small stand-in for its text, and this object puts the
 * real one in its place before main() sees it; the kernel goes on showing the stand-in. The shell
 * cannot tell the difference: $0, messages, tracing and traps are those of `bash -c TEXT`. What
 * brought the text and this object is taken out of the environment first.
 *
 * At its exit bash still knows PIPESTATUS; it is left in the run directory if it says more than
 * the exit code does. Other shells do not export the functions and are left alone.
 *
 * Every microsecond here is paid by every command: little of libc is used, and that lazily.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* bash's own; a variable begins with its name and its value. */
struct bash_variable {
    char *name;
    void *value;
};
extern struct bash_variable *find_variable(const char *name) __attribute__((weak));
extern char *array_to_string(void *array, const char *separator, int quoted) __attribute__((weak));
extern int signal_in_progress(int signal) __attribute__((weak));

static pid_t shell;
static const char *run_path;

/* The value, if the entry has this name. */
static char *value_of(char *entry, const char *name)
{
    while (*name)
        if (*entry++ != *name++)
            return NULL;
    return entry;
}

/* "ours:theirs": leaves theirs in the entry, and closes ours if it is a descriptor
 * ("/proc/self/fd/4"); 0 if nothing is left. */
static int restore_preload(char *value)
{
    char *at = value_of(value, "/proc/self/fd/");
    if (at && *at >= '0' && *at <= '9')
        close(*at - '0');
    for (at = value; *at && *at != ':'; at++)
        ;
    if (!*at)
        return 0;
    for (at++; (*value++ = *at++);)
        ;
    return 1;
}

static char *map_text(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return NULL;
    size_t size = (size_t)st.st_size;
    char *text = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED || pread(fd, text, size, 0) != (ssize_t)size)
        return NULL;
    close(fd);
    return text;
}

__attribute__((constructor)) static void put_text(int argc, char **argv, char **env)
{
    char *text = NULL;
    char **kept = env;
    for (char **entry = env; *entry; entry++) {
        char *value;
        if ((value = value_of(*entry, "NACRE_COMMAND="))) {
            text = value;
        } else if ((value = value_of(*entry, "NACRE_COMMAND_FD="))) {
            text = map_text(*value - '0');
            if (!text)
                *kept++ = *entry;
        } else if ((value = value_of(*entry, "NACRE_RUN="))) {
            run_path = value;
        } else if (!(value = value_of(*entry, "LD_PRELOAD=")) || restore_preload(value)) {
            *kept++ = *entry;
        }
    }
    *kept = NULL;
    if (text && argc > 2) {
        argv[argc - 1] = text;
        shell = getpid();
    }
}

/* Subshells run this too when they exit, but have another pid. */
__attribute__((destructor)) static void leave_pipestatus(void)
{
    char path[4200];
    if (shell != getpid() || !run_path || !find_variable || !array_to_string)
        return;
    if (signal_in_progress && signal_in_progress(0))
        return; /* a trap of the command's own ran last */
    struct bash_variable *variable = find_variable("PIPESTATUS");
    char *text = variable && variable->value ? array_to_string(variable->value, " ", 0) : NULL;
    if (!text || !strchr(text, ' '))
        return;
    snprintf(path, sizeof path, "%s/pipestatus", run_path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    size_t size = strlen(text);
    if (write(fd, text, size) != (ssize_t)size)
        unlink(path);
    close(fd);
}
