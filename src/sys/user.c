#include "sys/user.h"

#include <pwd.h>
#include <stdio.h>

#include "base/defs.h"

const char *user_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int join_path(char *ret_path, const char *base, const char *middle, const char *rest)
{
    int n = snprintf(ret_path, PATH_MAX, "%s/%s%s%s", base, middle, *middle ? "/" : "", rest);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int user_path(const char *variable, const char *below, const char *rest, char ret_path[PATH_MAX])
{
    const char *base = user_variable(variable);
    if (base)
        return join_path(ret_path, base, "", rest);
    base = user_variable("HOME");
    if (base)
        return join_path(ret_path, base, below, rest);
    char buf[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, buf, sizeof buf, &found) != 0 || !found)
        return -ENOENT;
    return join_path(ret_path, found->pw_dir, below, rest);
}
