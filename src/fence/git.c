#include "fence/git.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "sys/fd.h"

_Static_assert(PATH_MAX <= 4096, "buffers for paths");

static bool is_our_directory(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Root works in the repositories of others, which are theirs like the directory around them. */
static bool is_repository_of(const char *path, const char *directory)
{
    struct stat st, around;
    return is_our_directory(path) ||
           (geteuid() == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
            lstat(directory, &around) == 0 && st.st_uid == around.st_uid);
}

/* The first line of a small file, behind a word if there has to be one. */
static bool read_line(const char *directory, const char *name, const char *word, char *ret_text,
                      size_t size)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    ssize_t n = fd_slurp_at(AT_FDCWD, path, ret_text, size);
    size_t skip = strlen(word);
    if (n <= 0 || strncmp(ret_text, word, skip) != 0)
        return false;
    memmove(ret_text, ret_text + skip, strlen(ret_text + skip) + 1);
    ret_text[strcspn(ret_text, "\r\n")] = '\0';
    return ret_text[0] != '\0';
}

/* A path that is written relative to a directory, without links. */
static bool resolve_from(const char *directory, const char *text, char ret_path[4096])
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", text[0] == '/' ? "" : directory,
             text[0] == '/' ? "" : "/", text);
    return realpath(path, ret_path) != NULL;
}

/* A worktree's directory names the file that led to it, a submodule's the directory it lies in:
 * else anybody could write a file that makes any directory writable. */
static bool points_back(const char *own, const char *directory)
{
    char text[PATH_MAX], back[4096], expected[PATH_MAX + 8];
    snprintf(expected, sizeof expected, "%s/.git", directory);
    if (read_line(own, "gitdir", "", text, sizeof text))
        return resolve_from(own, text, back) && strcmp(back, expected) == 0;
    char config[16384], path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/config", own);
    if (fd_slurp_at(AT_FDCWD, path, config, sizeof config) <= 0)
        return false;
    const char *at = strstr(config, "worktree = ");
    if (!at)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at + 11, "\r\n"), at + 11);
    return resolve_from(own, text, back) && strcmp(back, directory) == 0;
}

/* What many worktrees share has each of them in it: else a worktree of one's own, which is easily
 * made, would make any directory writable. */
static bool has_worktree(const char *common, const char *own)
{
    char above[4096], worktrees[4096 + 16];
    snprintf(above, sizeof above, "%s", own);
    *strrchr(above, '/') = '\0';
    snprintf(worktrees, sizeof worktrees, "%s/worktrees", common);
    return strcmp(own, common) == 0 || strcmp(above, worktrees) == 0;
}

static bool take_linked(const char *directory, char ret_own[4096], char ret_common[4096])
{
    char text[PATH_MAX];
    struct stat st;
    char file[PATH_MAX + 8];
    snprintf(file, sizeof file, "%s/.git", directory);
    if (lstat(file, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    if (!read_line(directory, ".git", "gitdir: ", text, sizeof text) ||
        !resolve_from(directory, text, ret_own) || !is_our_directory(ret_own) ||
        !points_back(ret_own, directory))
        return false;
    if (!read_line(ret_own, "commondir", "", text, sizeof text))
        snprintf(text, sizeof text, ".");
    return resolve_from(ret_own, text, ret_common) && is_our_directory(ret_common) &&
           has_worktree(ret_common, ret_own);
}

bool git_find(const char *directory, char ret_own[4096], char ret_common[4096])
{
    char at[PATH_MAX];
    snprintf(at, sizeof at, "%s", directory);
    for (;;) {
        snprintf(ret_own, 4096, "%.4080s/.git", strcmp(at, "/") == 0 ? "" : at);
        if (is_repository_of(ret_own, *at ? at : "/")) {
            memcpy(ret_common, ret_own, strlen(ret_own) + 1);
            return true;
        }
        struct stat st;
        if (lstat(ret_own, &st) == 0)
            return take_linked(at, ret_own, ret_common);
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return false;
        *slash = '\0';
    }
}

/* -- What git obeys elsewhere -------------------------------------------------------------------
 */

bool git_is_bare(const char *directory)
{
    static const char *const names[] = {"HEAD", "config", "objects", "refs"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (access(path, F_OK) < 0)
            return false;
    }
    return true;
}

/* The value of a line "key = value", without quotes; false if it is another key's. */
static bool take_value_of(char *line, const char *key, char **ret_value)
{
    char *at = line + strspn(line, " \t");
    size_t n = strlen(key);
    if (strncasecmp(at, key, n) != 0)
        return false;
    at += n + strspn(at + n, " \t");
    if (*at != '=')
        return false;
    at += 1 + strspn(at + 1, " \t\"");
    at[strcspn(at, "\"\r")] = '\0';
    for (size_t size = strlen(at); size > 0 && strchr(" \t", at[size - 1]);)
        at[--size] = '\0';
    *ret_value = at;
    return *at != '\0';
}

/* Hooks are looked for from the files of the worktree, what is included from the configuration. */
int git_each_obeyed(const char *directory, git_obeyed_fn *fn, void *userdata)
{
    char path[2 * PATH_MAX], above[PATH_MAX], text[16384], *rest = text, *value;
    bool includes = false;
    int r = 0;
    snprintf(path, sizeof path, "%s/config", directory);
    snprintf(above, sizeof above, "%s", directory);
    char *slash = strrchr(above, '/');
    if (!slash || fd_slurp_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return 0;
    *slash = '\0';
    for (char *line; r == 0 && (line = strsep(&rest, "\n"));) {
        char *at = line + strspn(line, " \t");
        if (*at == '[')
            includes = strncasecmp(at + 1, "include", 7) == 0;
        bool hooks = !includes && take_value_of(line, "hooksPath", &value);
        if (!hooks && !(includes && take_value_of(line, "path", &value)))
            continue;
        snprintf(path, sizeof path, "%s%s%s",
                 *value == '/' ? ""
                 : hooks       ? above
                               : directory,
                 *value == '/' ? "" : "/", value);
        r = *value == '~' ? 0 : fn(path, userdata);
    }
    return r;
}
