#include "session/defaults.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/defs.h"
#include "home/locate.h"
#include "local/find_keeper.h"

void defaults_home(char ret_path[PATH_MAX])
{
    struct home_location home;
    bool found = home_locate(NULL, &home, NULL) == 0;
    snprintf(ret_path, PATH_MAX, "%s", found ? home.path : "");
}

void defaults_keeper(char ret_path[PATH_MAX])
{
    struct keeper_files files;
    ret_path[0] = '\0';
    if (find_keeper(NULL, &files, NULL) < 0)
        return;
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", files.keeper_fd);
    ssize_t n = readlink(link, ret_path, PATH_MAX - 1);
    ret_path[MAX(n, 0)] = '\0';
    close_fd(&files.keeper_fd);
    close_fd(&files.text_fd);
}
