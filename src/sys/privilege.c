#include "sys/privilege.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/defs.h"

/* What root of a container needs to build, install and test as root; nothing that reaches devices,
 * the kernel, the network's setup, other processes' memory, or files past their mounts. */
static const uint32_t kept_by_root = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
                                     1u << CAP_FSETID | 1u << CAP_KILL | 1u << CAP_SETGID |
                                     1u << CAP_SETUID | 1u << CAP_NET_BIND_SERVICE;

static int set_capabilities(uint32_t kept)
{
    struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{kept, kept, 0}, {0, 0, 0}};
    return syscall(SYS_capset, &version, data) < 0 ? -errno : 0;
}

int privilege_give_up(void)
{
    uint32_t kept = geteuid() == 0 ? kept_by_root : 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if ((cap >= 32 || !(kept & 1u << cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
            errno != EPERM)
            return -errno;
    return set_capabilities(kept);
}
