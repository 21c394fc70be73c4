#include "sys/landlock.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/defs.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define GET_VERSION  1u
#define BENEATH_PATH 1

struct ruleset_attributes {
    uint64_t files, network, scopes;
};

struct path_rule {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

static int landlock_result(long r)
{
    return r < 0 ? -errno : (int)r;
}

int landlock_version(void)
{
    int version = landlock_result(syscall(SYS_landlock_create_ruleset, NULL, 0, GET_VERSION));
    return MAX(version, 0);
}

uint64_t landlock_writes(int version)
{
    uint64_t rights = LL_WRITE_FILE | LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_CHAR | LL_MAKE_DIR |
                      LL_MAKE_REG | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_BLOCK | LL_MAKE_SYM;
    if (version >= 2)
        rights |= LL_REFER;
    if (version >= 5)
        rights |= LL_IOCTL_DEV;
    return rights;
}

int landlock_new(uint64_t files, uint64_t scopes)
{
    struct ruleset_attributes attributes = {.files = files, .scopes = scopes};
    /* An older kernel takes a longer structure only if what it does not know is 0. */
    return landlock_result(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
}

int landlock_allow(int ruleset, int fd, uint64_t rights)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    struct path_rule rule = {.rights = S_ISDIR(st.st_mode) ? rights : rights & LL_OF_FILES,
                             .fd = fd};
    return landlock_result(syscall(SYS_landlock_add_rule, ruleset, BENEATH_PATH, &rule, 0));
}

int landlock_enter(int ruleset)
{
    return landlock_result(syscall(SYS_landlock_restrict_self, ruleset, 0));
}
