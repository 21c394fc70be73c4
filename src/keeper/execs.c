/*
 * What a command, and all that it starts, may execute: the rules that forbid and ask are held
 * against the words of each execve() before it is made, whoever makes it and however it came to its
 * words. What is refused fails with EPERM. What is asked about waits, and the deadline with it,
 * while the session asks a person.
 *
 * The words lie in memory that somebody else may write between our look and the kernel's. So each
 * program is looked at once more when it begins, by what the kernel has made of them then, and
 * before it has done anything: what would not have been let through is killed.
 */
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/sum.h"
#include "keeper/keeper.h"
#include "sys/sock.h"

#define HEARD_NS (INT64_C(30) * 1000000000) /* a question that nobody takes is none */
#define ASKED_NS (INT64_C(500) * 1000000)   /* between two looks at who waits */

/* The strictest rule, and the words that it is about. */
struct exec_finding {
    struct packed_ruling ruling;
    const struct shell_word *argv;
    size_t argc;
    struct shell_word program; /* the first of them */
};

/* -- Its words, held against the rules
 * ------------------------------------------------------------------------- */

/* Programs that run another one that is named by their words, without executing it: interpreters,
 * several programs in one, loaders. A name that ends in '*' is a beginning. */
static bool carries_another(const char *path)
{
    static const char *const names[] = {
        "sh",      "bash",   "dash", "ash",    "zsh",     "ksh",    "mksh",   "fish",
        "python*", "node",   "bun",  "nodejs", "perl*",   "ruby*",  "php*",   "lua*",
        "deno",    "tclsh*", "ld-*", "ld.*",   "busybox", "toybox", "ld64.*", "coreutils",
    };
    const char *name = program_name(path);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t size = strlen(names[i]);
        if (names[i][size - 1] == '*' ? strncmp(name, names[i], size - 1) == 0
                                      : strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static struct shell_word exec_word(const char *text)
{
    return (struct shell_word){.text = text, .size = strlen(text)};
}

/* -- What was said yes to --------------------------------------------------------------------- */

static uint64_t sum_of_exec(const struct shell_word *argv, size_t argc)
{
    uint64_t sum = SUM_TEXTS;
    for (size_t i = 0; i < argc; i++)
        sum = sum_text(sum, i == 0 ? program_name(argv[i].text) : argv[i].text);
    return sum;
}

static bool is_answered(const struct keeper *k, const struct exec_grant *grant)
{
    const struct exec_grant *grants = k->session.room->grants;
    for (uint32_t i = 0; i < MIN(k->grant_count, (uint32_t)GRANTS_MAX); i++)
        if (grants[i].pid == grant->pid && grants[i].sum == grant->sum &&
            grants[i].refused == grant->refused)
            return true;
    return false;
}

static void remember_grant(struct keeper *k, const struct exec_grant *grant)
{
    k->session.room->grants[k->grant_count++ % GRANTS_MAX] = *grant;
}

/* With the text, or by the process that executes it: the same program may come by again, behind its
 * interpreter, and when it begins. */
static bool is_granted(const struct keeper *k, const struct shell_word *argv, size_t argc)
{
    const char *granted = k->page ? k->page->granted : k->session.room->granted;
    size_t size = k->page ? k->page->granted_size : k->granted_size;
    struct exec_grant grant = {.sum = sum_of_exec(argv, argc)};
    if (packed_is_granted(granted, size, argv, argc))
        return true;
    grant.pid = k->grant_count > 0 ? calls_leader(k->session.room->look.pid) : 0;
    return k->grant_count > 0 && is_answered(k, &grant);
}

static void weigh(const struct keeper *k, struct exec_finding *f, const struct shell_word *argv,
                  size_t argc)
{
    struct packed_ruling ruling = packed_rule_on(k->session.policy, argv, argc);
    if (ruling.verdict > f->ruling.verdict &&
        (ruling.verdict == NACRE_DENY || !is_granted(k, argv, argc)))
        *f = (struct exec_finding){ruling, argv, argc, argv[0]};
}

/* Under each of its names. A login shell has a dash before the one it goes by. */
static void weigh_names(const struct keeper *k, struct exec_finding *f, struct exec_look *look)
{
    const char *const names[] = {look->path, look->first + (look->first[0] == '-'), look->real};
    struct shell_word *words = look->words + EXEC_FIRST;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i][0]) {
            words[0] = exec_word(names[i]);
            weigh(k, f, words, look->argc);
        }
}

/* What the kernel makes of a script: its interpreter, that one's argument, and the script. */
static void weigh_interpreter(const struct keeper *k, struct exec_finding *f,
                              struct exec_look *look)
{
    struct shell_word *words = look->words;
    size_t first = look->argument[0] ? 0 : 1;
    if (!look->interpreter[0])
        return;
    words[EXEC_FIRST] = exec_word(look->path);
    words[1] = exec_word(look->argument);
    words[first] = exec_word(look->interpreter);
    weigh(k, f, words + first, look->argc + EXEC_FIRST - first);
}

/* Behind the options of a program that carries another, that one's words. Whether an option has a
 * value is not known, so both are tried; what has blanks in it is a text. */
static void weigh_carried(const struct keeper *k, struct exec_finding *f,
                          const struct exec_look *look)
{
    bool behind_option = false;
    for (size_t i = 1; i < look->argc; i++) {
        const struct shell_word *word = &look->words[EXEC_FIRST + i];
        if (word->kind != WORD_LITERAL)
            return;
        if (word->text[0] == '-' && word->text[1]) {
            behind_option = !strchr(word->text, '=');
            continue;
        }
        if (!strpbrk(word->text, " \t\n"))
            weigh(k, f, word, look->argc - i);
        if (!behind_option)
            return;
        behind_option = false;
    }
}

static bool may_be_meant(const struct keeper *k, const char *name)
{
    return *name && (carries_another(name) || packed_names(k->session.policy, name));
}

static int judge_exec(const struct keeper *k, struct exec_look *look, struct exec_finding *f)
{
    *f = (struct exec_finding){.ruling = {.verdict = NACRE_ALLOW}};
    if (!may_be_meant(k, look->path) && !may_be_meant(k, look->real) &&
        !may_be_meant(k, look->first + (look->first[0] == '-')) &&
        !may_be_meant(k, look->interpreter))
        return 0;
    int r = look->argc > 0 ? 0 : exec_read_words(look);
    if (r < 0)
        return r;
    if (carries_another(look->path) || carries_another(look->real) || carries_another(look->first))
        weigh_carried(k, f, look);
    weigh_interpreter(k, f, look);
    weigh_names(k, f, look);
    look->words[EXEC_FIRST] =
        f->argv == look->words + EXEC_FIRST ? f->program : exec_word(look->path);
    return 0;
}

/* -- What is refused -------------------------------------------------------------------------- */

static void describe_refused(const struct exec_finding *f, pid_t pid, const char *why,
                             struct denial *ret)
{
    size_t used = 0;
    *ret = (struct denial){.kind = DENIAL_EXEC};
    denied_name(ret, pid);
    for (size_t i = 0; i < f->argc && used < sizeof ret->target - 1; i++) {
        const char *text = i == 0 ? program_name(f->program.text) : f->argv[i].text;
        int n = snprintf(ret->target + used, sizeof ret->target - used, "%s%s", i ? " " : "", text);
        used += n > 0 ? (size_t)n : 0;
    }
    snprintf(ret->why, sizeof ret->why, "%s", why);
}

static int refuse(struct keeper *k, const struct exec_finding *f, const char *why)
{
    struct denial denial;
    describe_refused(f, k->session.room->look.pid, why, &denial);
    denied_note(k, &denial);
    return -EPERM;
}

static int refuse_by_rule(struct keeper *k, const struct exec_finding *f)
{
    char why[sizeof(struct denial){0}.why];
    const char *because = f->ruling.because;
    snprintf(why, sizeof why, "denied by rule %.*s%s%s", *because ? 60 : 110, f->ruling.text,
             *because ? ": " : "", because);
    return refuse(k, f, why);
}

/* Whoever hides its memory from us may have anything in it. */
static int refuse_unread(struct keeper *k, const struct exec_look *look, int error)
{
    struct denial denial = {.kind = DENIAL_EXEC};
    if (error != -EPERM && error != -EACCES)
        return error;
    denied_name(&denial, look->pid);
    snprintf(denial.target, sizeof denial.target, "%.200s", *look->path ? look->path : "a program");
    snprintf(denial.why, sizeof denial.why,
             "there are rules, and this process does not let its words be read");
    denied_note(k, &denial);
    return -EPERM;
}

/* -- Asking ----------------------------------------------------------------------------------- */

/* The deadline waits with whoever waits for a person. */
static void hold_deadline(struct keeper *k)
{
    if (k->asked_count++ > 0)
        return;
    k->asked_since = clock_mono_ns();
    k->asked_deadline = k->at[AT_DEADLINE];
    k->at[AT_DEADLINE] = NEVER;
    k->at[AT_ASKED] = k->asked_since + ASKED_NS;
    k->asked_before = k->st.waited_ms;
    k->st.waited_ms = STATE_WAITS;
}

static void release_deadline(struct keeper *k)
{
    int64_t waited = clock_mono_ns() - k->asked_since;
    if (--k->asked_count > 0)
        return;
    k->at[AT_ASKED] = NEVER;
    k->st.waited_ms = k->asked_before + (uint32_t)(waited / NS_PER_MS);
    if (k->state == ST_RUNNING && k->asked_deadline != NEVER)
        k->at[AT_DEADLINE] = k->asked_deadline + waited;
    publish(k);
}

static bool add_asked_text(struct wire_asked *word, const char *text)
{
    size_t size = strlen(text) + 1;
    if (word->size + size > sizeof word->text)
        return false;
    memcpy(word->text + word->size, text, size);
    word->size += (uint32_t)size;
    return true;
}

/* The program, as the rule knows it, its words, and the directory. What does not go in whole is not
 * asked. */
static bool compose_question(const struct keeper *k, const struct exec_finding *f,
                             struct wire_asked *word)
{
    char link[32], cwd[4096];
    *word = (struct wire_asked){.head = {.type = WIRE_ASKED, .format = RUN_FORMAT},
                                .id = k->st.id,
                                .argc = (uint32_t)f->argc};
    bool fits = add_asked_text(word, program_name(f->program.text));
    for (size_t i = 1; fits && i < f->argc; i++)
        fits = f->argv[i].kind == WORD_LITERAL && add_asked_text(word, f->argv[i].text);
    snprintf(link, sizeof link, "/proc/%d/cwd", k->session.room->look.pid);
    ssize_t n = readlink(link, cwd, sizeof cwd - 1);
    cwd[MAX(n, (ssize_t)0)] = '\0';
    return fits && add_asked_text(word, cwd);
}

/* To the session, with the one descriptor that an answer can come by. */
static int send_question(struct keeper *k, const struct wire_asked *word)
{
    int pair[2];
    int r = k->fd[FD_LINE] < 0 ? -EBADF : sock_pair(pair);
    if (r < 0)
        return r;
    r = sock_send(k->fd[FD_LINE], word, offsetof(struct wire_asked, text) + word->size, &pair[1], 1,
                  MSG_DONTWAIT);
    close(pair[1]);
    if (r < 0)
        close(pair[0]);
    return r < 0 ? r : pair[0];
}

static struct exec_asked *free_asked(struct keeper *k)
{
    for (int i = 0; i < ASKED_MAX; i++)
        if (k->session.room->asked[i].reply <= 0)
            return &k->session.room->asked[i];
    return NULL;
}

/* Before the command runs nobody hears us; and one that is being ended is not asked about. */
static const char *why_not_asked(const struct keeper *k, const struct exec_asked *place)
{
    if (!k->session.policy->asks)
        return "its user has to be asked, and cannot be";
    if (k->state != ST_RUNNING && k->state != ST_LINGERING)
        return "its user has to be asked, but it is being ended";
    return place ? NULL : "its user has to be asked, but too many wait for that";
}

static int ask(struct keeper *k, const struct exec_finding *f, const struct seccomp_notif *n)
{
    struct exec_asked *a = free_asked(k);
    struct wire_asked word;
    const char *why = why_not_asked(k, a);
    struct exec_grant grant = {.pid = calls_leader(k->session.room->look.pid),
                               .refused = true,
                               .sum = sum_of_exec(f->argv, f->argc)};
    if (is_answered(k, &grant))
        return -EPERM; /* the same name, tried once more along PATH */
    if (why)
        return refuse(k, f, why);
    if (!compose_question(k, f, &word))
        return refuse(k, f, "its user has to be asked, but it is too long to be shown");
    *a = (struct exec_asked){.call = *n, .begun = clock_mono_ns(), .grant = grant};
    describe_refused(f, k->session.room->look.pid, "", &a->denial);
    a->reply = send_question(k, &word);
    if (a->reply < 0)
        return refuse(k, f, "its user has to be asked, and cannot be");
    loop_watch_asked(k, (int)(a - k->session.room->asked));
    hold_deadline(k);
    publish(k); /* whoever watches hears of it */
    return CALL_WAITS;
}

/* Nobody waits for the answer any more, or it is there. */
static void end_question(struct keeper *k, struct exec_asked *a)
{
    loop_close_asked(k, (int)(a - k->session.room->asked));
    release_deadline(k);
}

static void refuse_question(struct keeper *k, struct exec_asked *a, const char *why)
{
    snprintf(a->denial.why, sizeof a->denial.why, "%s", why);
    remember_grant(k, &a->grant);
    denied_note(k, &a->denial);
    calls_answer(k, a->call.id, -EPERM);
    end_question(k, a);
}

/* What was said yes to may have become something else meanwhile, and there may be more to ask. */
static void let_go_on(struct keeper *k, struct exec_asked *a)
{
    struct seccomp_notif call = a->call;
    a->grant.refused = false;
    remember_grant(k, &a->grant);
    end_question(k, a);
    int r = calls_is_waiting(k, call.id) ? execs_serve(k, &call) : -EINTR;
    if (r != CALL_WAITS)
        calls_answer(k, call.id, r);
}

void execs_know(struct keeper *k, int which)
{
    static const char *const reasons[] = {
        [WIRE_ANSWER_NO] = "the user was asked, and said no",
        [WIRE_ANSWER_CANCELLED] = "the user was asked, and did not answer",
        [WIRE_ANSWER_CANNOT] = "its user has to be asked, and cannot be",
    };
    struct exec_asked *a = &k->session.room->asked[which];
    struct wire_answer word = {.answer = WIRE_ANSWER_CANNOT};
    ssize_t n = sock_recv(a->reply, &word, sizeof word, NULL, 0, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n == sizeof word && word.answer == WIRE_ANSWER_HEARD)
        a->heard = true;
    else if (n == sizeof word && word.answer == WIRE_ANSWER_YES)
        let_go_on(k, a);
    else
        refuse_question(
            k, a,
            reasons[n == sizeof word && word.answer <= WIRE_ANSWER_CANNOT ? word.answer
                                                                          : WIRE_ANSWER_CANNOT]);
}

void execs_look(struct keeper *k)
{
    for (int i = 0; i < ASKED_MAX; i++) {
        struct exec_asked *a = &k->session.room->asked[i];
        if (a->reply <= 0)
            continue;
        if (!calls_is_waiting(k, a->call.id))
            end_question(k, a);
        else if (!a->heard && clock_mono_ns() - a->begun > HEARD_NS)
            refuse_question(k, a, "its user has to be asked, and nobody was there to do it");
    }
    if (k->asked_count > 0)
        k->at[AT_ASKED] = clock_mono_ns() + ASKED_NS;
}

void execs_call_off(struct keeper *k)
{
    for (int i = 0; i < ASKED_MAX; i++)
        if (k->session.room->asked[i].reply > 0)
            refuse_question(k, &k->session.room->asked[i], "it was ended before its user answered");
}

void execs_drop(struct keeper *k)
{
    for (int i = 0; i < ASKED_MAX; i++)
        if (k->session.room->asked[i].reply > 0)
            end_question(k, &k->session.room->asked[i]);
}

void execs_forget(struct keeper *k)
{
    for (int i = 0; i < ASKED_MAX; i++)
        k->session.room->asked[i].reply = 0;
}

/* -- The door --------------------------------------------------------------------------------- */

/* The shell that reads the text is not in the text: that was judged before. */
static bool is_reader_of_text(struct keeper *k, pid_t pid)
{
    bool first = !k->main_has_begun &&
                 (pid == k->main || (k->page && k->page->command > 0 && pid == k->page->command));
    k->main_has_begun = k->main_has_begun || first;
    return first && (k->page ? k->page->spec.kind : k->spec.kind) != SPEC_ARGV;
}

/* Before it has done anything. Its words are those that it really has: what they are not allowed to
 * be they have become after our look. */
static int serve_begun(struct keeper *k, pid_t pid)
{
    struct exec_look *look = &k->session.room->look;
    struct exec_finding f;
    if (is_reader_of_text(k, pid))
        return CALL_GOES_ON;
    int r = exec_meet_begun(look, pid);
    if (r == 0)
        r = judge_exec(k, look, &f);
    if (r == 0 && f.ruling.verdict == NACRE_ALLOW)
        return CALL_GOES_ON;
    kill(calls_leader(pid), SIGKILL);
    return r < 0 ? refuse_unread(k, look, r)
                 : refuse(k, &f, "it was to be something else when it was looked at; killed");
}

static int meet_and_judge(struct keeper *k, const struct seccomp_notif *n, bool fresh,
                          struct exec_finding *f)
{
    struct keeper_room *room = k->session.room;
    int r = exec_meet(&room->look, room->paths, n, fresh);
    *f = (struct exec_finding){.ruling = {.verdict = NACRE_ALLOW}};
    return r == 0 ? judge_exec(k, &room->look, f) : MIN(r, 0);
}

int execs_serve(struct keeper *k, const struct seccomp_notif *n)
{
    struct exec_look *look = &k->session.room->look;
    struct exec_finding f;
    if (!k->session.policy)
        return CALL_GOES_ON;
    if (filter_which(n->data.arch, n->data.nr, &look->pointer) == FILTERED_BEGUN)
        return serve_begun(k, (pid_t)n->pid);
    int r = meet_and_judge(k, n, false, &f);
    if (r == 0 && f.ruling.verdict != NACRE_ALLOW && look->recalled)
        r = meet_and_judge(k, n, true, &f);
    if (r < 0)
        return refuse_unread(k, look, r);
    if (f.ruling.verdict == NACRE_ALLOW)
        return CALL_GOES_ON;
    return f.ruling.verdict == NACRE_DENY ? refuse_by_rule(k, &f) : ask(k, &f, n);
}
