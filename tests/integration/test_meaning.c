/*
 * A text means what it means under `bash -c TEXT`: the same bytes on both streams and the same
 * end as the shell gives when posix_spawn starts it. And yet the text is in no argv.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct direct {
    char *out, *err;
    int status;
};

/* Runs `SHELL -c TEXT` without nacre, in the same environment. */
static struct direct run_direct(const char *path, const char *name, const char *text, char **env)
{
    char *argv[] = {(char *)name, (char[]){"-c"}, (char *)text, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    struct direct direct = {NULL, NULL, -1};
    sigset_t all;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "../direct-out",
                                     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, "../direct-err",
                                     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attr);
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    CHECK_EQ_INT(0, posix_spawn(&pid, path, &actions, &attr, argv, env));
    CHECK_EQ_INT(pid, waitpid(pid, &direct.status, 0));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    direct.out = slurp("../direct-out", NULL);
    direct.err = slurp("../direct-err", NULL);
    return direct;
}

static char *path_of(const char *shell)
{
    static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};

    for (size_t i = 0; i < 3; i++) {
        const char *path = format("%s/%s", dirs[i], shell);
        if (access(path, X_OK) == 0)
            return (char *)path;
    }
    return NULL;
}

/* The environment that a command gets, as the command sees it. */
static char **command_environment(nacre_session *s)
{
    nacre_command command = NACRE_COMMAND_INIT;
    static const char *argv[] = {"env", "-0", NULL};
    char **env = calloc(1000, sizeof(*env));
    size_t count = 0;

    command.argv = argv;
    struct run run = run_command(s, &command);
    CHECK(env);
    for (char *p = run.out; p < run.out + run.out_size; p += strlen(p) + 1)
        env[count++] = (char *)format("%s", p);
    CHECK(count > 5 && count < 1000);
    run_done(&run);
    return env;
}

static void compare(nacre_session *s, const char *shell, const char *text, char **env)
{
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = text;
    command.shell = shell;
    struct run run = run_command(s, &command);
    struct direct direct =
        run_direct(path_of(shell ? shell : "bash"), shell ? shell : "bash", text, env);
    int code = WIFEXITED(direct.status) ? WEXITSTATUS(direct.status) : -1;
    int sig = WIFSIGNALED(direct.status) ? WTERMSIG(direct.status) : 0;

    CHECK(direct.out && direct.err);
    if (run.record.exit_code != code || run.record.signal != sig)
        FAIL("%s: exit code %d and signal %d, wanted %d and %d; stderr: %s", text,
             run.record.exit_code, run.record.signal, code, sig, run.err);
    if (strcmp(run.out, direct.out) != 0)
        FAIL("%s: stdout is \"%.1000s\", wanted \"%.1000s\"", text, run.out, direct.out);
    if (strcmp(run.err, direct.err) != 0)
        FAIL("%s: stderr is \"%.1000s\", wanted \"%.1000s\"", text, run.err, direct.err);
    free(direct.out);
    free(direct.err);
    run_done(&run);
}

static void compare_all(const char *shell, const char *const *texts)
{
    nacre_session *s = open_session();
    char **env = command_environment(s);

    for (; *texts; texts++)
        compare(s, shell, *texts, env);
    free(env);
    close_session(s);
}

/* -- What any shell understands -------------------------------------------------------------- */

static const char *const plain[] = {
    "-x",
    "+x",
    "--version",
    "-c",
    "--",
    "-",
    "echo $0",
    "echo \"$@\" $#",
    "foo-not-there",
    "\n\n\nfoo-not-there",
    "echo one; foo-not-there; echo two",
    "echo 'unterminated",
    "echo \"unterminated",
    "if true; then",
    "echo a; )",
    "{ echo a",
    "case x in",
    "echo a &&",
    "echo `echo b",
    "cat <<EOF\nhello $((1+1))\nEOF",
    "cat <<'EOF'\n$x `y` \\z\nEOF\n",
    "cat <<EOF\nno end",
    "cat <<A; cat <<B\n1\nA\n2\nB",
    "x=$(cat <<E\nq\nE\n); echo $x",
    "echo a \\",
    "echo a \\\n b",
    "echo a\\\\",
    "echo a # comment \\",
    "# only a comment",
    "",
    " ",
    "\n",
    "echo a\r\necho b\r\n",
    "set -e; false; echo no",
    "set -u; echo $UNDEFINED_X; echo no",
    "set -x; echo hi; y=1; [ $y = 1 ]",
    "set -v; echo x",
    "set -n; echo no",
    "trap 'echo bye' EXIT; echo hi",
    "trap 'echo bye $?' EXIT; exit 3",
    "trap 'exit 7' EXIT; false",
    "trap; echo none",
    "trap 'echo usr' USR1; kill -USR1 $$; echo done",
    "trap '' TERM; kill -TERM $$; echo alive",
    "exec echo replaced",
    "exec foo-not-there; echo after",
    "exec 3>&1; echo x >&3",
    "exec 2>&1; echo x >&2",
    "false",
    "! true",
    "exit",
    "exit 300",
    "exit abc",
    "return 3; echo after",
    "f() { return 4; }; f",
    "kill -TERM $$; echo no",
    "ulimit -c 0; kill -SEGV $$",
    "(exit 5); echo $?",
    "readonly x=1; x=2; echo after",
    ". ./no-such-file; echo after",
    "eval 'echo \"x'; echo after",
    "wait; jobs; echo $!",
    "cat",
    "read x; echo $?",
    "ls /no-such-dir/at-all",
    "echo \xc3\xa9 \xff | od -c",
    "env | grep -v -e ^NACRE_ID= -e ^_= | sort",
    "readlink /proc/$$/exe",
    "cat /proc/$$/comm",
    "umask; ulimit -a",
    "echo $- $OLDPWD",
    "false | true; echo $?",
    "sleep 0.01 & wait $!; echo $?",
    "echo a >&2; echo b; echo c >&2",
    "printf 'no newline'",
    "sh -c 'echo $0; nope' name",
    "cd / && pwd && cd \"$OLDPWD\" && [ -d . ]",
    "getopts a: x -a 5; echo $x $OPTARG $OPTIND",
    "test -t 0 || test -t 1 || test -t 2 || echo no terminals",
    NULL,
};

static const char *const bash_only[] = {
    "echo $BASH_EXECUTION_STRING",
    "echo \"$BASH_EXECUTION_STRING\" # with a comment",
    "echo $SHLVL $BASH_SUBSHELL $-",
    "compgen -v | sort",
    "compgen -e | sort",
    "compgen -A function; declare -F; declare -f",
    "shopt; set -o",
    "printf '%s\\n' \"$BASHOPTS\" \"$SHELLOPTS\"",
    "trap -p",
    "trap 'echo a' EXIT; trap -p; trap - EXIT",
    "trap 'echo err $LINENO' ERR; false; true",
    "trap 'echo dbg $BASH_COMMAND' DEBUG; echo a; echo b",
    "set -T; trap 'echo ret' RETURN; f() { :; }; f",
    "set -E; trap 'echo err' ERR; f() { false; }; f; true",
    "echo ${PIPESTATUS[@]}; false | true; echo ${PIPESTATUS[@]}",
    "sh -c 'exit 3' | tail -1; echo ${PIPESTATUS[@]}",
    "set -o pipefail; false | true",
    "set -e; false | true; echo yes",
    "alias ll=ls; ll",
    "set -o posix; echo $0; foo-not-there",
    "[[ a =~ ( ]]",
    "echo $LINENO\necho $LINENO",
    "echo $BASH $BASH_VERSION $BASH_ARGV0",
    "echo ${BASH_SOURCE[@]} ${BASH_LINENO[@]} ${#BASH_ARGV[@]} ${FUNCNAME[@]}",
    "function f { echo ${FUNCNAME[@]}; caller; }; f",
    "command_not_found_handle() { echo nf \"$1\"; return 9; }; zork",
    "exec bash -c 'echo $SHLVL $0; nope'",
    "exec -a other bash -c 'echo $0'",
    "bash -c 'exit 4'",
    "bash -c 'foo-not-there'",
    "echo 'echo $0; nope' > script; bash script; bash ./script; bash < script",
    "history; set -H; echo !!",
    "echo a > >(cat); wait",
    "declare -p | grep -i -e nacre -e preload | grep -v NACRE_ID",
    "hash; type echo ls",
    "echo ${BASH_VERSINFO[0]} $HISTFILE $PS1 $PS4",
    "PS4='> '; set -x; for i in 1 2; do echo $i; done",
    "unset BASH_EXECUTION_STRING; echo ok",
    "BASH_ENV=/dev/null; enable -n echo; echo x",
    "exec {fd}>/dev/null; echo $fd",
    "ls -l /proc/$$/fd 2>/dev/null | awk 'NR > 1 {print $9}' | head -3",
    "kill -l TERM; kill -0 $$; echo $?",
    "echo $(( 1 / 0 )); echo after",
    "echo ${x:?message}; echo after",
    "shopt -s extglob\necho !(a)",
    "time -p true 2>/dev/null",
    "select x in a b; do echo $x; done",
    "mapfile -t a < <(seq 3); echo ${a[@]}",
    "suspend; echo $?",
    "logout",
    "exit 1 2",
    "fc -l",
    "set -m; sleep 0.01 & fg; echo $?",
    "disown; bg",
    NULL,
};

TEST(plain_texts_under_bash)
{
    if (!path_of("bash"))
        SKIP("there is no bash");
    compare_all(NULL, plain);
}

TEST(plain_texts_under_sh)
{
    compare_all("sh", plain);
}

TEST(texts_of_bash)
{
    if (!path_of("bash"))
        SKIP("there is no bash");
    compare_all("bash", bash_only);
}

TEST(shell_by_its_path)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;

    /* A directory of PATH that we may not read would give another message. */
    const char *const env[] = {"PATH=/usr/bin:/bin", NULL};

    command.text = "echo $0; foo-not-there";
    command.shell = "/bin/sh";
    command.env = env;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "/bin/sh\n");
    CHECK(strncmp(run.err, "/bin/sh: ", 9) == 0 && strstr(run.err, "foo-not-there: "));
    run_done(&run);
    close_session(s);
}

/* A shell that is a script: nothing can be loaded into that. */
TEST(shell_that_is_a_script)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker(), *script = "#!/bin/sh\nexec /bin/sh \"$@\"\n";

    spit("myshell", script, strlen(script));
    CHECK(chmod("myshell", 0755) == 0);
    command.shell = "./myshell";
    command.text = format("echo %s \"$1\"; cat <<E\nx\nE\nexit 6", m);
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, format("%s \nx\n", m));
    CHECK_EQ_INT(6, run.record.exit_code);
    run_done(&run);
    close_session(s);
}

/* -- Long texts ------------------------------------------------------------------------------ */

static void check_long(nacre_session *s, const char *shell, size_t size)
{
    nacre_command command = NACRE_COMMAND_INIT;
    const char *end = "\nEND\necho last; exit 5", *begin = "wc -c <<'END'\n";
    char *text = malloc(size + 100);

    CHECK(text);
    memset(text, 'x', size);
    memcpy(text, begin, strlen(begin));
    memcpy(text + size - strlen(end), end, strlen(end) + 1);
    for (size_t i = 1000; i + 100 < size; i += 1000)
        text[i] = '\n';
    command.text = text;
    command.shell = shell;
    struct run run = run_command(s, &command);
    if (run.record.exit_code != 5)
        FAIL("%zu bytes: exit code %d, stderr %s", size, run.record.exit_code, run.err);
    CHECK_TEXT(run.out, format("%zu\nlast\n", size - strlen(begin) - strlen(end) + 1));
    CHECK(strcmp(run.record.command, text) == 0);
    run_done(&run);
    free(text);
}

TEST(long_texts)
{
    static const size_t sizes[] = {4096,   65536,   65537,   131071,     131072,
                                   131073, 1000000, 1048576, 3 * 1048576};
    nacre_session *s = open_session();

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_long(s, NULL, sizes[i]);
        check_long(s, "sh", sizes[i]);
    }
    close_session(s);
}

TEST(long_text_and_given_bytes)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    char *text = malloc(1 << 20);

    CHECK(text);
    memset(text, '#', 1 << 20);
    memcpy(text, "cat\n", 4);
    text[(1 << 20) - 1] = 0;
    command.text = text;
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "the input";
    command.input_size = 9;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "the input");
    run_done(&run);
    free(text);
    close_session(s);
}

/* -- In no argv ------------------------------------------------------------------------------ */

static void check_not_in_argv(const char *shell, bool long_text)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format(": zz%s; echo up; while :; do sleep 0.01; done %s%0*d", m,
                          long_text ? "#" : "# ", long_text ? 200000 : 1, 0);
    command.shell = shell;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(({
                    CHECK_EQ_INT(0, count_marked(m));
                    output_has(s, &id, NACRE_OUT, "up");
                }),
                5000));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}

TEST(text_in_no_argv)
{
    check_not_in_argv(NULL, false);
    check_not_in_argv("sh", false);
    check_not_in_argv(NULL, true);
    check_not_in_argv("sh", true);
}

TEST(pgrep_does_not_find_its_own_shell)
{
    if (!have_program("pgrep"))
        SKIP("there is no pgrep");
    nacre_session *s = open_session();
    struct run run = run_text(s, format("pgrep -f zz-%s; echo $?", marker()));

    CHECK_TEXT(run.out, "1\n");
    run_done(&run);
    close_session(s);
}
