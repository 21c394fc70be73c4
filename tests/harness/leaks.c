/*
 * The last word about a case: what it left behind. The runner is a subreaper, so whatever the
 * case or its keepers lost is the runner's child by now; what hides elsewhere is found by the
 * home or the id in its environment.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

enum { PROCESSES_MAX = 8192, IDS_MAX = 16384, KEEPERS_LEAVE_MS = 300, LISTING_MS = 10000 };

static char ids[IDS_MAX][NACRE_ID_DIGITS + 1];
static size_t id_count;

/* -- Cgroups --------------------------------------------------------------------------------- */

const char *cgroup_mount(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    const char *found = NULL;
    char line[4096], point[1024];

    while (f && !found && fgets(line, sizeof(line), f)) {
        if (strstr(line, " - cgroup2 ") && sscanf(line, "%*d %*d %*s %*s %1023s", point) == 1)
            found = format("%s", point);
    }
    if (f)
        fclose(f);
    return found;
}

const char *cgroup_dir(void)
{
    const char *mount = cgroup_mount(), *dir = NULL;
    char line[1024];

    if (!mount)
        return NULL;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && !dir && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0)
            dir = format("%s%s", mount, strcmp(line + 3, "/") == 0 ? "" : line + 3);
    }
    if (f)
        fclose(f);
    return dir;
}

static bool names_an_id(const char *name)
{
    for (size_t i = 0; i < id_count; i++) {
        if (strstr(name, ids[i]))
            return true;
    }
    return false;
}

/* Each child of a folder counts as a link to it; to list the fifty files of one takes long. */
static bool has_folders(const char *dir)
{
    struct stat st;

    return stat(dir, &st) == 0 && st.st_nlink > 2;
}

/* Counts (and removes, if asked) leaves named nacre-* that belong to a run of the case. */
static int cgroups_left(const char *dir, int depth, bool end, char *buf, size_t size)
{
    DIR *d = has_folders(dir) ? opendir(dir) : NULL;
    int count = 0;

    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));) {
        char path[4096];
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (depth > 0)
            count += cgroups_left(path, depth - 1, end, buf, size);
        if (strncmp(e->d_name, "nacre-", 6) != 0 || !names_an_id(e->d_name))
            continue;
        count++;
        size_t used = strlen(buf);
        if (end)
            snprintf(buf + used, size - used, "%scgroup %s", used ? ", " : "", path);
        if (end)
            rmdir(path);
    }
    closedir(d);
    return count;
}

/* -- Homes ----------------------------------------------------------------------------------- */

static void each_home(void (*fn)(const char *home, void *arg), void *arg)
{
    DIR *d = opendir(test_base());
    struct stat st;

    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096], runs[4200];
        snprintf(path, sizeof(path), "%s/%s", test_base(), e->d_name);
        snprintf(runs, sizeof(runs), "%s/runs", path);
        if (e->d_name[0] != '.' && stat(runs, &st) == 0 && S_ISDIR(st.st_mode))
            fn(path, arg);
    }
    if (d)
        closedir(d);
}

static void collect_ids(const char *home, void *arg)
{
    char runs[4200];

    (void)arg;
    snprintf(runs, sizeof(runs), "%s/runs", home);
    DIR *d = opendir(runs);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strlen(e->d_name) == NACRE_ID_DIGITS && id_count < IDS_MAX)
            memcpy(ids[id_count++], e->d_name, NACRE_ID_DIGITS + 1);
    }
    if (d)
        closedir(d);
}

static int print_alive(const nacre_listed *listed, void *arg)
{
    const nacre_record *record = listed->record;
    nacre_id_text id = nacre_id_short(&record->id);
    char status[64];

    dprintf(*(int *)arg, "run %s is %s; ", id.s, nacre_status(record, status, sizeof(status)));
    return 0;
}

/* Asks the library, in a process of its own, which runs of a home it believes to be alive. */
static void print_alive_of(const char *home, void *arg)
{
    nacre_options options = NACRE_OPTIONS_INIT;
    nacre_session *session = NULL;

    options.home = home;
    if (nacre_open(&options, &session, NULL) < 0)
        return;
    list_home(session, true, print_alive, arg);
    nacre_close(session, NULL);
}

static void runs_alive(char *buf, size_t size)
{
    size_t used = 0;
    ssize_t got;
    int pipes[2];

    if (pipe(pipes) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        alarm((unsigned)(soon(LISTING_MS) / 1000));
        each_home(print_alive_of, &pipes[1]);
        _exit(0);
    }
    close(pipes[1]);
    while (used < size - 1 && (got = read(pipes[0], buf + used, size - 1 - used)) > 0)
        used += (size_t)got;
    buf[used] = 0;
    close(pipes[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0)
        snprintf(buf + used, size - used, "listing the home ended with status 0x%x", status);
}

/* -- Processes ------------------------------------------------------------------------------- */

struct table {
    struct {
        pid_t pid, parent;
        char state;
    } rows[PROCESSES_MAX];
    size_t count;
};

static void add_row(pid_t pid, void *arg)
{
    struct table *table = arg;
    unsigned long long start;

    if (table->count < PROCESSES_MAX && read_stat(pid, &table->rows[table->count].state,
                                                  &table->rows[table->count].parent, &start)) {
        table->rows[table->count++].pid = pid;
    }
}

static bool descends(const struct table *table, pid_t pid, pid_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        pid_t parent = 0;
        for (size_t i = 0; i < table->count; i++) {
            if (table->rows[i].pid == pid)
                parent = table->rows[i].parent;
        }
        if (parent == ancestor)
            return true;
        pid = parent;
    }
    return false;
}

static bool is_marked(pid_t pid)
{
    static char env[1 << 17];
    char wanted[4200];
    size_t size = read_proc(pid, "environ", env, sizeof(env));

    snprintf(wanted, sizeof(wanted), "NACRE_HOME=%s/", test_base());
    for (char *p = env; p < env + size; p += strlen(p) + 1) {
        if (strncmp(p, wanted, strlen(wanted)) == 0)
            return true;
        if (strncmp(p, "NACRE_ID=", 9) == 0 && names_an_id(p + 9))
            return true;
    }
    return false;
}

static int processes_left(bool end, char *buf, size_t size)
{
    static struct table table;
    int count = 0;

    table.count = 0;
    each_process(add_row, &table);
    for (size_t i = 0; i < table.count; i++) {
        pid_t pid = table.rows[i].pid;
        char argv[256] = "";
        if (pid == getpid() || table.rows[i].state == 'Z' || table.rows[i].state == 'X')
            continue;
        if (!descends(&table, pid, getpid()) && !is_marked(pid))
            continue;
        count++;
        size_t got = read_proc(pid, "cmdline", argv, sizeof(argv)), used = strlen(buf);
        for (size_t k = 0; k + 1 < got; k++)
            argv[k] = argv[k] ? argv[k] : ' ';
        if (end && size - used > 300)
            snprintf(buf + used, size - used, "%sprocess %d (%s)", used ? ", " : "", (int)pid,
                     argv);
        if (end)
            kill(pid, SIGKILL);
    }
    return count;
}

/* False: there are children that live. */
static bool reap_all(void)
{
    pid_t got;

    while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    return got < 0;
}

/* Whatever descends from the runner is or becomes its child: only when it has none is there
 * anything to look for. */
static void await_children(int64_t until)
{
    int64_t began = now_ms();

    while (!reap_all() && now_ms() < until)
        await_pause(began);
}

bool leaks_find(char *buf, size_t size)
{
    const char *cgroup = cgroup_dir();
    int64_t began = now_ms(), until = began + soon(KEEPERS_LEAVE_MS);
    char left[1600] = "", alive[300] = "";

    for (;;) {
        await_children(until);
        id_count = 0;
        each_home(collect_ids, NULL);
        bool last = now_ms() >= until;
        int count = processes_left(last, left, sizeof(left));
        if (cgroup)
            count += cgroups_left(cgroup, 3, last, left, sizeof(left));
        if (count == 0 || last)
            break;
        await_pause(began);
    }
    /* What forks faster than it is killed takes several rounds; a leaf goes after its members. */
    for (int i = 0; i < 200 && left[0]; i++) {
        char again[64] = "";
        reap_all();
        int count = processes_left(true, again, sizeof(again));
        if (cgroup)
            count += cgroups_left(cgroup, 3, true, again, sizeof(again));
        if (count == 0)
            break;
        pause_ms(2);
    }
    if (left[0] == 0)
        runs_alive(alive, sizeof(alive));
    reap_all();
    snprintf(buf, size, "%s%s%s", left[0] || alive[0] ? "left behind: " : "", left, alive);
    return buf[0] != 0;
}
