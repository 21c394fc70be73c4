#include "cli/cmd_doctor_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nacre/nacre.h>

#include "config/settings.h"
#include "console/out.h"
#include "console/print_json.h"

/* A variable of the environment. Its value is never shown. */
struct removed {
    char *name;
    enum secret why;
};

struct removals {
    struct removed *items;
    size_t count;
};

static void removals_done(struct removals *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->items[i].name);
    free(r->items);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct removed *)a)->name, ((const struct removed *)b)->name);
}

static int find_removals(const struct secret_rules *rules, struct removals *ret)
{
    size_t total = 0;
    while (environ && environ[total])
        total++;
    ret->items = calloc(total + 1, sizeof *ret->items);
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < total; i++) {
        enum secret why = secrets_is_secret(environ[i], rules);
        if (why == SECRET_NOT)
            continue;
        char *name = strndup(environ[i], strcspn(environ[i], "="));
        if (!name)
            return -ENOMEM;
        ret->items[ret->count++] = (struct removed){name, why};
    }
    qsort(ret->items, ret->count, sizeof *ret->items, by_name);
    return 0;
}

/* "env_allow": ["OLD", "NAME"]: what is allowed already stays so. */
static char *line_to_allow(const nacre_settings *settings, const char *name)
{
    json_t *names = json_list(nacre_settings_list(settings, NACRE_SETTING_ENV_ALLOW));
    json_array_append_new(names, json_text(name, strlen(name)));
    json_auto_t *object = json_pack("{s:o}", "env_allow", names);
    return json_dumps(object, JSON_EMBED);
}

/* Why, as a word for programs. */
static const char *const why_words[] = {[SECRET_NOT] = "",
                                        [SECRET_BY_NAME] = "name",
                                        [SECRET_BY_VALUE] = "value",
                                        [SECRET_DENIED] = "env_deny"};

static json_t *removed_json(const nacre_settings *settings, const struct removals *r)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < r->count; i++) {
        const struct removed *item = &r->items[i];
        bool denied = item->why == SECRET_DENIED;
        cleanup_free char *line = denied ? NULL : line_to_allow(settings, item->name);
        json_array_append_new(array, json_pack("{s:o, s:s, s:s?}", "name",
                                               json_text(item->name, strlen(item->name)), "why",
                                               why_words[item->why], "allow", line));
    }
    const char *file = nacre_settings_file(settings);
    return json_pack("{s:o, s:o}", "removed", array, "file", json_text(file, strlen(file)));
}

static int print_name(const nacre_settings *settings, const struct removed *item, int width)
{
    cleanup_free char *line =
        item->why == SECRET_DENIED ? NULL : line_to_allow(settings, item->name);
    struct buf name cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (brief_line(&name, item->name, COLUMNS_UNLIMITED) < 0)
        return failure("out of memory");
    printf("  %-*s  ", width, name.data);
    if (item->why == SECRET_DENIED)
        printf("denied by env_deny (%s)\n",
               nacre_settings_origin(settings, NACRE_SETTING_ENV_DENY));
    else
        printf("%s%s\n", line ? line : "",
               item->why == SECRET_BY_VALUE ? "  (a URL with a password)" : "");
    return STATUS_OK;
}

static int print_removed(const nacre_settings *settings, const struct removals *r)
{
    int width = 0, status = STATUS_OK;
    if (r->count == 0) {
        puts("commands inherit every variable of this environment");
        return STATUS_OK;
    }
    for (size_t i = 0; i < r->count; i++)
        width = MIN(MAX(width, (int)strlen(r->items[i].name)), 40);
    puts("commands do not inherit these variables; the line beside each would let it pass:");
    for (size_t i = 0; status == STATUS_OK && i < r->count; i++)
        status = print_name(settings, &r->items[i], width);
    printf("the line belongs into %s; NACRE_ENV_ALLOW=NAME,NAME does the same, and so does\n"
           "--env NAME=value for one command\n",
           *nacre_settings_file(settings) ? nacre_settings_file(settings)
                                          : "a file that NACRE_CONFIG names");
    return status;
}

int doctor_env(bool json)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_settings *settings cleanup_settings = NULL;
    if (nacre_settings_load(NULL, &settings, &error) < 0)
        return library_failure(&error);
    struct secret_rules rules = settings_secret_rules(settings);
    __attribute__((cleanup(removals_done))) struct removals r = {0};
    if (find_removals(&rules, &r) < 0)
        return failure("out of memory");
    return json ? print_json(removed_json(settings, &r)) : print_removed(settings, &r);
}
