/* Arbitrary bytes as a configuration file, as a value of each setting, and as a variable's name. */
#include "fuzz.h"

#include "config/json_keys.h"
#include "config/secrets.h"
#include "config/settings.h"
#include "config/value.h"

/* What was taken is written so that it is taken again, as the same. */
static void check_value(const struct setting *setting, const char *text)
{
    struct value value, again;
    if (value_parse(setting, text, &value) < 0)
        return;
    MUST(value_parse(setting, value.text, &again) == 0);
    MUST(again.number == value.number);
    MUST(strcmp(again.text, value.text) == 0);
    if (setting->kind == NACRE_KIND_COUNT || setting->kind == NACRE_KIND_TIME ||
        setting->kind == NACRE_KIND_SIZE)
        MUST(value.number >= setting->least && value.number <= setting->most);
    for (size_t i = 0; value.list && (value.list[i] || again.list[i]); i++)
        MUST(strcmp(value.list[i], again.list[i]) == 0);
    value_done(&value);
    value_done(&again);
}

static int check_info(const nacre_setting_info *info, void *userdata)
{
    const size_t *lines = userdata;
    if (strcmp(info->origin, "default") == 0)
        return 0;
    MUST(strncmp(info->origin, "/f:", 3) == 0);
    size_t line = strtoul(info->origin + 3, NULL, 10);
    MUST(line >= 1 && line <= *lines);
    return 0;
}

static void check_file(const char *bytes, size_t size)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_settings *settings = settings_new();
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    int r = settings_take_json(settings, bytes, size, "/f", &error);
    MUST(r == 0 || (r < 0 && strncmp(error.msg, "/f:", 3) == 0));
    MUST(nacre_settings_each(settings, check_info, &lines) == 0);
    nacre_settings *copy = NULL;
    MUST(nacre_settings_copy(settings, &copy, &error) == 0);
    nacre_settings_free(copy);
    nacre_settings_free(settings);
}

/* Also over text that is no JSON at all. */
static void check_scan(const char *bytes, size_t size)
{
    struct json_keys keys = json_keys_begin(bytes, size);
    struct json_key key;
    while (json_keys_next(&keys, &key))
        MUST(key.value >= bytes && key.value + key.length <= bytes + size);
}

static void check_name(const char *name)
{
    const char *const list[] = {name, NULL};
    const struct secret_rules deny = {.deny = list}, allow = {.allow = list};
    secrets_is_secret(name, NULL);
    secrets_is_secret("GITHUB_TOKEN", &allow);
    /* A name as a pattern matches itself, also if there are stars in it. */
    if (!strchr(name, '=')) {
        MUST(secrets_is_secret(name, &deny) == SECRET_DENIED);
        MUST(secrets_is_secret(name, &allow) == SECRET_NOT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1), *text = malloc(size + 1);
    if (size > 0) {
        memcpy(bytes, data, size);
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_file(bytes, size);
    check_scan(bytes, size);
    check_name(text);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        check_value(&setting_table[i], text);
    free(bytes);
    free(text);
    return 0;
}
