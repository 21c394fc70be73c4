/*
 * What the registry costs: a start in the background against one in the foreground, the way of an
 * end to its reader, lists of a home with a thousand shells, and closing a session in which a
 * hundred run. It works in a home of its own beside $NACRE_HOME.
 */
#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#define SHELLS  800
#define FORE    200 /* and all together are the thousand */
#define RUNNING 100
#define STARTS  150
#define LOOKS   25

static nacre_session *open_large(void)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_settings *settings;
    nacre_session *session;
    nacre_error err;
    if (nacre_settings_load("", &settings, &err) < 0 ||
        nacre_settings_set(settings, "shells", "1000", NULL, &err) < 0)
        die("settings", &err);
    options.settings = settings;
    options.person = 1;
    if (nacre_open(&options, &session, &err) < 0)
        die("open", &err);
    nacre_settings_free(settings);
    return session;
}

static double start_one(nacre_session *session, const char *text, int background, nacre_id *ret_id)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_error err;
    command.text = text;
    command.background = background;
    double start = now_us();
    if (nacre_start(session, &command, ret_id, NULL, &err) < 0)
        die("start", &err);
    return now_us() - start;
}

/* From the call to the running command; each is waited for, so that only one is under way. */
static void starts(nacre_session *session)
{
    static double times[2][STARTS];
    nacre_error err;
    nacre_id id;
    for (int i = 0; i < 2 * STARTS; i++) {
        times[i % 2][i / 2] = start_one(session, "true", i % 2, &id);
        if (nacre_wait(session, &id, 1, NACRE_WAIT_ALL, -1, NULL, &err) < 0)
            die("wait", &err);
    }
    double fore = percentile(times[0], STARTS, 50), back = percentile(times[1], STARTS, 50);
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f us against %.0f us", back, fore);
    row("start in the background, against foreground", measured, back / fore, "x", 1.5, 0);
}

/* Takes completions until so many have been acknowledged. */
static void take_completions(nacre_session *session, int64_t count)
{
    nacre_error err;
    nacre_offer *offer;
    struct pollfd bell = {.fd = nacre_completion_fd(session, &err), .events = POLLIN};
    while (count > 0) {
        int64_t n = nacre_offer_take(session, 0, &offer, &err);
        if (n < 0 || (n > 0 && nacre_offer_acknowledge(offer, &err) < 0))
            die("completions", &err);
        count -= n;
        if (n == 0)
            poll(&bell, 1, 1000);
    }
}

/* The same commands, one after another in the foreground, are what the commands themselves cost. */
static void completions(nacre_session *session)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    nacre_id id;
    command.text = "true";
    double start = now_us();
    for (int i = 0; i < FORE; i++)
        if (nacre_run(session, &command, -1, &record, &err) < 0)
            die("run", &err);
    double fore = (now_us() - start) / FORE;
    start = now_us();
    for (int i = 0; i < SHELLS; i++)
        start_one(session, "true", 1, &id);
    take_completions(session, SHELLS);
    double back = (now_us() - start) / SHELLS;
    nacre_record_done(&record);
    char measured[64];
    snprintf(measured, sizeof measured, "%.0f/s, %.0f us against %.0f us", 1e6 / back, back, fore);
    row("completions, against foreground runs", measured, back / fore, "x", 2, 0);
}

static int count_one(const nacre_listed *listed, void *userdata)
{
    size_t *count = userdata;
    *count += listed->record->outcome != NACRE_RUNNING;
    return 0;
}

static double list_library(nacre_session *session, double *times)
{
    nacre_list_options options = NACRE_LIST_OPTIONS_INIT;
    nacre_error err;
    options.which = NACRE_LIST_HOME;
    for (int i = 0; i < LOOKS; i++) {
        size_t count = 0;
        double start = now_us();
        if (nacre_list(session, &options, count_one, &count, &err) < 0 || count != SHELLS + FORE)
            die("list", &err);
        times[i] = (now_us() - start) / 1e3;
    }
    return percentile(times, LOOKS, 50);
}

static double list_program(const char *all, double *times)
{
    const char *build = getenv("NACRE_BUILD");
    char path[4096];
    char *argv[] = {path, (char *)"list", (char *)all, NULL};
    posix_spawn_file_actions_t actions;
    snprintf(path, sizeof path, "%s/nacre", build ? build : "build");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < LOOKS; i++) {
        int status = -1;
        pid_t pid;
        double start = now_us();
        if (posix_spawn(&pid, path, &actions, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            die(path, NULL);
        times[i] = (now_us() - start) / 1e3;
    }
    posix_spawn_file_actions_destroy(&actions);
    return percentile(times, LOOKS, 50);
}

static void lists(nacre_session *session)
{
    double times[LOOKS];
    char measured[64];
    double middle = list_library(session, times);
    snprintf(measured, sizeof measured, "library call, fastest %.1f ms", times[0]);
    row("list of 1,000 ended shells (p50)", measured, middle, " ms", 20, 0);
    middle = list_program("--all", times);
    snprintf(measured, sizeof measured, "nacre list --all, fastest %.1f ms", times[0]);
    row("the same by the program (p50)", measured, middle, " ms", 20, 0);
    middle = list_program(NULL, times);
    snprintf(measured, sizeof measured, "nacre list, fastest %.1f ms", times[0]);
    row("what runs among them, by the program (p50)", measured, middle, " ms", 20, 0);
}

static void closing(void)
{
    nacre_session *session = open_large();
    nacre_error err = NACRE_ERROR_INIT;
    nacre_id id;
    char measured[64];
    for (int i = 0; i < RUNNING; i++)
        start_one(session, "exec sleep 1000", 1, &id);
    double start = now_us();
    int left = nacre_close(session, &err);
    double took = (now_us() - start) / 1e3;
    snprintf(measured, sizeof measured, "%d shells, %d left", RUNNING, left);
    row("close of a session with running shells", measured, left == 0 ? took : 1e9, " ms", 250, 0);
}

int main(void)
{
    char home[4096];
    const char *usual = getenv("NACRE_HOME");
    if (!usual)
        die("NACRE_HOME is not set", NULL);
    snprintf(home, sizeof home, "%s-registry", usual);
    setenv("NACRE_HOME", home, 1);
    nacre_session *session = open_large();
    completions(session);
    lists(session);
    starts(session);
    if (nacre_close(session, NULL) != 0)
        die("close", NULL);
    closing();
    return 0;
}
