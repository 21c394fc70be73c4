#include "config/file.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "config/json_keys.h"
#include "config/value.h"
#include "sys/fd.h"
#include "sys/host.h"

#define WHERE_MAX 128

static int check_form(int fd, const char *path, struct stat *ret_st, nacre_error *err)
{
    if (fstat(fd, ret_st) < 0)
        return err_sys(err, NACRE_EIO, errno, "config", "cannot look at %.120s", path);
    if (!S_ISREG(ret_st->st_mode))
        return err_set(err, NACRE_EINVAL, "%.150s is not a file", path);
    if (ret_st->st_size > (off_t)CONFIG_MAX)
        return err_set(err, NACRE_EINVAL, "%.150s is over 256 KiB", path);
    return 0;
}

static int check_file(int fd, const char *path, nacre_error *err)
{
    struct stat st;
    int r = check_form(fd, path, &st, err);
    if (r < 0)
        return r;
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, NACRE_EPERM,
                       "%.120s belongs to uid %u, not to us (uid %u) or root; use a file of your "
                       "own",
                       path, st.st_uid, geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, NACRE_EPERM, "others may write to %.120s; run: chmod go-w %.60s", path,
                       strlen(path) <= 60 ? path : "FILE");
    return 0;
}

/* Not there, or in a directory that we may not even look into: another user's, left to us in
 * HOME. A file that is seen but cannot be read is an error. */
static bool is_missing(const char *path, int error)
{
    struct stat st;
    return error == ENOENT || error == ENOTDIR || (error == EACCES && stat(path, &st) < 0);
}

/* A FIFO would keep the open waiting for a partner. */
static int open_file(const char *path, int flags, nacre_error *err)
{
    int fd = open(path, flags | O_RDONLY | O_NONBLOCK | O_CLOEXEC), error = errno;
    return fd >= 0 ? fd_lift_consume(fd)
                   : err_sys(err, is_missing(path, error) ? NACRE_ENOTFOUND : NACRE_EIO, error,
                             "config", "cannot read %.150s", path);
}

static int slurp_file(int fd, const char *path, struct buf *out, nacre_error *err)
{
    char piece[8192];
    *out = BUF_UP_TO(CONFIG_MAX);
    ssize_t n;
    int e = buf_str(out, "");
    while (e == 0 && (n = fd_read_all(fd, piece, sizeof piece)) != 0)
        e = n < 0 ? (int)n : buf_append(out, piece, (size_t)n);
    return e < 0 ? err_sys(err, NACRE_EIO, -e, "config", "cannot read %.150s", path) : 0;
}

int config_read(const char *path, struct buf *out, nacre_error *err)
{
    cleanup_close int fd = open_file(path, 0, err);
    int r = fd < 0 ? fd : check_file(fd, path, err);
    return r < 0 ? r : slurp_file(fd, path, out, err);
}

int config_read_project(const char *path, struct buf *out, nacre_error *err)
{
    struct stat st;
    cleanup_close int fd = open_file(path, O_NOFOLLOW, err);
    int r = fd < 0 ? fd : check_form(fd, path, &st, err);
    return r < 0 ? r : slurp_file(fd, path, out, err);
}

int config_wrong_value(const struct setting *setting, const char *where, const char *got,
                       nacre_error *err)
{
    static const char *const forms[] = {
        [NACRE_KIND_COUNT] = "a whole number, ",
        [NACRE_KIND_TIME] = "a time such as 500ms, 30s or 5m, ",
        [NACRE_KIND_SIZE] = "a size such as 65536 or 64MiB, ",
        [NACRE_KIND_SWITCH] = "one of ",
        [NACRE_KIND_CHOICE] = "one of ",
        [NACRE_KIND_TEXT] = "a text, ",
        [NACRE_KIND_LIST] = "",
        [NACRE_KIND_SHARE] = "a decimal such as 1.5, ",
        [NACRE_KIND_RULES] = "",
    };
    char allowed[96];
    setting_allowed(setting, allowed, sizeof allowed);
    return err_set(err, NACRE_EINVAL, "%s%s takes %s%s; got %.40s", where, setting->name,
                   forms[setting->kind], allowed, got);
}

int config_unknown_name(const char *where, const char *name, nacre_error *err)
{
    const char *nearest = setting_nearest(name);
    if (nearest)
        return err_set(err, NACRE_EINVAL, "%sthere is no setting \"%.40s\"; did you mean \"%s\"?",
                       where, name, nearest);
    return err_set(err, NACRE_EINVAL, "%sthere is no setting \"%.40s\"; \"nacre config\" lists all",
                   where, name);
}

/* One key of the file, and where its value stands. */
struct file_entry {
    const struct setting *setting;
    json_t *value;
    struct json_key written;
    const char *where;
};

static bool is_amount(nacre_setting_kind kind)
{
    return kind == NACRE_KIND_COUNT || kind == NACRE_KIND_TIME || kind == NACRE_KIND_SIZE ||
           kind == NACRE_KIND_SHARE;
}

/* The names of an array with commas between them; -EINVAL for what is no name. */
static int join_names(const json_t *array, bool paths, struct buf *out)
{
    size_t i;
    json_t *name;
    json_array_foreach(array, i, name)
    {
        const char *text = json_string_value(name);
        if (!text || !*text || strpbrk(text, paths ? ",\n" : ", \t\r\n"))
            return -EINVAL;
        int r = buf_printf(out, "%s%s", i > 0 ? "," : "", text);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The value as the text that a variable or a flag would have; -EINVAL if its type is wrong. */
static int text_of(const struct file_entry *entry, struct buf *out)
{
    nacre_setting_kind kind = entry->setting->kind;
    int r = buf_str(out, "");
    if (r < 0)
        return r;
    if (json_is_string(entry->value))
        return buf_str(out, json_string_value(entry->value));
    if (json_is_number(entry->value) && is_amount(kind))
        return buf_append(out, entry->written.value, entry->written.length);
    if (json_is_boolean(entry->value) && kind == NACRE_KIND_SWITCH)
        return buf_str(out, json_is_true(entry->value) ? "on" : "off");
    if (json_is_array(entry->value) && kind == NACRE_KIND_LIST)
        return join_names(entry->value, entry->setting->least == LIST_OF_PATHS, out);
    if (json_is_array(entry->value) && kind == NACRE_KIND_RULES) {
        cleanup_free char *rules = json_dumps(entry->value, JSON_PRESERVE_ORDER);
        return rules ? buf_str(out, rules) : -ENOMEM;
    }
    return -EINVAL;
}

static int take_entry(const struct file_entry *entry, config_fn *fn, void *userdata,
                      nacre_error *err)
{
    struct buf text cleanup_buf = BUF_UP_TO(CONFIG_MAX);
    int r = text_of(entry, &text);
    if (r == -ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (r < 0) {
        char got[48];
        snprintf(got, sizeof got, "%.*s", (int)MIN(entry->written.length, sizeof got - 1),
                 entry->written.value);
        return config_wrong_value(entry->setting, entry->where, got, err);
    }
    return fn(entry->setting, text.data, entry->written.line, userdata, err);
}

/* Keys come in the order of the file, each of them once: so the n-th key of the object is the
 * n-th key of the text. */
static int take_object(json_t *object, const char *text, size_t size, const char *path,
                       config_fn *fn, void *userdata, nacre_error *err)
{
    struct json_keys keys = json_keys_begin(text, size);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char where[WHERE_MAX];
        struct file_entry entry = {setting_find(key), value, {0}, where};
        if (!json_keys_next(&keys, &entry.written))
            return err_set(err, NACRE_EINVAL, "%.150s cannot be understood", path);
        snprintf(where, sizeof where, "%.100s:%zu: ", path, entry.written.line);
        int r = entry.setting ? take_entry(&entry, fn, userdata, err)
                              : config_unknown_name(where, key, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A reader without a seed opens a file for one, which is not close-on-exec. Only the first seed of
 * a process counts. */
static void seed_reader(void)
{
    size_t seed = 0;
    host_random(&seed, sizeof seed);
    json_object_seed(seed | 1);
}

int config_parse(const char *text, size_t size, const char *path, config_fn *fn, void *userdata,
                 nacre_error *err)
{
    json_error_t error;
    seed_reader();
    json_auto_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (!root)
        return err_set(err, NACRE_EINVAL, "%.100s:%d: %.120s", path, MAX(error.line, 1),
                       error.text);
    if (json_is_object(root))
        return take_object(root, text, size, path, fn, userdata, err);
    return err_set(err, NACRE_EINVAL,
                   "%.100s:1: the file must be an object, such as {\"timeout\": \"5m\"}", path);
}
