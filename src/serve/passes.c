#include "serve/passes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "serve/secret_file.h"
#include "sys/fd.h"
#include "sys/host.h"

#define PASSES_FILE "http-pages"
#define CODES_DIR   "http-codes"
#define LINE_SIZE   (TOKEN_SIZE + 32)

static int64_t now_s(void)
{
    return clock_real_ns() / NS_PER_S;
}

static const char *right_name(enum right right)
{
    return right == RIGHT_ACT ? "act" : "view";
}

static enum right right_named(const char *name)
{
    return strcmp(name, "act") == 0    ? RIGHT_ACT
           : strcmp(name, "view") == 0 ? RIGHT_VIEW
                                       : RIGHT_NONE;
}

/* -- The file --------------------------------------------------------------------------------- */

static bool is_old(const struct page_pass *pass)
{
    int64_t age = now_s() - pass->made_s;
    return age < 0 || age > (int64_t)PASS_DAYS * 24 * 3600;
}

static void add_pass(struct passes *p, const struct page_pass *pass)
{
    if (p->count == PASSES_MAX) {
        p->count--;
        memmove(p->items, p->items + 1, p->count * sizeof *p->items);
    }
    p->items[p->count++] = *pass;
}

static void take_pass_line(struct passes *p, const char *line)
{
    struct page_pass pass = {0};
    char right[8];
    long long made;
    if (sscanf(line, "%64[0-9a-f] %7s %lld", pass.token.text, right, &made) != 3)
        return;
    pass.made_s = made;
    pass.right = right_named(right);
    if (strlen(pass.token.text) == TOKEN_SIZE && pass.right != RIGHT_NONE && !is_old(&pass))
        add_pass(p, &pass);
}

void passes_load(struct passes *p, const char *home)
{
    char path[4200], text[PASSES_MAX * LINE_SIZE + 1];
    p->count = 0;
    snprintf(p->home, sizeof p->home, "%s", home);
    snprintf(path, sizeof path, "%s/" PASSES_FILE, home);
    if (secret_file_read(path, text, sizeof text, NULL) <= 0)
        return;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_pass_line(p, line);
}

/* A page whose pass could not be written has to be opened again after a restart. */
static void save_passes(const struct passes *p)
{
    char path[4200], text[PASSES_MAX * LINE_SIZE + 1];
    size_t size = 0;
    for (size_t i = 0; i < p->count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s %s %lld\n",
                                 p->items[i].token.text, right_name(p->items[i].right),
                                 (long long)p->items[i].made_s);
    snprintf(path, sizeof path, "%s/" PASSES_FILE, p->home);
    secret_file_write(path, text, size);
}

enum right passes_find(const struct passes *p, const char *shown, size_t size)
{
    enum right right = RIGHT_NONE;
    for (size_t i = 0; i < p->count; i++)
        if (token_is(&p->items[i].token, shown, size) && !is_old(&p->items[i]))
            right = p->items[i].right;
    return right;
}

/* -- Codes ------------------------------------------------------------------------------------ */

static bool is_code(const char *text, size_t size)
{
    return size == CODE_SIZE && strspn(text, "0123456789abcdef") >= CODE_SIZE;
}

/* Whoever removes the file has it: of two that show the same code one gets in. */
static enum right take_code(const char *home, const char *code, size_t size)
{
    char path[4300], text[16], name[CODE_SIZE + 1];
    struct stat st;
    if (!*home || !is_code(code, size))
        return RIGHT_NONE;
    snprintf(name, sizeof name, "%.*s", CODE_SIZE, code);
    snprintf(path, sizeof path, "%s/" CODES_DIR "/%s", home, name);
    if (secret_file_read(path, text, sizeof text, NULL) <= 0 || lstat(path, &st) < 0 ||
        unlink(path) < 0)
        return RIGHT_NONE;
    int64_t age = now_s() - st.st_mtim.tv_sec;
    return age < 0 || age > CODE_S ? RIGHT_NONE : right_named(text);
}

enum right passes_redeem(struct passes *p, const char *code, size_t size, struct token *ret)
{
    struct page_pass pass = {.right = take_code(p->home, code, size), .made_s = now_s()};
    if (pass.right == RIGHT_NONE || token_make(&pass.token) < 0)
        return RIGHT_NONE;
    add_pass(p, &pass);
    save_passes(p);
    *ret = pass.token;
    return pass.right;
}

/* Codes that nobody showed. */
static int remove_old_code(const char *name, void *userdata)
{
    struct stat st;
    int dir = *(const int *)userdata;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && now_s() - st.st_mtim.tv_sec > CODE_S)
        unlinkat(dir, name, 0);
    return 0;
}

int pass_code_make(const char *home, enum right right, char ret_code[CODE_SIZE + 1],
                   nacre_error *err)
{
    char path[4300];
    unsigned char bytes[CODE_SIZE / 2];
    snprintf(path, sizeof path, "%s/" CODES_DIR, home);
    int r = fd_make_dirs(path);
    int dir cleanup_close = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys(err, NACRE_EIO, r < 0 ? -r : errno, "open", "cannot make %s", path);
    fd_walk(dir, remove_old_code, &dir);
    r = host_random(bytes, sizeof bytes);
    for (size_t i = 0; r == 0 && i < sizeof bytes; i++)
        snprintf(ret_code + 2 * i, 3, "%02x", bytes[i]);
    if (r == 0) {
        snprintf(path, sizeof path, "%s/" CODES_DIR "/%s", home, ret_code);
        r = secret_file_write(path, right_name(right), strlen(right_name(right)));
    }
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "open", "cannot write %s", path) : 0;
}
