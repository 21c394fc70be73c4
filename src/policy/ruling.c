#include "policy/ruling.h"

#include <string.h>

#include "base/defs.h"

/* What is not certain is not allowed by any rule. If it is looked at once more when it is executed,
 * it is like what no rule is about; else a person looks at it, or nobody runs it. */
static struct ruling rule_on_doubt(const struct rules *rules, const char *doubt)
{
    nacre_verdict least = rules->gated ? NACRE_ALLOW : NACRE_ASK;
    return (struct ruling){.verdict = MAX(rules->fallback, least), .doubt = doubt};
}

struct ruling rule_on_command(const struct rules *rules, const struct script_command *command)
{
    const struct rule *strictest = NULL, *allows = NULL;
    bool maybe = false;
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->items[i];
        if (rule->verdict == NACRE_ALLOW) {
            if (!allows && match_closed(&rule->pattern, command->argv, command->argc))
                allows = rule;
            continue;
        }
        enum word_match match = match_open(&rule->pattern, command->argv, command->argc);
        maybe = maybe || match == MATCH_MAYBE;
        if (match == MATCH_YES && (!strictest || rule->verdict > strictest->verdict))
            strictest = rule;
    }
    if (strictest)
        return (struct ruling){.verdict = strictest->verdict, .rule = strictest};
    if (command->doubt)
        return rule_on_doubt(rules, command->doubt);
    if (maybe)
        return rule_on_doubt(rules, "whether a rule is about it is known only when it runs");
    if (allows)
        return (struct ruling){.verdict = NACRE_ALLOW, .rule = allows, .sandbox = allows->sandbox};
    bool neutral = command->starts_others || is_of_shell(command);
    return (struct ruling){.verdict = neutral ? NACRE_ALLOW : rules->fallback};
}

/* The narrower of two modes. */
static const char *narrower_mode(const char *one, const char *other)
{
    return !one || (other && strcmp(other, "read-only") == 0) ? other : one;
}

/* Of two that are allowed the one in doubt says more. */
static bool is_worse(const struct ruling *one, const struct ruling *than)
{
    return one->verdict > than->verdict ||
           (one->verdict == NACRE_ALLOW && than->verdict == NACRE_ALLOW && one->doubt &&
            !than->doubt);
}

struct ruling rule_on_script(const struct rules *rules, const struct script *script,
                             size_t *ret_command)
{
    struct ruling worst = {.verdict = NACRE_ALLOW};
    const char *sandbox = NULL;
    *ret_command = script->count;
    for (size_t i = 0; i < script->count; i++) {
        struct ruling one = rule_on_command(rules, &script->commands[i]);
        sandbox = narrower_mode(sandbox, one.sandbox);
        if (i > 0 && !is_worse(&one, &worst))
            continue;
        worst = one;
        *ret_command = i;
    }
    if (script->doubt && worst.verdict != NACRE_DENY) {
        struct ruling whole = rule_on_doubt(rules, script->doubt);
        if (is_worse(&whole, &worst)) {
            worst = whole;
            *ret_command = script->count;
        }
    }
    worst.sandbox = sandbox;
    return worst;
}
