/*
 * Terminals: what a start costs with one, against the same with pipes, and against forkpty() of the
 * same shell; a key until it is on the answered screen, against tmux; the screen after a long log;
 * what a keeper with an idle terminal has of memory; and what ten people who look on cost the
 * command, one of whom is stopped.
 */
#include "bench.h"

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#ifdef BENCH_VTERM
#include <vterm.h>
#endif

#define ROUNDS  200
#define WARM    10
#define KEYS    50
#define VIEWERS 10
#define IDLE    8 /* as many as a session may have in the background */
#define FLOODS  5
#define LONG    "64"

static double run_once(nacre_session *session, int tty, nacre_record *record)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_error err;
    command.text = "true";
    command.shell = "/bin/bash";
    command.tty = tty;
    double start = now_us();
    if (nacre_run(session, &command, -1, record, &err) < 0)
        die("run", &err);
    return now_us() - start;
}

static double forkpty_once(void)
{
    double start = now_us();
    int master, status;
    char buf[64];
    pid_t pid = forkpty(&master, NULL, NULL, NULL);
    if (pid < 0)
        die("forkpty", NULL);
    if (pid == 0) {
        execl("/bin/bash", "bash", "-c", "true", (char *)NULL);
        _exit(127);
    }
    while (read(master, buf, sizeof buf) > 0)
        ;
    waitpid(pid, &status, 0);
    close(master);
    return now_us() - start;
}

static void compare_starts(nacre_session *session)
{
    static double pipes[ROUNDS], ttys[ROUNDS], bare[ROUNDS];
    nacre_record record = NACRE_RECORD_INIT;
    char measured[64];
    for (int i = -WARM; i < ROUNDS; i++) {
        double pipe = run_once(session, 0, &record), tty = run_once(session, 1, &record);
        double raw = forkpty_once();
        if (i < 0)
            continue;
        pipes[i] = pipe;
        ttys[i] = tty;
        bare[i] = raw;
    }
    nacre_record_done(&record);
    double with = percentile(ttys, ROUNDS, 50), without = percentile(pipes, ROUNDS, 50);
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", with, without);
    row("start with a terminal / with pipes", measured, with / without, "x", 1.30, 0);
    double raw = percentile(bare, ROUNDS, 50);
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", with, raw);
    row("start with a terminal / forkpty()", measured, with / raw, "x", 1.50, 0);
}

static nacre_id start_tty(nacre_session *session, const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_error err;
    nacre_id id;
    command.text = text;
    command.tty = 1;
    command.background = 1;
    command.columns = 80;
    command.rows = 24;
    if (nacre_start(session, &command, &id, NULL, &err) < 0)
        die("start", &err);
    return id;
}

static int screen_has(nacre_session *session, const nacre_id *id, const char *text)
{
    nacre_screen screen = NACRE_SCREEN_INIT;
    nacre_error err;
    if (nacre_get_screen(session, id, &screen, &err) < 0)
        die("screen", &err);
    int has = strstr(screen.text, text) != NULL;
    nacre_screen_done(&screen);
    return has;
}

static void await_screen(nacre_session *session, const nacre_id *id, const char *text)
{
    while (!screen_has(session, id, text))
        ;
}

static int pane_has(const char *text)
{
    static char screen[65536];
    FILE *pipe = popen("tmux -L nacre-bench capture-pane -p", "re");
    size_t n = pipe ? fread(screen, 1, sizeof screen - 1, pipe) : 0;
    screen[n] = '\0';
    if (!pipe || pclose(pipe) != 0)
        die("tmux", NULL);
    return strstr(screen, text) != NULL;
}

/* Each key is a letter that is echoed; all of them stand in a row. */
static void compare_keys(nacre_session *session)
{
    double ours[KEYS], theirs[KEYS];
    char typed[KEYS + 2] = "", command[128], measured[64];
    nacre_id id = start_tty(session, "exec cat");
    if (system("tmux -L nacre-bench -f /dev/null new-session -d -x 80 -y 24 'exec cat'") != 0) {
        printf("key until on the screen: no tmux here\n");
        return;
    }
    for (int i = 0; i < KEYS; i++) {
        char key[2] = {(char)('a' + i % 26), '\0'};
        typed[i] = key[0];
        double start = now_us();
        nacre_input(session, &id, key, 1, 0, -1, NULL);
        await_screen(session, &id, typed);
        ours[i] = now_us() - start;
        snprintf(command, sizeof command, "tmux -L nacre-bench send-keys %s", key);
        start = now_us();
        if (system(command) != 0)
            die("tmux", NULL);
        while (!pane_has(typed))
            ;
        theirs[i] = now_us() - start;
    }
    if (system("tmux -L nacre-bench kill-server") != 0)
        die("tmux", NULL);
    nacre_kill(session, &id, NULL, NULL, NULL);
    double mine = percentile(ours, KEYS, 50), other = percentile(theirs, KEYS, 50);
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", mine, other);
    row("key until on the screen / tmux", measured, mine / other, "x", 1, 0);
}

#define LINE "a line of some text, and more of it\r\n"

static double processor_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#ifdef BENCH_VTERM
/* Processor time for a mebibyte of the same lines. */
static double vterm_once(void)
{
    VTerm *vt = vterm_new(24, 80);
    VTermScreen *screen = vterm_obtain_screen(vt);
    vterm_set_utf8(vt, 1);
    vterm_screen_reset(screen, 1);
    double start = processor_s();
    for (size_t done = 0; done < (size_t)1 << 20; done += sizeof LINE - 1)
        vterm_input_write(vt, LINE, sizeof LINE - 1);
    double took = processor_s() - start;
    vterm_free(vt);
    return took;
}
#endif

/* Of plain lines, as long as a log may be; in processor time, which others on the machine do not
 * lengthen. */
static void measure_screen(nacre_session *session)
{
    char measured[64];
    nacre_id id = start_tty(session, "stty -opost; yes $'a line of some text, and more of it\\r' | "
                                     "head -c " LONG "M; printf '\\r\\nthe end'; exec sleep 1000");
    while (!screen_has(session, &id, "the end"))
        usleep(100000);
    double took[3];
    for (int i = 0; i < 3; i++) {
        double start = processor_s();
        screen_has(session, &id, "the end");
        took[i] = processor_s() - start;
    }
    nacre_kill(session, &id, NULL, NULL, NULL);
    double ours = percentile(took, 3, 50);
    row("screen after a long log, processor time", LONG " MiB of lines", ours, " s", 0.7, 0);
#ifdef BENCH_VTERM
    double theirs = vterm_once() * strtod(LONG, NULL);
    snprintf(measured, sizeof measured, "%.2f s against %.2f s", ours, theirs);
    row("libvterm / screen after a long log", measured, theirs / ours, "x", 8, 1);
#else
    (void)measured;
#endif
}

static int parent_of(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return (int)field_kb(path, "PPid:");
}

/* Many, since they share what is the program's. */
static void measure_memory(nacre_session *session)
{
    char path[64], measured[64];
    double sizes[IDLE];
    nacre_id ids[IDLE];
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    for (int i = 0; i < IDLE; i++) {
        ids[i] = start_tty(session, "echo ready; exec sleep 1000");
        await_screen(session, &ids[i], "ready");
    }
    usleep(200000);
    for (int i = 0; i < IDLE; i++) {
        if (nacre_get(session, &ids[i], &record, &err) < 0)
            die("get", &err);
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", parent_of(record.pid));
        sizes[i] = (double)field_kb(path, "Pss:");
    }
    nacre_record_done(&record);
    double largest = percentile(sizes, IDLE, 100);
    snprintf(measured, sizeof measured, "%d terminals, median %.0f KiB", IDLE,
             percentile(sizes, IDLE, 50));
    row("keeper with an idle terminal (Pss, largest)", measured, largest, " KiB", 128, 0);
    for (int i = 0; i < IDLE; i++)
        nacre_kill(session, &ids[i], NULL, NULL, NULL);
}

/* Programs of the command line look on: each reads the log as it grows. */
static void begin_viewers(const nacre_id *id, pid_t viewers[VIEWERS])
{
    const char *build = getenv("NACRE_BUILD");
    char nacre[4096];
    snprintf(nacre, sizeof nacre, "%s/nacre", build ? build : "build");
    for (int i = 0; i < VIEWERS; i++) {
        viewers[i] = fork();
        if (viewers[i] != 0)
            continue;
        if (!freopen("/dev/null", "w", stdout))
            _exit(1);
        execl(nacre, "nacre", "output", "--follow", nacre_id_format(id).s, (char *)NULL);
        _exit(127);
    }
    usleep(300000);
    kill(viewers[0], SIGSTOP);
}

/* The command says itself how long it took to print so much. */
static double print_once(nacre_session *session, int watched)
{
    pid_t viewers[VIEWERS] = {0};
    nacre_id id = start_tty(session, "read -r x; a=$EPOCHREALTIME; seq 200000; b=$EPOCHREALTIME; "
                                     "printf '\n#%s\n' $((${b/./} - ${a/./})); exec sleep 1000");
    if (watched)
        begin_viewers(&id, viewers);
    nacre_input(session, &id, "\n", 1, 0, -1, NULL);
    nacre_screen screen = NACRE_SCREEN_INIT;
    const char *mark = NULL;
    while (!mark) {
        usleep(50000);
        if (nacre_get_screen(session, &id, &screen, NULL) == 0)
            mark = strchr(screen.text, '#');
    }
    double took = strtod(mark + 1, NULL);
    nacre_screen_done(&screen);
    for (int i = 0; i < VIEWERS && watched; i++) {
        kill(viewers[i], SIGKILL);
        waitpid(viewers[i], NULL, 0);
    }
    nacre_kill(session, &id, NULL, NULL, NULL);
    return took;
}

static void compare_viewers(nacre_session *session)
{
    double alone[FLOODS], watched[FLOODS];
    char measured[64];
    for (int i = 0; i < FLOODS; i++) {
        alone[i] = print_once(session, 0);
        watched[i] = print_once(session, 1);
    }
    double a = percentile(alone, FLOODS, 50), w = percentile(watched, FLOODS, 50);
    snprintf(measured, sizeof measured, "%.0f ms against %.0f ms", w / 1e3, a / 1e3);
    row("seq 200000, ten look on, one stopped", measured, w / a, "x", 1.05, 0);
}

int main(void)
{
    nacre_session *session = open_session();
    compare_starts(session);
    compare_keys(session);
    measure_screen(session);
    measure_memory(session);
    compare_viewers(session);
    return nacre_close(session, NULL) != 0;
}
