/*
 * Sessions: the way into nacre. A session is one front end's life. Opening one creates nothing;
 * the first command does. Shells started with NACRE_LIFE_SESSION die with it, whether it is
 * closed, its process ends, or is killed.
 *
 * A session may be used from any number of threads at once. It starts no thread, installs no
 * signal handler, has no child processes that waitpid(-1) could meet, and changes neither the
 * signal mask, the working directory, the umask nor the environment of its host. Where the host
 * is PID 1 or a subreaper, finished keepers become its children; the session reaps them by pid.
 *
 * A session belongs to the process that opened it: in a forked child every call fails with
 * NACRE_EFORKED, and nacre_close() only frees memory.
 *
 * Where a function takes an id, the shells of this session are meant, and what a session that has
 * ended left behind: that may be read, but not fed, killed or removed, unless it is a kept shell
 * whose directory is the session's. A shell of another session
 * that lives is NACRE_EFORBIDDEN. A session opened for a person may do everything with all shells
 * of its user. A kept shell whose session has ended can be made one's own with nacre_adopt().
 */
#ifndef NACRE_SESSION_H
#define NACRE_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include <nacre/ask.h>
#include <nacre/backend.h>
#include <nacre/command.h>
#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/ports.h>
#include <nacre/reader.h>
#include <nacre/reads.h>
#include <nacre/record.h>
#include <nacre/settings.h>
#include <nacre/version.h>
#include <nacre/watch.h>

NACRE_BEGIN_DECLS

typedef struct nacre_session nacre_session;

typedef struct nacre_options {
    size_t size;        /* sizeof(nacre_options), set by NACRE_OPTIONS_INIT */
    const char *home;   /* NULL = the setting, else $XDG_STATE_HOME/nacre, else
                           ~/.local/state/nacre */
    const char *cwd;    /* default directory of commands; NULL = the host's at each start */
    const char *keeper; /* path of nacre-keeper; NULL = the setting, else beside the
                           library or program, else the installed one */
    const nacre_backend *backend; /* NULL = local; must outlive the session */
    int64_t grace_ms;             /* between SIGTERM and SIGKILL; < 0 = the setting */
    uint64_t quota;  /* bytes of output kept per shell; 0 = the setting; at least 256 KiB */
    nacre_tier tier; /* the best containment to try; NACRE_TIER_CGROUP = any.
                        $NACRE_TIER (cgroup, subreaper, group) lowers it further */
    int single;      /* 1 = this session starts few commands: no keeper is kept warm for the
                        next one */
    const nacre_settings *settings; /* copied; NULL = the file and the environment (settings.h) */
    const char *name;  /* what people call the session; one of the same name gets what this one
                          could not deliver. NULL = $NACRE_SESSION, "" = none */
    int person;        /* 1 = it acts for a person, who may see and end all of their shells */
    nacre_ask_fn *ask; /* asks a person about what the rules neither allow nor deny (ask.h); NULL =
                          nobody can be asked, and such a command does not start */
    void *ask_userdata;
} nacre_options;

#define NACRE_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(nacre_options), NULL, NULL, NULL, NULL, -1, 0, NACRE_TIER_CGROUP, 0, NULL, NULL, 0, \
            NULL, NULL                                                                             \
    }

/*
 * Opens a session. options may be NULL. On success *ret_session is owned by the caller, who ends
 * it with nacre_close(). NACRE_EUNSUPPORTED on a kernel below the floor (Linux 5.4); the errors
 * of nacre_settings_load().
 */
NACRE_API int nacre_open(const nacre_options *options, nacre_session **ret_session,
                         nacre_error *reterr);

/*
 * Closes a session: no shell starts any more (NACRE_ECLOSED), starts that are under way are waited
 * for, the NACRE_LIFE_SESSION shells are killed, all at once within one grace, the proof is
 * awaited, and the session is freed in any case. Returns how many shells could not be ended (0 is
 * the normal case); reterr then names them. Completions nobody took stay for a later session. No
 * other thread may begin to use the session. NULL is ignored.
 */
NACRE_API int nacre_close(nacre_session *session, nacre_error *reterr);

NACRE_API nacre_id nacre_session_id(const nacre_session *session);

/* Tells people what the session works for, such as "claude-code": it stands in lists. client is
 * copied; "" = not known. */
NACRE_API int nacre_session_set_client(nacre_session *session, const char *client,
                                       nacre_error *reterr);

/* Tells people when the session will be closed if nothing comes for it: it stands in lists, and
 * does nothing. ends_ms is since the epoch; 0 = not known. */
NACRE_API int nacre_session_set_end(nacre_session *session, int64_t ends_ms, nacre_error *reterr);

/* The settings in force; borrowed until the session is closed. */
NACRE_API const nacre_settings *nacre_session_settings(const nacre_session *session);

/*
 * The home in use, found and checked if it was not yet; borrowed until the session is closed.
 * *ret_note, if not NULL, gets a sentence when another place than the configured one had to be
 * used (a network file system), else NULL.
 */
NACRE_API int nacre_session_home(nacre_session *session, const char **ret_path,
                                 const char **ret_note, nacre_error *reterr);

/*
 * Starts a command and returns once it runs, or with NACRE_ESTART, stage and errno once it is
 * known that it cannot; then there is no id. ret_watch may be NULL; else *ret_watch is a watch
 * from the first byte on, owned by the caller. If it runs, but memory or descriptors do not suffice
 * to watch it, the result is NACRE_ENOMEM or NACRE_ELIMIT, *ret_id is its id all the same, and the
 * message names it; of any other failure *ret_id is zero.
 *
 * A background command takes one of the session's places (the setting `shells`, 8): when all are
 * taken, NACRE_ELIMIT names the shells that have them. Exactly that many run, whichever threads
 * start them.
 *
 * With a name the start is idempotent: if a shell of that name runs with the same command and
 * directory, its id is returned, and the result is 1. If what runs under the name is another
 * command, NACRE_EBUSY says so, or it is ended first if the command says replace. Names are those
 * of the session's own shells, and for kept shells those of all kept ones.
 */
NACRE_API int nacre_start(nacre_session *session, const nacre_command *command, nacre_id *ret_id,
                          nacre_watch **ret_watch, nacre_error *reterr);

/*
 * Starts a command and waits for its answer: the exit of the command, and up to 50 ms more for
 * what it left writing; never for the end of its pipes. After wait_ms (< 0 = no limit) returns
 * NACRE_ETIMEOUT with the record filled: the command goes on and can be waited for by its id.
 * On any other error nothing was started.
 */
NACRE_API int nacre_run(nacre_session *session, const nacre_command *command, int64_t wait_ms,
                        nacre_record *ret_record, nacre_error *reterr);

/*
 * Finds the shell whose id begins with a word: at least four lowercase hex digits, and only one
 * shell may match. If there is none, the one of that name which this session may read: what runs
 * before what has ended, its own before others', the latest first. NACRE_EINVAL if there is none of
 * that name and it can be no id, NACRE_ENOTFOUND, NACRE_EAMBIGUOUS.
 */
NACRE_API int nacre_find(nacre_session *session, const char *word, nacre_id *ret_id,
                         nacre_error *reterr);

/*
 * Fills the record of a shell. A shell whose keeper vanished is recognised here: what is left of
 * it is killed and NACRE_LOST is recorded. leftover is filled only while the tree is alive.
 */
NACRE_API int nacre_get(nacre_session *session, const nacre_id *id, nacre_record *ret_record,
                        nacre_error *reterr);

/*
 * What the processes of a shell use now. NACRE_EUNSUPPORTED for one that runs in another pid
 * namespace, where nobody here can tell.
 */
NACRE_API int nacre_get_usage(nacre_session *session, const nacre_id *id, nacre_usage *ret_usage,
                              nacre_error *reterr);

/*
 * Reads output from *cursor on (0 = from the beginning) into buf, and advances *cursor past what
 * was looked at. Returns the number of bytes, all of one stream of those in streams (NACRE_OUT,
 * NACRE_ERR, NACRE_BOTH); 0 means there is no more at present. Reading destroys nothing: any
 * number of readers, each with its cursor. ret_piece may be NULL.
 */
NACRE_API int64_t nacre_read(nacre_session *session, const nacre_id *id, uint64_t *cursor,
                             unsigned streams, void *buf, size_t size, nacre_piece *ret_piece,
                             nacre_error *reterr);

/*
 * Opens a reader over one stream of a shell: faster than nacre_read(), and with line numbers. On
 * success *ret_reader is owned by the caller; it must be closed before the session is.
 */
NACRE_API int nacre_reader_open(nacre_session *session, const nacre_id *id,
                                const nacre_reader_options *options, nacre_reader **ret_reader,
                                nacre_error *reterr);

/* All retained output at one moment. */
typedef struct nacre_snapshot {
    char *data; /* owned by the caller: free(); never NULL after success, not NUL-terminated */
    size_t size;
    int truncated;   /* bytes are missing at the beginning or in a gap */
    int has_outcome; /* the record's outcome is final */
} nacre_snapshot;

/*
 * Takes a snapshot of the last limit bytes (0 = 1 MiB) of the streams asked for, in the order
 * they were read. Idempotent. A cut falls between characters.
 */
NACRE_API int nacre_output(nacre_session *session, const nacre_id *id, unsigned streams,
                           size_t limit, nacre_snapshot *ret_snapshot, nacre_error *reterr);

/* Watches a shell from an offset of its log on (0 = all of it, UINT64_MAX = only what is new). */
NACRE_API int nacre_watch_open(nacre_session *session, const nacre_id *id, uint64_t offset,
                               nacre_watch **ret_watch, nacre_error *reterr);

/* Called for every piece; a result other than 0 ends the follow and is returned by it. */
typedef int nacre_follow_fn(const nacre_piece *piece, const void *bytes, void *userdata);

/* Calls fn for all output from offset on, until the tree is empty. Returns 0, or what fn did. */
NACRE_API int nacre_follow(nacre_session *session, const nacre_id *id, uint64_t offset,
                           nacre_follow_fn *fn, void *userdata, nacre_error *reterr);

typedef enum nacre_wait_mode {
    NACRE_WAIT_ANY = 0, /* one of them has an outcome */
    NACRE_WAIT_ALL = 1  /* each of them has */
} nacre_wait_mode;

/*
 * Waits for outcomes, up to timeout_ms (< 0 = no limit, 0 = just look): NACRE_ETIMEOUT when that
 * is over. ret_index, if not NULL, gets the index of one that has an outcome. A wait for ANY
 * needs one descriptor per shell, a wait for ALL needs one.
 */
NACRE_API int nacre_wait(nacre_session *session, const nacre_id *ids, size_t count,
                         nacre_wait_mode mode, int64_t timeout_ms, size_t *ret_index,
                         nacre_error *reterr);

typedef struct nacre_kill_options {
    size_t size;
    int signal;       /* the first signal; 0 = SIGTERM; SIGKILL skips the grace */
    int64_t grace_ms; /* until SIGKILL; < 0 = the shell's own */
    int cancel;       /* record NACRE_CANCELLED instead of NACRE_KILLED */
    int no_wait;      /* 1 = return once the kill is under way; it goes on by itself. A watch of the
                         shell tells when it is over, and its record how */
} nacre_kill_options;

#define NACRE_KILL_OPTIONS_INIT                 \
    {                                           \
        sizeof(nacre_kill_options), 0, -1, 0, 0 \
    }

typedef struct nacre_kill_result {
    int was_alive;    /* 0: there was nothing left to kill */
    int signalled;    /* processes that got the first signal, each exactly once */
    int force_killed; /* processes that were then ended by SIGKILL */
    int survivors;    /* processes still there: uninterruptible, or another user's */
    int32_t survivor_pids[8];
    int keeper_killed; /* its keeper did not answer and was ended too; the run is lost */
} nacre_kill_result;

/*
 * Ends the whole tree of a shell: the first signal exactly once to each process, SIGCONT, up to
 * the grace, SIGKILL to what is left, and the proof that nothing is. Bounded, idempotent, safe
 * from many threads at once. Killing what has already ended is no error. The record stays.
 * options and ret_result may be NULL.
 */
NACRE_API int nacre_kill(nacre_session *session, const nacre_id *id,
                         const nacre_kill_options *options, nacre_kill_result *ret_result,
                         nacre_error *reterr);

/*
 * Sends a signal to the process group of a shell's command, as a terminal does for Ctrl-C: once,
 * to whatever is in it, and nothing more. What has left the group (a job of its own, a daemon) does
 * not hear it. NACRE_ECLOSED if the command has ended.
 */
NACRE_API int nacre_signal(nacre_session *session, const nacre_id *id, int signal,
                           nacre_error *reterr);

/* Gives the terminal of a shell another size; its programs hear of it. NACRE_EUNSUPPORTED if it has
 * none, NACRE_ECLOSED if it has ended. */
NACRE_API int nacre_resize(nacre_session *session, const nacre_id *id, int columns, int rows,
                           nacre_error *reterr);

/* Lets go of a shell: kills it if it is alive. The record and the log stay. Idempotent. */
NACRE_API int nacre_release(nacre_session *session, const nacre_id *id, nacre_error *reterr);

/* Forgets a shell: its directory with all its output is removed. NACRE_EBUSY while it lives. */
NACRE_API int nacre_remove(nacre_session *session, const nacre_id *id, nacre_error *reterr);

/*
 * Writes to the stdin of a shell started with NACRE_STDIN_PIPE or a terminal, waiting up to
 * timeout_ms (< 0 = no limit) for room. Returns the bytes the command's pipe took, which may be
 * fewer at a timeout. With eof the pipe is closed afterwards; on a terminal the character is typed
 * that ends its input, and it stays open. NACRE_ECLOSED if it takes no input.
 */
NACRE_API int64_t nacre_input(nacre_session *session, const nacre_id *id, const void *data,
                              size_t size, int eof, int64_t timeout_ms, nacre_error *reterr);

NACRE_END_DECLS

#endif
