/*
 * How fast output is rendered: clean text against a copy of it in memory, clean and coloured text
 * against `sed` that only strips escape sequences from the same bytes; and what a render needs in
 * memory when the output is made to need much.
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "screen/render.h"

#define SIZE   ((size_t)64 << 20)
#define PIECE  ((size_t)64 << 10)
#define ROUNDS 5

static const struct render_options options = {.first_line = 1, .line_max = 4096, .fold = true};

static int count_line(void *self, const struct render_line *line)
{
    *(uint64_t *)self += line->count;
    return 0;
}

/* Log lines of different lengths, up to just before the end; newlines after that. */
static char *clean_text(void)
{
    char *text = malloc(SIZE);
    size_t n = 0;
    for (unsigned i = 0; text && n + 200 < SIZE; i++)
        n += (size_t)sprintf(
            text + n, "2024-01-17 10:%02u:%02u.%03u INFO request %u served %.*s\n", i / 60 % 60,
            i % 60, i % 1000, i, (int)(i % 60),
            "from the cache of the second host, which was nearly full at that time");
    memset(text + n, '\n', SIZE - n);
    return text;
}

/* A build as tools draw it: a bar that is redrawn, and now and then a coloured line above it. */
static char *coloured_text(void)
{
    char *text = malloc(SIZE);
    size_t n = 0;
    for (unsigned i = 0; text && n + 300 < SIZE; i++) {
        if (i % 8 == 0)
            n += (size_t)sprintf(text + n, "\r\x1b[K   \x1b[1m\x1b[32mCompiling\x1b[0m part-%u\n",
                                 i);
        n += (size_t)sprintf(text + n, "\r\x1b[36m\x1b[1mBuilding\x1b[0m [%-25.*s] %u/%u: part-%u",
                             (int)(i % 25), "=========================", i % 300, 300u, i);
    }
    memset(text + n, '\n', SIZE - n);
    return text;
}

static double copied(const char *text)
{
    static char to[PIECE];
    double start = now_us();
    for (size_t i = 0; i < SIZE; i += PIECE) {
        memcpy(to, text + i, PIECE);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return now_us() - start;
}

static double rendered(const char *text)
{
    uint64_t lines = 0;
    struct render *r cleanup_render = NULL;
    double start = now_us();
    int e = render_new(&options, count_line, &lines, &r);
    for (size_t i = 0; e == 0 && i < SIZE; i += PIECE)
        e = render_feed(r, text + i, PIECE);
    if (e == 0)
        e = render_finish(r);
    double took = now_us() - start;
    if (e < 0 || lines == 0)
        die("render", NULL);
    return took;
}

/* sed reads the file from memory and writes to nowhere; bytes are characters to it. */
static double stripped(const char *file)
{
    char *argv[] = {(char *)"sed", (char *)"s/\x1b\\[[0-9;?]*[A-Za-z]//g", (char *)file, NULL};
    char *env[] = {(char *)"LC_ALL=C", (char *)"PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    double start = now_us();
    if (posix_spawnp(&pid, "sed", &actions, NULL, argv, env) != 0)
        die("sed", NULL);
    waitpid(pid, &status, 0);
    double took = now_us() - start;
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0)
        die("sed", NULL);
    return took;
}

static void write_file(const char *file, const char *text)
{
    FILE *f = fopen(file, "we");
    if (!f || fwrite(text, 1, SIZE, f) != SIZE || fclose(f) != 0)
        die(file, NULL);
}

static double speed(double us)
{
    return (double)SIZE / us / 1e3;
}

static void compare(const char *what, char *text, int with_copy)
{
    char file[] = "/tmp/nacre-bench.XXXXXX", name[64], measured[64];
    double ours[ROUNDS], copies[ROUNDS], theirs[ROUNDS];
    int fd = mkstemp(file);
    if (!text || fd < 0)
        die("the text", NULL);
    close(fd);
    write_file(file, text);
    for (int i = 0; i < ROUNDS; i++) {
        copies[i] = copied(text);
        ours[i] = rendered(text);
        theirs[i] = stripped(file);
    }
    unlink(file);
    free(text);
    double o = percentile(ours, ROUNDS, 50), c = percentile(copies, ROUNDS, 50);
    double t = percentile(theirs, ROUNDS, 50);
    snprintf(name, sizeof name, "%s rendered, against memcpy", what);
    snprintf(measured, sizeof measured, "%.2f GB/s against %.2f GB/s", speed(o), speed(c));
    if (with_copy)
        row(name, measured, c / o, "x", 0.2, 1);
    snprintf(name, sizeof name, "%s rendered, against sed", what);
    snprintf(measured, sizeof measured, "%.2f GB/s against %.2f GB/s", speed(o), speed(t));
    row(name, measured, t / o, "x", 3, 1);
}

/* Rows as long as they can be, all of them in the form that needs the most. */
static void memory(void)
{
    uint64_t lines = 0;
    struct render *r cleanup_render = NULL;
    long before = field_kb("/proc/self/status", "VmHWM:");
    if (render_new(&options, count_line, &lines, &r) < 0)
        die("render", NULL);
    for (int i = 0; i < 2 * RENDER_ROWS; i++) {
        for (int k = 0; k < 20000; k++)
            render_feed(r, "e\xcc\x81", 3);
        render_feed(r, "\rx\n", 3);
    }
    for (int i = 0; i < 1 << 14; i++)
        render_feed(r, "\xe4\xbd\xa0\x1b[A", 6);
    double used = (double)(field_kb("/proc/self/status", "VmHWM:") - before) / 1024;
    render_finish(r);
    row("memory of a render at its worst", "64 rows of cells, each at its ceiling", used, " MiB", 8,
        0);
}

int main(void)
{
    memory();
    compare("clean text", clean_text(), 1);
    compare("coloured progress", coloured_text(), 0);
    return 0;
}
