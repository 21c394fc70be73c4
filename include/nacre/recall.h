/*
 * Recall: a search over everything any shell printed, whether it runs, has ended, belonged to an
 * earlier session or was lost. Only logs are read; nothing is taken away from anybody. Shells that
 * the session may not read, those of another one that lives, are left out.
 *
 * Lines are what one stream printed between two newlines, whatever the other stream printed
 * meanwhile. Their numbers are per stream, begin at 1 and never change, also behind a gap. The
 * newest shell comes first; the lines of a shell come in the order in which they began.
 */
#ifndef NACRE_RECALL_H
#define NACRE_RECALL_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

#define NACRE_RECALL_LIMIT      100
#define NACRE_RECALL_FEW        3
#define NACRE_RECALL_TIMEOUT_MS 10000

/* What to look for. Start from NACRE_RECALL_QUERY_INIT; all pointers are borrowed. */
typedef struct nacre_recall_query {
    size_t size; /* sizeof(nacre_recall_query), set by NACRE_RECALL_QUERY_INIT */

    const char *pattern; /* a Perl-compatible regular expression of at most 4096 bytes, matched
                            within lines; NULL = every line */
    int literal;         /* 1 = the pattern is the text itself */
    int ignore_case;     /* 1 = upper and lower case are the same, as Unicode has them */

    const nacre_id *id;  /* one shell; NULL = all in the home */
    const char *session; /* only shells of the session whose id begins so; NULL = any */
    unsigned streams;    /* NACRE_OUT, NACRE_ERR or NACRE_BOTH; 0 = both */
    int64_t from;        /* the first and the last line of each stream; negative numbers count */
    int64_t to;          /* from its end, -1 being the last line; 0 = open */
    int64_t since_ms; /* only lines that began at this moment (since the epoch) or later; 0 = any */

    uint64_t context;   /* lines before and after each match, of the same stream */
    uint64_t limit;     /* matches shown; 0 = NACRE_RECALL_LIMIT; the rest are counted */
    int64_t timeout_ms; /* for the whole search; 0 = NACRE_RECALL_TIMEOUT_MS, < 0 = none */

    int (*cancelled)(void *userdata); /* asked now and then, may be NULL: other than 0 ends the
                                         search, which returns that */
    int fold; /* 1 = of the matches of one stream that differ in numbers alone, the first
                 NACRE_RECALL_FEW are shown; the others are counted in the totals */
} nacre_recall_query;

#define NACRE_RECALL_QUERY_INIT                                                          \
    {                                                                                    \
        sizeof(nacre_recall_query), NULL, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0 \
    }

/* One line. Everything is borrowed for the call. */
typedef struct nacre_recall_line {
    const nacre_record *record; /* of its shell */
    nacre_stream stream;
    uint64_t line;
    uint64_t offset; /* of its first byte in the log */
    int64_t time_ms; /* when that was read, since the epoch */

    const char *text; /* the bytes as printed, without the newline */
    size_t size;
    uint64_t left_before; /* bytes of the line before text and after it: a line longer than */
    uint64_t left_after;  /* 256 KiB is given in part, around its match */

    int is_match;       /* 0 = context */
    size_t match_start; /* where the first match is in text; both 0 without a pattern */
    size_t match_end;

    int cut_start;  /* what came before it in its line is no longer in the log */
    int cut_end;    /* what came behind it likewise */
    int unfinished; /* no newline has come yet */
} nacre_recall_line;

/* Called for each line to show; a result other than 0 ends the search, which returns it. */
typedef int nacre_recall_fn(const nacre_recall_line *line, void *userdata);

/* How much there was. Start from NACRE_RECALL_TOTALS_INIT. */
typedef struct nacre_recall_totals {
    size_t size; /* sizeof(nacre_recall_totals), set by NACRE_RECALL_TOTALS_INIT */

    uint64_t matches;       /* lines that match */
    uint64_t shown;         /* of these, given to the callback */
    uint64_t shells;        /* shells searched to the end, ... */
    uint64_t shells_left;   /* ... not searched or not to the end: the time was over, ... */
    uint64_t unreadable;    /* ... or whose log is damaged */
    uint64_t bytes;         /* searched */
    uint64_t dropped_bytes; /* could not be: they are no longer in the logs */
    uint64_t folded;        /* matches that are like some that were shown */
} nacre_recall_totals;

#define NACRE_RECALL_TOTALS_INIT                            \
    {                                                       \
        sizeof(nacre_recall_totals), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/*
 * Searches, and blocks until it is done; ret_totals may be NULL. Returns 0 also if nothing
 * matched. What a running shell prints after the search began is not looked at.
 *
 * NACRE_EINVAL names the field that is wrong. NACRE_ETIMEOUT: the time was over; what was found
 * until then has been given, and the totals say what is left. NACRE_ELIMIT: the pattern takes too
 * many steps.
 *
 * Memory is bounded: a line longer than 256 KiB is searched in windows that overlap by 64 KiB, so
 * that a match longer than that may be missed in it.
 */
NACRE_API int nacre_recall(nacre_session *session, const nacre_recall_query *query,
                           nacre_recall_fn *fn, void *userdata, nacre_recall_totals *ret_totals,
                           nacre_error *reterr);

NACRE_END_DECLS

#endif
