#include "config/append.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/file.h"
#include "config/json_keys.h"
#include "config/settings.h"
#include "sys/fd.h"
#include "sys/replace.h"

#define INDENT     "  "
#define LOCK_TRIES 20
#define LOCK_US    1000

struct config_text {
    char path[PATH_MAX]; /* without links */
    int lock;            /* a directory that others who add have to lock, too */
    struct stat st;
    bool exists;
    struct buf text;
};

/* -- The text --------------------------------------------------------------------------------- */

static bool is_json_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The end of what stands before a closing bracket. */
static size_t end_before(const char *text, size_t closing)
{
    while (closing > 0 && is_json_blank(text[closing - 1]))
        closing--;
    return closing;
}

/* The blanks that the line of an offset begins with. */
static struct buf indent_at(const char *text, size_t at)
{
    struct buf indent = BUF_UP_TO(CONFIG_MAX);
    size_t begin = at, n = 0;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    while (text[begin + n] == ' ' || text[begin + n] == '\t')
        n++;
    (void)buf_append(&indent, text + begin, n);
    return indent;
}

/* Puts a piece into a list or an object whose bracket closes there: behind what is in it, on a line
 * of its own if that bracket has one. */
static int insert_piece(struct buf *text, size_t closing, const char *piece)
{
    struct buf out cleanup_buf = BUF_UP_TO(CONFIG_MAX), indent cleanup_buf = {0};
    size_t end = end_before(text->data, closing);
    bool empty = end > 0 && strchr("[{", text->data[end - 1]);
    bool own_line = memchr(text->data + end, '\n', closing - end) != NULL;
    indent = indent_at(text->data, end);
    int r = buf_append(&out, text->data, end);
    if (r == 0 && !empty)
        r = buf_str(&out, ",");
    if (r == 0 && own_line)
        r = buf_printf(&out, "\n%s%s", indent.data ? indent.data : "", empty ? INDENT : "");
    else if (r == 0 && !empty)
        r = buf_str(&out, " ");
    if (r == 0)
        r = buf_str(&out, piece);
    if (r == 0)
        r = buf_append(&out, text->data + end, text->len - end);
    if (r < 0)
        return r;
    buf_done(text);
    *text = out;
    out = (struct buf){0};
    return 0;
}

/* Where the bracket of a list of that name closes; 0 = there is no such key. */
static size_t find_list_end(const struct buf *text, const json_t *root, const char *name)
{
    struct json_keys keys = json_keys_begin(text->data, text->len);
    struct json_key found;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        if (!json_keys_next(&keys, &found))
            return 0;
        if (strcmp(key, name) == 0)
            return (size_t)(found.value - text->data) + found.length - 1;
    }
    return 0;
}

static int append_item(struct buf *text, const json_t *root, const char *name, const json_t *item)
{
    cleanup_free char *piece = json_dumps(item, JSON_ENCODE_ANY);
    struct buf entry cleanup_buf = BUF_UP_TO(CONFIG_MAX);
    size_t at = find_list_end(text, root, name);
    if (!piece)
        return -ENOMEM;
    if (at > 0)
        return insert_piece(text, at, piece);
    int r = buf_printf(&entry, "\"%s\": [%s]", name, piece);
    at = text->len;
    while (at > 0 && text->data[at - 1] != '}')
        at--;
    return r < 0 || at == 0 ? -EINVAL : insert_piece(text, at - 1, entry.data);
}

/* -- What it says ----------------------------------------------------------------------------- */

static json_t *read_root(const struct config_text *c, nacre_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(c->text.data, c->text.len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(root))
        return root;
    err_set(err, NACRE_EINVAL, "%.100s:%d cannot be understood, so nothing was added to it: %.60s",
            c->path, root ? 1 : MAX(error.line, 1), root ? "it is no object" : error.text);
    json_decref(root);
    return NULL;
}

static bool has_item(const json_t *list, const json_t *item)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (json_equal(one, item)) return true;
    return false;
}

static int not_a_list(const struct config_text *c, const char *name, nacre_error *err)
{
    return err_set(err, NACRE_EINVAL,
                   "%s in %.120s is no list in brackets, so nothing was added to it", name,
                   c->path);
}

/* Adds what is missing, to the text and to the root. */
static int add_all(struct config_text *c, json_t *root, const char *name, const json_t *items,
                   nacre_error *err)
{
    size_t i;
    json_t *item, *list = json_object_get(root, name);
    if (list && !json_is_array(list))
        return not_a_list(c, name, err);
    json_array_foreach(items, i, item)
    {
        if (has_item(list, item))
            continue;
        int r = append_item(&c->text, root, name, item);
        if (r == 0 && !list)
            r = json_object_set_new(root, name, list = json_array());
        if (r == 0)
            r = json_array_append(list, item);
        if (r < 0)
            return err_set(err, r == -ENOMEM ? NACRE_ENOMEM : NACRE_EINVAL,
                           "%.150s has no room for it", c->path);
    }
    return 0;
}

/* What was written is read again before anybody relies on it. */
static int check_new_text(const struct config_text *c, const json_t *wanted, nacre_error *err)
{
    nacre_settings *settings cleanup_settings = settings_new();
    json_auto_t *root = read_root(c, err);
    if (!settings)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (!root)
        return NACRE_EINVAL;
    if (!json_equal(root, wanted))
        return err_set(err, NACRE_EINVAL, "nothing was added to %.150s: it is written too oddly",
                       c->path);
    return settings_take_json(settings, c->text.data, c->text.len, c->path, err);
}

/* -- The file --------------------------------------------------------------------------------- */

/* Who adds holds its directory, so that of two that add at once each finds what the other wrote. */
static int lock_directory(struct config_text *c, nacre_error *err)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(c->path, '/') - c->path), c->path);
    const char *name = *directory ? directory : "/";
    int r = fd_make_dirs(name);
    c->lock = r < 0 && r != -ENAMETOOLONG ? r : fd_open_dir_at(AT_FDCWD, name);
    for (int i = 0; c->lock >= 0 && flock(c->lock, LOCK_EX | LOCK_NB) < 0; i++)
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return err_set(err, NACRE_EBUSY, "somebody else holds %.150s; try again", name);
        else
            usleep(LOCK_US);
    return c->lock < 0 ? err_sys(err, NACRE_EIO, -c->lock, "config", "cannot write to %.150s", name)
                       : 0;
}

static int open_text_of(struct config_text *c, const char *path, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    if (*path != '/')
        return err_set(err, NACRE_ENOTFOUND, "this session has no configuration file to add it to");
    if (!realpath(path, c->path) && snprintf(c->path, sizeof c->path, "%s", path) >= PATH_MAX)
        return err_set(err, NACRE_EINVAL, "the path of the configuration file is too long");
    int r = lock_directory(c, err);
    if (r < 0)
        return r;
    r = config_read(c->path, &c->text, &why);
    if (r == NACRE_ENOTFOUND) {
        c->text = BUF_UP_TO(CONFIG_MAX);
        return buf_str(&c->text, "{\n}\n") < 0 ? err_set(err, NACRE_ENOMEM, "out of memory") : 0;
    }
    if (r < 0 && err)
        *err = why;
    c->exists = r == 0;
    if (r == 0 && lstat(c->path, &c->st) < 0)
        r = err_sys(err, NACRE_EIO, errno, "config", "cannot look at %.150s", c->path);
    return r;
}

static int append_to(struct config_text *c, const char *path, const json_t *additions,
                     nacre_error *err)
{
    const char *name;
    json_t *items;
    int r = open_text_of(c, path, err);
    json_auto_t *root = r == 0 ? read_root(c, err) : NULL;
    if (r == 0 && !root)
        r = NACRE_EINVAL;
    json_object_foreach((json_t *)additions, name, items) if (r == 0) r =
        add_all(c, root, name, items, err);
    if (r == 0)
        r = check_new_text(c, root, err);
    if (r < 0)
        return r;
    r = replace_file(c->path, c->text.data, c->text.len, c->exists ? &c->st : NULL);
    return r < 0 ? err_sys(err, NACRE_EIO, -r, "config", "cannot write %.150s", c->path) : 0;
}

int config_append(const char *path, const json_t *additions, nacre_error *err)
{
    struct config_text c = {.lock = -EBADF};
    int r = append_to(&c, path, additions, err);
    buf_done(&c.text);
    close_fd(&c.lock);
    return r;
}
