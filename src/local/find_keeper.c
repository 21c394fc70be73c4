#include "local/find_keeper.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "sys/fd.h"

#define TEXT_NAME "nacre-text.so"
#define GATE_NAME "nacre-gate"

/* Tried below the directory the library (or the program that contains it) lies in. */
static const char *const places[] = {
    "nacre-keeper",                     /* a build folder, or a copy of everything in one place */
    "../libexec/nacre/nacre-keeper",    /* PREFIX/bin, PREFIX/lib */
    "../../libexec/nacre/nacre-keeper", /* PREFIX/lib/<architecture> */
};

static int open_program(const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd_lift_consume(fd);
}

static int own_directory(char *ret_dir, size_t size)
{
    Dl_info info;
    char path[PATH_MAX];
    if (dladdr((void *)find_keeper, &info) && info.dli_fname && strchr(info.dli_fname, '/') &&
        realpath(info.dli_fname, path)) {
        /* A shared library knows its own file; a static one is in the program. */
    } else {
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        if (n < 0)
            return -errno;
        path[n] = '\0';
    }
    char *slash = strrchr(path, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    int n = snprintf(ret_dir, size, "%s", path);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int search(char *ret_path, size_t size)
{
    char dir[PATH_MAX];
    if (own_directory(dir, sizeof dir) == 0) {
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
            int n = snprintf(ret_path, size, "%s/%s", dir, places[i]);
            int fd = n < 0 || (size_t)n >= size ? -ENAMETOOLONG : open_program(ret_path);
            if (fd >= 0)
                return fd;
        }
    }
    snprintf(ret_path, size, "%s/nacre-keeper", NACRE_LIBEXECDIR);
    return open_program(ret_path);
}

/* What was installed in the directory of the keeper; false if its name does not fit. */
static bool path_beside(const char *keeper_path, const char *name, char *ret_path, size_t size)
{
    const char *slash = strrchr(keeper_path, '/');
    int directory = slash ? (int)(slash + 1 - keeper_path) : 0;
    int n = snprintf(ret_path, size, "%.*s%s", directory, keeper_path, name);
    return n > 0 && (size_t)n < size;
}

static int open_text(const char *keeper_path)
{
    char path[PATH_MAX + sizeof TEXT_NAME];
    if (!path_beside(keeper_path, TEXT_NAME, path, sizeof path))
        return -EBADF;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -EBADF : fd_lift_consume(fd);
}

/* The program, with its path. */
static int open_keeper(const char *configured, char *ret_path, size_t size, nacre_error *err)
{
    int fd;
    if (configured && *configured) {
        snprintf(ret_path, size, "%s", configured);
        fd = open_program(ret_path);
        if (fd < 0)
            return err_sys(err, NACRE_EBACKEND, -fd, "keeper", "cannot use the keeper %.150s",
                           configured);
        return fd;
    }
    fd = search(ret_path, size);
    if (fd < 0)
        return err_set(err, NACRE_EBACKEND,
                       "nacre-keeper was not found beside the library or in %.100s; install it, or "
                       "set NACRE_KEEPER to its path",
                       NACRE_LIBEXECDIR);
    return fd;
}

int find_keeper(const char *configured, struct keeper_files *ret_files, nacre_error *err)
{
    char path[PATH_MAX];
    int fd = open_keeper(configured, path, sizeof path, err);
    if (fd < 0)
        return fd;
    *ret_files = (struct keeper_files){.keeper_fd = fd, .text_fd = open_text(path)};
    return 0;
}

int find_gate(const char *configured, int *ret_fd, nacre_error *err)
{
    char path[PATH_MAX], gate[PATH_MAX + sizeof GATE_NAME];
    cleanup_close int keeper = open_keeper(configured, path, sizeof path, err);
    if (keeper < 0)
        return keeper;
    int fd = path_beside(path, GATE_NAME, gate, sizeof gate) ? open_program(gate) : -ENAMETOOLONG;
    if (fd < 0)
        return err_sys(err, NACRE_EBACKEND, -fd, "gate",
                       "cannot use %.150s; install nacre-gate beside nacre-keeper", gate);
    *ret_fd = fd;
    return 0;
}
