/* Settings: the values in force, and where each of them comes from. */
#include "config/settings.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "config/file.h"
#include "config/value.h"
#include "policy/rules.h"
#include "sys/user.h"

struct entry {
    struct value value;
    char *origin; /* NULL = the default */
};

struct nacre_settings {
    struct entry entries[SETTING_COUNT];
    char *file;
};

static int no_memory(nacre_error *err)
{
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

static size_t index_of(const struct setting *setting)
{
    return (size_t)(setting - setting_table);
}

/* Of a setting that this library does not know yet: nothing. */
static const struct entry *entry_of(const nacre_settings *settings, nacre_setting setting)
{
    static char empty[] = "";
    static const struct entry none = {.value = {.text = empty}};
    return (size_t)setting < SETTING_COUNT ? &settings->entries[setting] : &none;
}

/* What is wrong with a rule is a sentence of its own. */
static int check_rules(const struct setting *setting, const char *text, const char *where,
                       nacre_error *err)
{
    struct rules rules cleanup_rules = {0};
    return setting->kind == NACRE_KIND_RULES ? rules_parse(text, where, &rules, err) : 0;
}

/* Sets one value; what was there stays if it cannot be. origin is consumed. */
static int assign(nacre_settings *s, const struct setting *setting, const char *text,
                  const char *where, char *origin, nacre_error *err)
{
    struct entry *entry = &s->entries[index_of(setting)];
    struct value value;
    int r = origin ? check_rules(setting, text, where, err) : 0;
    if (r < 0) {
        free(origin);
        return r;
    }
    r = origin ? value_parse(setting, text, &value) : -ENOMEM;
    if (r < 0) {
        char got[48];
        free(origin);
        snprintf(got, sizeof got, "\"%.36s\"", text);
        return r == -ENOMEM ? no_memory(err) : config_wrong_value(setting, where, got, err);
    }
    value_done(&entry->value);
    free(entry->origin);
    *entry = (struct entry){value, origin};
    return 0;
}

nacre_settings *settings_new(void)
{
    nacre_settings *s = calloc(1, sizeof *s);
    for (size_t i = 0; s && i < SETTING_COUNT; i++) {
        if (value_parse(&setting_table[i], setting_table[i].fallback, &s->entries[i].value) < 0) {
            nacre_settings_free(s);
            return NULL;
        }
    }
    return s;
}

void nacre_settings_free(nacre_settings *settings)
{
    if (!settings)
        return;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        value_done(&settings->entries[i].value);
        free(settings->entries[i].origin);
    }
    free(settings->file);
    free(settings);
}

struct taking {
    nacre_settings *settings;
    const char *path;
};

static int take_key(const struct setting *setting, const char *text, size_t line, void *userdata,
                    nacre_error *err)
{
    struct taking *taking = userdata;
    char where[128];
    char *origin = NULL;
    snprintf(where, sizeof where, "%.100s:%zu: ", taking->path, line);
    if (asprintf(&origin, "%s:%zu", taking->path, line) < 0)
        return no_memory(err);
    return assign(taking->settings, setting, text, where, origin, err);
}

int settings_take_json(nacre_settings *settings, const char *text, size_t size, const char *path,
                       nacre_error *err)
{
    struct taking taking = {settings, path};
    return config_parse(text, size, path, take_key, &taking, err);
}

/* The file to read: *ret_named says whether somebody named it, so that it has to be there. */
static int find_file(const char *file, char ret_path[PATH_MAX], bool *ret_named, nacre_error *err)
{
    const char *named = file ? file : user_variable("NACRE_CONFIG");
    *ret_named = named != NULL;
    ret_path[0] = '\0';
    if (named && snprintf(ret_path, PATH_MAX, "%s", named) >= PATH_MAX)
        return err_sys(err, NACRE_EINVAL, ENAMETOOLONG, "config", "cannot read %.150s", named);
    if (!named && user_path("XDG_CONFIG_HOME", ".config", "nacre/config.json", ret_path) < 0)
        ret_path[0] = '\0'; /* nobody without a home has a file in it */
    /* A path that depends on the directory would let whoever made the directory decide. */
    if (!file && ret_path[0] && ret_path[0] != '/')
        return err_set(err, NACRE_EINVAL,
                       "the configuration file \"%.120s\" must be an absolute "
                       "path; check %s",
                       ret_path, named ? "NACRE_CONFIG" : "XDG_CONFIG_HOME and HOME");
    return 0;
}

static int take_file(nacre_settings *s, const char *file, nacre_error *err)
{
    char path[PATH_MAX];
    bool named;
    cleanup_buf struct buf text = {0};
    int r = find_file(file, path, &named, err);
    if (r < 0)
        return r;
    s->file = strdup(path);
    if (!s->file)
        return no_memory(err);
    if (!path[0])
        return 0;
    nacre_error inner = NACRE_ERROR_INIT;
    r = config_read(path, &text, &inner);
    if (r == NACRE_ENOTFOUND && !named)
        return 0;
    if (r == 0)
        return settings_take_json(s, text.data, text.len, path, err);
    if (err)
        *err = inner;
    return r;
}

static int take_environment(nacre_settings *s, nacre_error *err)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        char name[SETTING_NAME_MAX + 8], where[SETTING_NAME_MAX + 16];
        setting_variable(&setting_table[i], name);
        const char *value = user_variable(name);
        char *origin = NULL;
        if (!value)
            continue;
        snprintf(where, sizeof where, "%s: ", name);
        if (asprintf(&origin, "environment %s", name) < 0)
            return no_memory(err);
        int r = assign(s, &setting_table[i], value, where, origin, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int nacre_settings_load(const char *file, nacre_settings **ret_settings, nacre_error *reterr)
{
    cleanup_settings nacre_settings *s = settings_new();
    if (!s)
        return no_memory(reterr);
    int r = take_file(s, file, reterr);
    if (r == 0)
        r = take_environment(s, reterr);
    if (r == 0)
        *ret_settings = TAKE_PTR(s);
    return r;
}

int nacre_settings_copy(const nacre_settings *settings, nacre_settings **ret_settings,
                        nacre_error *reterr)
{
    cleanup_settings nacre_settings *s = calloc(1, sizeof *s);
    if (!settings)
        return err_set(reterr, NACRE_EINVAL, "the settings are NULL");
    bool ok = s && (!settings->file || (s->file = strdup(settings->file)));
    for (size_t i = 0; ok && i < SETTING_COUNT; i++) {
        const struct entry *from = &settings->entries[i];
        ok = value_parse(&setting_table[i], from->value.text, &s->entries[i].value) == 0 &&
             (!from->origin || (s->entries[i].origin = strdup(from->origin)));
    }
    if (!ok)
        return no_memory(reterr);
    *ret_settings = TAKE_PTR(s);
    return 0;
}

static int find_setting(const char *name, const struct setting **ret_setting, nacre_error *err)
{
    *ret_setting = name ? setting_find(name) : NULL;
    return *ret_setting ? 0 : config_unknown_name("", name ? name : "", err);
}

int nacre_settings_find(const char *name, nacre_setting *ret_setting, nacre_error *reterr)
{
    const struct setting *setting;
    int r = find_setting(name, &setting, reterr);
    if (r == 0)
        *ret_setting = (nacre_setting)index_of(setting);
    return r;
}

int nacre_settings_set(nacre_settings *settings, const char *name, const char *value,
                       const char *origin, nacre_error *reterr)
{
    const struct setting *setting;
    if (!settings || !value)
        return err_set(reterr, NACRE_EINVAL, "the settings or the value are NULL");
    int r = find_setting(name, &setting, reterr);
    return r < 0 ? r
                 : assign(settings, setting, value, "", strdup(origin ? origin : "call"), reterr);
}

int64_t nacre_settings_number(const nacre_settings *settings, nacre_setting setting)
{
    return entry_of(settings, setting)->value.number;
}

const char *nacre_settings_text(const nacre_settings *settings, nacre_setting setting)
{
    return entry_of(settings, setting)->value.text;
}

const char *const *nacre_settings_list(const nacre_settings *settings, nacre_setting setting)
{
    static const char *const none[] = {NULL};
    const char **list = entry_of(settings, setting)->value.list;
    return list ? list : none;
}

const char *nacre_settings_origin(const nacre_settings *settings, nacre_setting setting)
{
    const char *origin = entry_of(settings, setting)->origin;
    return origin ? origin : "default";
}

const char *nacre_settings_file(const nacre_settings *settings)
{
    return settings->file ? settings->file : "";
}

int nacre_settings_each(const nacre_settings *settings, nacre_settings_fn *fn, void *userdata)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < SETTING_COUNT; i++) {
        const struct setting *setting = &setting_table[i];
        char variable[SETTING_NAME_MAX + 8], allowed[96];
        setting_variable(setting, variable);
        setting_allowed(setting, allowed, sizeof allowed);
        nacre_setting_info info = {
            .setting = (nacre_setting)i,
            .kind = setting->kind,
            .name = setting->name,
            .variable = variable,
            .value = nacre_settings_text(settings, (nacre_setting)i),
            .fallback = setting->fallback,
            .origin = nacre_settings_origin(settings, (nacre_setting)i),
            .allowed = allowed,
            .help = setting->help,
        };
        r = fn(&info, userdata);
    }
    return r;
}

struct secret_rules settings_secret_rules(const nacre_settings *settings)
{
    return (struct secret_rules){
        .allow = nacre_settings_list(settings, NACRE_SETTING_ENV_ALLOW),
        .deny = nacre_settings_list(settings, NACRE_SETTING_ENV_DENY),
    };
}

const char *settings_text_or_null(const nacre_settings *settings, nacre_setting setting)
{
    const char *text = nacre_settings_text(settings, setting);
    return *text ? text : NULL;
}
