#include "policy/packed.h"

#include <errno.h>
#include <string.h>

#include "base/sum.h"

static const uint8_t packed_magic[8] = PACKED_MAGIC;

static const struct packed_rule *first_rule(const struct packed_head *packed)
{
    return (const struct packed_rule *)(packed + 1);
}

static const struct packed_rule *next_rule(const struct packed_rule *rule)
{
    return (const struct packed_rule *)((const char *)rule + rule->size);
}

static const char *behind(const char *string)
{
    return string + strlen(string) + 1;
}

/* -- Checked once ----------------------------------------------------------------------------- */

/* The next string; NULL if it does not end before the end. */
static const char *take_string(const char **at, const char *end)
{
    const char *string = *at;
    const char *nul = string < end ? memchr(string, '\0', (size_t)(end - string)) : NULL;
    *at = nul ? nul + 1 : end;
    return nul ? string : NULL;
}

static bool rule_holds(const struct packed_rule *rule, const char *end)
{
    const char *at = (const char *)(rule + 1);
    size_t choices = 0;
    for (int i = 0; i < 2; i++)
        if (!take_string(&at, end))
            return false;
    if (rule->verdict < NACRE_ASK || rule->verdict > NACRE_DENY || rule->words < 1 ||
        rule->words > PACKED_WORDS_MAX)
        return false;
    for (size_t i = 0; i < rule->words; i++) {
        const char *choice = take_string(&at, end);
        for (; choice && *choice; choice = take_string(&at, end))
            if (++choices > PACKED_CHOICES_MAX)
                return false;
        if (!choice)
            return false;
    }
    return true;
}

int packed_check(const void *data, size_t size)
{
    const struct packed_head *packed = data;
    const char *at = (const char *)(packed + 1), *end = (const char *)data + size;
    if (size < sizeof *packed || size > PACKED_SIZE_MAX || packed->size != size || size % 8 != 0 ||
        memcmp(packed->magic, packed_magic, sizeof packed_magic) != 0 ||
        packed->sum != sum64(at, size - sizeof *packed))
        return -EBADMSG;
    for (uint32_t i = 0; i < packed->count; i++) {
        const struct packed_rule *rule = (const void *)at;
        size_t left = (size_t)(end - at);
        if (left < sizeof *rule || rule->size < sizeof *rule || rule->size % 8 != 0 ||
            rule->size > left || !rule_holds(rule, at + rule->size))
            return -EBADMSG;
        at += rule->size;
    }
    return at == end ? 0 : -EBADMSG;
}

/* -- Read ------------------------------------------------------------------------------------- */

static const char *words_of(const struct packed_rule *rule)
{
    return behind(behind((const char *)(rule + 1)));
}

bool packed_names(const struct packed_head *packed, const char *name)
{
    const struct packed_rule *rule = first_rule(packed);
    const char *base = program_name(name);
    for (uint32_t i = 0; i < packed->count; i++, rule = next_rule(rule))
        for (const char *choice = words_of(rule); *choice; choice = behind(choice))
            if (strcmp(choice, "*") == 0 || strcmp(program_name(choice), base) == 0)
                return true;
    return false;
}

struct packed_ruling packed_rule_on(const struct packed_head *packed, const struct shell_word *argv,
                                    size_t argc)
{
    const char *choices[PACKED_CHOICES_MAX];
    struct pattern_word words[PACKED_WORDS_MAX];
    struct packed_ruling ruling = {.verdict = NACRE_ALLOW};
    const struct packed_rule *rule = first_rule(packed);
    bool whole = argc == 0 || argv[argc - 1].kind == WORD_LITERAL;
    for (uint32_t i = 0; i < packed->count; i++, rule = next_rule(rule)) {
        const char *at = words_of(rule);
        size_t used = 0;
        for (size_t k = 0; k < rule->words; k++, at++) {
            words[k] = (struct pattern_word){.choices = choices + used};
            for (; *at; at = behind(at), words[k].count++)
                choices[used++] = at;
        }
        enum word_match match = match_open(&(struct word_pattern){words, rule->words}, argv, argc);
        if (rule->verdict <= ruling.verdict || match == MATCH_NO || (match == MATCH_MAYBE && whole))
            continue;
        const char *text = (const char *)(rule + 1);
        ruling = (struct packed_ruling){(nacre_verdict)rule->verdict, text, behind(text)};
    }
    return ruling;
}

/* -- What was said yes to --------------------------------------------------------------------- */

/* Whether the words are those of one command, from `at` on. */
static bool is_command(const char *at, const struct shell_word *argv, size_t argc)
{
    for (; *at; at = behind(at)) {
        if (*at == GRANTED_ANY) {
            for (size_t taken = 0; taken <= argc; taken++)
                if (is_command(behind(at), argv + taken, argc - taken))
                    return true;
            return false;
        }
        if (argc == 0 || (*at == GRANTED_WORD && !word_is(argv, at + 1)))
            return false;
        argv++;
        argc--;
    }
    return argc == 0;
}

bool packed_is_granted(const char *granted, size_t size, const struct shell_word *argv, size_t argc)
{
    const char *end = granted + size;
    struct shell_word program = argv[0];
    program.text = program_name(program.text);
    while (granted < end) {
        if (*granted == GRANTED_WORD && word_is(&program, program_name(granted + 1)) &&
            is_command(behind(granted), argv + 1, argc - 1))
            return true;
        while (*granted)
            granted = behind(granted);
        granted++;
    }
    return false;
}
