#include "session/policy.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "policy/pack.h"
#include "policy/packed.h"
#include "policy/variable_names.h"
#include "session/always.h"
#include "session/asking.h"
#include "session/exec_gate.h"
#include "session/session.h"

static const char NO_SHELL_DOUBT[] = "only text for bash and sh is read";

int policy_rules(const nacre_settings *settings, struct rules *ret_rules, nacre_error *err)
{
    int r = rules_parse(nacre_settings_text(settings, NACRE_SETTING_POLICY), "", ret_rules, err);
    if (r == 0)
        ret_rules->fallback =
            (nacre_verdict)nacre_settings_number(settings, NACRE_SETTING_POLICY_DEFAULT);
    return r;
}

/* -- Reading ---------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static int read_words_or_text(const nacre_command *command, const char *shell,
                              struct deliberation *d)
{
    static const char *const plain[] = {"sh", "dash", NULL};
    const char *reader = command->shell ? command->shell : shell;
    const char *name = reader && *reader ? program_name(reader) : "bash";
    if (!command->text)
        return script_read_words(command->argv, &d->script);
    if (strcmp(name, "bash") != 0 && !is_one_of(name, plain))
        snprintf(d->doubt, sizeof d->doubt, "%s", NO_SHELL_DOUBT);
    return script_read(command->text, strlen(command->text),
                       is_one_of(name, plain) ? DIALECT_SH : DIALECT_BASH, &d->script);
}

/* Variables that are laid over the environment are assignments before the command. */
static void look_at_variables(const nacre_command *command, struct deliberation *d)
{
    for (const char *const *entry = command->env; entry && *entry && !d->doubt[0]; entry++) {
        size_t size = strcspn(*entry, "=");
        const char *value = (*entry)[size] ? *entry + size + 1 : "";
        struct shell_word word = {.text = value, .size = strlen(value)};
        if (variable_is_delicate(*entry, size, (*entry)[size] ? &word : NULL) ||
            strchr(*entry, '(') == *entry + size + 1)
            snprintf(d->doubt, sizeof d->doubt, "%.*s is set, which changes what commands do",
                     (int)MIN(size, (size_t)64), *entry);
    }
}

int policy_deliberate(const struct rules *rules, const nacre_command *command, const char *shell,
                      struct deliberation *ret, nacre_error *err)
{
    *ret = (struct deliberation){0};
    if (!command->text && !(command->argv && command->argv[0]))
        return 0; /* that it is no command is said where it would be started */
    if (read_words_or_text(command, shell, ret) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    look_at_variables(command, ret);
    if (ret->doubt[0] && !ret->script.doubt)
        ret->script.doubt = ret->doubt;
    ret->ruling = rule_on_script(rules, &ret->script, &ret->which);
    return 0;
}

/* -- Words ------------------------------------------------------------------------------------ */

static bool is_safe(const struct shell_word *w)
{
    return w->size > 0 && strspn(w->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789%+,-./:=@_") == w->size;
}

static int write_word(struct buf *out, const struct shell_word *w)
{
    if (w->kind != WORD_LITERAL || is_safe(w))
        return buf_append(out, w->text, w->size);
    int r = buf_str(out, "'");
    for (size_t i = 0; r == 0 && i < w->size; i++)
        r = w->text[i] == '\'' ? buf_str(out, "'\\''") : buf_append(out, w->text + i, 1);
    return r == 0 ? buf_str(out, "'") : r;
}

int policy_write_command(struct buf *out, const struct script_command *command)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < command->argc; i++) {
        r = i > 0 ? buf_str(out, " ") : 0;
        r = r == 0 ? write_word(out, &command->argv[i]) : r;
    }
    return r;
}

void policy_reason(const struct deliberation *d, char *ret_text, size_t size)
{
    const struct ruling *j = &d->ruling;
    if (j->rule && j->verdict != NACRE_ALLOW)
        snprintf(ret_text, size, "rule %.150s%s%.60s", j->rule->text, *j->rule->because ? ": " : "",
                 j->rule->because);
    else if (j->doubt && d->which == d->script.count && d->script.line > 1)
        snprintf(ret_text, size, "unknown, because of line %zu: %.150s", d->script.line, j->doubt);
    else if (j->doubt && j->verdict == NACRE_ALLOW)
        snprintf(ret_text, size, "unknown, because %.120s; the rules hold for what it executes",
                 j->doubt);
    else if (j->doubt)
        snprintf(ret_text, size, "unknown, because %.160s", j->doubt);
    else if (j->verdict == NACRE_ALLOW)
        snprintf(ret_text, size, "nothing speaks against it");
    else
        snprintf(ret_text, size, "policy_default is \"%s\", and no rule allows it",
                 nacre_verdict_name(j->verdict));
}

/* -- Before a start --------------------------------------------------------------------------- */

static int refuse_denied(const struct deliberation *d, nacre_error *err)
{
    char reason[sizeof err->msg];
    policy_reason(d, reason, sizeof reason);
    return err_sys(err, NACRE_EPERM, 0, "policy", "nothing was started: denied by %.200s", reason);
}

/* The words that a rule which allows the command would have; a rule about a wrapper or an
 * interpreter would allow more than was seen. */
static int write_rule(struct buf *out, const struct script_command *c)
{
    json_auto_t *words = json_array();
    for (size_t i = 0; i < c->argc; i++)
        if (c->argv[i].kind != WORD_LITERAL ||
            json_array_append_new(words, json_string(c->argv[i].text)) < 0)
            return -EINVAL;
    json_auto_t *rule = json_pack("{s:O}", "allow", words);
    cleanup_free char *text = rule ? json_dumps(rule, 0) : NULL;
    return text ? buf_str(out, text) : -ENOMEM;
}

/* What is asked for is the user's to say, in the configuration. */
static int refuse_asked(const struct deliberation *d, nacre_error *err)
{
    const struct ruling *ruling = &d->ruling;
    struct buf rule cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (ruling->rule)
        return err_sys(
            err, NACRE_EPERM, 0, "policy",
            "nothing was started: the user has to be asked by rule %.80s%s%.40s; to allow "
            "it, they change \"ask\" in it to \"allow\"",
            ruling->rule->text, *ruling->rule->because ? ": " : "", ruling->rule->because);
    if (ruling->doubt)
        return err_sys(err, NACRE_EPERM, 0, "policy",
                       "nothing was started: the rules cannot tell what this does, because %.100s; "
                       "write it plainly, in commands that can be read",
                       ruling->doubt);
    bool plain =
        d->which < d->script.count && write_rule(&rule, &d->script.commands[d->which]) == 0;
    return err_sys(err, NACRE_EPERM, 0, "policy",
                   "nothing was started: no rule allows it; its user can, in the configuration: "
                   "\"policy\": [%.120s]",
                   plain && rule.len <= 120 ? rule.data : "{\"allow\": [...]}");
}

/* Beyond its sandbox no rule lets a command: its user does. */
static int refuse_wanted(const struct permissions *wanted, nacre_error *err)
{
    struct buf line cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (permissions_write_line(wanted, &line) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    return err_sys(err, NACRE_EPERM, 0, "sandbox",
                   "nothing was started: the sandbox can only be widened by its user, in the "
                   "configuration: %.160s",
                   line.data ? line.data : "");
}

/* What is said yes to is not asked about again when it is executed. Without memory, or if it is
 * very much, it is. */
static void note_granted(const struct rules *rules, const struct deliberation *d,
                         struct admission *ret)
{
    ret->granted = BUF_UP_TO(GRANTED_MAX + 1);
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->script.count; i++)
        if (rule_on_command(rules, &d->script.commands[i]).verdict == NACRE_ASK)
            r = grant_add(&ret->granted, &d->script.commands[i]);
    if (r < 0)
        buf_done(&ret->granted);
}

/* A person may still say yes to it before it is tried once more. How is said whole; what is before
 * it may be cut. */
static void offer_answer_ahead(nacre_error *refusal, const nacre_id_text *id)
{
    char how[96];
    if (!*id->s)
        return;
    int size = snprintf(how, sizeof how,
                        "; or for this once: nacre allow %s, and then it is started again", id->s);
    size_t at = MIN(strlen(refusal->msg), sizeof refusal->msg - 1 - (size_t)size);
    at = text_whole(refusal->msg, at);
    memcpy(refusal->msg + at, how, (size_t)size + 1);
}

static bool answer_is_yes(nacre_answer_kind kind)
{
    return kind == NACRE_ANSWER_ONCE || kind == NACRE_ANSWER_SESSION || kind == NACRE_ANSWER_ALWAYS;
}

static int refuse_answered(const struct admission *a, nacre_error *err)
{
    switch (a->answer.kind) {
    case NACRE_ANSWER_NO:
        return err_sys(err, NACRE_EPERM, 0, "policy",
                       "nothing was started: the user was asked, and said no");
    case NACRE_ANSWER_NEVER:
        return err_sys(err, NACRE_EPERM, 0, "policy",
                       "nothing was started: the user was asked, and said no for as long as this "
                       "session is open");
    case NACRE_ANSWER_CANCELLED:
        return err_sys(err, NACRE_EPERM, 0, "policy",
                       "nothing was started: the user was asked, and did not answer");
    default:
        if (err)
            *err = a->refusal;
        return NACRE_EPERM;
    }
}

static int ask_about(nacre_session *s, const nacre_command *command,
                     const struct permissions *wanted, const struct deliberation *d,
                     struct admission *ret, nacre_error *err)
{
    struct asked asked cleanup_asked = ASKED_NONE;
    nacre_id_text id;
    int r = asked_about_command(s, command, wanted, d, &asked);
    if (d->ruling.verdict == NACRE_ALLOW)
        refuse_wanted(wanted, &ret->refusal);
    else
        refuse_asked(d, &ret->refusal);
    ret->verdict = NACRE_ASK;
    if (r == 0 && asking_is_settled(s, &asked.key, &ret->answer)) {
        ret->answered = true;
        return answer_is_yes(ret->answer.kind) ? 0 : refuse_answered(ret, err);
    }
    if (r == 0) /* what cannot be shown whole is not asked */
        r = asking_open(s, &asked, &ret->asking, &id, &ret->refusal);
    if (r > 0)
        return 1;
    if (r == 0)
        offer_answer_ahead(&ret->refusal, &id);
    if (err)
        *err = ret->refusal;
    return ret->refusal.code;
}

int policy_admit(nacre_session *s, const nacre_command *command, const struct permissions *wanted,
                 struct admission *ret, nacre_error *err)
{
    struct deliberation d cleanup_deliberation = {0};
    const struct rules *rules = &atomic_load(&s->rules)->rules;
    bool wants_more = !permissions_are_none(wanted);
    *ret = (struct admission){0};
    if (!rules_are_needed(rules) && !wants_more)
        return 0;
    int r = policy_deliberate(rules, command, nacre_settings_text(s->settings, NACRE_SETTING_SHELL),
                              &d, err);
    if (r < 0)
        return r;
    ret->judged = true;
    ret->verdict = d.ruling.verdict;
    ret->sandbox = d.ruling.sandbox;
    policy_reason(&d, ret->reason, sizeof ret->reason);
    if (d.ruling.verdict == NACRE_ALLOW && !wants_more)
        return 0;
    if (d.ruling.verdict == NACRE_DENY)
        return refuse_denied(&d, err);
    if (rules->gated)
        note_granted(rules, &d, ret);
    return ask_about(s, command, wanted, &d, ret, err);
}

int policy_hear(nacre_session *s, struct admission *a, nacre_error *err)
{
    a->answered = asking_has_answer(s, a->asking, &a->answer);
    if (!a->answered)
        return 0;
    if (answer_is_yes(a->answer.kind))
        return 1;
    return refuse_answered(a, err);
}

/* -- For everybody ---------------------------------------------------------------------------- */

const char *nacre_verdict_name(nacre_verdict verdict)
{
    return verdict == NACRE_ALLOW ? "allow" : verdict == NACRE_ASK ? "ask" : "deny";
}

static int tell_of_command(const struct rules *rules, const struct script_command *c,
                           nacre_policy_fn *fn, void *userdata, nacre_error *err)
{
    struct buf text cleanup_buf = BUF_UP_TO(SIZE_MAX / 2);
    if (policy_write_command(&text, c) < 0)
        return err_set(err, NACRE_ENOMEM, "out of memory");
    struct ruling j = rule_on_command(rules, c);
    nacre_policy_command told = {
        .text = text.data ? text.data : "",
        .verdict = j.verdict,
        .rule = j.rule ? j.rule->text : "",
        .because = j.rule ? j.rule->because : "",
        .doubt = j.doubt ? j.doubt : "",
        .classes = classes_of(c),
    };
    return fn(&told, userdata);
}

int nacre_policy_check(const nacre_settings *settings, const char *text, const char *shell,
                       nacre_policy_fn *fn, void *userdata, nacre_policy_answer *ret_answer,
                       nacre_error *reterr)
{
    struct rules rules cleanup_rules = {0};
    struct deliberation d cleanup_deliberation = {0};
    nacre_command command = NACRE_COMMAND_INIT;
    if (!settings || !text || !ret_answer || ret_answer->size != sizeof *ret_answer)
        return err_set(reterr, NACRE_EINVAL,
                       "settings and text are needed, and an answer that starts from "
                       "NACRE_POLICY_ANSWER_INIT");
    command.text = text;
    const char *reader = nacre_settings_text(settings, NACRE_SETTING_SHELL);
    int r = policy_rules(settings, &rules, reterr);
    if (r < 0)
        return r;
    rules.gated = exec_gate_is_wanted(settings, &rules);
    r = policy_deliberate(&rules, &command, shell ? shell : reader, &d, reterr);
    if (r < 0)
        return r;
    ret_answer->verdict = d.ruling.verdict;
    policy_reason(&d, ret_answer->reason, sizeof ret_answer->reason);
    for (size_t i = 0; r == 0 && fn && i < d.script.count; i++)
        r = tell_of_command(&rules, &d.script.commands[i], fn, userdata, reterr);
    return r;
}
