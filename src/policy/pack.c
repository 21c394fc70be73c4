#include "policy/pack.h"

#include <limits.h>
#include <string.h>

#include "base/sum.h"
#include "policy/packed.h"

bool rules_forbid(const struct rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->items[i].verdict != NACRE_ALLOW)
            return true;
    return false;
}

static int add_packed(struct buf *out, const char *text)
{
    return buf_append(out, text, strlen(text) + 1);
}

/* A program that is named by a path is that file, also by the path that is free of links. */
static int add_choice(struct buf *out, const char *text, bool is_program)
{
    char real[PATH_MAX];
    int r = add_packed(out, text);
    if (r == 0 && is_program && text[0] == '/' && realpath(text, real) && strcmp(real, text) != 0)
        r = add_packed(out, real);
    return r;
}

static int add_words(struct buf *out, const struct word_pattern *pattern)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < pattern->count; i++) {
        const struct pattern_word *word = &pattern->words[i];
        for (size_t k = 0; r == 0 && k < word->count; k++)
            r = add_choice(out, word->choices[k], i == 0);
        r = r == 0 ? add_packed(out, "") : r;
    }
    return r;
}

static int add_rule(struct buf *out, const struct rule *rule)
{
    static const char zeros[8] = "";
    struct packed_rule head = {.verdict = (uint16_t)rule->verdict,
                               .words = (uint16_t)rule->pattern.count};
    size_t begin = out->len;
    int r = buf_append(out, &head, sizeof head);
    if (r == 0)
        r = add_packed(out, rule->text);
    if (r == 0)
        r = add_packed(out, rule->because);
    if (r == 0)
        r = add_words(out, &rule->pattern);
    if (r == 0)
        r = buf_append(out, zeros, (8 - out->len % 8) % 8);
    head.size = (uint32_t)(out->len - begin);
    if (r == 0)
        memcpy(out->data + begin, &head, sizeof head);
    return r;
}

int rules_pack(const struct rules *rules, bool asks, struct buf *out)
{
    struct packed_head head = {.magic = PACKED_MAGIC, .asks = asks};
    *out = BUF_UP_TO(PACKED_SIZE_MAX);
    int r = buf_append(out, &head, sizeof head);
    for (size_t i = 0; r == 0 && i < rules->count; i++) {
        if (rules->items[i].verdict == NACRE_ALLOW)
            continue;
        r = add_rule(out, &rules->items[i]);
        head.count++;
    }
    if (r < 0)
        return r;
    head.size = (uint32_t)out->len;
    head.sum = sum64(out->data + sizeof head, out->len - sizeof head);
    memcpy(out->data, &head, sizeof head);
    return packed_check(out->data, out->len) < 0 ? -E2BIG : 0;
}

int grant_add(struct buf *out, const struct script_command *command)
{
    static const char kinds[] = {
        [WORD_LITERAL] = GRANTED_WORD, [WORD_ONE] = GRANTED_ONE, [WORD_ANY] = GRANTED_ANY};
    int r = 0;
    if (command->argv[0].kind != WORD_LITERAL)
        return 0;
    for (size_t i = 0; r == 0 && i < command->argc; i++) {
        const struct shell_word *word = &command->argv[i];
        r = buf_append(out, &kinds[word->kind], 1);
        if (r == 0)
            r = add_packed(out, word->kind == WORD_LITERAL ? word->text : "");
    }
    return r == 0 ? add_packed(out, "") : r;
}
