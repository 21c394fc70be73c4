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

#define NACRE_VIEW_BUDGET     10240    /* bytes of one answer, unless set otherwise */
#define NACRE_VIEW_BUDGET_MIN 1024     /* smaller budgets are refused */
#define NACRE_VIEW_BUDGET_MAX 16777216 /* larger ones are taken as this */
#define NACRE_TOKEN_BYTES     4        /* a token is estimated as so many bytes */

/* Who reads it: in whose words it says how to get back what was left out. */
typedef enum nacre_audience {
    NACRE_FOR_TOOLS = 0, /* recall(id: "...", lines: "...") */
    NACRE_FOR_PEOPLE = 1 /* nacre recall --id ... --lines ... */
} nacre_audience;

/* Start from NACRE_VIEW_OPTIONS_INIT. */
typedef struct nacre_view_options {
    size_t size;      /* sizeof(nacre_view_options) */
    uint64_t bytes;   /* the budget; 0 = the setting `answer` */
    uint64_t tokens;  /* the budget in estimated tokens instead, if > 0; not both */
    int compact;      /* 1 = of each stream only its last lines; < 0 = the setting `view` */
    int64_t lines[2]; /* how many last lines of stdout and of stderr are shown before all else, if
                         not all fits; < 0 = the settings `stdout_lines` and `stderr_lines` */
    unsigned streams; /* of a read: NACRE_OUT, NACRE_ERR or NACRE_BOTH */
    nacre_audience audience;
    int merged; /* of a summary: 1 = both streams in the order they were read, if all of it fits; 0
                   = stderr, then stdout; < 0 = the setting `order` */
} nacre_view_options;

#define NACRE_VIEW_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(nacre_view_options), 0, 0, -1, {-1, -1}, NACRE_OUT | NACRE_ERR, NACRE_FOR_TOOLS, -1 \
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

/*
 * A place in a shell's output up to which somebody has read, for nacre_view_read(). It starts as
 * NACRE_POSITION_INIT, has a fixed size, no pointers, and may be stored and copied. Its offset is
 * that of the log, for nacre_mark_read(); the rest is nobody's business.
 */
typedef struct nacre_position {
    size_t size; /* sizeof(nacre_position) */
    uint64_t offset;
    uint64_t lines[2];
    uint64_t bytes[2];
    uint64_t open_offset[2];
    uint64_t open_size[2];
    uint64_t open_hash[2];
} nacre_position;

#define NACRE_POSITION_INIT                                        \
    {                                                              \
        sizeof(nacre_position), 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, \
        {                                                          \
            0, 0                                                   \
        }                                                          \
    }

/*
 * What is new in a shell's output since *position, in the order it was printed: a line
 * `[shell <id> — <status>]`, then the new lines, or `(no new output)`. An unfinished last line is
 * shown as it is; when it has been finished it is shown again only if it changed meanwhile, and of
 * a long one that has only grown what is new. Of a stream whose new bytes are none of a text their
 * number is shown. What does not fit the budget is left out of the middle, counted, and said how to
 * get back. *position moves behind what was shown or left out; keep a copy to be able to read the
 * same again. *ret_text as of nacre_summary(). ret_new, if not NULL, gets 1 if there was new
 * output, else 0. options may be NULL; compact is ignored. With one stream only, the other one
 * counts as read. NACRE_EINVAL if the position lies behind all output: it is another shell's.
 */
NACRE_API int nacre_view_read(nacre_session *session, const nacre_id *id, nacre_position *position,
                              const nacre_view_options *options, char **ret_text, int *ret_new,
                              nacre_error *reterr);

#define NACRE_SCREEN_MARKED 8

/* What is on the screen of a shell. Rows and columns count from 1. Start from NACRE_SCREEN_INIT;
 * release with nacre_screen_done(). */
typedef struct nacre_screen {
    size_t size; /* sizeof(nacre_screen), set by NACRE_SCREEN_INIT */
    char *text;  /* the rows up to the last that has something, each with a newline, without blanks
                    at their ends; NUL-terminated, valid UTF-8 */
    int columns; /* of the terminal, */
    int rows;
    int terminal; /* 0 = it has none: this is what a terminal of 120 x 40 would show */
    int row;      /* where the cursor is */
    int column;
    int shown;       /* 1 = the cursor is to be seen */
    int alternate;   /* 1 = the screen of programs that fill it, such as editors */
    int cursor_keys; /* 1 = cursor keys are to be sent in their other form, ESC O A for ESC [ A */
    int paste;       /* 1 = what is pasted is to be sent in brackets */
    int marked[NACRE_SCREEN_MARKED]; /* rows that stand out; ends at the first 0 */
    int partial; /* 1 = output before this was dropped: rows not drawn since then may be missing */
} nacre_screen;

#define NACRE_SCREEN_INIT                                             \
    {                                                                 \
        sizeof(nacre_screen), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0 \
    }

/* Draws what it printed so far again, whether it runs or not. */
NACRE_API int nacre_get_screen(nacre_session *session, const nacre_id *id, nacre_screen *ret_screen,
                               nacre_error *reterr);

/* Frees what it owns and makes it empty. NULL is ignored. */
NACRE_API void nacre_screen_done(nacre_screen *screen);

NACRE_END_DECLS

#endif
