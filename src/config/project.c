#include "config/project.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "config/file.h"
#include "config/value.h"

struct narrowing {
    nacre_settings *settings;
    const char *path;
};

static void value_free(struct value *value)
{
    value_done(value);
}

static bool is_in_list(const char *const *list, const char *text)
{
    for (; list && *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

/* -- What is narrower ------------------------------------------------------------------------- */

/* Each writes the text that is in force then; an empty one leaves what is there. */
typedef int narrow_fn(const nacre_settings *settings, nacre_setting which,
                      const struct value *wanted, struct buf *out);

static int narrow_mode(const nacre_settings *settings, nacre_setting which,
                       const struct value *wanted, struct buf *out)
{
    static const int strictness[] = {[NACRE_SANDBOX_OFF] = 0,
                                     [NACRE_SANDBOX_WORKSPACE_WRITE] = 1,
                                     [NACRE_SANDBOX_READ_ONLY] = 2};
    int64_t now = nacre_settings_number(settings, which);
    return strictness[wanted->number] > strictness[now] ? buf_str(out, wanted->text) : 0;
}

static int narrow_limit(const nacre_settings *settings, nacre_setting which,
                        const struct value *wanted, struct buf *out)
{
    int64_t now = nacre_settings_number(settings, which);
    bool is_less = wanted->number > 0 && (now == 0 || wanted->number < now);
    return is_less ? buf_str(out, wanted->text) : 0;
}

static int narrow_switch(const nacre_settings *settings, nacre_setting which,
                         const struct value *wanted, struct buf *out)
{
    (void)settings;
    (void)which;
    return wanted->number ? buf_str(out, wanted->text) : 0;
}

static int narrow_by_more(const nacre_settings *settings, nacre_setting which,
                          const struct value *wanted, struct buf *out)
{
    const char *now = nacre_settings_text(settings, which);
    return buf_printf(out, "%s%s%s", now, *now && *wanted->text ? "," : "", wanted->text);
}

/* Hosts that both name; a project that says "on" has no wish. */
static int narrow_network(const nacre_settings *settings, nacre_setting which,
                          const struct value *wanted, struct buf *out)
{
    const char *const *now = nacre_settings_list(settings, which);
    const char *const *host = (const char *const *)wanted->list;
    bool is_open = is_in_list(now, "on");
    int r = 0;
    if (is_in_list(host, "on") || !host || !*host)
        return 0;
    for (; r == 0 && *host; host++)
        if (is_open || is_in_list(now, *host))
            r = buf_printf(out, "%s%s", out->len ? "," : "", *host);
    return r == 0 && out->len == 0 ? buf_str(out, "off") : r;
}

static const struct narrowable {
    nacre_setting setting;
    narrow_fn *narrow;
} narrowables[] = {
    {NACRE_SETTING_SANDBOX, narrow_mode},
    {NACRE_SETTING_SANDBOX_HIDE, narrow_by_more},
    {NACRE_SETTING_SANDBOX_PROTECT, narrow_by_more},
    {NACRE_SETTING_SANDBOX_NETWORK, narrow_network},
    {NACRE_SETTING_LIMIT_MEMORY, narrow_limit},
    {NACRE_SETTING_LIMIT_PROCESSES, narrow_limit},
    {NACRE_SETTING_LIMIT_CPU, narrow_limit},
    {NACRE_SETTING_LIMIT_CPU_TIME, narrow_limit},
    {NACRE_SETTING_LIMIT_FILES, narrow_limit},
    {NACRE_SETTING_LIMIT_FILE_SIZE, narrow_limit},
    {NACRE_SETTING_LIMIT_DISK, narrow_limit},
    {NACRE_SETTING_LIMITS_STRICT, narrow_switch},
};

static const struct narrowable *find_narrowable(const struct setting *setting)
{
    for (size_t i = 0; i < ARRAY_SIZE(narrowables); i++)
        if (&setting_table[narrowables[i].setting] == setting)
            return &narrowables[i];
    return NULL;
}

/* -- The file --------------------------------------------------------------------------------- */

static int narrow_by_key(const struct setting *setting, const char *text, size_t line,
                         void *userdata, nacre_error *err)
{
    const struct narrowing *n = userdata;
    const struct narrowable *narrowable = find_narrowable(setting);
    __attribute__((cleanup(value_free))) struct value wanted = VALUE_NONE;
    struct buf narrower cleanup_buf = BUF_UP_TO((size_t)2 * VALUE_LIST_MAX);
    char where[PATH_MAX + 32];
    snprintf(where, sizeof where, "%.100s:%zu: ", n->path, line);
    if (!narrowable)
        return err_set(err, NACRE_EINVAL,
                       "%sa project may only narrow the sandbox and limits: %s is for your own "
                       "configuration",
                       where, setting->name);
    int r = value_parse(setting, text, &wanted);
    if (r == -EINVAL)
        return config_wrong_value(setting, where, text, err);
    if (r == 0)
        r = narrowable->narrow(n->settings, narrowable->setting, &wanted, &narrower);
    if (r < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    if (narrower.len == 0)
        return 0;
    snprintf(where, sizeof where, "%.*s:%zu", PATH_MAX, n->path, line);
    return nacre_settings_set(n->settings, setting->name, narrower.data, where, err);
}

int project_narrow(nacre_settings *settings, const char *directory, nacre_error *err)
{
    char path[PATH_MAX];
    struct narrowing n = {settings, path};
    struct buf text cleanup_buf = {0};
    nacre_error inner = NACRE_ERROR_INIT;
    int length = snprintf(path, sizeof path, "%s/" PROJECT_FILE, directory);
    if (length < 0 || (size_t)length >= sizeof path)
        return 0; /* there is no such path */
    int r = config_read_project(path, &text, &inner);
    if (r == NACRE_ENOTFOUND)
        return 0;
    if (r < 0 && err)
        *err = inner;
    return r < 0 ? r : config_parse(text.data, text.len, path, narrow_by_key, &n, err);
}
