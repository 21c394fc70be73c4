#include "session/always.h"

#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "base/hold.h"
#include "config/append.h"
#include "policy/interpreters.h"
#include "session/session.h"
#include "text/legible.h"

#define LINES_MAX ((size_t)64 * 1024)
#define POLICY    "policy"

/* -- The rules of a session ------------------------------------------------------------------- */

static int no_memory_for_rules(nacre_error *err)
{
    return err_set(err, NACRE_ENOMEM, "out of memory");
}

/* NULL and an error. */
static struct session_rules *new_rules(const nacre_session *s, const char *text, nacre_error *err)
{
    struct session_rules *new = calloc(1, sizeof *new + strlen(text) + 1);
    if (!new) {
        no_memory_for_rules(err);
        return NULL;
    }
    memcpy(new->text, text, strlen(text) + 1);
    if (rules_parse(new->text, "", &new->rules, err) < 0) {
        free(new);
        return NULL;
    }
    new->rules.gated = s->gated;
    new->rules.fallback =
        (nacre_verdict)nacre_settings_number(s->settings, NACRE_SETTING_POLICY_DEFAULT);
    return new;
}

int always_begin(nacre_session *s, nacre_error *err)
{
    nacre_error why = NACRE_ERROR_INIT;
    struct session_rules *rules =
        new_rules(s, nacre_settings_text(s->settings, NACRE_SETTING_POLICY), &why);
    atomic_store(&s->rules, rules);
    if (rules)
        return 0;
    if (err)
        *err = why;
    return why.code;
}

void always_end(nacre_session *s)
{
    struct session_rules *rules = atomic_load(&s->rules);
    while (rules) {
        struct session_rules *before = rules->before;
        rules_done(&rules->rules);
        free(rules);
        rules = before;
    }
}

/* The text of the rules with those of a list behind them. NULL if out of memory, or if it is none.
 */
static char *extended_text(const char *text, const json_t *more)
{
    json_auto_t *list = *text ? json_loads(text, 0, NULL) : json_array();
    if (!list || json_array_extend(list, (json_t *)more) < 0)
        return NULL;
    return json_dumps(list, JSON_PRESERVE_ORDER);
}

static struct session_rules *extended_rules(const nacre_session *s, const json_t *more,
                                            nacre_error *err)
{
    cleanup_free char *text = extended_text(atomic_load(&s->rules)->text, more);
    return text ? new_rules(s, text, err) : NULL;
}

/* -- The lines -------------------------------------------------------------------------------- */

/* Of a setting that an answer could change, it is the file that says it, or nobody does. */
static bool is_of_file(const nacre_session *s, nacre_setting setting)
{
    const char *origin = nacre_settings_origin(s->settings, setting);
    const char *file = nacre_settings_file(s->settings);
    size_t size = strlen(file);
    return *file == '/' && (strcmp(origin, "default") == 0 ||
                            (strncmp(origin, file, size) == 0 && origin[size] == ':'));
}

static int add_rule_for(const struct script_command *c, json_t *list)
{
    json_auto_t *words = json_array();
    for (size_t i = 0; i < c->argc; i++)
        if (c->argv[i].kind != WORD_LITERAL || strlen(c->argv[i].text) != c->argv[i].size ||
            json_array_append_new(words, json_string(c->argv[i].text)) < 0)
            return -EINVAL;
    json_t *rule = json_pack("{s:O}", "allow", words);
    for (size_t i = 0; rule && i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), rule)) {
            json_decref(rule);
            return 0;
        }
    return rule ? json_array_append_new(list, rule) : -ENOMEM;
}

/* Whoever may write there decides what it is. */
static bool is_at_a_path(const struct script_command *c)
{
    return strchr(c->argv[0].text, '/') != NULL;
}

/* The rules for those commands of a text that no rule is about. NULL if one of them is nothing that
 * a rule should be made for. */
static json_t *rules_for(const struct rules *rules, const struct script *script)
{
    json_t *list = json_array();
    int r = list && !script_first_doubt(script) ? 0 : -EINVAL;
    for (size_t i = 0; r == 0 && i < script->count; i++) {
        const struct script_command *c = &script->commands[i];
        struct ruling ruling = rule_on_command(rules, c);
        if (ruling.verdict != NACRE_ALLOW)
            r = ruling.rule || ruling.doubt || runs_anything(c) || is_at_a_path(c)
                    ? -EINVAL
                    : add_rule_for(c, list);
    }
    if (r == 0 && json_array_size(list) > 0)
        return list;
    json_decref(list);
    return NULL;
}

/* Patterns have words that stand for others; and a rule that would not do what it is for is none.
 */
static bool would_allow(nacre_session *s, const nacre_command *command, const json_t *list)
{
    struct deliberation d cleanup_deliberation = {0};
    struct session_rules *rules = extended_rules(s, list, NULL);
    const char *shell = nacre_settings_text(s->settings, NACRE_SETTING_SHELL);
    bool allows = rules && policy_deliberate(&rules->rules, command, shell, &d, NULL) == 0 &&
                  d.ruling.verdict == NACRE_ALLOW;
    deliberation_done(&d);
    d = (struct deliberation){0};
    if (rules)
        rules_done(&rules->rules);
    free(rules);
    return allows;
}

static bool has_star(const json_t *list)
{
    size_t i, j;
    json_t *rule, *word;
    json_array_foreach(list, i, rule) json_array_foreach(
        json_object_get(rule, "allow"), j,
        word) if (strspn(json_string_value(word), "*") == strlen(json_string_value(word)) &&
                  *json_string_value(word)) return true;
    return false;
}

/* What is shown is what would be written, to the letter. */
static bool is_legible(const char *text)
{
    struct buf seen cleanup_buf = BUF_UP_TO(LINES_MAX);
    return legible_write(&seen, text, strlen(text)) == 0 && seen.data &&
           strcmp(seen.data, text) == 0;
}

static bool add_always_line(struct buf *lines, const char *line)
{
    return is_legible(line) && buf_printf(lines, "%s%s", lines->len > 0 ? "\n" : "", line) == 0;
}

static bool add_rules(nacre_session *s, const nacre_command *command, const struct deliberation *d,
                      struct buf *lines)
{
    if (!is_of_file(s, NACRE_SETTING_POLICY))
        return false;
    json_auto_t *list = rules_for(&atomic_load(&s->rules)->rules, &d->script);
    bool added = list && !has_star(list) && would_allow(s, command, list);
    for (size_t i = 0; added && i < json_array_size(list); i++) {
        struct buf line cleanup_buf = BUF_UP_TO(LINES_MAX);
        cleanup_free char *rule = json_dumps(json_array_get(list, i), 0);
        added = rule && buf_printf(&line, "\"" POLICY "\": [%s]", rule) == 0 &&
                add_always_line(lines, line.data);
    }
    return added;
}

/* A list that says "off" or "on" is no list to add to. */
static bool is_plain_list(const nacre_session *s, nacre_setting setting)
{
    const char *const *list = nacre_settings_list(s->settings, setting);
    bool is_default = strcmp(nacre_settings_origin(s->settings, setting), "default") == 0;
    for (; list && *list && !is_default; list++)
        if (strcmp(*list, "off") == 0 || strcmp(*list, "on") == 0)
            return false;
    return is_of_file(s, setting);
}

/* No answer to one question switches the sandbox off for everything. */
static bool add_wanted(nacre_session *s, const struct permissions *wanted, struct buf *lines)
{
    const struct {
        const char *const *list;
        nacre_setting setting;
    } kinds[] = {{wanted->more.write, NACRE_SETTING_SANDBOX_WRITE},
                 {wanted->more.hosts, NACRE_SETTING_SANDBOX_NETWORK},
                 {wanted->more.sockets, NACRE_SETTING_SANDBOX_SOCKETS}};
    bool added = !wanted->full;
    for (size_t i = 0; added && i < ARRAY_SIZE(kinds); i++) {
        struct buf line cleanup_buf = BUF_UP_TO(LINES_MAX);
        if (!kinds[i].list || !*kinds[i].list)
            continue;
        added = is_plain_list(s, kinds[i].setting) &&
                permissions_write_setting(&line, kinds[i].setting, kinds[i].list) == 0 &&
                add_always_line(lines, line.data);
    }
    return added;
}

bool always_for_command(nacre_session *s, const nacre_command *command,
                        const struct permissions *wanted, const struct deliberation *d,
                        struct buf *lines)
{
    bool ruled = d->ruling.verdict == NACRE_ALLOW || add_rules(s, command, d, lines);
    return ruled && (permissions_are_none(wanted) || add_wanted(s, wanted, lines)) &&
           lines->len > 0 && lines->len <= LINES_MAX;
}

/* -- Making it so ----------------------------------------------------------------------------- */

/* A list for each setting. NULL if a line is not what it should be. */
static json_t *additions_of(const char *lines)
{
    json_t *all = json_object();
    for (const char *at = lines; all && *at;) {
        size_t size = strcspn(at, "\n");
        struct buf line cleanup_buf = BUF_UP_TO(LINES_MAX);
        const char *key;
        json_t *list;
        json_auto_t *one = buf_printf(&line, "{%.*s}", (int)size, at) == 0
                               ? json_loads(line.data, JSON_REJECT_DUPLICATES, NULL)
                               : NULL;
        bool sound = json_object_size(one) == 1;
        json_object_foreach(one, key, list)
        {
            if (!json_object_get(all, key))
                json_object_set_new(all, key, json_array());
            sound = sound && json_array_extend(json_object_get(all, key), list) == 0;
        }
        if (!sound) {
            json_decref(all);
            return NULL;
        }
        at += size + (at[size] ? 1 : 0);
    }
    return all;
}

/* Those that looked at the rules before go on with what they saw. */
static int go_by(nacre_session *s, const json_t *more, nacre_error *err)
{
    HOLD(&s->lock);
    struct session_rules *rules = extended_rules(s, more, err);
    if (!rules)
        return no_memory_for_rules(err);
    rules->before = atomic_load(&s->rules);
    atomic_store(&s->rules, rules);
    return 0;
}

int always_make(nacre_session *s, const char *lines, nacre_error *err)
{
    json_auto_t *additions = additions_of(lines);
    if (!additions || json_object_size(additions) == 0)
        return err_set(err, NACRE_EINVAL, "there is nothing that could be allowed for always");
    int r = config_append(nacre_settings_file(s->settings), additions, err);
    const json_t *rules = json_object_get(additions, POLICY);
    return r == 0 && rules ? go_by(s, rules, err) : r;
}
