/* nacre config: the settings in force, and where each of them comes from. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/out.h"
#include "console/print_json.h"
#include "session/defaults.h"

struct config_options {
    bool explain;
    bool json;
};

struct showing {
    const struct config_options *options;
    const nacre_settings *settings;
    struct paint paint;
    int width; /* of the widest value */
    json_t *object;
    const char *only; /* a name, or NULL = all */
};

/* A text that is empty stands for what is found then; for these two that is worth knowing. */
static const char *value_in_force(const nacre_setting_info *info)
{
    static char path[PATH_MAX];
    if (*info->value)
        return info->value;
    if (info->setting == NACRE_SETTING_HOME)
        defaults_home(path);
    else if (info->setting == NACRE_SETTING_KEEPER)
        defaults_keeper(path);
    else
        return info->value;
    return path;
}

/* In the form that a configuration file takes: times in seconds, sizes in bytes. */
static json_t *value_json(const nacre_settings *settings, const nacre_setting_info *info)
{
    int64_t number = nacre_settings_number(settings, info->setting);
    const char *text = value_in_force(info);
    switch (info->kind) {
    case NACRE_KIND_TIME:
        return number % 1000 ? json_real((double)number / 1000) : json_integer(number / 1000);
    case NACRE_KIND_COUNT:
    case NACRE_KIND_SIZE:
        return json_integer(number);
    case NACRE_KIND_SHARE:
        return number % 100 ? json_real((double)number / 100) : json_integer(number / 100);
    case NACRE_KIND_SWITCH:
        return json_boolean(number);
    case NACRE_KIND_LIST:
        return json_list(nacre_settings_list(settings, info->setting));
    default:
        return json_text(text, strlen(text));
    }
}

static int add_setting(const nacre_setting_info *info, struct showing *s)
{
    json_t *entry = json_pack(
        "{s:o, s:o, s:s, s:s, s:s, s:s}", "value", value_json(s->settings, info), "origin",
        json_text(info->origin, strlen(info->origin)), "default", info->fallback, "variable",
        info->variable, "allowed", info->allowed, "help", info->help);
    return entry && json_object_set_new(s->object, info->name, entry) == 0
               ? STATUS_OK
               : failure("out of memory");
}

static int measure(const nacre_setting_info *info, void *userdata)
{
    struct showing *s = userdata;
    if (!s->only || strcmp(s->only, info->name) == 0)
        s->width = MIN(MAX(s->width, (int)strlen(value_in_force(info))), 32);
    return 0;
}

static int print_entry(const nacre_setting_info *info, const struct showing *s)
{
    struct buf value cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    struct buf origin cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    const char *text = value_in_force(info);
    if (brief_line(&value, *text ? text : "-", COLUMNS_UNLIMITED) < 0 ||
        brief_line(&origin, info->origin, COLUMNS_UNLIMITED) < 0)
        return failure("out of memory");
    bool set = strcmp(info->origin, "default") != 0;
    printf("%-18s %s%-*s%s  %s%s%s\n", info->name, set ? s->paint.bold : "", s->width, value.data,
           set ? s->paint.off : "", s->paint.dim, origin.data, s->paint.off);
    if (s->options->explain)
        printf("    %s\n    allowed: %s; default: %s\n", info->help, info->allowed,
               *info->fallback ? info->fallback : "-");
    return STATUS_OK;
}

static int show_setting(const nacre_setting_info *info, void *userdata)
{
    struct showing *s = userdata;
    if (s->only && strcmp(s->only, info->name) != 0)
        return 0;
    if (s->object)
        return add_setting(info, s);
    if (!s->only || s->options->explain)
        return print_entry(info, s);
    puts(value_in_force(info));
    return STATUS_OK;
}

static int config(const void *options, char **words, size_t count)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_setting setting;
    struct showing s = {.options = options, .paint = paint_for(stdout)};
    if (count > 0 && nacre_settings_find(words[0], &setting, &error) < 0)
        return usage_error("config: %s", error.msg);
    nacre_settings *settings cleanup_settings = NULL;
    if (nacre_settings_load(NULL, &settings, &error) < 0)
        return library_failure(&error);
    s.settings = settings;
    s.only = count > 0 ? words[0] : NULL;
    if (s.options->json && !(s.object = json_object()))
        return failure("out of memory");
    nacre_settings_each(settings, measure, &s);
    int status = nacre_settings_each(settings, show_setting, &s);
    if (s.object && status == STATUS_OK)
        return print_json(s.object);
    json_decref(s.object);
    return status;
}

const struct verb verb_config = {
    .name = "config",
    .words = "[NAME]",
    .summary = "show the settings in force, and where each comes from",
    .details =
        "One line per setting: name, value, origin. With a NAME the value alone.\n"
        "\n"
        "A setting comes from the environment (NACRE_TIMEOUT_MAX), else from the configuration\n"
        "file, else it is the default. The file is $NACRE_CONFIG, else\n"
        "$XDG_CONFIG_HOME/nacre/config.json, else ~/.config/nacre/config.json:\n"
        "\n"
        "  {\"timeout\": \"2m\", \"quota\": \"256MiB\", \"env_allow\": [\"GITHUB_TOKEN\"]}\n"
        "\n"
        "examples:\n"
        "  nacre config\n"
        "  nacre config timeout --explain\n"
        "  nacre config --json | jq -r '.timeout.value'\n",
    .options = {{"explain", NULL, "also what each is for, and what it may be", OPTION_FLAG, false,
                 offsetof(struct config_options, explain)},
                {"json", NULL, "the same for programs", OPTION_FLAG, false,
                 offsetof(struct config_options, json)}},
    .options_size = sizeof(struct config_options),
    .max_words = 1,
    .offered = OFFERED_SETTINGS,
    .run = config,
};
