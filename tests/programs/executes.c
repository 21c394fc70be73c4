/*
 * executes WAY PROGRAM [ARGUMENT...]
 *
 * Executes a program in an unusual way; ends with 0 if it did, and with its errno if that was
 * refused.
 *
 *   fd       through a descriptor, without a name
 *   proc     through the name of a descriptor in /proc
 *   dirfd    by a name that begins at a descriptor
 *   thread   by another thread than the first one
 *   vfork    in a child that shares the memory, while a thread goes on running
 *   old      by the call of 32 bit programs, where there are such
 *   x32      by that of the third interface, where there is one
 *   hidden   by a process whose memory cannot be read
 *   swap     with words that another thread exchanges for those of `true` all the time, many times
 *   shared   likewise, but another process does it
 *   turn     by a process whose words become `rm -rf` and the second one 200 ms later
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWAPS 60

extern char **environ;
static char **words;
static const char *path;

static int by_fd(void)
{
    int fd = open(path, O_PATH);
    syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
    return errno;
}

static int by_proc(void)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", open(path, O_PATH));
    execve(name, words, environ);
    return errno;
}

static int by_dirfd(void)
{
    int fd = open("/", O_PATH | O_DIRECTORY);
    syscall(SYS_execveat, fd, path + 1, words, environ, 0);
    return errno;
}

static void *execute(void *data)
{
    execve(path, words, environ);
    *(int *)data = errno;
    return NULL;
}

static int by_thread(void)
{
    int error = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, execute, &error);
    pthread_join(thread, NULL);
    return error;
}

static void *idle(void *data)
{
    for (;;)
        usleep(1000);
    return data;
}

static int by_vfork(void)
{
    pthread_t thread;
    int status;
    pthread_create(&thread, NULL, idle, NULL);
    pid_t pid = vfork();
    if (pid == 0) {
        execve(path, words, environ);
        _exit(errno);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

/* What it points to has to lie in the first 4 GiB. */
static int by_old_call(void)
{
#if defined(__x86_64__)
    char *low =
        mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned *list = (unsigned *)low, count = 0;
    char *at = low + 4096;
    for (; words[count]; count++) {
        list[count] = (unsigned)(unsigned long)strcpy(at, words[count]);
        at += strlen(at) + 1;
    }
    strcpy(at, path);
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(11), "b"((unsigned)(unsigned long)at), "c"((unsigned)(unsigned long)low),
                       "d"(0)
                     : "memory");
    return (int)-result;
#else
    return ENOSYS;
#endif
}

static int by_third_call(void)
{
    syscall(SYS_execve | 0x40000000, path, words, environ);
    return errno;
}

static int by_hidden(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    execve(path, words, environ);
    return errno;
}

/* -- Words that change ------------------------------------------------------------------------ */

struct swapped {
    char program[64];
    char *argv[16];
    char text[4096];
};

static struct swapped *swapped;

static void put_program(const char *text)
{
    memcpy(swapped->program, text, strlen(text) + 1);
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("" ::: "memory");
}

static void *swap_all_the_time(void *data)
{
    for (;;) {
        put_program("/bin/true");
        put_program(path);
    }
    return data;
}

static void lay_out(void)
{
    char *at = swapped->text;
    for (int i = 0; words[i]; i++) {
        swapped->argv[i] = strcpy(at, words[i]);
        at += strlen(at) + 1;
    }
    put_program(path);
}

static pid_t execute_swapped(int in_process)
{
    pid_t pid = in_process ? vfork() : fork();
    if (pid == 0) {
        execve(swapped->program, swapped->argv, environ);
        _exit(errno);
    }
    return pid;
}

/* The program begins with /bin, so that both are about as long. */
static int by_swapping(int in_process)
{
    pthread_t thread;
    pid_t other = 0;
    swapped =
        mmap(NULL, sizeof *swapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lay_out();
    if (in_process)
        pthread_create(&thread, NULL, swap_all_the_time, NULL);
    else if ((other = fork()) == 0)
        swap_all_the_time(NULL);
    int error = 0;
    for (int i = 0; i < SWAPS; i++) {
        int status;
        waitpid(execute_swapped(in_process), &status, 0);
        error = WIFSIGNALED(status) ? error : WEXITSTATUS(status);
    }
    if (other > 0)
        kill(other, SIGKILL);
    return error;
}

static int by_thread_that_swaps(void)
{
    return by_swapping(1);
}

static int by_process_that_swaps(void)
{
    return by_swapping(0);
}

/* It says when it has done so. */
static int by_turning(void)
{
    static char option[] = "-rf";
    char *argv[] = {words[0], option, words[2], NULL};
    swapped =
        mmap(NULL, sizeof *swapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lay_out();
    pid_t pid = execute_swapped(0);
    usleep(200000);
    words = argv;
    path = "/bin/rm";
    lay_out();
    puts("turned");
    fflush(stdout);
    waitpid(pid, NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*way)(void);
    } ways[] = {
        {"fd", by_fd},
        {"proc", by_proc},
        {"dirfd", by_dirfd},
        {"thread", by_thread},
        {"vfork", by_vfork},
        {"old", by_old_call},
        {"x32", by_third_call},
        {"hidden", by_hidden},
        {"swap", by_thread_that_swaps},
        {"shared", by_process_that_swaps},
        {"turn", by_turning},
    };
    if (argc < 3)
        return 2;
    path = argv[2];
    words = argv + 2;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            return ways[i].way();
    return 2;
}
