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

/*
 * Others work on the machine too, so what this program starts carries a mark from birth: keepers
 * take over the NACRE_ID of who starts them, and commands every variable but that one.
 */
static char marks[2][64];

static void set_marks(void)
{
    static const char *const names[] = {"NACRE_ID", "NACRE_BENCH_MARK"};
    char value[NACRE_ID_DIGITS + 1];
    snprintf(value, sizeof value, "%016llx%016llx", (unsigned long long)getpid(),
             (unsigned long long)now_us());
    for (int i = 0; i < 2; i++) {
        setenv(names[i], value, 1);
        snprintf(marks[i], sizeof marks[i], "%s=%s", names[i], value);
    }
}

static size_t read_of(const char *pid, const char *name, char *buf, size_t size)
{
    char path[320];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(buf, 1, size - 1, file) : 0;
    buf[n] = '\0';
    if (file)
        fclose(file);
    return n;
}

static int is_marked(const char *pid)
{
    static char env[1 << 17];
    size_t size = read_of(pid, "environ", env, sizeof env);
    for (const char *p = env; p < env + size; p += strlen(p) + 1)
        if (strcmp(p, marks[0]) == 0 || strcmp(p, marks[1]) == 0)
            return 1;
    return 0;
}

/* The marked ones that are not zombies: PID 1 may reap late. */
static size_t count_processes(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char stat[512];
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !is_marked(entry->d_name))
            continue;
        read_of(entry->d_name, "stat", stat, sizeof stat);
        const char *close = strrchr(stat, ')');
        count += close && close[1] == ' ' && close[2] != 'Z';
    }
    if (dir)
        closedir(dir);
    return count;
}

/* Keepers leave a moment after they have answered: so many may stay, the others have a while. */
static struct footprint look(size_t staying)
{
    double deadline = now_us() + 2e6;
    while (count_processes() > staying && now_us() < deadline)
        usleep(10000);
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

    set_marks();
    nacre_session *session = open_session();
    double each = start_many(session);
    if (count_processes() < AT_ONCE * 2)
        die("a thousand shells are not all found", NULL);
    if (nacre_close(session, NULL) != 0)
        die("some of a thousand shells survived", NULL);
    struct footprint before = look(0);
    session = open_session();
    each = start_many(session);
    double start = now_us();
    if (nacre_close(session, NULL) != 0)
        die("some of a thousand shells survived", NULL);
    double closing = (now_us() - start) / 1e3;
    report("1,000 shells at once", each, before, look(0));
    printf("%-44s closing the session ended them in %.0f ms\n", "", closing);

    session = open_session();
    run_many(session, 100);
    before = look(2); /* the warm keeper and the child that it has ready */
    each = run_many(session, IN_SEQUENCE);
    struct footprint after = look(2);
    report("10,000 commands one after another", each, before, after);
    return nacre_close(session, NULL) != 0;
}
