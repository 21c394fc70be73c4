#include "cli/mcp_install.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "console/out.h"
#include "sys/fd.h"
#include "sys/replace.h"

#define FILE_SIZE_MAX ((size_t)16 << 20)
#define BACKUPS_MAX   1000

struct client_file {
    char path[PATH_MAX]; /* without links, if it is there */
    struct buf text;     /* "" if it is not */
    struct stat st;
    bool exists;
};

static int find_client_file(const struct mcp_client *client, char *ret_path)
{
    const char *file = mcp_client_file(client);
    const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
    const char *rest = strchr(file, '/');
    bool in_config = *file == '$';
    if (in_config && config && *config == '/')
        home = config;
    if (!home || *home != '/')
        return failure("mcp: HOME must say where %s is", file);
    const char *between = in_config && home != config ? "/.config" : "";
    if (snprintf(ret_path, PATH_MAX, "%s%s%s", home, between, rest) >= PATH_MAX)
        return failure("mcp: the path of %s is too long", file);
    return STATUS_OK;
}

/* A link leads to where somebody keeps the file: that one is changed, and the link stays. */
static int read_client_file(struct client_file *f)
{
    char resolved[PATH_MAX], data[65536];
    if (realpath(f->path, resolved))
        memcpy(f->path, resolved, sizeof resolved);
    f->text = BUF_UP_TO(FILE_SIZE_MAX);
    if (buf_str(&f->text, "") < 0)
        return failure("out of memory");
    cleanup_close int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0 || fstat(fd, &f->st) < 0)
        return failure("mcp: cannot read %s: %s", f->path, err_text(errno));
    if (!S_ISREG(f->st.st_mode))
        return failure("mcp: %s is no file", f->path);
    ssize_t n;
    while ((n = RETRY(read(fd, data, sizeof data))) > 0)
        if (buf_append(&f->text, data, (size_t)n) < 0)
            return failure("mcp: %s is too big", f->path);
    if (n < 0)
        return failure("mcp: cannot read %s: %s", f->path, err_text(errno));
    f->exists = true;
    return strlen(f->text.data) == f->text.len ? STATUS_OK : failure("mcp: %s is no text", f->path);
}

/* The folders that lead to a file. */
static int make_folders(const char *path)
{
    char folder[PATH_MAX];
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(at - path), path);
        if (mkdir(folder, 0700) < 0 && errno != EEXIST && errno != EROFS)
            return -errno;
    }
    return 0;
}

/* A second name for what is there: it stays when another file takes the first one. */
static int keep_old(const struct client_file *f, char *ret_backup)
{
    for (int i = 1; i < BACKUPS_MAX; i++) {
        if (snprintf(ret_backup, PATH_MAX, "%s.before-nacre-%d", f->path, i) >= PATH_MAX)
            return -ENAMETOOLONG;
        if (link(f->path, ret_backup) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int write_new(const struct client_file *f, const struct buf *text, char *ret_backup)
{
    int r = f->exists ? keep_old(f, ret_backup) : 0;
    if (r < 0)
        return r;
    r = replace_file(f->path, text->data, text->len, f->exists ? &f->st : NULL);
    if (r < 0 && f->exists)
        unlink(ret_backup);
    return r;
}

static int merge_file(const struct mcp_client *client, const struct mcp_launch *launch,
                      struct client_file *f)
{
    char backup[PATH_MAX] = "";
    nacre_error error = NACRE_ERROR_INIT;
    struct buf text cleanup_buf = BUF_UP_TO(2 * FILE_SIZE_MAX);
    if (mcp_client_merge(client, launch, f->text.data, &text, &error) < 0)
        return failure("mcp: %s cannot be changed: %s; without --install, --print-config says what "
                       "to add there",
                       f->path, error.msg);
    if (text.len == 0) {
        printf("the server is in %s already\n", f->path);
        return STATUS_OK;
    }
    int r = f->exists ? 0 : make_folders(f->path);
    if (r == 0)
        r = write_new(f, &text, backup);
    if (r < 0)
        return failure("mcp: cannot write %s: %s", f->path, err_text(-r));
    printf("added the server to %s\n", f->path);
    if (*backup)
        printf("the old file is %s\n", backup);
    return STATUS_OK;
}

int mcp_install(const struct mcp_client *client, const struct mcp_launch *launch)
{
    struct client_file file = {.exists = false};
    struct buf next cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    int status = find_client_file(client, file.path);
    if (status == STATUS_OK)
        status = read_client_file(&file);
    if (status == STATUS_OK)
        status = merge_file(client, launch, &file);
    buf_done(&file.text);
    if (status == STATUS_OK && mcp_client_next(client, &next) == 0)
        printf("\n%s", next.data);
    return status;
}
