#include "catalog/catalog_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/defs.h"
#include "sys/fd.h"

#define TEMP    "catalog.new" /* while an empty file is made */
#define POLL_NS (2 * NS_PER_MS)

/* What SQLite puts beside a database. */
static const char *const companions[] = {"-wal", "-shm", "-journal"};

int catalog_file_exists(int home_fd)
{
    struct stat st;
    if (fstatat(home_fd, CATALOG_DB, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISREG(st.st_mode) ? 1 : -EINVAL;
}

int catalog_file_lock(int home_fd, int wait_ms)
{
    cleanup_close int fd = fd_open_file_at(home_fd, CATALOG_LOCK, O_RDWR | O_CREAT);
    if (fd < 0)
        return fd;
    int64_t deadline = clock_deadline(wait_ms);
    int r;
    while ((r = lock_take(fd)) == -EAGAIN && clock_left_ms(deadline) > 0)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    return r < 0 ? r : TAKE_FD(fd);
}

static int unlink_if_there(int home_fd, const char *name)
{
    return unlinkat(home_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* What lies beside a database that is gone would be taken for a part of the new one. */
static int remove_companions(int home_fd)
{
    for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
        char name[64];
        snprintf(name, sizeof name, CATALOG_DB "%s", companions[i]);
        int r = unlink_if_there(home_fd, name);
        if (r < 0)
            return r;
    }
    return 0;
}

int catalog_file_make(int home_fd)
{
    int r = catalog_file_exists(home_fd);
    if (r != 0)
        return r < 0 ? r : 0;
    r = remove_companions(home_fd);
    if (r == 0)
        r = unlink_if_there(home_fd, TEMP);
    if (r < 0)
        return r;
    /* Closed before it has its name: see above. */
    int fd = openat(home_fd, TEMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return renameat(home_fd, TEMP, home_fd, CATALOG_DB) < 0 ? -errno : 0;
}

static int set_name_aside(int home_fd, int64_t stamp, const char *suffix)
{
    char from[64], to[96];
    snprintf(from, sizeof from, CATALOG_DB "%s", suffix);
    snprintf(to, sizeof to, CATALOG_DAMAGED "%" PRId64 "%s", stamp, suffix);
    return renameat(home_fd, from, home_fd, to) < 0 && errno != ENOENT ? -errno : 0;
}

/* The stamps of the newest, in falling order. */
struct kept {
    int64_t stamps[CATALOG_KEPT];
    int home_fd;
};

static int64_t stamp_of(const char *name)
{
    size_t size = strlen(CATALOG_DAMAGED);
    return strncmp(name, CATALOG_DAMAGED, size) == 0 ? fd_parse_number(name + size) : -1;
}

static int note_stamp(const char *name, void *userdata)
{
    struct kept *kept = userdata;
    int64_t stamp = stamp_of(name);
    size_t at = 0;
    while (at < CATALOG_KEPT && stamp < kept->stamps[at])
        at++;
    if (at == CATALOG_KEPT || stamp == kept->stamps[at])
        return 0;
    memmove(&kept->stamps[at + 1], &kept->stamps[at],
            (CATALOG_KEPT - at - 1) * sizeof kept->stamps[0]);
    kept->stamps[at] = stamp;
    return 0;
}

static int remove_old(const char *name, void *userdata)
{
    const struct kept *kept = userdata;
    int64_t stamp = stamp_of(name);
    if (stamp >= 0 && stamp < kept->stamps[CATALOG_KEPT - 1])
        unlinkat(kept->home_fd, name, 0);
    return 0;
}

static void prune(int home_fd)
{
    struct kept kept = {.home_fd = home_fd};
    for (size_t i = 0; i < CATALOG_KEPT; i++)
        kept.stamps[i] = -1;
    if (fd_walk(home_fd, note_stamp, &kept) == 0)
        fd_walk(home_fd, remove_old, &kept);
}

int catalog_file_set_aside(int home_fd)
{
    int64_t stamp = clock_real_ns() / NS_PER_MS;
    int r = set_name_aside(home_fd, stamp, "");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(companions); i++)
        r = set_name_aside(home_fd, stamp, companions[i]);
    if (r == 0)
        prune(home_fd);
    return r;
}
