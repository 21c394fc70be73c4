#include "tool/args.h"

#include <nacre/record.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "config/limits.h"

#define MS_PER_S   1000
#define SHOWN_MAX  40
#define HELP_MAX   4096
#define ITEMS_MAX  64
#define COUNT_MOST 1e15 /* beyond, not every whole number is one */

/* -- What is said of a wrong one -------------------------------------------------------------- */

/* What came instead, in a few words. */
static void describe_value(const json_t *value, char *buf, size_t size)
{
    static const char *const words[] = {[JSON_OBJECT] = "an object",
                                        [JSON_TRUE] = "true",
                                        [JSON_FALSE] = "false",
                                        [JSON_NULL] = "null"};
    switch (json_typeof(value)) {
    case JSON_STRING: {
        const char *text = json_string_value(value);
        size_t shown = text_whole(text, MIN(strlen(text), (size_t)SHOWN_MAX));
        snprintf(buf, size, "\"%.*s\"%s", (int)shown, text, text[shown] ? "..." : "");
        return;
    }
    case JSON_INTEGER:
        snprintf(buf, size, "%lld", (long long)json_integer_value(value));
        return;
    case JSON_REAL:
        snprintf(buf, size, "%g", json_real_value(value));
        return;
    case JSON_ARRAY:
        snprintf(buf, size, json_array_size(value) > 0 ? "an array" : "an empty array");
        return;
    default:
        snprintf(buf, size, "%s", words[json_typeof(value)]);
    }
}

static void list_choices(const struct arg *arg, char *buf, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; arg->choices[i] && len < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s\"%s\"", i ? ", " : "", arg->choices[i]);
}

/* What is allowed. */
static void describe_allowed(const struct arg *arg, char *buf, size_t size)
{
    /* Without a least value, and with one. */
    static const char *const words[][2] = {
        [ARG_TEXT] = {"a string", "a string that is not empty"},
        [ARG_BYTES] = {"a string", "a string that is not empty"},
        [ARG_FLAG] = {"true or false"},
        [ARG_SECONDS] = {"a number of seconds from 0 on", "a number of seconds above 0"},
        [ARG_MAP] = {"an object of strings, numbers and booleans"},
        [ARG_LIMITS] = {"an object of limits"},
        [ARG_WISHES] = {"an object of lists of texts"},
    };
    char list[80];
    if (arg->type == ARG_CHOICE) {
        list_choices(arg, list, sizeof list);
        snprintf(buf, size, "one of %s", list);
    } else if (arg->type == ARG_TEXTS) {
        snprintf(buf, size, "an array of 1 to %d strings", ITEMS_MAX);
    } else if (arg->type != ARG_COUNT) {
        snprintf(buf, size, "%s", words[arg->type][arg->least > 0]);
    } else if (arg->most > 0) {
        snprintf(buf, size, "a whole number from %lld to %lld", (long long)arg->least,
                 (long long)arg->most);
    } else {
        snprintf(buf, size, "a whole number from %lld on", (long long)arg->least);
    }
}

static int wrong(const struct arg *arg, const char *name, const json_t *value, nacre_error *err)
{
    char came[2 * SHOWN_MAX], allowed[96];
    describe_value(value, came, sizeof came);
    describe_allowed(arg, allowed, sizeof allowed);
    return err_set(err, NACRE_EINVAL, "%.40s must be %s, such as %s; it is %s", name, allowed,
                   arg->example, came);
}

static bool has_nul(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value);
}

/* The text with a NUL in a value, or among its members; NULL if there is none. place says where. */
static const json_t *find_nul(const json_t *value, char *place, size_t size)
{
    const char *key;
    json_t *item;
    size_t i;
    place[0] = '\0';
    if (has_nul(value))
        return value;
    json_array_foreach(value, i, item)
    {
        snprintf(place, size, "[%zu]", i);
        if (has_nul(item))
            return item;
    }
    json_object_foreach((json_t *)value, key, item)
    {
        snprintf(place, size, ".%.40s", key);
        if (has_nul(item))
            return item;
    }
    return NULL;
}

static int wrong_by_nul(const char *name, const char *place, const json_t *text, nacre_error *err)
{
    return err_set(
        err, NACRE_EINVAL,
        "%.40s%s contains a NUL byte at offset %zu; no shell and no program can be given "
        "that, leave it out",
        name, place, strlen(json_string_value(text)));
}

/* -- One argument ----------------------------------------------------------------------------- */

static bool take_text(const struct arg *arg, const json_t *value, const char **ret)
{
    if (!json_is_string(value) || json_string_length(value) < (size_t)arg->least)
        return false;
    *ret = json_string_value(value);
    return true;
}

static bool take_bytes(const json_t *value, struct arg_bytes *ret)
{
    if (!json_is_string(value))
        return false;
    *ret = (struct arg_bytes){json_string_value(value), json_string_length(value)};
    return true;
}

static bool take_seconds(const struct arg *arg, const json_t *value, double unit, int64_t *ret)
{
    if (!json_is_number(value))
        return false;
    double ms = json_number_value(value) * unit;
    if (!(arg->least > 0 ? ms > 0 : ms >= 0))
        return false;
    /* Rounded up: the shortest time is not none at all. */
    *ret = ms >= (double)arg->most ? arg->most : (int64_t)ms;
    *ret += (double)*ret < ms && *ret < arg->most;
    return true;
}

static bool take_count(const struct arg *arg, const json_t *value, int64_t *ret)
{
    double real = json_number_value(value);
    bool whole = real > -COUNT_MOST && real < COUNT_MOST && (double)(int64_t)real == real;
    if (!json_is_integer(value) && !(json_is_real(value) && whole))
        return false;
    *ret = json_is_integer(value) ? json_integer_value(value) : (int64_t)real;
    return *ret >= arg->least && (arg->most == 0 || *ret <= arg->most);
}

static bool take_choice(const struct arg *arg, const json_t *value, int *ret)
{
    if (!json_is_string(value))
        return false;
    for (int i = 0; arg->choices[i]; i++)
        if (strcmp(arg->choices[i], json_string_value(value)) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

static bool take_texts(const json_t *value, const json_t **ret)
{
    size_t i;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) == 0 || json_array_size(value) > ITEMS_MAX)
        return false;
    json_array_foreach(value, i, item) if (!json_is_string(item)) return false;
    *ret = value;
    return true;
}

/* Which value of a map is none, is said by check_map(). */
static bool take_map(const json_t *value, const json_t **ret)
{
    *ret = value;
    return json_is_object(value);
}

static int check_map(const struct arg *arg, const json_t *object, nacre_error *err)
{
    const char *key;
    json_t *item;
    char came[SHOWN_MAX + 8];
    json_object_foreach((json_t *)object, key, item)
    {
        if (json_is_string(item) || json_is_number(item) || json_is_boolean(item) ||
            json_is_null(item))
            continue;
        describe_value(item, came, sizeof came);
        return err_set(
            err, NACRE_EINVAL,
            "%s.%.40s must be a string, a number, or true or false, such as %s; it is %s",
            arg->name, key, arg->example, came);
    }
    return 0;
}

/* As a setting would have it: bytes, seconds and shares may be numbers too. What is wrong is said
 * by the limits themselves. */
static int take_limits(const struct arg *arg, const json_t *object, nacre_limits *ret,
                       nacre_error *err)
{
    const char *key;
    json_t *item;
    char number[32], where[32];
    snprintf(where, sizeof where, "%s.", arg->name);
    json_object_foreach((json_t *)object, key, item)
    {
        const char *text = json_is_string(item) ? json_string_value(item) : number;
        snprintf(number, sizeof number, "%.15g", json_number_value(item));
        if (json_is_null(item))
            continue;
        if (!json_is_string(item) && !json_is_number(item))
            describe_value(item, number, sizeof number);
        int r = limits_parse(where, key, text, ret, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_list_of_texts(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)value, i, item) if (!json_is_string(item)) return false;
    return json_is_array(value);
}

/* Each is one of the choices: a list, and the last one a switch. */
static bool take_wishes(const struct arg *arg, const json_t *object, void *to)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return false;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (arg->choices[i] && strcmp(arg->choices[i], key) != 0)
            i++;
        if (!arg->choices[i] ||
            !(arg->choices[i + 1] ? is_list_of_texts(value) : json_is_boolean(value)))
            return false;
    }
    *(const json_t **)to = object;
    return true;
}

static bool take_value(const struct arg *arg, const char *name, const json_t *value, void *to)
{
    size_t length = strlen(name);
    bool in_ms = length > 3 && strcmp(name + length - 3, "_ms") == 0;
    switch (arg->type) {
    case ARG_TEXT:
        return take_text(arg, value, to);
    case ARG_BYTES:
        return take_bytes(value, to);
    case ARG_FLAG:
        *(bool *)to = json_is_true(value);
        return json_is_boolean(value);
    case ARG_SECONDS:
        return take_seconds(arg, value, in_ms ? 1 : MS_PER_S, to);
    case ARG_COUNT:
        return take_count(arg, value, to);
    case ARG_CHOICE:
        return take_choice(arg, value, to);
    case ARG_TEXTS:
        return take_texts(value, to);
    case ARG_MAP:
        return take_map(value, to);
    case ARG_LIMITS:
        return json_is_object(value);
    case ARG_WISHES:
        return take_wishes(arg, value, to);
    }
    return false;
}

/* -- All of them ------------------------------------------------------------------------------ */

/* Whether a word is one of several with blanks between. */
static bool is_among(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static const struct arg *find_arg(const struct arg *args, const char *name)
{
    for (const struct arg *arg = args; arg->name; arg++)
        if (strcmp(arg->name, name) == 0 || is_among(arg->aliases, name))
            return arg;
    return NULL;
}

static const char *nearest(const struct arg *args, const char *name)
{
    const char *best = NULL;
    size_t steps = SIZE_MAX;
    for (const struct arg *arg = args; arg->name; arg++) {
        size_t distance = text_distance(name, arg->name);
        if (distance < steps && text_is_near(name, arg->name)) {
            best = arg->name;
            steps = distance;
        }
    }
    return best;
}

static int unknown(const struct arg *args, const char *name, nacre_error *err)
{
    char all[160] = "";
    size_t len = 0;
    const char *near = nearest(args, name);
    if (near)
        return err_set(err, NACRE_EINVAL, "there is no argument \"%.40s\"; did you mean \"%s\"?",
                       name, near);
    for (const struct arg *arg = args; arg->name && len < sizeof all; arg++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "", arg->name);
    return err_set(err, NACRE_EINVAL, "there is no argument \"%.40s\"; there are %s", name, all);
}

static void set_default(const struct arg *arg, char *values)
{
    void *to = values + arg->offset;
    if (arg->type == ARG_SECONDS || arg->type == ARG_COUNT)
        *(int64_t *)to = -1;
    else if (arg->type == ARG_CHOICE)
        *(int *)to = -1;
}

static int parse_one(const struct arg *args, const char *name, const json_t *value, char *values,
                     uint64_t *given, nacre_error *err)
{
    const struct arg *arg = find_arg(args, name);
    if (!arg)
        return unknown(args, name, err);
    if (json_is_null(value))
        return 0;
    uint64_t bit = UINT64_C(1) << (arg - args);
    if (*given & bit)
        return err_set(err, NACRE_EINVAL, "%s was given twice, once as %.40s", arg->name, name);
    *given |= bit;
    if (!take_value(arg, name, value, values + arg->offset))
        return wrong(arg, name, value, err);
    int r = arg->type == ARG_LIMITS
                ? take_limits(arg, value, (nacre_limits *)(values + arg->offset), err)
            : arg->type == ARG_MAP ? check_map(arg, value, err)
                                   : 0;
    if (r < 0)
        return r;
    char place[48];
    const json_t *nul = arg->type == ARG_BYTES ? NULL : find_nul(value, place, sizeof place);
    return nul ? wrong_by_nul(name, place, nul, err) : 0;
}

int args_parse(const struct arg *args, const json_t *object, void *values, size_t size,
               nacre_error *err)
{
    uint64_t given = 0;
    const char *name;
    json_t *value;
    memset(values, 0, size);
    for (const struct arg *arg = args; arg->name; arg++)
        set_default(arg, values);
    json_object_foreach((json_t *)object, name, value)
    {
        int r = parse_one(args, name, value, values, &given, err);
        if (r < 0)
            return r;
    }
    for (const struct arg *arg = args; arg->name; arg++)
        if (arg->required && !(given & UINT64_C(1) << (arg - args)))
            return err_set(err, NACRE_EINVAL, "%s is missing, such as %s", arg->name, arg->example);
    return 0;
}

/* -- The schema ------------------------------------------------------------------------------- */

const char *args_type_name(enum arg_type type)
{
    static const char *const names[] = {
        [ARG_TEXT] = "string",    [ARG_BYTES] = "string",  [ARG_FLAG] = "boolean",
        [ARG_SECONDS] = "number", [ARG_COUNT] = "integer", [ARG_CHOICE] = "string",
        [ARG_TEXTS] = "array",    [ARG_MAP] = "object",    [ARG_LIMITS] = "object",
        [ARG_WISHES] = "object",
    };
    return names[type];
}

int args_fill(struct buf *out, const char *template, const nacre_settings *settings)
{
    int r = 0;
    while (r == 0 && *template) {
        char name[32];
        size_t plain = strcspn(template, "{"), length;
        nacre_setting setting;
        r = buf_append(out, template, plain);
        template += plain;
        length = strcspn(template, "}");
        if (r < 0 || *template == '\0')
            break;
        snprintf(name, sizeof name, "%.*s", (int)length - 1, template + 1);
        if (nacre_settings_find(name, &setting, NULL) == 0)
            r = buf_str(out, nacre_settings_text(settings, setting));
        template += length + 1;
    }
    return r;
}

static json_t *filled(const char *template, const nacre_settings *settings)
{
    struct buf text cleanup_buf = BUF_UP_TO(HELP_MAX);
    return args_fill(&text, template, settings) == 0 && text.data ? json_string(text.data) : NULL;
}

static json_t *choices_of(const struct arg *arg)
{
    json_t *array = json_array();
    for (size_t i = 0; arg->choices[i]; i++)
        json_array_append_new(array, json_string(arg->choices[i]));
    return array;
}

static json_t *limits_properties(void)
{
    json_t *properties = json_object();
    for (nacre_limit limit = NACRE_LIMIT_MEMORY; limit < NACRE_LIMIT_COUNT; limit++) {
        nacre_setting_kind kind = limit_setting(limit)->kind;
        const char *type = kind == NACRE_KIND_COUNT   ? "integer"
                           : kind == NACRE_KIND_SHARE ? "number"
                                                      : "string";
        json_object_set_new(properties, nacre_limit_name(limit), json_pack("{s:s}", "type", type));
    }
    return properties;
}

/* The last choice is a switch. */
static json_t *wishes_properties(const struct arg *arg)
{
    json_t *properties = json_object();
    for (size_t i = 0; arg->choices[i]; i++)
        json_object_set_new(properties, arg->choices[i],
                            arg->choices[i + 1] ? json_pack("{s:s, s:{s:s}}", "type", "array",
                                                            "items", "type", "string")
                                                : json_pack("{s:s}", "type", "boolean"));
    return properties;
}

static json_t *property(const struct arg *arg, const nacre_settings *settings)
{
    json_t *p = json_object();
    json_object_set_new(p, "type", json_string(args_type_name(arg->type)));
    json_object_set_new(p, "description", filled(arg->help, settings));
    switch (arg->type) {
    case ARG_TEXT:
        if (arg->least > 0)
            json_object_set_new(p, "minLength", json_integer(arg->least));
        break;
    case ARG_SECONDS:
        json_object_set_new(p, arg->least > 0 ? "exclusiveMinimum" : "minimum", json_integer(0));
        break;
    case ARG_COUNT:
        json_object_set_new(p, "minimum", json_integer(arg->least));
        if (arg->most > 0)
            json_object_set_new(p, "maximum", json_integer(arg->most));
        break;
    case ARG_CHOICE:
        json_object_set_new(p, "enum", choices_of(arg));
        break;
    case ARG_TEXTS:
        json_object_set_new(p, "items", json_pack("{s:s}", "type", "string"));
        json_object_set_new(p, "minItems", json_integer(1));
        json_object_set_new(p, "maxItems", json_integer(ITEMS_MAX));
        break;
    case ARG_MAP:
        json_object_set_new(p, "additionalProperties",
                            json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean"));
        break;
    case ARG_LIMITS:
        json_object_set_new(p, "properties", limits_properties());
        json_object_set_new(p, "additionalProperties", json_false());
        break;
    case ARG_WISHES:
        json_object_set_new(p, "properties", wishes_properties(arg));
        json_object_set_new(p, "additionalProperties", json_false());
        break;
    case ARG_BYTES:
    case ARG_FLAG:
        break;
    }
    return p;
}

json_t *args_schema(const struct arg *args, const nacre_settings *settings)
{
    json_t *properties = json_object(), *required = json_array();
    for (const struct arg *arg = args; arg->name; arg++) {
        json_object_set_new(properties, arg->name, property(arg, settings));
        if (arg->required)
            json_array_append_new(required, json_string(arg->name));
    }
    json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                               "additionalProperties", 0);
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}
