/* Arbitrary text as a script, as rules, and as a command that rules are held against. */
#include "fuzz.h"

#include "policy/ruling.h"

static void check_words(const struct script *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct script_command *c = &s->commands[i];
        MUST(c->argc > 0);
        for (size_t k = 0; k < c->argc; k++)
            MUST(c->argv[k].text && strlen(c->argv[k].text) == c->argv[k].size);
        (void)classes_of(c);
    }
}

/* What is read twice is the same, and no rule allows what is in doubt. */
static void check_script(const char *text, size_t size, enum dialect dialect,
                         const struct rules *rules)
{
    struct script one cleanup_script = {0}, two cleanup_script = {0};
    size_t which;
    MUST(script_read(text, size, dialect, &one) == 0);
    MUST(script_read(text, size, dialect, &two) == 0);
    MUST(one.count == two.count && !one.doubt == !two.doubt);
    check_words(&one);
    struct ruling j = rule_on_script(rules, &one, &which);
    MUST(which <= one.count);
    MUST(!script_first_doubt(&one) || j.verdict != NACRE_ALLOW);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char some[] = "[{\"allow\": [\"*\", \"**\"]}, {\"deny\": [\"rm\", \"-rf\"]},"
                               " {\"ask\": [\"git\", \"push\", [\"-f\", \"--force\"]]}]";
    struct rules rules cleanup_rules = {0}, strange cleanup_rules = {0};
    nacre_error error;
    MUST(rules_parse(some, "", &rules, &error) == 0);
    check_script((const char *)data, size, DIALECT_BASH, &rules);
    check_script((const char *)data, size, DIALECT_SH, &rules);
    char *text = strndup((const char *)data, size);
    MUST(text);
    if (rules_parse(text, "", &strange, &error) == 0)
        check_script("git push -f; $x", 15, DIALECT_BASH, &strange);
    free(text);
    return 0;
}
