/*
 * Rules about commands: what may run, what may not, and what a person is asked about.
 *
 * A rule is a pattern of words, and it is held against the words of every command of a text,
 * wherever in the text that stands: in lists, loops, functions, substitutions, and behind programs
 * that only start others (env, timeout, xargs, bash -c). The strictest verdict over all of them is
 * that of the text. The settings `policy` and `policy_default` have the rules; docs/policy.md says
 * how they are written.
 */
#ifndef NACRE_POLICY_H
#define NACRE_POLICY_H

#include <stddef.h>

#include <nacre/error.h>
#include <nacre/settings.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

/* The values of NACRE_SETTING_POLICY_DEFAULT too; the greater, the stricter. */
typedef enum nacre_verdict { NACRE_ALLOW = 0, NACRE_ASK = 1, NACRE_DENY = 2 } nacre_verdict;

/* What a command does, as far as its words tell; a set. Nothing is decided by it. */
enum {
    NACRE_CLASS_READS = 1,
    NACRE_CLASS_WRITES = 2,
    NACRE_CLASS_NETWORK = 4,
    NACRE_CLASS_DESTRUCTIVE = 8,
    NACRE_CLASS_PRIVILEGE = 16,
    NACRE_CLASS_UNKNOWN = 32
};

/* One command of a text. All is borrowed for the call. */
typedef struct nacre_policy_command {
    const char *text; /* its words, quoted as a shell takes them; what is known only when it runs
                         stands as it is written */
    nacre_verdict verdict;
    const char *rule;    /* by which, as it is in the settings; "" = the default, or a doubt */
    const char *because; /* what that rule says; "" = nothing */
    const char *doubt;   /* why no rule can allow it; "" = none */
    unsigned classes;
} nacre_policy_command;

/* A result other than 0 ends the walk. */
typedef int nacre_policy_fn(const nacre_policy_command *command, void *userdata);

typedef struct nacre_policy_answer {
    size_t size; /* sizeof(nacre_policy_answer), set by NACRE_POLICY_ANSWER_INIT */
    nacre_verdict verdict;
    char reason[240]; /* why: a rule, a doubt, or the default; one line */
} nacre_policy_answer;

#define NACRE_POLICY_ANSWER_INIT                  \
    {                                             \
        sizeof(nacre_policy_answer), NACRE_ALLOW, \
        {                                         \
            0                                     \
        }                                         \
    }

/*
 * What the rules of the settings say of a text; nothing is run. shell names what would read it, as
 * in nacre_command; NULL = bash. fn, which may be NULL, is called for each command that was found.
 * Returns 0, or what fn did. Nothing that was found is left out when the text is in doubt; but then
 * there may be more.
 */
NACRE_API int nacre_policy_check(const nacre_settings *settings, const char *text,
                                 const char *shell, nacre_policy_fn *fn, void *userdata,
                                 nacre_policy_answer *ret_answer, nacre_error *reterr);

/* "allow", "ask" or "deny". */
NACRE_API const char *nacre_verdict_name(nacre_verdict verdict);

NACRE_END_DECLS

#endif
