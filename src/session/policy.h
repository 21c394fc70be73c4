/* What the rules of the settings say of commands: the one place where that is found out. */
#pragma once

#include <nacre/ask.h>
#include <nacre/command.h>
#include <nacre/policy.h>
#include <nacre/session.h>
#include <stdbool.h>

#include "ask/desk.h"
#include "base/buf.h"
#include "policy/ruling.h"
#include "session/permissions.h"

/* A command, read and judged. */
struct deliberation {
    struct script script;
    struct ruling ruling;
    size_t which;    /* of the script's commands; its count = the text as a whole */
    char doubt[160]; /* about what is not in the text; "" = none */
};

/* Reads the rules of the settings. Release with rules_done(). */
int policy_rules(const nacre_settings *settings, struct rules *ret_rules, nacre_error *err);

/* shell names what reads the command's text if the command does not say; NULL = bash. */
int policy_deliberate(const struct rules *rules, const nacre_command *command, const char *shell,
                      struct deliberation *ret, nacre_error *err);

/* What was found out about a command that is to start, for who reads of it later. */
struct admission {
    bool judged; /* there are rules */
    nacre_verdict verdict;
    char reason[240];
    const char *sandbox;          /* the mode that the rules want for it; NULL = none */
    nacre_error refusal;          /* if nobody says yes */
    struct open_question *asking; /* a person is asked; NULL = nobody is */
    bool answered;
    struct desk_answer answer;
    struct buf granted; /* what of it is asked about, for keepers; the owner frees it */
};

/* Whether a command of the session may start, with what it wants beyond its sandbox: 0, or
 * NACRE_EPERM, with the rule or the doubt and what its user can do about it; or 1 if a person is
 * asked, of whose answer policy_hear() knows. Nothing is found out, and nothing costs time, where
 * there are no rules and nothing is wanted. */
int policy_admit(nacre_session *s, const nacre_command *command, const struct permissions *wanted,
                 struct admission *ret, nacre_error *err);

/* 1 = it may start; 0 = not answered yet; NACRE_EPERM. */
int policy_hear(nacre_session *s, struct admission *a, nacre_error *err);

/* Why it came to that, in one line. */
void policy_reason(const struct deliberation *d, char *ret_text, size_t size);

/* The words of a command as a shell takes them. */
int policy_write_command(struct buf *out, const struct script_command *command);

static inline void deliberation_done(struct deliberation *d)
{
    script_done(&d->script);
}

#define cleanup_deliberation __attribute__((cleanup(deliberation_done)))
