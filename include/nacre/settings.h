/*
 * Settings: what nacre does when a call does not say otherwise. A value comes from the first of
 * these that has one: the call or the flag (nacre_settings_set), the environment (NACRE_TIMEOUT),
 * the configuration file, the default. Every value knows where it came from.
 *
 * The file is a JSON object, {"timeout": "5m", "env_allow": ["GITHUB_TOKEN"]}, at $NACRE_CONFIG,
 * else $XDG_CONFIG_HOME/nacre/config.json, else ~/.config/nacre/config.json. What is wrong in it
 * is an error that names the line and what is allowed; nothing is ignored. A file that others may
 * write to, or that belongs to another user than root, is refused.
 *
 * Names are the same everywhere: timeout_max in the file, NACRE_TIMEOUT_MAX in the environment.
 * Times are written 500ms, 30 (seconds), 30s, 5m, 2h, 14d; sizes 4096 (bytes), 64KiB, 10KB,
 * 2GiB. Switches are on or off. Lists are arrays in the file, and names with commas or blanks
 * between them elsewhere. Rules are a list of objects, in the file and, as JSON, elsewhere.
 *
 * Settings do not change but by nacre_settings_set(); while nobody calls that, any number of
 * threads may read them.
 */
#ifndef NACRE_SETTINGS_H
#define NACRE_SETTINGS_H

#include <stdint.h>

#include <nacre/error.h>
#include <nacre/version.h>

NACRE_BEGIN_DECLS

typedef struct nacre_settings nacre_settings;

/* The defaults stand behind each. New ones are added at the end. */
typedef enum nacre_setting {
    NACRE_SETTING_SHELLS = 0,         /* running background shells per session; 8 */
    NACRE_SETTING_LISTED,             /* shells that a list shows; 32 */
    NACRE_SETTING_TIMEOUT,            /* of a foreground command; 60 s */
    NACRE_SETTING_TIMEOUT_MAX,        /* the longest a call may ask for; 300 s */
    NACRE_SETTING_BACKGROUND_TIMEOUT, /* of a background command; 0 = none */
    NACRE_SETTING_YIELD,              /* a foreground call answers at the latest; 25 s */
    NACRE_SETTING_WAIT,               /* the longest wait for a shell; 25 s */
    NACRE_SETTING_WAIT_PROGRESS,      /* the same where progress is reported; 240 s */
    NACRE_SETTING_GRACE,              /* between SIGTERM and SIGKILL; 2 s */
    NACRE_SETTING_UNREAD,             /* unread output shown at once; 1 MiB */
    NACRE_SETTING_QUOTA,              /* output kept per shell; 64 MiB */
    NACRE_SETTING_HOME_QUOTA,         /* disk space of all that is kept; 2 GiB */
    NACRE_SETTING_HOME_DAYS,          /* days that ended shells are kept; 14 */
    NACRE_SETTING_ANSWER,             /* bytes of one answer; 10 KiB */
    NACRE_SETTING_VIEW,               /* a choice: a NACRE_VIEW_... */
    NACRE_SETTING_STDERR_LINES,       /* the last lines of stderr that a cut keeps; 50 */
    NACRE_SETTING_STDOUT_LINES,       /* likewise of stdout; 20 */
    NACRE_SETTING_ORDER,              /* a choice: a NACRE_ORDER_... */
    NACRE_SETTING_SHELL,              /* a text: path or name; "" = bash, else sh */
    NACRE_SETTING_HISTORY,            /* a switch: ended shells outlive their session; on */
    NACRE_SETTING_AUDIT,              /* a switch: commands are noted in a log; on */
    NACRE_SETTING_ENV_ALLOW,          /* a list: variables that commands get, secret or not */
    NACRE_SETTING_ENV_DENY,           /* a list: variables that they never inherit */
    NACRE_SETTING_STRUCTURED,         /* a switch: structuredContent in answers of MCP; off */
    NACRE_SETTING_TIER,               /* a choice: a nacre_tier; the best that is tried */
    NACRE_SETTING_HOME,               /* a text: where shells are kept; "" = the usual place */
    NACRE_SETTING_KEEPER,             /* a text: path of nacre-keeper; "" = the installed one */
    NACRE_SETTING_LIMIT_MEMORY,       /* limits of each shell, see command.h; 0 = none */
    NACRE_SETTING_LIMIT_PROCESSES,
    NACRE_SETTING_LIMIT_CPU,
    NACRE_SETTING_LIMIT_CPU_TIME,
    NACRE_SETTING_LIMIT_FILES,
    NACRE_SETTING_LIMIT_FILE_SIZE,
    NACRE_SETTING_LIMIT_DISK,
    NACRE_SETTING_LIMITS_STRICT,   /* a switch: refuse to start where one cannot be held; off */
    NACRE_SETTING_SANDBOX,         /* a choice: a NACRE_SANDBOX_...; off */
    NACRE_SETTING_SANDBOX_WRITE,   /* a list of paths: writable beside the workspace */
    NACRE_SETTING_SANDBOX_HIDE,    /* a list of paths: hidden beside the user's secrets */
    NACRE_SETTING_SANDBOX_PROTECT, /* a list of names: read-only in what is writable */
    NACRE_SETTING_SANDBOX_NETWORK, /* a list: off, on, or hosts */
    NACRE_SETTING_SANDBOX_SOCKETS, /* a list of paths: Unix sockets that may be talked to */
    NACRE_SETTING_SANDBOX_CACHES,  /* a choice: private, shared, off */
    NACRE_SETTING_SANDBOX_TMP,     /* a choice: private, host */
    NACRE_SETTING_SANDBOX_WIDE,    /* a switch: a workspace may be a whole home directory; off */
    NACRE_SETTING_POLICY,          /* rules about commands, see policy.h; none */
    NACRE_SETTING_POLICY_DEFAULT,  /* a choice: a nacre_verdict, of what no rule is about; allow */
    NACRE_SETTING_POLICY_GATE      /* a switch: rules that forbid or ask hold for whatever a command
                                      executes, too; on */
} nacre_setting;

/* The values of NACRE_SETTING_SANDBOX. */
enum { NACRE_SANDBOX_OFF = 0, NACRE_SANDBOX_READ_ONLY = 1, NACRE_SANDBOX_WORKSPACE_WRITE = 2 };

/* The values of NACRE_SETTING_VIEW. */
enum {
    NACRE_VIEW_FULL = 0,   /* the budget is used: head, tail and salient lines */
    NACRE_VIEW_COMPACT = 1 /* the last lines of each stream and no more */
};

/* The values of NACRE_SETTING_ORDER: of a summary that shows everything. */
enum {
    NACRE_ORDER_STREAMS = 0, /* stderr, then stdout */
    NACRE_ORDER_MERGED = 1   /* both as they came */
};

typedef enum nacre_setting_kind {
    NACRE_KIND_COUNT = 0,
    NACRE_KIND_TIME,   /* in milliseconds */
    NACRE_KIND_SIZE,   /* in bytes */
    NACRE_KIND_SWITCH, /* 0 or 1 */
    NACRE_KIND_CHOICE, /* its place in the list of what is allowed, from 0 on */
    NACRE_KIND_TEXT,
    NACRE_KIND_LIST,
    NACRE_KIND_SHARE, /* a decimal such as 1.5, in hundredths */
    NACRE_KIND_RULES  /* a list of rules, in JSON */
} nacre_setting_kind;

/*
 * Takes the file and the environment in. file: NULL = the usual place, where it may be missing;
 * "" = no file; else a path, which must exist, as must one that $NACRE_CONFIG names. On success
 * *ret_settings is owned by the caller, who frees it with nacre_settings_free().
 */
NACRE_API int nacre_settings_load(const char *file, nacre_settings **ret_settings,
                                  nacre_error *reterr);

/* A copy, owned by the caller. */
NACRE_API int nacre_settings_copy(const nacre_settings *settings, nacre_settings **ret_settings,
                                  nacre_error *reterr);

/* NULL is ignored. */
NACRE_API void nacre_settings_free(nacre_settings *settings);

/*
 * Sets one value from its text, over what file and environment say. origin, such as "--timeout",
 * is copied; NULL = "call". NACRE_EINVAL for an unknown name, with the nearest one in the
 * sentence, or for a wrong value, with what is allowed; then nothing has changed.
 */
NACRE_API int nacre_settings_set(nacre_settings *settings, const char *name, const char *value,
                                 const char *origin, nacre_error *reterr);

/* Which setting has that name. NACRE_EINVAL with the nearest name. */
NACRE_API int nacre_settings_find(const char *name, nacre_setting *ret_setting,
                                  nacre_error *reterr);

/* The value of a count, time, size, share, switch or choice; 0 for the other kinds. */
NACRE_API int64_t nacre_settings_number(const nacre_settings *settings, nacre_setting setting);

/* The value of any kind as text that nacre_settings_set() takes; never NULL. Borrowed until the
 * setting is set or the settings are freed, as is what the next two return. */
NACRE_API const char *nacre_settings_text(const nacre_settings *settings, nacre_setting setting);

/* The entries of a list, ended by NULL; for the other kinds an empty list. Never NULL. */
NACRE_API const char *const *nacre_settings_list(const nacre_settings *settings,
                                                 nacre_setting setting);

/* Where the value comes from: "default", "environment NACRE_TIMEOUT", "/path/config.json:3", or
 * what nacre_settings_set() was told. */
NACRE_API const char *nacre_settings_origin(const nacre_settings *settings, nacre_setting setting);

/* The path of the configuration file that was looked for, whether it was there or not; "" = none.
 */
NACRE_API const char *nacre_settings_file(const nacre_settings *settings);

/* All there is to say about one setting. */
typedef struct nacre_setting_info {
    nacre_setting setting;
    nacre_setting_kind kind;
    const char *name;
    const char *variable; /* of the environment */
    const char *value;    /* as nacre_settings_text() */
    const char *fallback; /* the default, likewise */
    const char *origin;
    const char *allowed; /* "1ms to 365d", "on, off" */
    const char *help;    /* one line, without a full stop */
} nacre_setting_info;

/* The info is borrowed for the call; a result other than 0 ends the walk. */
typedef int nacre_settings_fn(const nacre_setting_info *info, void *userdata);

/* Calls fn for every setting, in the order of nacre_setting. Returns 0, or what fn did. */
NACRE_API int nacre_settings_each(const nacre_settings *settings, nacre_settings_fn *fn,
                                  void *userdata);

NACRE_END_DECLS

#endif
