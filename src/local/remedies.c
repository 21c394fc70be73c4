#include "local/remedies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "sys/fd.h"

#define LANDLOCK_MAJOR 6
#define LANDLOCK_MINOR 12 /* the first with the scopes that hold P6 and P7 */

static const char *const property_words[FENCE_P_COUNT] = {
    [FENCE_P_NONE] = "the sandbox",
    [FENCE_P_FILES] = "files outside the workspace stay as they are",
    [FENCE_P_HIDDEN] = "secrets are hidden",
    [FENCE_P_PROTECTED] = "protected files stay as they are",
    [FENCE_P_NETWORK] = "there is no network",
    [FENCE_P_SOCKETS] = "no Unix socket of the host is reached",
    [FENCE_P_PROCESSES] = "other processes are neither signalled nor read",
    [FENCE_P_PRIVILEGE] = "nothing gains rights",
};

/* -- What it is like here -----------------------------------------------------------------------
 */

static bool says(const char *path, const char *value)
{
    char text[32];
    ssize_t n = fd_slurp_at(AT_FDCWD, path, text, sizeof text);
    return n > 0 && (text[strcspn(text, "\n")] = '\0', strcmp(text, value) == 0);
}

static bool is_filtered(void)
{
    char text[4096];
    ssize_t n = fd_slurp_at(AT_FDCWD, "/proc/self/status", text, sizeof text);
    const char *at = n > 0 ? strstr(text, "\nSeccomp:") : NULL;
    return at && at[strcspn(at + 1, "012") + 1] == '2';
}

static bool landlock_is_off(void)
{
    char text[512];
    return fd_slurp_at(AT_FDCWD, "/sys/kernel/security/lsm", text, sizeof text) > 0 &&
           !strstr(text, "landlock");
}

struct machine_rules remedy_look_around(void)
{
    struct utsname names;
    struct machine_rules s = {
        .apparmor = says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
        .clone_off = says("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        .none_allowed = says("/proc/sys/user/max_user_namespaces", "0"),
        .filtered = is_filtered(),
        .landlock_off = landlock_is_off(),
    };
    if (uname(&names) < 0 || sscanf(names.release, "%d.%d", &s.major, &s.minor) != 2)
        s.major = s.minor = 0;
    return s;
}

/* -- What to do ---------------------------------------------------------------------------------
 */

static const char container_remedy[] =
    "in a container: a seccomp profile that allows unshare, setns and mounting";
static const char apparmor_remedy[] = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or "
                                      "an AppArmor profile with \"userns,\"";

/* Namespaces and mounts. */
static const char *for_namespaces(const struct machine_rules *around, int error)
{
    if (around->none_allowed || error == ENOSPC)
        return "allow user namespaces: sysctl user.max_user_namespaces=10000";
    if (around->clone_off)
        return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1";
    if (around->apparmor)
        return apparmor_remedy;
    if (around->filtered)
        return container_remedy;
    return error == ENOSYS
               ? "it needs a newer Linux, or a kernel with namespaces"
               : "something forbids it: AppArmor or SELinux, or who started the container";
}

static const char *for_landlock(const struct machine_rules *around)
{
    bool known = around->major > 0;
    bool old = around->major < LANDLOCK_MAJOR ||
               (around->major == LANDLOCK_MAJOR && around->minor < LANDLOCK_MINOR);
    if (known && old)
        return "it needs Linux 6.12 or newer";
    if (around->landlock_off)
        return "it is switched off: add landlock to lsm= on the kernel's command line";
    if (around->filtered)
        return "in a container: a seccomp profile that allows the calls of Landlock";
    return "it needs Linux 6.12 or newer with Landlock (lsm=landlock on its command line)";
}

const char *remedy_for(const struct machine_rules *around, enum fence_step step, int error)
{
    switch (step) {
    case FENCE_STEP_OPEN:
    case FENCE_STEP_READ_ONLY:
    case FENCE_STEP_PLACE:
        if (error == ENOSYS && !around->filtered)
            return "it needs Linux 5.12 or newer";
        return error == EPERM || error == EACCES || error == ENOSYS
                   ? for_namespaces(around, error)
                   : "\"nacre doctor\" shows what this machine allows";
    case FENCE_STEP_USER_NS:
    case FENCE_STEP_MAPS:
    case FENCE_STEP_MOUNT_NS:
    case FENCE_STEP_LOOPBACK:
    case FENCE_STEP_NETWORK_NS:
    case FENCE_STEP_JOIN:
        return for_namespaces(around, error);
    case FENCE_STEP_LANDLOCK:
        return for_landlock(around);
    case FENCE_STEP_FILTER:
        return around->filtered ? "whoever filters system calls here does not allow another filter"
                                : "it needs seccomp with listeners (Linux 5.5 or newer)";
    default:
        return "\"nacre doctor\" shows what this machine allows";
    }
}

int fences_failed(enum fence_step step, int error, const char *place, nacre_error *err)
{
    struct machine_rules around = remedy_look_around();
    return err_sys(err, NACRE_ESTART, error, "sandbox",
                   "no sandbox, so nothing was started: cannot %s%s%.60s, by which %s; %s",
                   fence_step_words(step), *place ? " " : "", place,
                   property_words[fence_step_property(step)], remedy_for(&around, step, error));
}
