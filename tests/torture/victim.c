/* victim JOURNAL MARK [-dest] VERB [ARGUMENT...]: what the commands of the storm are made of.
 *
 * Each process notes in JOURNAL that it lives ("P PID START MARK") before it does what VERB says:
 * so the suite knows who there was, and what was printed, without asking nacre. MARK stands in
 * argv, to be found by.
 *
 * -d: double fork. -s: a session of its own. -t: SIGTERM is ignored. -e: without an environment.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* A hunt that failed must not last: what was left goes by itself. */
#define LIFE_S 120
#define LINE   32

static const char *journal, *mark;

static void rest(long us)
{
    struct timespec pause_time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&pause_time, NULL);
}

static unsigned long long start_of(pid_t pid)
{
    char path[64], text[1024] = "", *at;
    unsigned long long start = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fread(text, 1, sizeof text - 1, file) > 0 && (at = strrchr(text, ')')))
        sscanf(at + 2,
               "%*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &start);
    fclose(file);
    return start;
}

/* The pid as whoever mounted /proc sees it: in a pid namespace it is not getpid(). */
static pid_t outer_pid(void)
{
    char text[32] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : getpid();
}

static void note(const char *what, pid_t pid)
{
    char line[128];
    int fd = open(journal, O_WRONLY | O_APPEND | O_CLOEXEC);
    int size = snprintf(line, sizeof line, "%s %d %llu %s\n", what, (int)pid, start_of(pid), mark);

    if (fd < 0 || write(fd, line, (size_t)size) != size)
        _exit(3);
    close(fd);
}

static int note_id(const char *id)
{
    FILE *file = fopen(journal, "ae");

    if (!file)
        return 3;
    fprintf(file, "I %.64s\n", id ? id : "");
    return fclose(file) == 0 ? 0 : 3;
}

static int sit(void)
{
    for (time_t until = time(NULL) + LIFE_S; time(NULL) < until;)
        rest(1000000);
    return 0;
}

/* -- What it prints ------------------------------------------------------------------------------
 */

static void lay_out(char *at, char stream, long first, long count)
{
    for (long i = 0; i < count; i++) {
        char line[LINE + 32];
        snprintf(line, sizeof line, "%-12.12s %c %016ld\n", mark, stream, first + i);
        memcpy(at + i * LINE, line, LINE);
    }
}

/* How many bytes were taken stands in JOURNAL.MARK, also if it is killed in the middle. */
static int print_lines(long out, long err, long us, long at_once)
{
    char path[4096], *piece = malloc((size_t)(at_once * LINE));
    long long taken[2] = {0, 0};
    long left[2] = {out, err}, next[2] = {1, 1};
    int fd;

    snprintf(path, sizeof path, "%s.%s", journal, mark);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || !piece)
        return 3;
    while (left[0] > 0 || left[1] > 0) {
        for (int i = 0; i < 2; i++) {
            long count = left[i] < at_once ? left[i] : at_once;
            lay_out(piece, "oe"[i], next[i], count);
            for (size_t size = (size_t)(count * LINE), done = 0; done < size;) {
                ssize_t n = write(i + 1, piece + done, size - done);
                if (n < 0)
                    return 4;
                done += (size_t)n;
                taken[i] += n;
                if (pwrite(fd, taken, sizeof taken, 0) != sizeof taken)
                    return 3;
            }
            left[i] -= count;
            next[i] += count;
        }
        if (us)
            rest(us);
    }
    free(piece);
    return 0;
}

/* -- Those that do not want to end
 * ----------------------------------------------------------------- */

/* Wants the processor all the time, a little: thousands of them leave nothing to anybody else. */
static void burn(void)
{
    for (time_t until = time(NULL) + 30; time(NULL) < until;) {
        for (clock_t end = clock() + CLOCKS_PER_SEC / 5000; clock() < end;)
            ;
        rest(10000);
    }
}

/* At the end of GATE all are there, and begin. */
static void bomb_member(int i, const int gate[2])
{
    char none;

    close(gate[1]);
    if (i % 3 == 0)
        setsid();
    if (i % 4 == 0 && fork() > 0)
        _exit(0);
    note("P", outer_pid());
    if (read(gate[0], &none, 1) == 0)
        burn();
    _exit(sit());
}

/* Who dies is replaced; the first fathers of double-forked ones are not among the dead. */
static int bomb(int wanted)
{
    int fathers = (wanted + 3) / 4, forked = 0, gate[2];

    if (pipe(gate) < 0)
        return 3;
    signal(SIGTERM, SIG_IGN);
    clearenv();
    for (time_t until = time(NULL) + LIFE_S; time(NULL) < until && forked < 4 * wanted;) {
        if (forked == wanted)
            close(gate[1]);
        if (forked >= wanted && waitpid(-1, NULL, 0) > 0 && fathers-- > 0)
            continue;
        pid_t pid = fork();
        if (pid == 0)
            bomb_member(forked < wanted ? forked : 1, gate);
        forked++;
        if (pid < 0)
            rest(1000);
    }
    return sit();
}

/* The first process of a pid namespace: adopts and reaps. */
static int init(void)
{
    for (time_t until = time(NULL) + 10L * LIFE_S; time(NULL) < until;) {
        if (waitpid(-1, NULL, 0) < 0)
            rest(20000);
    }
    return 0;
}

static int rabbit(long us)
{
    time_t until = time(NULL) + 20;

    for (int pids = 0; pids < 2000 && time(NULL) < until; pids++) {
        rest(us);
        if (fork() > 0)
            _exit(0);
    }
    return 0;
}

static int stopper(pid_t pid)
{
    for (time_t until = time(NULL) + 30; time(NULL) < until && kill(pid, SIGSTOP) == 0;)
        rest(1000);
    return 0;
}

static int tracer(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0) {
        note("refused", pid);
        return 0;
    }
    note("traced", pid);
    return sit();
}

static int take_fds(void)
{
    while (open("/dev/null", O_RDONLY) >= 0) /* NOLINT: they are meant to leak */
        ;
    return errno == EMFILE || errno == ENFILE ? 0 : 3;
}

static int eat(size_t mib)
{
    char *memory = malloc(mib << 20);

    if (!memory)
        return 3;
    memset(memory, 1, mib << 20);
    return sit();
}

/* Nobody else gets this byte of a file, as those who share a database agree on. */
static int holder(const char *path, long at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || fcntl(fd, F_SETLKW, &lock) < 0)
        return 3;
    note("held", outer_pid());
    return sit();
}

static int listener(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? 3 : 0;
}

/* -- Its terminal --------------------------------------------------------------------------------
 */

/* Nobody prints any more until somebody lets it go on. */
static int choke(void)
{
    return tcflow(STDOUT_FILENO, TCOOFF) < 0 ? 3 : 0;
}

/* All who have it open lose it. */
static int hang_up(void)
{
    return ioctl(STDOUT_FILENO, TIOCVHANGUP) < 0 ? 3 : 0;
}

/* Takes it away from the session that has it, and ends with it in hand. */
static int thief(void)
{
    if (fork() > 0)
        return wait(NULL) < 0 ? 3 : 0;
    return setsid() < 0 || ioctl(STDOUT_FILENO, TIOCSCTTY, 1) < 0 ? 3 : 0;
}

/* A line discipline that swallows everything, or as much of that as there is. */
static int discipline(int number)
{
    return ioctl(STDOUT_FILENO, TIOCSETD, &number) < 0 ? 3 : 0;
}

/* A size that no window has. */
static int distort(long columns, long rows)
{
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    return ioctl(STDOUT_FILENO, TIOCSWINSZ, &size) < 0 ? 3 : 0;
}

/* -- How it is started
 * ----------------------------------------------------------------------------- */

/* Becomes the same again without an environment; the second one does not come here. */
static void wipe(char **argv, const char *options)
{
    static char *none[] = {NULL};
    char rest_of[8] = "-";

    if (options[0] == '\0' || environ[0] == NULL)
        return;
    if (strchr(options, 't'))
        strcat(rest_of, "t");
    argv[3] = rest_of;
    execve("/proc/self/exe", argv, none);
    _exit(3);
}

static void take_options(char **argv, const char *options)
{
    if (strchr(options, 't'))
        signal(SIGTERM, SIG_IGN);
    if (strchr(options, 'd') && fork() > 0)
        _exit(0);
    if (strchr(options, 's'))
        setsid();
    if (strchr(options, 'd') && fork() > 0)
        _exit(0);
    if (strchr(options, 'e'))
        wipe(argv, options);
}

static long number_at(char **args, int i)
{
    for (int k = 0; k <= i; k++) {
        if (!args[k])
            return 0;
    }
    return atol(args[i]);
}

static int do_sit(char **args)
{
    (void)args;
    return sit();
}

static int do_init(char **args)
{
    (void)args;
    return init();
}

static int do_print(char **args)
{
    return print_lines(number_at(args, 0), number_at(args, 1), number_at(args, 2), 1);
}

static int do_flood(char **args)
{
    return print_lines(number_at(args, 0), number_at(args, 1), 0, 1000);
}

static int do_bomb(char **args)
{
    return bomb((int)number_at(args, 0));
}

static int do_rabbit(char **args)
{
    return rabbit(number_at(args, 0));
}

static int do_stopper(char **args)
{
    return stopper((pid_t)number_at(args, 0));
}

static int do_tracer(char **args)
{
    return tracer((pid_t)number_at(args, 0));
}

static int do_fds(char **args)
{
    (void)args;
    return take_fds();
}

static int do_eat(char **args)
{
    return eat((size_t)number_at(args, 0));
}

static int do_listener(char **args)
{
    return args[0] ? listener(args[0]) : 2;
}

static int do_choke(char **args)
{
    (void)args;
    return choke();
}

static int do_hang_up(char **args)
{
    (void)args;
    return hang_up();
}

static int do_thief(char **args)
{
    (void)args;
    return thief();
}

static int do_discipline(char **args)
{
    return discipline((int)number_at(args, 0));
}

static int do_distort(char **args)
{
    return distort(number_at(args, 0), number_at(args, 1));
}

static int do_holder(char **args)
{
    return args[0] ? holder(args[0], number_at(args, 1)) : 2;
}

static const struct {
    const char *name;
    int (*run)(char **args);
} verbs[] = {
    {"sit", do_sit},           /* stays */
    {"init", do_init},         /* of a pid namespace */
    {"print", do_print},       /* OUT ERR US: so many numbered lines on each stream, with pauses */
    {"flood", do_flood},       /* OUT ERR: the same, a thousand at a time */
    {"bomb", do_bomb},         /* N: keeps N alive, a third in sessions of their own */
    {"rabbit", do_rabbit},     /* US: forks and exits, forks and exits */
    {"stopper", do_stopper},   /* PID: stops it again and again */
    {"tracer", do_tracer},     /* PID: holds it as a debugger does */
    {"fds", do_fds},           /* opens files until there are no more */
    {"eat", do_eat},           /* MIB: takes memory, and sits */
    {"holder", do_holder},     /* FILE BYTE: locks that */
    {"listener", do_listener}, /* PATH: a socket there */
    {"choke", do_choke},       /* its terminal takes no output any more */
    {"hang-up", do_hang_up},   /* everybody's terminal is gone; for root */
    {"thief", do_thief},       /* takes the terminal from its session, and ends; for root */
    {"discipline", do_discipline}, /* NUMBER: of the line discipline */
    {"distort", do_distort},       /* COLUMNS ROWS: without asking anybody */
};

static int do_verb(const char *verb, char **args)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i].name) == 0)
            return verbs[i].run(args);
    }
    return 2;
}

/* "up" notes who called it: a command has begun. */
int main(int argc, char **argv)
{
    int at = 3;

    if (argc < 4)
        return 2;
    journal = argv[1];
    mark = argv[2];
    if (argv[at][0] == '-')
        take_options(argv, argv[at++] + 1);
    if (!argv[at])
        return 2;
    if (strcmp(argv[at], "up") == 0) {
        note("B", getppid());
        return note_id(getenv("NACRE_ID"));
    }
    note("P", outer_pid());
    return do_verb(argv[at], argv + at + 1);
}
