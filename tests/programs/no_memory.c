/*
 * no-memory.so, to be preloaded
 *
 * One allocation of the program fails: the one with the number NO_MEMORY_AT, counted from the first
 * sendmsg() while the file NO_MEMORY_FROM is there; to a keeper, that is the go. It appends a byte
 * to that file then. Programs that it starts are not concerned.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static const char *from;
static long at, count;
static bool begun;

__attribute__((constructor)) static void begin(void)
{
    from = getenv("NO_MEMORY_FROM");
    at = from ? atol(getenv("NO_MEMORY_AT")) : 0;
    unsetenv("LD_PRELOAD");
}

static bool fails(void)
{
    if (!begun || ++count != at)
        return false;
    int fd = open(from, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (write(fd, "x", 1) == 1)
        close(fd);
    errno = ENOMEM;
    return true;
}

ssize_t sendmsg(int sock, const struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    begun = begun || (from && access(from, F_OK) == 0);
    return real(sock, msg, flags);
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
