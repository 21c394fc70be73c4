#include "serve/whereabouts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "serve/secret_file.h"

#define WHERE_FILE "http-server"

static void write_path(char *ret, size_t size, const char *home)
{
    snprintf(ret, size, "%s/" WHERE_FILE, home);
}

void whereabouts_write(const char *home, const char *where)
{
    char path[4200], line[WHERE_SIZE + 1];
    write_path(path, sizeof path, home);
    snprintf(line, sizeof line, "%s\n", where);
    secret_file_write(path, line, strlen(line));
}

int whereabouts_read(const char *home, char ret_where[WHERE_SIZE], nacre_error *err)
{
    char path[4200];
    write_path(path, sizeof path, home);
    ssize_t n = secret_file_read(path, ret_where, WHERE_SIZE, err);
    if (n == NACRE_ENOTFOUND)
        return err_set(err, NACRE_ENOTFOUND,
                       "no server runs in this home; \"nacre serve\" starts one");
    if (n < 0)
        return (int)n;
    ret_where[strcspn(ret_where, "\n")] = '\0';
    return 0;
}

void whereabouts_remove(const char *home, const char *where)
{
    char path[4200], here[WHERE_SIZE];
    if (whereabouts_read(home, here, NULL) < 0 || strcmp(here, where) != 0)
        return;
    write_path(path, sizeof path, home);
    unlink(path);
}
