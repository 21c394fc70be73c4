/*
 * A thousand shells at once under a soft limit of 1024 descriptors, and ten thousand one after
 * another: no failure, and everything is back where it was.
 */
#include "bench.h"

#include <sys/resource.h>

#define AT_ONCE     1000
#define IN_SEQUENCE 10000

struct footprint {
    size_t fds;
    size_t processes;
    long rss_kb;
};

/* The numeric entries of /proc that are not zombies: PID 1 may reap late. */
static size_t count_processes(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[320], line[512];
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (!file)
            continue;
        char *close = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        count += close && close[1] == ' ' && close[2] != 'Z';
        fclose(file);
    }
    if (dir)
        closedir(dir);
    return count;
}

static struct footprint look(void)
{
    return (struct footprint){count_entries("/proc/self/fd"), count_processes(),
                              field_kb("/proc/self/status", "VmRSS:")};
}

static double start_many(nacre_session *session)
{
    static nacre_id ids[AT_ONCE];
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_error err;
    command.text = "exec sleep 1000";
    double start = now_us();
    for (int i = 0; i < AT_ONCE; i++)
        if (nacre_start(session, &command, &ids[i], NULL, &err) < 0)
            die("start", &err);
    return (now_us() - start) / AT_ONCE;
}

static double run_many(nacre_session *session, int count)
{
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error err;
    command.text = "true";
    double start = now_us();
    for (int i = 0; i < count; i++)
        if (nacre_run(session, &command, -1, &record, &err) < 0)
            die("run", &err);
    nacre_record_done(&record);
    return (now_us() - start) / count;
}

static void report(const char *what, double each_us, struct footprint before,
                   struct footprint after)
{
    char measured[96];
    long fds = (long)after.fds - (long)before.fds;
    long processes = (long)after.processes - (long)before.processes;
    snprintf(measured, sizeof measured, "%.0f us each; %+ld fds, %+ld processes", each_us, fds,
             processes);
    row(what, measured, (double)after.rss_kb / (double)before.rss_kb, "x RSS", 1.1, 0);
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 1024;
    setrlimit(RLIMIT_NOFILE, &limit);

    nacre_session *session = open_session();
    double each = start_many(session);
    if (nacre_close(session, NULL) != 0)
        die("some of a thousand shells survived", NULL);
    struct footprint before = look();
    session = open_session();
    each = start_many(session);
    double start = now_us();
    if (nacre_close(session, NULL) != 0)
        die("some of a thousand shells survived", NULL);
    double closing = (now_us() - start) / 1e3;
    usleep(300000);
    report("1,000 shells at once", each, before, look());
    printf("%-44s closing the session ended them in %.0f ms\n", "", closing);

    session = open_session();
    run_many(session, 100);
    before = look();
    each = run_many(session, IN_SEQUENCE);
    struct footprint after = look();
    report("10,000 commands one after another", each, before, after);
    return nacre_close(session, NULL) != 0;
}
