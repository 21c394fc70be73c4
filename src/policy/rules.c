#include "policy/rules.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

/* Indexed by nacre_verdict. */
static const char *const verdict_names[] = {"allow", "ask", "deny"};

/* One rule that is being read. */
struct reading {
    struct rules *rules;
    struct rule *rule;
    const char *where;
    size_t number; /* from 1 on */
    nacre_error *err;
};

static int wrong_rule(const struct reading *r, const char *what, const char *detail)
{
    return err_set(r->err, NACRE_EINVAL, "%.90srule %zu of policy %s%.90s", r->where, r->number,
                   what, detail);
}

static int rules_no_memory(const struct reading *r)
{
    return err_set(r->err, NACRE_ENOMEM, "out of memory");
}

static const char *keep(const struct reading *r, const char *text)
{
    return arena_copy(&r->rules->arena, text, strlen(text));
}

/* -- The pattern ------------------------------------------------------------------------------ */

static int take_choices(struct reading *r, const json_t *word, struct pattern_word *ret)
{
    size_t count = json_is_array(word) ? json_array_size(word) : 1;
    const char **choices = arena_take(&r->rules->arena, count * sizeof *choices);
    if (!choices)
        return rules_no_memory(r);
    for (size_t i = 0; i < count; i++) {
        const json_t *choice = json_is_array(word) ? json_array_get(word, i) : word;
        const char *text = json_string_value(choice);
        bool wild = text && strchr(text, '*') && strcmp(text, "*") != 0 && strcmp(text, "**") != 0;
        if (!text || !*text || wild)
            return wrong_rule(r,
                              "has a word that is no text; a * stands for a whole word, and ** for "
                              "the rest",
                              "");
        choices[i] = keep(r, text);
        if (!choices[i])
            return rules_no_memory(r);
    }
    *ret = (struct pattern_word){choices, count};
    return count > 0 ? 0 : wrong_rule(r, "has a list without words", "");
}

static bool is_rest_word(const json_t *word)
{
    const char *text = json_string_value(word);
    return text && strcmp(text, "**") == 0;
}

static int take_pattern(struct reading *r, const json_t *list)
{
    size_t count = json_array_size(list);
    if (count == 0 || count > RULE_WORDS_MAX)
        return wrong_rule(r, "needs a list of words, such as [\"git\", \"push\"]", "");
    struct pattern_word *words = arena_take(&r->rules->arena, count * sizeof *words);
    if (!words)
        return rules_no_memory(r);
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(list, i);
        int result = take_choices(r, word, &words[i]);
        if (result < 0)
            return result;
        if (is_rest_word(word) && (i == 0 || i + 1 < count))
            return wrong_rule(r, "has ** in another place than the last", "");
    }
    r->rule->pattern = (struct word_pattern){words, count};
    return 0;
}

/* -- Its other keys --------------------------------------------------------------------------- */

static int take_rule_text(const struct reading *r, const json_t *value, const char *key,
                          const char **ret_text)
{
    const char *text = json_string_value(value);
    if (!text || strpbrk(text, "\n\r\t"))
        return wrong_rule(r, "must have one line of text for ", key);
    *ret_text = keep(r, text);
    return *ret_text ? 0 : rules_no_memory(r);
}

static int take_sandbox(const struct reading *r, const json_t *value)
{
    int result = take_rule_text(r, value, "sandbox", &r->rule->sandbox);
    if (result < 0)
        return result;
    if (strcmp(r->rule->sandbox, "read-only") == 0 ||
        strcmp(r->rule->sandbox, "workspace-write") == 0)
        return 0;
    return wrong_rule(r, "takes read-only or workspace-write for sandbox; got ", r->rule->sandbox);
}

/* Whether the rule is about a command of the line, and whether it may be. */
static int match_example(const struct reading *r, const char *line, enum word_match *ret)
{
    struct script script cleanup_script;
    *ret = MATCH_NO;
    if (script_read(line, strlen(line), DIALECT_BASH, &script) < 0)
        return rules_no_memory(r);
    for (size_t i = 0; i < script.count && *ret != MATCH_YES; i++) {
        const struct script_command *c = &script.commands[i];
        enum word_match one = match_open(&r->rule->pattern, c->argv, c->argc);
        if (r->rule->verdict == NACRE_ALLOW)
            one = match_closed(&r->rule->pattern, c->argv, c->argc) && !c->doubt && !script.doubt
                      ? MATCH_YES
                      : MATCH_NO;
        *ret = one > *ret ? one : *ret;
    }
    return 0;
}

static int check_example(const struct reading *r, const json_t *value, bool wanted)
{
    const char *line = json_string_value(value);
    enum word_match match;
    if (!line)
        return wrong_rule(r, "must have texts for match and not_match", "");
    int result = match_example(r, line, &match);
    if (result < 0)
        return result;
    if (wanted && match != MATCH_YES)
        return wrong_rule(r, "says that it matches what it does not: ", line);
    if (!wanted && match != MATCH_NO)
        return wrong_rule(r, "says that it does not match what it does: ", line);
    return 0;
}

/* A text, or a list of texts. */
static int check_examples(const struct reading *r, const json_t *value, bool wanted)
{
    if (!value)
        return 0;
    if (!json_is_array(value))
        return check_example(r, value, wanted);
    for (size_t i = 0; i < json_array_size(value); i++) {
        int result = check_example(r, json_array_get(value, i), wanted);
        if (result < 0)
            return result;
    }
    return 0;
}

static int take_rule_key(struct reading *r, const char *key, const json_t *value, int *verdicts)
{
    for (size_t i = 0; i < ARRAY_SIZE(verdict_names); i++) {
        if (strcmp(key, verdict_names[i]) != 0)
            continue;
        ++*verdicts;
        r->rule->verdict = (nacre_verdict)i;
        return take_pattern(r, value);
    }
    if (strcmp(key, "because") == 0)
        return take_rule_text(r, value, key, &r->rule->because);
    if (strcmp(key, "sandbox") == 0)
        return take_sandbox(r, value);
    if (strcmp(key, "match") == 0 || strcmp(key, "not_match") == 0)
        return 0; /* when the pattern is known */
    return wrong_rule(r, "has an unknown key: ", key);
}

static int take_rule(struct reading *r, json_t *object)
{
    const char *key;
    json_t *value;
    int verdicts = 0;
    if (!json_is_object(object))
        return wrong_rule(r, "is no object such as {\"deny\": [\"git\", \"push\", \"--force\"]}",
                          "");
    r->rule->because = "";
    json_object_foreach(object, key, value)
    {
        int result = take_rule_key(r, key, value, &verdicts);
        if (result < 0)
            return result;
    }
    if (verdicts != 1)
        return wrong_rule(r, "needs one of allow, ask and deny", "");
    if (r->rule->sandbox && r->rule->verdict != NACRE_ALLOW)
        return wrong_rule(r, "has a sandbox for what it does not allow", "");
    json_auto_t *essence = json_pack("{s:O}", verdict_names[r->rule->verdict],
                                     json_object_get(object, verdict_names[r->rule->verdict]));
    cleanup_free char *text = essence ? json_dumps(essence, 0) : NULL;
    if (!text || !(r->rule->text = keep(r, text)))
        return rules_no_memory(r);
    int result = check_examples(r, json_object_get(object, "match"), true);
    return result < 0 ? result : check_examples(r, json_object_get(object, "not_match"), false);
}

/* -- All of them ------------------------------------------------------------------------------ */

static int take_rules(struct rules *rules, const json_t *root, const char *where, nacre_error *err)
{
    size_t count = json_array_size(root);
    if (!json_is_array(root) || count > RULES_MAX)
        return err_set(err, NACRE_EINVAL, "%.100spolicy takes a list of up to %d rules", where,
                       RULES_MAX);
    rules->items = arena_take(&rules->arena, (count + 1) * sizeof *rules->items);
    if (!rules->items)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct reading r = {rules, &rules->items[i], where, i + 1, err};
        int result = take_rule(&r, json_array_get(root, i));
        if (result < 0)
            return result;
    }
    rules->count = count;
    return 0;
}

int rules_parse(const char *text, const char *where, struct rules *ret_rules, nacre_error *err)
{
    json_error_t error;
    *ret_rules = (struct rules){0};
    if (!*text)
        return 0;
    json_auto_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return err_set(err, NACRE_EINVAL, "%.100spolicy is no JSON: %.100s", where, error.text);
    int result = take_rules(ret_rules, root, where, err);
    if (result < 0)
        rules_done(ret_rules);
    return result;
}

void rules_done(struct rules *rules)
{
    arena_done(&rules->arena);
    *rules = (struct rules){0};
}

bool rules_are_needed(const struct rules *rules)
{
    return rules->count > 0 || rules->fallback != NACRE_ALLOW;
}
