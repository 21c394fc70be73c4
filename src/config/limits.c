#include "config/limits.h"

#include <errno.h>
#include <nacre/record.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "config/value.h"

#define PREFIX "limit_"

static const struct {
    nacre_setting setting;
    size_t offset; /* of its field */
    const char *example;
} limits_table[NACRE_LIMIT_COUNT] = {
    [NACRE_LIMIT_MEMORY] = {NACRE_SETTING_LIMIT_MEMORY, offsetof(nacre_limits, memory), "512MiB"},
    [NACRE_LIMIT_PROCESSES] = {NACRE_SETTING_LIMIT_PROCESSES, offsetof(nacre_limits, processes),
                               "256"},
    [NACRE_LIMIT_CPU] = {NACRE_SETTING_LIMIT_CPU, offsetof(nacre_limits, cpu), "1.5"},
    [NACRE_LIMIT_CPU_TIME] = {NACRE_SETTING_LIMIT_CPU_TIME, offsetof(nacre_limits, cpu_time_ms),
                              "10m"},
    [NACRE_LIMIT_FILES] = {NACRE_SETTING_LIMIT_FILES, offsetof(nacre_limits, files), "1024"},
    [NACRE_LIMIT_FILE_SIZE] = {NACRE_SETTING_LIMIT_FILE_SIZE, offsetof(nacre_limits, file_size),
                               "1GiB"},
    [NACRE_LIMIT_DISK] = {NACRE_SETTING_LIMIT_DISK, offsetof(nacre_limits, disk), "10GiB"},
};

const struct setting *limit_setting(nacre_limit limit)
{
    return &setting_table[limits_table[limit].setting];
}

const char *nacre_limit_name(nacre_limit limit)
{
    if (limit <= NACRE_LIMIT_NONE || (size_t)limit >= NACRE_LIMIT_COUNT)
        return "none";
    return limit_setting(limit)->name + strlen(PREFIX);
}

static uint64_t *field_of(nacre_limits *limits, nacre_limit limit)
{
    return (uint64_t *)((char *)limits + limits_table[limit].offset);
}

uint64_t limits_get(const nacre_limits *limits, nacre_limit limit)
{
    return *field_of((nacre_limits *)limits, limit);
}

nacre_limit limits_first(const nacre_limits *limits)
{
    for (nacre_limit limit = NACRE_LIMIT_MEMORY; limit < NACRE_LIMIT_COUNT; limit++)
        if (limits_get(limits, limit) > 0)
            return limit;
    return NACRE_LIMIT_NONE;
}

int limits_refused(nacre_limit limit, const char *why, nacre_error *err)
{
    return err_sys(err, NACRE_ESTART, EOPNOTSUPP, "limits",
                   "the limit %s cannot be held here: %s; leave it out, or set limits_strict to "
                   "off (\"nacre doctor\" shows what can be held)",
                   nacre_limit_name(limit), why);
}

nacre_limit limit_find(const char *name)
{
    for (nacre_limit limit = NACRE_LIMIT_MEMORY; limit < NACRE_LIMIT_COUNT; limit++)
        if (strcmp(nacre_limit_name(limit), name) == 0)
            return limit;
    return NACRE_LIMIT_NONE;
}

static int unknown_limit(const char *where, const char *name, nacre_error *err)
{
    return err_set(err, NACRE_EINVAL,
                   "%s%.40s must be one of memory, processes, cpu, cpu_time, files, file_size and "
                   "disk, such as %smemory",
                   where, name, where);
}

int limits_parse(const char *where, const char *name, const char *text, nacre_limits *limits,
                 nacre_error *err)
{
    struct value value = VALUE_NONE;
    char allowed[96];
    nacre_limit limit = limit_find(name);
    if (limit == NACRE_LIMIT_NONE)
        return unknown_limit(where, name, err);
    int r = value_parse(limit_setting(limit), text, &value);
    int64_t number = value.number;
    value_done(&value);
    if (r == -ENOMEM)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    setting_allowed(limit_setting(limit), allowed, sizeof allowed);
    if (r < 0 || number == 0)
        return err_set(err, NACRE_EINVAL,
                       "%s%s must be above 0 and within %s, such as %s; it is "
                       "\"%.40s\"",
                       where, name, allowed, limits_table[limit].example, text);
    *field_of(limits, limit) = (uint64_t)number;
    return 0;
}

static int check_limit(const nacre_settings *settings, nacre_limit limit, uint64_t asked,
                       nacre_error *err)
{
    const struct setting *setting = limit_setting(limit);
    int64_t most = nacre_settings_number(settings, limits_table[limit].setting);
    char number[VALUE_NUMBER_MAX], allowed[96];
    setting_allowed(setting, allowed, sizeof allowed);
    if (asked > (uint64_t)setting->most)
        return err_set(err, NACRE_EINVAL, "limits.%s must be within %s", nacre_limit_name(limit),
                       allowed);
    value_format(setting, (int64_t)asked, number);
    if (most > 0 && asked > (uint64_t)most)
        return err_set(err, NACRE_EINVAL,
                       "limits.%s can only be narrowed: %s is more than the %s of the setting %s; "
                       "ask for less, or leave it out",
                       nacre_limit_name(limit), number,
                       nacre_settings_text(settings, limits_table[limit].setting), setting->name);
    return 0;
}

int limits_narrow(const nacre_settings *settings, const nacre_limits *asked,
                  nacre_limits *ret_limits, nacre_error *err)
{
    nacre_limits limits = *asked;
    for (nacre_limit limit = NACRE_LIMIT_MEMORY; limit < NACRE_LIMIT_COUNT; limit++) {
        uint64_t *field = field_of(&limits, limit);
        int r = *field ? check_limit(settings, limit, *field, err) : 0;
        if (r < 0)
            return r;
        if (*field == 0)
            *field = (uint64_t)nacre_settings_number(settings, limits_table[limit].setting);
    }
    limits.strict =
        asked->strict != 0 || nacre_settings_number(settings, NACRE_SETTING_LIMITS_STRICT) != 0;
    *ret_limits = limits;
    return 0;
}
