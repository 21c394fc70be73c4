/*
 * Work goes on inside a fence: real programs do what they do every day, as root and as any user, in
 * a workspace that lies below /tmp. What is not installed is skipped, and says so.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"

static nacre_session *open_work(const char *mode)
{
    const char *settings[] = {format("sandbox=%s", mode), NULL};
    return open_tool(settings);
}

/* It ends well, and prints that at the end. */
static void work_in(nacre_session *s, const char *text, const char *last)
{
    struct run run = run_text(s, format("set -e; %s", text));
    if (run.record.outcome != NACRE_EXITED || run.record.exit_code != 0 || !strstr(run.out, last))
        FAIL("outcome %d, exit %d of: %s\n%s%s", (int)run.record.outcome, run.record.exit_code,
             text, run.out, run.err);
    run_done(&run);
}

static void work(const char *text, const char *last)
{
    nacre_session *s = open_work("workspace-write");
    work_in(s, text, last);
    close_session(s);
}

static void need_program(const char *name)
{
    if (!have_program(name))
        SKIP(format("needs %s", name));
}

static void outside(const char *text)
{
    if (system(text) != 0)
        FAIL("cannot prepare: %s", text);
}

#define GIT "git -c user.name=a -c user.email=a@a -c protocol.file.allow=always "

TEST_LIMIT(git_commits_in_clone_worktree_and_submodule, 60)
{
    need_program("git");
    outside("git init -q lib && cd lib && " GIT "commit -q --allow-empty -m first");
    outside("git init -q app && cd app && " GIT "commit -q --allow-empty -m first && " GIT
            "submodule --quiet add ../lib sub && " GIT "commit -q -m sub && git worktree add -q "
            "../tree");
    static const char *const places[] = {"app", "tree", "app/sub"};
    const char *above = format("%s/work", test_base());
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(0, chdir(format("%s/%s", above, places[i])));
        work("echo x > new; git add new; " GIT
             "commit -qm inside; git status -s; git log --format=%s",
             "inside\n");
        work("git branch b-$$; git gc -q; git stash list; git checkout -q b-$$; echo done",
             "done\n");
    }
}

/* Its files say what of git may be written to, and are read when the next one starts. */
TEST_LIMIT(a_worktree_that_a_command_broke_holds_nobody_up, 30)
{
    need_program("git");
    outside("git init -q app && cd app && " GIT
            "commit -q --allow-empty -m first && git worktree add "
            "-q ../tree");
    CHECK_EQ_INT(0, chdir("tree"));
    work("own=$(git rev-parse --git-dir); rm $own/gitdir; mkfifo $own/gitdir; echo broken",
         "broken\n");
    work("echo x > new; ! touch ../app/.git/new 2>&1; echo so", "so\n");
}

TEST_LIMIT(git_hooks_stay_as_they_are, 30)
{
    need_program("git");
    outside("git init -q app && mkdir -p app/deep");
    CHECK_EQ_INT(0, chdir("app/deep"));
    work("! git config core.fsmonitor evil 2>&1; ! touch ../.git/hooks/pre-commit 2>&1; echo so",
         "so\n");
    CHECK(access("../.git/hooks/pre-commit", F_OK) < 0);
}

TEST_LIMIT(programs_are_built, 60)
{
    need_program("gcc");
    need_program("make");
    work(
        "printf 'all: a b\\n%%: %%.c\\n\\tgcc -pipe -o $@ $<\\n' > Makefile; for f in a b; do echo "
        "'#include <stdio.h>\nint main(void) { puts(\"built\"); }' > $f.c; done; make -s -j2 all; "
        "./a && ./b; chmod 700 a; mv a c; ln c d; ./d",
        "built\n");
}

TEST_LIMIT(sanitizers_find_leaks, 60)
{
    need_program("gcc");
    work(
        "echo '#include <stdlib.h>\nint main(void) { return malloc(10) == (void *)1; }' > a.c; gcc "
        "-fsanitize=address -o a a.c; ./a > said 2>&1 || grep -o 'detected memory leaks' said",
        "detected memory leaks");
}

TEST_LIMIT(a_debugger_holds_its_child, 60)
{
    need_program("gdb");
    need_program("gcc");
    work(
        "printf 'int main(void)\\n{\\n volatile int x = 7;\\n return x;\\n}\\n' > a.c; gcc -g -o a "
        "a.c; gdb -q -batch -ex 'break 4' -ex run -ex 'set var x=42' -ex 'print x' -ex kill ./a "
        "2>&1",
        "= 42");
}

TEST_LIMIT(python_does_what_it_does, 60)
{
    need_program("python3");
    work("python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\":\n p = m.Pool(2); "
         "print(sum(p.map(abs, range(5)))); q = m.Queue(); q.put(1); q.get(); p.terminate()'",
         "10");
    work("python3 -c 'import os, pty, socket, tempfile\nm, s = pty.openpty(); os.write(s, b\"x\"); "
         "a, b = socket.socketpair(); a.send(b\"x\"); l = socket.socket(socket.AF_UNIX); "
         "l.bind(\"s\"); l.listen(); c = socket.socket(socket.AF_UNIX); c.connect(\"s\"); "
         "l.accept()[0].send(b\"hello\"); t = tempfile.NamedTemporaryFile(); "
         "print(c.recv(9).decode(), open(\"/dev/shm/x\", \"w\").write(\"1\"))'",
         "hello 1");
}

TEST_LIMIT(node_does_what_it_does, 60)
{
    need_program("node");
    work("echo 'const { Worker, isMainThread } = require(\"worker_threads\"); const { fork } = "
         "require(\"child_process\"); if (process.send) process.send(\"ipc\"); else if "
         "(!isMainThread) process.exit(0); else new Worker(__filename).on(\"exit\", () => "
         "fork(__filename).on(\"message\", (m) => console.log(m, "
         "require(\"child_process\").execSync(\"echo sub\").toString())));' > a.js; node a.js",
         "ipc sub");
}

/* It has a sandbox of its own, which it does without if it is told to. */
TEST_LIMIT(a_browser_is_told_why_and_works, 100)
{
    static const char show[] = "timeout 60 chromium --headless --disable-gpu --no-first-run "
                               "--user-data-dir=/tmp/profile --dump-dom 'data:text/html,<p>shown'";
    char *summary = NULL;
    need_program("chromium");
    nacre_session *s = open_work("workspace-write");
    struct run run = run_text(s, show);
    CHECK(run.record.exit_code != 0);
    CHECK_OK(nacre_summary(s, &run.record.id, NULL, &summary, NULL, ERR));
    if (geteuid() == 0)
        CHECK_STR(summary, "--no-sandbox is not supported"); /* as root outside, too */
    else
        CHECK_STR(summary, "Sandbox: refused rights to chromium");
    free(summary);
    run_done(&run);
    work_in(s, format("%s --no-sandbox", show), "<p>shown</p>");
    close_session(s);
}

TEST_LIMIT(sudo_says_why, 30)
{
    char *summary = NULL;
    need_program("sudo");
    if (geteuid() == 0)
        SKIP("root needs no sudo");
    nacre_session *s = open_work("workspace-write");
    struct run run = run_text(s, "sudo -n true");
    CHECK_OK(nacre_summary(s, &run.record.id, NULL, &summary, NULL, ERR));
    CHECK_STR(summary, "Sandbox: refused rights to sudo: nothing gains rights inside");
    free(summary);
    run_done(&run);
    close_session(s);
}

/* What one shell serves another one fetches: by the network, and by a socket with a name. */
TEST_LIMIT(shells_of_a_session_meet, 60)
{
    need_program("python3");
    nacre_session *s = open_work("workspace-write");
    nacre_id server = start_text(
        s, "echo page > index.html; exec python3 -u -c 'import socket\nu = "
           "socket.socket(socket.AF_UNIX); u.bind(\"/tmp/served\"); u.listen()\nt = "
           "socket.socket(); t.bind((\"127.0.0.1\", 0)); t.listen(); open(\"/tmp/port\", "
           "\"w\").write(str(t.getsockname()[1])); print(\"up\")\nfor l in (t, u): "
           "l.accept()[0].send(b\"served\\n\")'");
    CHECK(AWAIT(output_has(s, &server, NACRE_OUT, "up"), 10000));
    work_in(s, "exec 3<>/dev/tcp/127.0.0.1/$(cat /tmp/port); cat <&3", "served\n");
    work_in(s,
            "python3 -c 'import socket\nc = socket.socket(socket.AF_UNIX); "
            "c.connect(\"/tmp/served\"); print(c.recv(9).decode())'",
            "served\n");
    wait_outcome(s, &server, 5000);
    close_session(s);
}

TEST_LIMIT(a_server_of_one_shell_is_fetched_from_in_another, 60)
{
    need_program("python3");
    need_program("curl");
    nacre_session *s = open_work("workspace-write");
    nacre_id server = start_text(s, "echo page > index.html; python3 -u -m http.server 4173 2>&1");
    CHECK(AWAIT(output_has(s, &server, NACRE_OUT, "port 4173"), 10000));
    work_in(s, "curl -sS http://localhost:4173/", "page\n");
    kill_shell(s, &server, 0);
    close_session(s);
}

TEST_LIMIT(privileges_are_not_gained, 30)
{
    nacre_session *s = open_work("workspace-write");
    struct run run = run_text(s, "grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status");
    CHECK_STR(run.out, "NoNewPrivs:\t1");
    CHECK_STR(run.out, geteuid() == 0 ? "CapEff:\t00000000000004fb" : "CapEff:\t0000000000000000");
    run_done(&run);
    run = run_text(s, program("fd-list"));
    if (run.record.exit_code == 0) /* it may lie in what is hidden */
        CHECK_TEXT(run.out, "0 1 2\n");
    run_done(&run);
    close_session(s);
}

TEST_LIMIT(names_may_be_anything, 30)
{
    const char *name = "ein Verzeichnis, \u00e4\u00f6\u00fc \u65e5\u672c";
    CHECK_EQ_INT(0, mkdir(name, 0755));
    CHECK_EQ_INT(0, chdir(name));
    work("echo x > here; mkdir -p a/b; mv here a/b; pwd; cat a/b/here", "x\n");
    CHECK(access("a/b/here", F_OK) == 0);
}

TEST_LIMIT(read_only_has_a_place_for_what_is_passing, 30)
{
    const char *kept = format("/tmp/kept-%s", marker());
    setenv("KEPT", kept, 1);
    nacre_session *s = open_work("read-only");
    work_in(s, "! touch here 2>&1; echo kept > $KEPT; sort <<< ok; cat $KEPT", "kept\n");
    work_in(s, "cat $KEPT", "kept\n"); /* of the session */
    close_session(s);
    CHECK(access("here", F_OK) < 0 && access(kept, F_OK) < 0);
}

/* A command of before could have put it there. */
TEST_LIMIT(a_link_in_the_workspace_opens_nothing, 30)
{
    const char *settings[] = {"sandbox=workspace-write", "sandbox_write=out", NULL};
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "true";
    CHECK_EQ_INT(0, symlink("/usr", "out"));
    nacre_session *s = open_tool(settings);
    CHECK_CODE(NACRE_EINVAL, nacre_run(s, &command, -1, &record, ERR));
    CHECK_STR(harness_error.msg, "a link out of the workspace");
    nacre_record_done(&record);
    close_session(s);
}

TEST_LIMIT(root_works_on_the_files_of_others, 30)
{
    if (geteuid() != 0)
        SKIP("needs root");
    outside("echo theirs > file && chown 1234:1234 file && chmod 600 file");
    work("cat file; echo more >> file; chown 4321 file; stat -c %u file", "4321\n");
}

TEST_LIMIT(root_leaves_the_modules_of_others_as_they_are, 30)
{
    need_program("git");
    if (geteuid() != 0)
        SKIP("needs root");
    outside("git init -q app && mkdir -p app/.git/modules/m && touch app/.git/modules/m/HEAD "
            "app/.git/modules/m/config && chown -R 1234:1234 app");
    CHECK_EQ_INT(0, chdir("app"));
    work("! touch .git/modules/m/config 2>&1; touch .git/modules/m/index; echo so", "so\n");
}

TEST_LIMIT(a_bare_repository_keeps_its_configuration, 30)
{
    need_program("git");
    outside("git init -q --bare bare");
    CHECK_EQ_INT(0, chdir("bare"));
    work("! git config core.pager evil 2>&1; ! touch hooks/update 2>&1; touch refs/x; echo so",
         "so\n");
}

/* -- What is left -------------------------------------------------------------------------------
 */

static int entries_of(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

TEST_LIMIT(many_commands_leave_nothing, 120)
{
    nacre_session *s = open_work("workspace-write");
    work_in(s, "mkdir -p /tmp/d/e; chmod 0 /tmp/d; echo so", "so\n");
    int before = fd_count();
    for (int i = 0; i < rounds(200); i++) {
        struct run run = run_text(s, "echo $$ > /tmp/last");
        CHECK_EQ_INT(0, run.record.exit_code);
        run_done(&run);
    }
    CHECK_EQ_INT(before, fd_count());
    CHECK_EQ_INT(1, entries_of(format("%s/fence", test_home())));
    close_session(s);
    CHECK_EQ_INT(0, entries_of(format("%s/fence", test_home())));
}

TEST_LIMIT(many_sessions_leave_nothing, 120)
{
    int before = fd_count();
    for (int i = 0; i < rounds(30); i++) {
        nacre_session *s = open_work(i & 1 ? "read-only" : "workspace-write");
        struct run run = run_text(s, "echo $$ > /tmp/last");
        CHECK_EQ_INT(0, run.record.exit_code);
        run_done(&run);
        close_session(s);
        CHECK_EQ_INT(0, entries_of(format("%s/fence", test_home())));
    }
    CHECK_EQ_INT(before, fd_count());
}

static void be_killed(void *arg)
{
    nacre_session *s = open_work("workspace-write");
    start_text(s, format("echo x > /tmp/x; sleep 300.%s", (const char *)arg));
    await_marked(arg, 1);
    kill(getpid(), SIGKILL);
}

static bool next_session_sweeps(void)
{
    nacre_session *s = open_work("workspace-write");
    work_in(s, "echo so", "so\n");
    close_session(s);
    return entries_of(format("%s/fence", test_home())) == 0;
}

/* As soon as the keeper is gone, too, which ends what it kept. */
TEST_LIMIT(a_killed_host_leaves_nothing_for_long, 60)
{
    const char *mark = marker();
    pid_t host = host_fork(be_killed, (void *)mark);
    CHECK(AWAIT(process_state(host) == 'Z' || process_state(host) == 0, 10000));
    CHECK(AWAIT(count_marked(mark) == 0, 10000));
    host_kill(host);
    CHECK(AWAIT(next_session_sweeps(), 10000));
}
