/* What stands around a case: its directory, time, memory, files and helper programs. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "programs/pattern.h"

static char base[PATH_MAX];
static char home[PATH_MAX + 8];

/* -- The directory of a case ----------------------------------------------------------------- */

void surroundings_adopt(const char *path)
{
    snprintf(base, sizeof(base), "%s", path ? path : "");
    snprintf(home, sizeof(home), "%s/home", base);
}

void surroundings_make(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/nacre-test.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(1);
    }
    surroundings_adopt(path);
    setenv("NACRE_TEST_BASE", base, 1);
    setenv("NACRE_HOME", home, 1);
    snprintf(path, sizeof(path), "%.4000s/work", base);
    if (mkdir(path, 0700) < 0 || chdir(path) < 0) {
        perror(path);
        exit(1);
    }
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static int open_directory(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_D || type == FTW_DNR)
        chmod(path, 0700);
    return 0;
}

void surroundings_remove(void)
{
    if (chdir("/") < 0)
        perror("/");
    nftw(base, open_directory, 32, FTW_PHYS | FTW_MOUNT);
    nftw(base, remove_entry, 32, FTW_PHYS | FTW_DEPTH | FTW_MOUNT);
}

const char *test_base(void)
{
    return base;
}

const char *test_home(void)
{
    return home;
}

/* -- Time ------------------------------------------------------------------------------------ */

int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void pause_ms(int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
        ;
}

void await_pause(int64_t began)
{
    int64_t ms = (now_ms() - began) / 8;

    pause_ms(ms < 2 ? 2 : ms > 20 ? 20 : ms);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

bool sanitized(void)
{
    return SANITIZED;
}

int rounds(int count)
{
    return sanitized() ? count / 5 : count;
}

int time_scale(void)
{
    const char *given = getenv("NACRE_TEST_SCALE");
    int scale = given ? atoi(given) : 0;

    return scale > 0 ? scale : SANITIZED ? 4 : 1;
}

int64_t soon(int64_t ms)
{
    double load = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (getloadavg(&load, 1) != 1 || cpus < 1)
        load = 0;
    return (int64_t)((double)MS(ms) * (1 + load / (double)cpus / 2));
}

bool long_tests(void)
{
    return getenv("NACRE_TEST_LONG") != NULL;
}

/* -- Strings, memory, files ------------------------------------------------------------------ */

struct kept {
    struct kept *next;
    char text[];
};

static struct kept *kept_strings;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

const char *format(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int size = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    struct kept *kept = malloc(sizeof(*kept) + (size_t)size + 1);
    CHECK(kept);
    va_start(ap, fmt);
    vsnprintf(kept->text, (size_t)size + 1, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&kept_lock);
    kept->next = kept_strings;
    kept_strings = kept;
    pthread_mutex_unlock(&kept_lock);
    return kept->text;
}

void *shared_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

char *slurp(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0, room = 4096;
    ssize_t got = -1;

    if (fd < 0)
        return NULL;
    char *data = malloc(room + 1);
    while (data && (got = read(fd, data + size, room - size)) > 0) {
        size += (size_t)got;
        if (size == room)
            data = realloc(data, (room *= 2) + 1);
    }
    close(fd);
    CHECK(data && got == 0);
    data[size] = 0;
    if (ret_size)
        *ret_size = size;
    return data;
}

void spit(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        FAIL("cannot write %s: %s", path, strerror(errno));
    close(fd);
}

void check_pattern(const char *bytes, size_t size, uint64_t position, int stream, int lines)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)bytes[i] != pattern_byte(position + i, stream, lines))
            FAIL("byte %llu of stream %d is wrong, the %zuth of %zu",
                 (unsigned long long)(position + i), stream, i + 1, size);
    }
}

const char *gate(void)
{
    if (mkfifo("go", 0600) < 0 && errno != EEXIST)
        FAIL("cannot make a FIFO: %s", strerror(errno));
    return ": <go";
}

/* Whoever comes later meets a writer too, until the case ends. */
void let_go(void)
{
    if (open("go", O_RDWR | O_CLOEXEC) < 0)
        FAIL("cannot open the gate: %s", strerror(errno));
}

int fd_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count - 1;
}

/* The keeper of the build folder that this program lies in. */
void surroundings_find_keeper(void)
{
    char path[PATH_MAX], keeper[PATH_MAX + 16];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[size > 0 ? size : 0] = 0;
    for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
        *slash = 0;
        snprintf(keeper, sizeof(keeper), "%s/nacre-keeper", path);
        if (access(keeper, X_OK) == 0) {
            setenv("NACRE_KEEPER", keeper, 0);
            return;
        }
    }
}

/* -- Programs -------------------------------------------------------------------------------- */

static bool is_executable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

const char *program(const char *name)
{
    static const char *const near[] = {"programs", "../programs", "tests/programs",
                                       "../tests/programs"};
    const char *dir = getenv("NACRE_TEST_PROGRAMS");
    char self[PATH_MAX];

    if (dir && is_executable(format("%s/%s", dir, name)))
        return format("%s/%s", dir, name);
    ssize_t got = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(got > 0);
    self[got] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        const char *path = format("%s/%s/%s", self, near[i], name);
        if (is_executable(path))
            return path;
    }
    FAIL("the helper program %s was not built; NACRE_TEST_PROGRAMS names its directory", name);
}

bool have_program(const char *name)
{
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    bool found = false;

    for (char *save, *dir = strtok_r(path, ":", &save); dir && !found;
         dir = strtok_r(NULL, ":", &save))
        found = is_executable(format("%s/%s", dir, name));
    free(path);
    return found;
}
