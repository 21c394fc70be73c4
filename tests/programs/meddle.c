/* Preloaded by a command into its own shell: what came along open is changed by its name. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>

__attribute__((constructor)) static void change_times(void)
{
    static const struct timeval old[2] = {{1, 0}, {1, 0}};
    char path[32];
    for (int fd = 3; fd < 10; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        utimes(path, old);
        chmod(path, 0700);
    }
}
