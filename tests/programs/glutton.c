/*
 * glutton WHAT AMOUNT PROCESSES [MARKER]
 *
 * PROCESSES children use so much each and then wait for a minute; with 0 it does so itself. WHAT is
 * memory (MiB), cpu (nothing but the processor, AMOUNT seconds of it), files (open at a time),
 * write (MiB to a file of its own in the working directory), or nothing. What is refused is said on
 * stderr, and is the end of that process.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void refuse(const char *what)
{
    perror(what);
    _exit(1);
}

static void use_memory(long amount)
{
    for (long i = 0; i < amount; i++) {
        volatile char *piece = malloc(MIB); /* what nobody reads would not be written */
        if (!piece)
            refuse("malloc");
        for (size_t at = 0; at < MIB; at += 1024)
            piece[at] = 1;
    }
}

static void use_cpu(long amount)
{
    while (clock() / CLOCKS_PER_SEC < amount)
        continue;
}

static void open_files(long amount)
{
    for (long i = 0; i < amount; i++)
        if (open("/dev/null", O_RDONLY) < 0)
            refuse("open");
}

static void write_file(long amount)
{
    static char piece[MIB];
    char name[32];
    snprintf(name, sizeof name, "eaten-%d", getpid());
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    memset(piece, 1, sizeof piece);
    for (long i = 0; i < amount; i++)
        if (write(fd, piece, sizeof piece) != (ssize_t)sizeof piece)
            refuse("write");
}

static void use_nothing(long amount)
{
    (void)amount;
}

static const struct {
    const char *name;
    void (*use)(long amount);
} uses[] = {{"memory", use_memory},
            {"cpu", use_cpu},
            {"files", open_files},
            {"write", write_file},
            {"nothing", use_nothing}};

static void use(const char *what, long amount)
{
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcmp(uses[i].name, what) == 0)
            uses[i].use(amount);
    sleep(60);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    long amount = atol(argv[2]), processes = atol(argv[3]);
    if (processes == 0)
        use(argv[1], amount);
    for (long i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            use(argv[1], amount);
            _exit(0);
        }
        if (pid < 0)
            perror("fork");
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
