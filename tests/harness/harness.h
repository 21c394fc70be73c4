/*
 * The harness of the process tests. Every case is a process of its own with a time limit, a
 * fresh NACRE_HOME and a fresh working directory; afterwards nothing of it may be left: no
 * process, no cgroup, no run that claims to be alive.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <nacre/nacre.h>

/* -- Cases ----------------------------------------------------------------------------------- */

struct test_case {
    const char *name;
    void (*run)(void);
    int limit_s;
    struct test_case *next;
};

void harness_register(struct test_case *self);

#define TEST_LIMIT(ident, seconds)                                            \
    static void test_##ident(void);                                           \
    __attribute__((constructor)) static void register_##ident(void)           \
    {                                                                         \
        static struct test_case self = {#ident, test_##ident, seconds, NULL}; \
        harness_register(&self);                                              \
    }                                                                         \
    static void test_##ident(void)

#define TEST(ident) TEST_LIMIT(ident, 20)

/* A case that runs only when another one execs it with host_exec(): a limit of 0 marks it. */
#define HOST(ident) TEST_LIMIT(ident, 0)

/* -- Checks ---------------------------------------------------------------------------------- */

/* The error that CHECK_OK() and CHECK_CODE() print: give it to the call as its last argument. */
extern _Thread_local nacre_error harness_error;
#define ERR (&harness_error)

__attribute__((noreturn, format(printf, 3, 4))) void harness_fail(const char *file, int line,
                                                                  const char *format, ...);
__attribute__((noreturn)) void harness_skip(const char *why);
void harness_check_code(const char *file, int line, const char *call, int64_t got, int want);
void harness_check_ok(const char *file, int line, const char *call, int64_t got);
void harness_check_str(const char *file, int line, const char *expr, const char *hay,
                       const char *needle, bool whole);

#define FAIL(...)   harness_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(why)   harness_skip(why)
#define CHECK(cond) ((cond) ? (void)0 : harness_fail(__FILE__, __LINE__, "%s", #cond))
#define CHECK_EQ_INT(want, got)                                                             \
    do {                                                                                    \
        long long want_ = (long long)(want), got_ = (long long)(got);                       \
        if (want_ != got_)                                                                  \
            harness_fail(__FILE__, __LINE__, "%s is %lld, wanted %lld", #got, got_, want_); \
    } while (0)
#define CHECK_RANGE(low, got, high)                                                               \
    do {                                                                                          \
        long long low_ = (long long)(low), got_ = (long long)(got), high_ = (long long)(high);    \
        if (got_ < low_ || got_ > high_)                                                          \
            harness_fail(__FILE__, __LINE__, "%s is %lld, wanted %lld to %lld", #got, got_, low_, \
                         high_);                                                                  \
    } while (0)

/* The needle is somewhere in the text; the text is exactly that. */
#define CHECK_STR(hay, needle) harness_check_str(__FILE__, __LINE__, #hay, (hay), (needle), false)
#define CHECK_TEXT(got, want)  harness_check_str(__FILE__, __LINE__, #got, (got), (want), true)

/* The call succeeded; it failed with just that code and gave a sentence. */
#define CHECK_OK(call)         harness_check_ok(__FILE__, __LINE__, #call, (call))
#define CHECK_CODE(want, call) harness_check_code(__FILE__, __LINE__, #call, (call), (want))

/* -- Time ------------------------------------------------------------------------------------ */

int64_t now_ms(void);
void pause_ms(int64_t ms);

/* 1, or more where the code is slowed down (sanitizers, $NACRE_TEST_SCALE). */
int time_scale(void);
#define MS(n) ((int64_t)(n)*time_scale())

/* An upper bound for what should take that long at most: more on a machine that is busy. */
int64_t soon(int64_t ms);

/* The pause of who polls since then: 2 ms at first, later an eighth of what it has waited already,
 * so that looking through /proc again and again does not fill the time. */
void await_pause(int64_t began);

/* Polls a condition, up to a limit. The value is whether it came true. */
#define AWAIT(cond, ms)                                        \
    ({                                                         \
        int64_t began_ = now_ms(), until_ = began_ + soon(ms); \
        bool met_ = (cond);                                    \
        while (!met_ && now_ms() < until_) {                   \
            await_pause(began_);                               \
            met_ = (cond);                                     \
        }                                                      \
        met_;                                                  \
    })

/* -- The surroundings of a case -------------------------------------------------------------- */

const char *test_home(void); /* its $NACRE_HOME, not made yet */
const char *test_base(void); /* the directory of the case; homes directly in it are checked too */

/* A string that lives until the case ends. */
__attribute__((format(printf, 1, 2))) const char *format(const char *fmt, ...);

/* The path of a helper program by its name, such as "daemonize". Fails the case if missing. */
const char *program(const char *name);

bool sanitized(void); /* memory cannot be judged, and time is slower */

/* How often to do what is done many times: a sanitizer looks at each time, not at how many there
 * are, so a fifth is enough for it. */
int rounds(int count);
bool long_tests(void);
bool have_program(const char *name); /* in PATH */

char *slurp(const char *path, size_t *ret_size); /* NUL-terminated; NULL if unreadable */
void spit(const char *path, const void *data, size_t size);

/* Fails the case unless these bytes are what the helper `flood` prints at that position. */
void check_pattern(const char *bytes, size_t size, uint64_t position, int stream, int lines);

/* A part of a command, at which it stands still until let_go() is called, before or after. */
const char *gate(void);
void let_go(void);

int fd_count(void);

/* Memory that host processes forked from the case share with it. */
void *shared_memory(size_t size);

/* -- Processes ------------------------------------------------------------------------------- */

/* A process is its pid and its start time; a pid alone can be somebody else's. */
struct process {
    pid_t pid;
    unsigned long long start;
};

struct process process_of(pid_t pid);
bool process_alive(struct process process); /* there, and not a zombie */
char process_state(pid_t pid);              /* as in /proc/PID/stat; 0 if there is none */
pid_t process_parent(pid_t pid);
long process_rss_kb(pid_t pid);
long process_anon_kb(pid_t pid); /* of it, what belongs to no file */

/* A word for an argv that is found nowhere else: digits, good after "sleep 300.". */
const char *marker(void);

/* Processes that are not zombies and have the marker in their argv. */
size_t find_marked(const char *mark, struct process *found, size_t max);
int count_marked(const char *mark);
void await_marked(const char *mark, int count); /* fails the case if it does not come true */
int count_children(pid_t parent);               /* zombies too */

/* Keepers are adopted by the runner, which is the parent of the case and reaps them at once. */
int count_keepers(void);

/* Runs fn in a child of the case, as a host of its own; a failed check in it fails the case. */
pid_t host_fork(void (*fn)(void *arg), void *arg);

/* Execs a HOST case of this program, behind a wrapper if prefix is not NULL. */
pid_t host_exec(const char *const *prefix, const char *name);
void host_join(pid_t host); /* it must end with exit code 0 */
void host_kill(pid_t host); /* SIGKILL, and reaps it */

/* Starts count threads, gives each its index, and joins them. */
void run_threads(int count, void (*fn)(int index, void *arg), void *arg);

/* -- Cgroups and homes ------------------------------------------------------------------------ */

/* Where this process stands in the cgroup v2 tree; NULL if there is none. */
const char *cgroup_dir(void);
const char *cgroup_mount(void);

/* -- Shells ---------------------------------------------------------------------------------- */

/* For a person: it may do everything with the shells of other sessions too. */
nacre_session *open_session(void);
nacre_session *open_options(const nacre_options *options);
void close_session(nacre_session *session);

/* Not for a person, as a tool opens it; with settings laid over: "name=value" each, NULL at the
 * end, or NULL for none. */
nacre_session *open_tool(const char *const *settings);

/* The same with a backend, which may be NULL. */
nacre_session *open_tool_on(const nacre_backend *backend, const char *const *settings);

struct run {
    nacre_record record;
    char *out; /* NUL-terminated besides */
    size_t out_size;
    char *err;
    size_t err_size;
};

struct run run_command(nacre_session *session, const nacre_command *command);
struct run run_text(nacre_session *session, const char *text);
void run_done(struct run *run);

/* A text for five processes that leave the shell's group, session or parent in different ways;
 * four of them are marked. */
const char *scattered(const char *mark);

nacre_id start_command(nacre_session *session, const nacre_command *command);
nacre_id start_text(nacre_session *session, const char *text);
nacre_id start_background(nacre_session *session, const char *text);

/* Started with a pipe for its stdin, in the background: `read x` waits for release_shell(). */
nacre_id start_held(nacre_session *session, const char *text);
void release_shell(nacre_session *session, const nacre_id *id);

nacre_counts counts_of(nacre_session *session);

/* All shells of the home; fails with ERR. */
int list_home(nacre_session *session, bool only_alive, nacre_list_fn *fn, void *userdata);

nacre_record record_of(nacre_session *session, const nacre_id *id);
uint64_t bytes_printed(nacre_session *session, const nacre_id *id); /* on both streams */
const char *status_of(nacre_session *session, const nacre_id *id);  /* as nacre_status() */
char *output_of(nacre_session *session, const nacre_id *id, unsigned streams, size_t *ret_size);
bool output_has(nacre_session *session, const nacre_id *id, unsigned streams, const char *needle);
void wait_outcome(nacre_session *session, const nacre_id *id, int64_t ms);
bool tree_empty(nacre_session *session, const nacre_id *id);
const char *run_path(const nacre_id *id, const char *file); /* in the case's home */

/* It ended that way, and its tree is gone. */
void check_ended(nacre_session *session, const nacre_id *id, nacre_outcome outcome,
                 nacre_reason reason);

struct process keeper_of(nacre_session *session, const nacre_id *id);
nacre_tier tier_in_force(void);

/*
 * Where $NACRE_TIER leaves nothing but the process group to hold a command, what goes into a
 * session of its own is out of reach: own_session() is "setsid" elsewhere and "" there, for the
 * texts of commands, and need_tree() skips the case.
 */
bool group_tier(void);
const char *own_session(void);
void need_tree(void);

/* Kills with a grace (< 0 = the shell's own) and fails unless the tree is gone. */
nacre_kill_result kill_shell(nacre_session *session, const nacre_id *id, int64_t grace_ms);

#endif
