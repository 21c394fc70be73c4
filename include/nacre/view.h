/*
 * What a model, or a person, is shown of a shell: text that fits a budget. It is rendered (colours
 * gone, progress bars and redraws resolved, equal lines folded, always valid UTF-8), what was left
 * out is counted and said how to get back, and nothing that a command printed can pass for a line
 * of nacre's own: such lines begin with a backslash. The log itself stays as it is.
 *
 * Safe from many threads at once, like everything that takes a session.
 */
#ifndef NACRE_VIEW_H
#define NACRE_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

#define NACRE_VIEW_BUDGET     10240   /* bytes of one answer, unless asked otherwise */
#define NACRE_VIEW_BUDGET_MIN 1024    /* smaller budgets are refused */
#define NACRE_VIEW_BUDGET_MAX 1048576 /* larger ones are taken as this */
#define NACRE_TOKEN_BYTES     4       /* a token is estimated as so many bytes */

/* Who reads it: in whose words it says how to get back what was left out. */
typedef enum nacre_audience {
    NACRE_FOR_TOOLS = 0, /* recall(id: "...", lines: "...") */
    NACRE_FOR_PEOPLE = 1 /* nacre recall --id ... --lines ... */
} nacre_audience;

/* Start from NACRE_VIEW_OPTIONS_INIT. */
typedef struct nacre_view_options {
    size_t size;     /* sizeof(nacre_view_options) */
    uint64_t bytes;  /* the budget; 0 = NACRE_VIEW_BUDGET */
    uint64_t tokens; /* the budget in estimated tokens instead, if > 0; not both */
    int compact;     /* 1 = of each stream only its last lines: 50 of stderr, 20 of stdout */
    nacre_audience audience;
} nacre_view_options;

#define NACRE_VIEW_OPTIONS_INIT                              \
    {                                                        \
        sizeof(nacre_view_options), 0, 0, 0, NACRE_FOR_TOOLS \
    }

/*
 * The summary of a run, finished or not: how it ended, what it left running, and of its output
 * everything that fits, else its last lines, lines that look like the cause, and its first lines.
 * *ret_text is the caller's to free(); it is NUL-terminated, valid UTF-8, and never larger than the
 * budget. ret_record, if not NULL, is filled with the record the text was made from. options may
 * be NULL. NACRE_EINVAL if they make no sense.
 */
NACRE_API int nacre_summary(nacre_session *session, const nacre_id *id,
                            const nacre_view_options *options, char **ret_text,
                            nacre_record *ret_record, nacre_error *reterr);

/* How many tokens a text of so many bytes is estimated to be: a quarter of them, rounded. */
NACRE_API uint64_t nacre_tokens(uint64_t bytes);

NACRE_END_DECLS

#endif
