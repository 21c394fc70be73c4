/*
 * What the files of this layer share.
 *
 *   args.c     arguments
 *   call.c     calls: begin, step, result, delivery, cancellation; the table of tools; call.h for
 *              servers
 *   answer.c   what an answer is made of; completions in front of it
 *   feeding.c  words to shells
 *   follow.c   waiting for shells; await.c the arguments that ask for it
 *   missed.c   what a command failed for want of
 *   excerpt.c  parts of output, and regular expressions over it
 *   bash.c, bash_output.c, bash_input.c, kill_shell.c, list_shells.c, recall_tool.c: one verb each
 */
#pragma once

#include <jansson.h>
#include <nacre/backend.h>
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
 * has to be waited for (fd and wake_ns say for what), or a code below 0: then the sentence
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
    bool begins; /* its subjects were started by the call */
    int (*begin)(nacre_call *c, nacre_error *err);
    int (*step)(nacre_call *c, nacre_error *err); /* NULL = begin says it all */
    int (*answer)(nacre_call *c, struct answer *a, nacre_error *err);
    int (*cancel)(nacre_call *c, nacre_error *err); /* as step; NULL = there is nothing to end */
    /* The shells that the answer is about, which are looked at before it is made; the progress of
     * the first is shown. May be NULL. */
    const nacre_id *(*subjects)(const nacre_call *c, size_t *ret_count);
    void (*done)(nacre_call *c); /* may be NULL */
};

struct nacre_call {
    nacre_session *session;
    const struct tool *tool;
    json_t *object; /* what the arguments borrow from, or NULL */
    void *args;     /* the tool's own structure, and its state */
    void *state;
    bool progress;
    size_t budget; /* bytes of text */

    enum {
        CALL_WAITS,
        CALL_LOOKS, /* the answer can be made when what is known of its shells is up to date */
        CALL_ENDS,  /* cancelled, not over yet */
        CALL_FINISHED
    } phase;
    size_t looked; /* subjects */
    nacre_op *look;
    bool fresh; /* there is nothing to look at: the verb knows how its shells are */
    bool cancelled;
    bool delivered;
    int fd;          /* to poll, or -1; borrowed from the state */
    int64_t wake_ns; /* when to step without it */
    int64_t began_ns;

    struct answer answer;
    json_t *result;
    char *text; /* of the result, once somebody wanted it */
    char *told; /* the last progress */
};

extern const struct tool tool_bash, tool_bash_output, tool_bash_input, tool_kill_shell,
    tool_list_shells, tool_recall;

/* Entry i of the table, NULL behind the last. */
const struct tool *tool_at(size_t i);

int64_t call_setting(const nacre_call *c, nacre_setting setting);

/* What one call may wait, in ms. */
int64_t call_wait_max(const nacre_call *c);

/* The budget for what the model asked for; tokens below 0 = it did not. */
void call_set_budget(nacre_call *c, int64_t tokens);

/* Steps an operation that the call waits for: TOOL_DONE, TOOL_WAIT or the code. */
int call_step_op(nacre_call *c, nacre_op *op, nacre_error *err);

/* What is known of a shell now, if the session may read it. */
int call_record(const nacre_call *c, const nacre_id *id, nacre_record *ret_record,
                nacre_error *err);

/* The shell whose id begins so. NACRE_ENOTFOUND in the words of a tool. */
int call_find(const nacre_call *c, const char *id, nacre_id *ret_id, nacre_error *err);
