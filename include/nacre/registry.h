/*
 * The registry: which shells a session has, what was read of them, whose they are, and what the
 * home holds besides. Everything here is there for other processes too, and after a restart.
 */
#ifndef NACRE_REGISTRY_H
#define NACRE_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/record.h>
#include <nacre/session.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

/* -- Lists ------------------------------------------------------------------------------------ */

typedef enum nacre_list_which {
    NACRE_LIST_SESSION = 0, /* those of this session: background shells, and what still lingers */
    NACRE_LIST_HOME = 1     /* all in the home that this session may read */
} nacre_list_which;

typedef struct nacre_list_options {
    size_t size;
    nacre_list_which which;
    int only_alive; /* 1 = only what runs or lingers */
    int details;    /* 1 = with the processes that are alive and their ports */
} nacre_list_options;

#define NACRE_LIST_OPTIONS_INIT                              \
    {                                                        \
        sizeof(nacre_list_options), NACRE_LIST_SESSION, 0, 0 \
    }

/* One shell of a list. */
typedef struct nacre_listed {
    size_t size;
    const nacre_record *record;
    uint64_t unread; /* bytes that its session has not read yet */
    int background;
    const char *session_name;   /* of the session whose it is (record->session); "" = none */
    int session_alive;          /* 0 = that session has ended, or it is nobody's */
    const char *session_client; /* what that session works for; "" = not known */
} nacre_listed;

/* Called for each shell, oldest first; a result other than 0 ends the list. */
typedef int nacre_list_fn(const nacre_listed *listed, void *userdata);

/*
 * Lists shells. What the list of a session holds beyond the setting `listed` (32) leaves it: the
 * oldest that have ended, read ones before unread ones, never one that runs or lingers. Its id
 * still answers. Everything given to fn is borrowed for the call. Returns 0, or what fn did.
 */
NACRE_API int nacre_list(nacre_session *session, const nacre_list_options *options,
                         nacre_list_fn *fn, void *userdata, nacre_error *reterr);

/* What a status bar shows, of this session's shells. Cheap. */
typedef struct nacre_counts {
    size_t size;
    int running;     /* background shells without an outcome */
    int lingering;   /* ended, with processes left */
    int finished;    /* listed, and over */
    int unread;      /* listed shells with output that was not read */
    int completions; /* ends that were not delivered yet */
} nacre_counts;

#define NACRE_COUNTS_INIT                   \
    {                                       \
        sizeof(nacre_counts), 0, 0, 0, 0, 0 \
    }

NACRE_API int nacre_get_counts(nacre_session *session, nacre_counts *ret_counts,
                               nacre_error *reterr);

/*
 * Makes a background shell of one that was started in the foreground and goes on. It takes a place
 * from now on, and is never refused for want of one. If it has ended meanwhile, its completion is
 * due at once. Nothing happens to one that is in the background already.
 */
NACRE_API int nacre_background(nacre_session *session, const nacre_id *id, nacre_error *reterr);

/* -- What was read ---------------------------------------------------------------------------- */

/* What this session has not read of a shell. Reading never destroys anything. */
typedef struct nacre_unread {
    size_t size;
    uint64_t from; /* the session's cursor */
    uint64_t to;   /* the end of the log at present */
    /* If there is more than the setting `unread` (1 MiB), show from..head and tail..to and name
     * the gap between the two; else head == tail == to. */
    uint64_t head;
    uint64_t tail;
} nacre_unread;

#define NACRE_UNREAD_INIT                \
    {                                    \
        sizeof(nacre_unread), 0, 0, 0, 0 \
    }

NACRE_API int nacre_get_unread(nacre_session *session, const nacre_id *id, nacre_unread *ret_unread,
                               nacre_error *reterr);

/*
 * The session has shown the output up to offset, and with saw_end also how the shell ended: its
 * completion counts as delivered then. Call it once the reader surely has it. A cursor never goes
 * back.
 */
NACRE_API int nacre_mark_read(nacre_session *session, const nacre_id *id, uint64_t offset,
                              int saw_end, nacre_error *reterr);

/* -- Whose they are --------------------------------------------------------------------------- */

/*
 * Makes a kept shell this session's own: it is listed, its completion comes here, it may be fed
 * and killed. It still survives the session. NACRE_EFORBIDDEN while the session it belongs to
 * lives; NACRE_EUNSUPPORTED for a shell that dies with its session.
 */
NACRE_API int nacre_adopt(nacre_session *session, const nacre_id *id, nacre_error *reterr);

/*
 * Takes a shell out of its session: from now on it is kept, and nobody's until it is adopted. For
 * its own session, and for a person. Returns 1 if that was so already: it is kept, and its session
 * has ended. NACRE_ECLOSED if nothing of it is left; NACRE_EFORBIDDEN from inside of it, since a
 * command cannot decide to outlive its session.
 */
NACRE_API int nacre_keep(nacre_session *session, const nacre_id *id, nacre_error *reterr);

/* A session, as the home remembers it. Strings are borrowed for the call. */
typedef struct nacre_session_info {
    size_t size;
    nacre_id id;
    const char *name; /* "" = none */
    const char *cwd;
    int32_t pid;
    int alive;          /* its process lives and it was not closed */
    int64_t opened_ms;  /* since the epoch */
    int64_t closed_ms;  /* 0 = not closed, or not properly */
    int running;        /* its shells without an outcome */
    int shells;         /* all that the home still has of it */
    int completions;    /* ends that were not delivered */
    const char *client; /* what it works for, see nacre_session_set_client(); "" = not known */
    int person;         /* 1 = it was opened for one command of a person */
    int64_t ends_ms;    /* it will end then unless something comes; 0 = nobody said so */
} nacre_session_info;

typedef int nacre_session_fn(const nacre_session_info *info, void *userdata);

/* Lists the sessions of the home, oldest first. Returns 0, or what fn did. */
NACRE_API int nacre_list_sessions(nacre_session *session, nacre_session_fn *fn, void *userdata,
                                  nacre_error *reterr);

/* -- Retention -------------------------------------------------------------------------------- */

typedef struct nacre_gc_options {
    size_t size;
    int dry_run; /* 1 = only say what would go */
} nacre_gc_options;

#define NACRE_GC_OPTIONS_INIT       \
    {                               \
        sizeof(nacre_gc_options), 0 \
    }

typedef struct nacre_gc_result {
    size_t size;
    int64_t removed;        /* runs */
    uint64_t removed_bytes; /* on disk, with all that went with them */
    int64_t kept;
    uint64_t kept_bytes; /* all that the home has on disk now, or would have */
} nacre_gc_result;

#define NACRE_GC_RESULT_INIT                \
    {                                       \
        sizeof(nacre_gc_result), 0, 0, 0, 0 \
    }

/* Called for each run that goes (or would), oldest first. */
typedef void nacre_gc_fn(const nacre_id *id, uint64_t bytes, int64_t ended_ms, void *userdata);

/*
 * Removes runs that ended longer ago than the setting `home_days`, then the oldest ones until all
 * that the home has on disk is within `home_quota`; what nobody has heard of yet goes last. Never
 * one that runs or lingers, nor anything that is not nacre's. Sessions do this by themselves every
 * now and then. options, fn and ret_result may be NULL.
 */
NACRE_API int nacre_gc(nacre_session *session, const nacre_gc_options *options, nacre_gc_fn *fn,
                       void *userdata, nacre_gc_result *ret_result, nacre_error *reterr);

NACRE_END_DECLS

#endif
