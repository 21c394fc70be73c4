/*
 * What the files of this layer share.
 *
 *   table.c    the tools, their schemas, the instructions
 *   args.c     arguments
 *   call.c     calls: begin, step, result, delivery, cancellation
 *   answer.c   what an answer is made of; completions in front of it
 *   feeding.c  words to shells
 *   follow.c   waiting for shells
 *   match.c    regular expressions over output
 *   bash.c, bash_output.c, bash_input.c, kill_shell.c, list_shells.c, recall.c: one verb each
 */
#ifndef NACRE_TOOL_TOOL_H
#define NACRE_TOOL_TOOL_H

#include <jansson.h>
#include <nacre/session.h>
#include <nacre/tool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/answer.h"
#include "tool/args.h"

#define TOOL_DONE 1
#define TOOL_WAIT 0

/* Bytes of one answer, whatever is asked for. */
#define CALL_BUDGET_MIN 2048
#define CALL_BUDGET_MAX (1024 * 1024)

#define YEAR_MS         (INT64_C(365) * 24 * 3600 * 1000)

/*
 * One verb. begin and step return TOOL_DONE when the answer can be made, TOOL_WAIT when something
 * has to be waited for (call_wake() and call_fd say for what), or a code below 0: then the sentence
 * of the error is the answer. answer writes it.
 */
struct tool {
    const char *name;
    const char *title;
    const char *description; /* a template, see args_fill() */
    const struct arg *args;
    size_t args_size;
    size_t state_size;
    bool read_only;
    bool destructive;
    bool idempotent;
    bool open_world;
    int (*begin)(nacre_call *c, nacre_error *err);
    int (*step)(nacre_call *c, nacre_error *err); /* NULL = begin says it all */
    int (*answer)(nacre_call *c, struct answer *a, nacre_error *err);
    int (*cancel)(nacre_call *c, nacre_error *err);  /* as step; NULL = there is nothing to end */
    const nacre_id *(*subject)(const nacre_call *c); /* whose progress is shown; may be NULL */
    void (*done)(nacre_call *c);                     /* may be NULL */
};

struct nacre_call {
    nacre_session *session;
    const struct tool *tool;
    json_t *object; /* what the arguments borrow from */
    void *args;     /* the tool's own structure, and its state */
    void *state;
    bool progress;
    size_t budget; /* bytes of text */

    enum { CALL_WAITS, CALL_ENDS, CALL_FINISHED } phase; /* ENDS = cancelled, not over yet */
    bool cancelled;
    bool delivered;
    int fd;          /* to poll, or -1; borrowed from the state */
    int64_t wake_ns; /* when to step without it */
    int64_t began_ns;

    struct answer answer;
    char *result;
    char *told; /* the last progress */
};

extern const struct tool tool_bash, tool_bash_output, tool_bash_input, tool_kill_shell,
    tool_list_shells, tool_recall;

/* Entry i of the table, NULL behind the last. */
const struct tool *tool_at(size_t i);
const struct tool *tool_find(const char *name);

int64_t call_setting(const nacre_call *c, nacre_setting setting);

/* What one call may wait, in ms. */
int64_t call_wait_max(const nacre_call *c);

/* The budget for what the model asked for; tokens below 0 = it did not. */
void call_set_budget(nacre_call *c, int64_t tokens);

/* The shell whose id begins so. NACRE_ENOTFOUND in the words of a tool. */
int call_find(const nacre_call *c, const char *id, nacre_id *ret_id, nacre_error *err);

#endif
