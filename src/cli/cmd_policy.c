/* nacre policy check: what the rules say of a text, command by command, without running it. */
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include <nacre/nacre.h>

#include "base/err.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "console/out.h"
#include "console/print_json.h"
#include "text/brief.h"

struct policy_options {
    bool json;
};

/* What is told of the commands, before anything is printed: the verdict of all comes first. */
struct telling {
    struct buf lines;
    json_t *list; /* NULL = for people */
};

static const char *const class_names[] = {"reads",       "writes",    "network",
                                          "destructive", "privilege", "unknown"};

static int write_classes(struct buf *out, unsigned classes)
{
    int r = 0;
    bool first = true;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(class_names); i++) {
        if (!(classes & 1U << i))
            continue;
        r = buf_printf(out, "%s%s", first ? "" : ", ", class_names[i]);
        first = false;
    }
    return r;
}

static json_t *classes_json(unsigned classes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(class_names); i++)
        if (classes & 1U << i)
            json_array_append_new(list, json_string(class_names[i]));
    return list;
}

static int tell_json(const nacre_policy_command *c, json_t *list)
{
    json_t *entry = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o}", "command", json_text(c->text, strlen(c->text)), "verdict",
        nacre_verdict_name(c->verdict), "rule", json_text(c->rule, strlen(c->rule)), "because",
        json_text(c->because, strlen(c->because)), "doubt", json_text(c->doubt, strlen(c->doubt)),
        "classes", classes_json(c->classes));
    return entry && json_array_append_new(list, entry) == 0 ? 0 : failure("out of memory");
}

static int tell_command(const nacre_policy_command *c, void *userdata)
{
    struct telling *t = userdata;
    if (t->list)
        return tell_json(c, t->list);
    int r = buf_printf(&t->lines, "\n%s: ", nacre_verdict_name(c->verdict));
    if (r == 0)
        r = brief_line(&t->lines, c->text, COLUMNS_UNLIMITED);
    if (r == 0 && c->classes)
        r = buf_str(&t->lines, "\n    ");
    if (r == 0)
        r = write_classes(&t->lines, c->classes);
    if (r == 0 && *c->rule)
        r = buf_printf(&t->lines, "\n    rule %s", c->rule);
    else if (r == 0)
        r = buf_printf(&t->lines, "\n    %s%s", *c->doubt ? "unknown, because " : "no rule",
                       c->doubt);
    if (r == 0 && *c->because)
        r = buf_printf(&t->lines, "\n    %s", c->because);
    return r < 0 ? failure("out of memory") : 0;
}

static int check(const char *text, bool json)
{
    nacre_error error = NACRE_ERROR_INIT;
    nacre_policy_answer answer = NACRE_POLICY_ANSWER_INIT;
    nacre_settings *settings cleanup_settings = NULL;
    struct telling t = {BUF_UP_TO(SIZE_MAX / 2), json ? json_array() : NULL};
    if (nacre_settings_load(NULL, &settings, &error) < 0)
        return library_failure(&error);
    int r = nacre_policy_check(settings, text, NULL, tell_command, &t, &answer, &error);
    if (r == 0 && t.list) {
        r = print_json(json_pack("{s:s, s:o, s:o}", "verdict", nacre_verdict_name(answer.verdict),
                                 "reason", json_text(answer.reason, strlen(answer.reason)),
                                 "commands", TAKE_PTR(t.list)));
    } else if (r == 0) {
        struct buf reason cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
        if (brief_line(&reason, answer.reason, COLUMNS_UNLIMITED) == 0)
            printf("%s\n%s\n%s%s", nacre_verdict_name(answer.verdict), reason.data,
                   t.lines.data ? t.lines.data : "", t.lines.data ? "\n" : "");
    }
    buf_done(&t.lines);
    json_decref(t.list);
    return r < 0 ? library_failure(&error) : r;
}

static int policy(const void *options, char **words, size_t count UNUSED)
{
    const struct policy_options *o = options;
    if (strcmp(words[0], "check") != 0)
        return usage_error("policy: \"%s\" is not known; see \"nacre policy --help\"", words[0]);
    return check(words[1], o->json);
}

const struct verb verb_policy = {
    .name = "policy",
    .words = "check TEXT",
    .summary = "say what the rules would do with a command",
    .details =
        "The first word is the verdict: allow, ask or deny. Then why, and then each command that\n"
        "was found in the text, with its verdict, what it does as far as its words tell, and the\n"
        "rule. Nothing is run.\n"
        "\n"
        "examples:\n"
        "  nacre policy check 'git push --force'\n"
        "  nacre policy check \"$(cat script.sh)\" --json | jq .verdict\n",
    .options = {{"json", NULL, "the same for programs", OPTION_FLAG, false,
                 offsetof(struct policy_options, json)}},
    .options_size = sizeof(struct policy_options),
    .min_words = 2,
    .max_words = 2,
    .run = policy,
};
