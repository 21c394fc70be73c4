/*
 * The strict reader against bash itself: scripts that are made up are run by bash, every command of
 * which says that it runs and with which words, and each of these must have been listed, unless the
 * reader said that it is not certain.
 */
#include "shell_scripts.h"

#include <poll.h>

#include "policy/script.h"

#define BATCH      400
#define SILENCE_MS 120000 /* so long nothing is said only if something hangs */

#define BETWEEN    '\037' /* words of one line */
#define NEWLINE    '\036' /* in a word */

/* Says one line about a command, in one write. */
#define RECORDER                                                                   \
    "R() { local IFS=$'\\037' s; s=\"$N$IFS$#$IFS$*\"; s=${s//$'\\n'/$'\\036'};\n" \
    "    printf '%s\\n' \"$s\" >&9; }\n"

/* Commands are functions, and where programs start others, programs. Nothing runs forever. */
static const char driver[] =
    "exec 2>/dev/null </dev/null >/dev/null\n" RECORDER
    "T() { R \"$@\"; ((++K > 60)) && kill -9 $BASHPID; return 0; }\n"
    "for i in 0 1 2 3 4 5 6 7 8 9; do eval \"c$i() { T c$i \\\"\\$@\\\"; }\"; done\n"
    "for i in 0 1 2 3; do eval \"n$i() { T n$i \\\"\\$@\\\"; return 1; }\"; done\n"
    "PATH=$PWD/programs:$PATH; u=; export N u\n"
    "while IFS= read -r -u 8 -d '' script; do N=$((${N:--1} + 1));\n"
    "    ( ulimit -t 2; cd work; i=0; set --; eval \"$script\" ); done 8<\"$1\"\n";

static const char program[] = "#!/bin/bash\n" RECORDER "R \"${0##*/}\" \"$@\"\n";

struct tally {
    uint64_t scripts, certain, ran, busy;
};

static void write_text(int dir, const char *name, const char *text, size_t size, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), (ssize_t)size);
    close(fd);
}

static int make_place(char place[PATH_MAX])
{
    int dir = unit_dir(place);
    assert_int_equal(mkdirat(dir, "programs", 0700), 0);
    write_text(dir, "driver", driver, sizeof driver - 1, 0600);
    for (char c = '0'; c <= '9'; c++) {
        char name[] = "programs/c?";
        name[sizeof name - 2] = c;
        write_text(dir, name, program, sizeof program - 1, 0700);
    }
    return dir;
}

/* What bash said: a line for each command, with the number of its script, how many words it has,
 * and the words. */
static char *run_bash(int dir)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unit_leave_cmocka();
        setpgid(0, 0);
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("BASH_ENV");
        if (dup2(ends[1], 9) == 9 && fchdir(dir) == 0)
            execlp("bash", "bash", "--norc", "driver", "scripts", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t size = 0, room = 1 << 20;
    char *said = malloc(room);
    for (;;) {
        assert_non_null(said);
        struct pollfd poller = {.fd = ends[0], .events = POLLIN};
        if (poll(&poller, 1, SILENCE_MS) <= 0) {
            kill(-pid, SIGKILL);
            said[size] = '\0';
            printf("the last: %s\n", said + (size > 300 ? size - 300 : 0));
            fail_msg("bash does not come to an end");
        }
        ssize_t n = read(ends[0], said + size, room - size - 1);
        if (n <= 0)
            break;
        size += (size_t)n;
        if (room - size < 65536)
            said = realloc(said, room *= 2);
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    said[size] = '\0';
    return said;
}

static bool fits(const struct shell_word *argv, size_t argc, const char *const *words, size_t count)
{
    if (argc == 0)
        return count == 0;
    switch (argv->kind) {
    case WORD_LITERAL:
        return count > 0 && strcmp(argv->text, words[0]) == 0 &&
               fits(argv + 1, argc - 1, words + 1, count - 1);
    case WORD_ONE:
        return count > 0 && fits(argv + 1, argc - 1, words + 1, count - 1);
    default:
        for (size_t taken = 0; taken <= count; taken++)
            if (fits(argv + 1, argc - 1, words + taken, count - taken))
                return true;
        return false;
    }
}

static bool is_listed(const struct script *s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < s->count; i++)
        if (fits(s->commands[i].argv, s->commands[i].argc, words, count))
            return true;
    return false;
}

/* The next word of a line; NULL = there is none. */
static char *take_word(char **at)
{
    char *word = *at;
    if (!word)
        return NULL;
    char *end = strchr(word, BETWEEN);
    *at = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    for (char *c = word; (c = strchr(c, NEWLINE));)
        *c = '\n';
    return word;
}

static void compare_line(char *const *texts, const struct script *scripts, char *line, bool *ran,
                         struct tally *tally)
{
    const char *words[256];
    const char *number_text = take_word(&line), *count_text = take_word(&line);
    assert_non_null(number_text);
    assert_non_null(count_text);
    long number = strtol(number_text, NULL, 10), count = strtol(count_text, NULL, 10);
    assert_true(number >= 0 && number < BATCH && count > 0 && count < 256);
    for (long i = 0; i < count; i++)
        assert_non_null(words[i] = take_word(&line));
    if (script_first_doubt(&scripts[number]))
        return;
    tally->busy += !ran[number];
    ran[number] = true;
    tally->ran++;
    if (!is_listed(&scripts[number], words, (size_t)count))
        fail_msg(
            "bash ran %s (%ld words, the second is %s), which was not listed, of script %ld:\n%s\n",
            words[0], count, count > 1 ? words[1] : "-", number, texts[number]);
}

static void compare(char *const *texts, const struct script *scripts, char *said,
                    struct tally *tally)
{
    bool ran[BATCH] = {0};
    for (char *line = said, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        compare_line(texts, scripts, line, ran, tally);
    }
}

/* What scripts leave behind would make a * longer and longer. */
static void clear_work(const char *place)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/work", place);
    unit_remove(path);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void run_batch(int dir, uint64_t seed, struct tally *tally)
{
    static struct maker maker;
    char *texts[BATCH];
    struct script scripts[BATCH];
    int fd = openat(dir, "scripts", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (size_t i = 0; i < BATCH; i++) {
        make_script(&maker, seed + i, i % 4 == 3);
        texts[i] = strndup(maker.text, maker.size);
        assert_int_equal(script_read(texts[i], strlen(texts[i]), DIALECT_BASH, &scripts[i]), 0);
        tally->certain += script_first_doubt(&scripts[i]) == NULL;
        fwrite(texts[i], strlen(texts[i]) + 1, 1, file);
    }
    assert_int_equal(fclose(file), 0);
    char *said = run_bash(dir);
    compare(texts, scripts, said, tally);
    tally->scripts += BATCH;
    free(said);
    for (size_t i = 0; i < BATCH; i++) {
        script_done(&scripts[i]);
        free(texts[i]);
    }
}

/* NACRE_SCRIPTS says how many, and NACRE_SEED which. */
static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : fallback;
}

static void test_bash_runs_nothing_that_is_not_listed(void **state)
{
    (void)state;
    struct tally tally = {0};
    uint64_t wanted =
        number_of("NACRE_SCRIPTS", getenv("NACRE_TEST_LONG") ? 1000000 : BATCH * UINT64_C(3));
    uint64_t seed = number_of("NACRE_SEED", 1);
    char place[PATH_MAX];
    int dir = make_place(place);
    while (tally.scripts < wanted) {
        clear_work(place);
        run_batch(dir, seed * UINT64_C(1000000007) + tally.scripts, &tally);
    }
    close(dir);
    printf("%lu scripts, certain of %lu, in %lu of these %lu commands ran\n",
           (unsigned long)tally.scripts, (unsigned long)tally.certain, (unsigned long)tally.busy,
           (unsigned long)tally.ran);
    assert_true(tally.busy > tally.scripts / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bash_runs_nothing_that_is_not_listed),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
