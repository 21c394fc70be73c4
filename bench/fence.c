/*
 * What a sandbox costs: `bash -c true` in one, through the library, against posix_spawn of the same
 * and against the same without; bubblewrap with the same rights, and the sandboxes of two agents.
 * All take turns, so that they see the same machine. Then the first command of a session, and
 * programs that open many files.
 */
#include "bench.h"

#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

#include "baseline.h"

#define SHELL      "/bin/bash"
#define BWRAP      "/usr/bin/bwrap"
#define SESSIONS   8
#define ROUNDS     150
#define WARM       10
#define FIRSTS     60
#define PROGRAMS   11 /* rounds of a program that takes long */
#define BUILDS     3
#define AGENTS     15 /* rounds against sandboxes that take long */
#define FIRST_GOAL 5000.0

static char workspace[64] = "/tmp/nacre-bench-XXXXXX";

static nacre_session *open_fenced(const char *mode)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;
    nacre_session *session;
    nacre_error err;
    if (nacre_settings_load(NULL, &settings, &err) < 0 ||
        nacre_settings_set(settings, "sandbox", mode, "bench", &err) < 0)
        die("settings", &err);
    options.settings = settings;
    options.cwd = workspace;
    if (nacre_open(&options, &session, &err) < 0)
        die("open", &err);
    nacre_settings_free(settings);
    return session;
}

static double run_text(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    command.text = text;
    command.shell = SHELL;
    command.cwd = workspace;
    double start = now_us();
    if (nacre_run(session, &command, -1, &record, &err) < 0)
        die(text, &err);
    double took = now_us() - start;
    if (record.outcome != NACRE_EXITED || record.exit_code != 0)
        die(text, NULL);
    nacre_record_done(&record);
    return took;
}

static void close_session(nacre_session *session)
{
    if (nacre_close(session, NULL) != 0)
        die("close", NULL);
}

/* -- true ------------------------------------------------------------------------------------- */

static bool has_bwrap(void)
{
    return access(BWRAP, X_OK) == 0;
}

/* What the sandbox lets: all of it read-only, a workspace, a /tmp and /dev of its own, no network.
 */
static double run_bwrap(void)
{
    static char *argv[] = {(char *)"bwrap",
                           (char *)"--ro-bind",
                           (char *)"/",
                           (char *)"/",
                           (char *)"--dev",
                           (char *)"/dev",
                           (char *)"--tmpfs",
                           (char *)"/run",
                           (char *)"--tmpfs",
                           (char *)"/tmp",
                           (char *)"--tmpfs",
                           (char *)"/var/tmp",
                           (char *)"--bind",
                           workspace,
                           workspace,
                           (char *)"--unshare-user",
                           (char *)"--unshare-net",
                           (char *)"--unshare-ipc",
                           (char *)"--new-session",
                           (char *)"--die-with-parent",
                           (char *)SHELL,
                           (char *)"-c",
                           (char *)"true",
                           NULL};
    return spawn_program(BWRAP, argv);
}

static struct samples {
    double spawn[SESSIONS * ROUNDS];
    double plain[SESSIONS * ROUNDS];
    double fenced[SESSIONS * ROUNDS];
    double bwrap[SESSIONS * ROUNDS];
    size_t count;
} samples;

static void sample(struct samples *s)
{
    nacre_session *plain = open_fenced("off"), *fenced = open_fenced("workspace-write");
    for (int i = -WARM; i < ROUNDS; i++) {
        double took[] = {spawn_once(SHELL), run_text(plain, "true"), run_text(fenced, "true"),
                         has_bwrap() ? run_bwrap() : 0};
        if (i < 0)
            continue;
        s->spawn[s->count] = took[0];
        s->plain[s->count] = took[1];
        s->fenced[s->count] = took[2];
        s->bwrap[s->count++] = took[3];
    }
    close_session(plain);
    close_session(fenced);
}

static void compare(const char *what, double ours, double theirs, double goal)
{
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", ours, theirs);
    row(what, measured, ours / theirs, "x", goal, 0);
}

static void measure_true(void)
{
    struct samples *s = &samples;
    for (int i = 0; i < SESSIONS; i++)
        sample(s);
    double spawn = percentile(s->spawn, s->count, 50), plain = percentile(s->plain, s->count, 50);
    double fenced = percentile(s->fenced, s->count, 50), bwrap = percentile(s->bwrap, s->count, 50);
    compare("fenced true, against posix_spawn (p50)", fenced, spawn, 1.30);
    compare("fenced true, against unfenced (p50)", fenced, plain, 1.15);
    if (has_bwrap())
        compare("fenced true, against bwrap (p50)", fenced, bwrap, 1);
    else
        puts("bwrap is not installed, and not compared with");
}

/* -- Sandboxes of agents ---------------------------------------------------------------------- */

/* As their own documents say to run one command by hand; each with the rights that it gives by
 * itself. */
static double run_codex(const char *codex)
{
    char *argv[] = {(char *)"codex", (char *)"sandbox", (char *)"--", (char *)SHELL,
                    (char *)"-c",    (char *)"true",    NULL};
    return spawn_program(codex, argv);
}

static double run_srt(const char *srt)
{
    const char *node = getenv("NACRE_BENCH_NODE");
    char *argv[] = {(char *)"node", (char *)srt, (char *)"-c", (char *)"true", NULL};
    return spawn_program(node ? node : "/usr/bin/node", argv);
}

/* One that cannot run here is not compared with. */
static bool runs_here(const char *program, const char *arguments)
{
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "%s %s >/dev/null 2>&1", program, arguments);
    return system(text) == 0;
}

static void compare_with_agent(const char *name, const char *program, const char *arguments,
                               double (*run)(const char *program))
{
    double ours[AGENTS], theirs[AGENTS];
    char label[64];
    if (!program || !*program || !runs_here(program, arguments)) {
        printf("%s does not run here, and is not compared with\n", name);
        return;
    }
    nacre_session *fenced = open_fenced("workspace-write");
    run_text(fenced, "true");
    for (int i = 0; i < AGENTS; i++) {
        ours[i] = run_text(fenced, "true");
        theirs[i] = run(program);
    }
    close_session(fenced);
    snprintf(label, sizeof label, "fenced true, against %s (p50)", name);
    compare(label, percentile(ours, AGENTS, 50), percentile(theirs, AGENTS, 50), 1);
}

static void measure_agents(void)
{
    compare_with_agent("Codex's sandbox", getenv("NACRE_BENCH_CODEX"),
                       "sandbox -- " SHELL " -c true", run_codex);
    compare_with_agent("srt", getenv("NACRE_BENCH_SRT"), "-c true", run_srt);
}

/* -- The first of a session ------------------------------------------------------------------- */

static double run_first(const char *mode)
{
    nacre_session *session = open_fenced(mode);
    double took = run_text(session, "true");
    close_session(session);
    return took;
}

static void measure_first(void)
{
    static double plains[FIRSTS], fenceds[FIRSTS];
    char measured[64];
    for (int i = 0; i < FIRSTS; i++) {
        plains[i] = run_first("off");
        fenceds[i] = run_first("workspace-write");
    }
    double plain = percentile(plains, FIRSTS, 50), fenced = percentile(fenceds, FIRSTS, 50);
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", fenced, plain);
    row("first fenced command of a session, more", measured, (fenced - plain) / 1000, "ms",
        FIRST_GOAL / 1000, 0);
}

/* -- Programs that open many files ------------------------------------------------------------ */

static void measure_some(nacre_session *plain, nacre_session *fenced, const char *what,
                         const char *text, double goal, int rounds)
{
    double without[PROGRAMS], within[PROGRAMS];
    run_text(plain, text); /* what is read once is in memory */
    for (int i = 0; i < rounds; i++) {
        without[i] = run_text(plain, text);
        within[i] = run_text(fenced, text);
    }
    compare(what, percentile(within, (size_t)rounds, 50), percentile(without, (size_t)rounds, 50),
            goal);
}

static void measure_program(nacre_session *plain, nacre_session *fenced, const char *what,
                            const char *text, double goal)
{
    measure_some(plain, fenced, what, text, goal, PROGRAMS);
}

/* The keeper, the builder and the gate of nacre, from their sources. */
static void measure_build(void)
{
    const char *source = getenv("NACRE_BENCH_SOURCE");
    char text[PATH_MAX];
    if (!source || system("command -v meson >/dev/null") != 0) {
        puts("no build is measured without meson and NACRE_BENCH_SOURCE");
        return;
    }
    nacre_session *plain = open_fenced("off"), *fenced = open_fenced("workspace-write");
    snprintf(text, sizeof text,
             "cp -r %s/meson.build %s/meson_options.txt %s/src %s/include %s/man %s/completion "
             "%s/scripts .",
             source, source, source, source, source, source, source);
    run_text(plain, text);
    run_text(plain, "meson setup -Dtests=false b >/dev/null");
    measure_some(plain, fenced, "a build of nacre's programs, fenced",
                 "export CCACHE_DISABLE=1; ninja -C b -t clean >/dev/null && ninja -C b "
                 "nacre-keeper nacre-fence nacre-gate >/dev/null",
                 1.05, BUILDS);
    run_text(plain, "rm -rf ./*");
    close_session(plain);
    close_session(fenced);
}

static void measure_programs(void)
{
    nacre_session *plain = open_fenced("off"), *fenced = open_fenced("workspace-write");
    run_text(plain, "cp -r /usr/include . && git init -q . && git add . && git -c user.name=a -c "
                    "user.email=a@localhost commit -qm a");
    measure_program(plain, fenced, "find /usr, fenced", "find /usr >/dev/null", 1.25);
    measure_program(plain, fenced, "grep -r in /usr/include, fenced",
                    "grep -r no_such_word /usr/include >/dev/null; true", 1.25);
    measure_program(plain, fenced, "git status of a repository, fenced", "git status >/dev/null",
                    1.1);
    run_text(plain, "rm -rf ./include ./.git");
    close_session(plain);
    close_session(fenced);
}

int main(void)
{
    if (!mkdtemp(workspace))
        die("mkdtemp", NULL);
    measure_true();
    measure_agents();
    measure_first();
    measure_programs();
    measure_build();
    return rmdir(workspace) != 0;
}
