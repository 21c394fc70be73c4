#include "sys/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "sys/fd.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int host_identify(struct host *ret_host)
{
    char text[64];
    ssize_t n = fd_slurp_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
    if (n < 0)
        return (int)n;
    memset(ret_host, 0, sizeof *ret_host);
    size_t nibble = 0;
    for (const char *p = text; *p && nibble < 32; p++) {
        int digit = hex_digit(*p);
        if (digit < 0)
            continue;
        ret_host->boot[nibble / 2] = (uint8_t)(ret_host->boot[nibble / 2] << 4 | digit);
        nibble++;
    }
    struct stat st;
    if (stat("/proc/self/ns/pid", &st) < 0)
        return -errno;
    ret_host->pid_ns = st.st_ino;
    return 0;
}

int host_check_kernel(char *ret_release, size_t size)
{
    struct utsname names;
    if (uname(&names) < 0)
        return -errno;
    snprintf(ret_release, size, "%s", names.release);
    long major = fd_parse_number(names.release);
    const char *dot = strchr(names.release, '.');
    long minor = dot ? fd_parse_number(dot + 1) : 0;
    if (major > HOST_KERNEL_MAJOR || (major == HOST_KERNEL_MAJOR && minor >= HOST_KERNEL_MINOR))
        return 0;
    return -ENOSYS;
}

int host_random(void *buf, size_t size)
{
    char *p = buf;
    while (size > 0) {
        ssize_t n = getrandom(p, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

/* /proc/loadavg: three averages, "runnable/all", and the last pid that was handed out. */
static int load_field(int field)
{
    char text[128];
    ssize_t n = fd_slurp_at(AT_FDCWD, "/proc/loadavg", text, sizeof text);
    if (n < 0)
        return (int)n;
    const char *p = text;
    for (int i = 0; i < field && p; i++)
        p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
    long number = p ? fd_parse_number(p) : -1;
    return number < 0 || number > INT_MAX ? -EBADMSG : (int)number;
}

int host_count_runnable(void)
{
    return load_field(3);
}

pid_t host_last_pid(void)
{
    return load_field(4);
}

int host_set_session_nice(const char *nice)
{
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    if (dumpable == 0)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int r = fd_poke_at(AT_FDCWD, "/proc/self/autogroup", nice);
    if (dumpable == 0)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return r;
}

int host_count_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? -errno : CPU_COUNT(&set);
}
