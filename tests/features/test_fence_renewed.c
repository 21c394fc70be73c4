/*
 * A fence says what holds when a command starts, also if the files that it is made of were replaced
 * outside since the last one: with its file a mount goes away. And what is nacre's own cannot be
 * changed, wherever it lies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "features/fence_world.h"

#define EVIL "echo evil >> "

static nacre_session *open_fenced(const char *more)
{
    const char *settings[] = {"sandbox=workspace-write", "sandbox_caches=off",
                              "sandbox_hide=" OUTSIDE "/hidden/secret", more, NULL};
    return open_tool(settings);
}

static void outside(const char *text)
{
    if (system(text) != 0)
        FAIL("cannot do outside: %s", text);
}

/* It says nothing but that: what it tries fails. */
static void tries_in_vain(nacre_session *s, const char *text)
{
    struct run run = run_text(s, format("{ %s; } && echo done", text));
    if (run.record.outcome != NACRE_EXITED || strstr(run.out, "done") || strstr(run.out, SECRET))
        FAIL("%s\n%s%s", text, run.out, run.err);
    run_done(&run);
}

static void does(nacre_session *s, const char *text)
{
    struct run run = run_text(s, text);
    if (run.record.exit_code != 0)
        FAIL("exit %d of %s\n%s%s", run.record.exit_code, text, run.out, run.err);
    run_done(&run);
}

/* -- Replaced outside -------------------------------------------------------------------------- */

TEST_LIMIT(what_is_replaced_stays_protected, 60)
{
    world_make();
    nacre_session *s = open_fenced(NULL);
    tries_in_vain(s, EVIL ".git/config");
    does(s, EVIL "etc/missing"); /* which it names, and git would obey */
    CHECK(access("etc/missing", F_OK) < 0);
    outside("cp .git/config .git/config.lock && mv .git/config.lock .git/config");
    tries_in_vain(s, EVIL ".git/config");
    outside("mv .git/hooks .git/hooks.old && mkdir .git/hooks");
    tries_in_vain(s, EVIL ".git/hooks/pre-commit");
    outside("rm -r .git && mkdir -p .git/hooks && touch .git/config");
    tries_in_vain(s, EVIL ".git/config");
    does(s, "echo x > mine");
    close_session(s);
    world_end();
}

TEST_LIMIT(what_is_replaced_stays_hidden, 60)
{
    world_make();
    nacre_session *s = open_fenced(NULL);
    tries_in_vain(s, "cat $OUT/hidden/secret && exit 1");
    outside("cp $OUT/hidden/secret $OUT/hidden/new && mv $OUT/hidden/new $OUT/hidden/secret");
    tries_in_vain(s, "cat $OUT/hidden/secret && exit 1");
    outside("cp $OUT/hidden/secret $HOME/.netrc");
    tries_in_vain(s, "cat ~/.netrc && exit 1");
    close_session(s);
    world_end();
}

/* Also where the directory was there before, and what the settings name. */
TEST_LIMIT(what_comes_is_hidden, 60)
{
    world_make();
    outside("mkdir -p $HOME/.claude $HOME/.cargo");
    nacre_session *s = open_fenced("sandbox_hide=" OUTSIDE "/later,keys/mine.pem");
    does(s, "ls -A ~/.claude ~/.cargo $OUT >/dev/null");
    outside("cp $OUT/hidden/secret $HOME/.claude/.credentials.json && cp $OUT/hidden/secret "
            "$HOME/.cargo/credentials.toml");
    tries_in_vain(s, "cat ~/.claude/.credentials.json ~/.cargo/credentials.toml && exit 1");
    outside("cp $OUT/hidden/secret $OUT/later && mkdir keys && cp $OUT/later keys/mine.pem");
    tries_in_vain(s, "cat $OUT/later keys/mine.pem && exit 1");
    close_session(s);
    world_end();
}

TEST_LIMIT(what_comes_is_protected, 60)
{
    world_make();
    outside("rm -rf .git");
    nacre_session *s = open_fenced(NULL);
    does(s, "true");
    outside("mkdir -p .git/hooks && touch .git/config .git/HEAD");
    tries_in_vain(s, EVIL ".git/config");
    outside("mkdir -p .git/modules/a/b && touch .git/modules/a/b/HEAD .git/modules/a/b/config");
    tries_in_vain(s, EVIL ".git/modules/a/b/config");
    outside("mkdir -p .git/worktrees/new && echo ../.. > .git/worktrees/new/commondir");
    tries_in_vain(s, EVIL ".git/worktrees/new/commondir");
    close_session(s);
    world_end();
}

/* Who started before and who starts after it are in one network, and see the same /tmp. */
TEST_LIMIT(shells_meet_across_a_change, 60)
{
    if (!have_program("python3"))
        SKIP("needs python3");
    world_make();
    nacre_session *s = open_fenced(NULL);
    nacre_id server =
        start_text(s, "exec python3 -u -c 'import socket\nu = socket.socket(socket.AF_UNIX); "
                      "u.bind(\"/tmp/served\"); u.listen()\nt = socket.socket(); "
                      "t.bind((\"127.0.0.1\", 0)); t.listen(); open(\"/tmp/port\", "
                      "\"w\").write(str(t.getsockname()[1])); print(\"up\")\nfor l in (t, u): "
                      "l.accept()[0].send(b\"served\\n\")'");
    CHECK(AWAIT(output_has(s, &server, NACRE_OUT, "up"), 10000));
    outside("cp .git/config .git/config.lock && mv .git/config.lock .git/config");
    tries_in_vain(s, EVIL ".git/config");
    does(s, "exec 3<>/dev/tcp/127.0.0.1/$(cat /tmp/port) && grep -q served <&3");
    does(s, "./escape unix /tmp/served | grep -q 'connect: 0'");
    wait_outcome(s, &server, 5000);
    close_session(s);
    world_end();
}

TEST_LIMIT(many_changes_leave_nothing, 60)
{
    world_make();
    nacre_session *s = open_fenced(NULL);
    does(s, "true");
    does(s, "true");
    int before = fd_count();
    for (int i = 0; i < 20; i++) {
        outside("cp .git/config .git/config.lock && mv .git/config.lock .git/config");
        tries_in_vain(s, EVIL ".git/config");
    }
    does(s, "true");
    does(s, "true");
    CHECK(fd_count() < before + 10); /* a keeper that gets ready has some more than one that is */
    close_session(s);
    world_end();
}

/* -- nacre's own ------------------------------------------------------------------------------- */

/* Of a linked worktree .git is a file, and whoever writes it says which configuration git obeys. */
TEST_LIMIT(the_file_of_a_worktree_stays, 60)
{
    world_make();
    outside("rm -rf .git && echo 'gitdir: /mnt/elsewhere' > .git");
    nacre_session *s = open_fenced(NULL);
    tries_in_vain(s, "echo 'gitdir: evil' > .git");
    tries_in_vain(s, "mv .git old");
    tries_in_vain(s, "rm -f .git");
    close_session(s);
    world_end();
}

TEST_LIMIT(the_configuration_stays, 60)
{
    world_make();
    outside("mkdir -p $HOME/.config/nacre && echo '{}' > $HOME/.config/nacre/config.json");
    outside("echo '{}' > conf.json");
    nacre_session *s = open_fenced("sandbox_write=/mnt/user/.config");
    does(s, "touch ~/.config/other");
    tries_in_vain(s, EVIL "~/.config/nacre/config.json");
    tries_in_vain(s, "mv ~/.config/nacre ~/.config/old");
    close_session(s);
    setenv("NACRE_CONFIG", WORKSPACE "/conf.json", 1);
    s = open_fenced(NULL);
    tries_in_vain(s, EVIL "conf.json");
    tries_in_vain(s, "rm -f conf.json");
    close_session(s);
    world_end();
}

/* What a shell is given open was opened outside, where nothing is read-only. */
TEST_LIMIT(what_comes_along_open_leads_nowhere, 60)
{
    world_make();
    outside(format("cp %s .", program("meddle.so")));
    char *slash = strrchr(getenv("KEEPER"), '/');
    const char *hide =
        format("sandbox_hide=%.*s", (int)(slash - getenv("KEEPER")), getenv("KEEPER"));
    nacre_session *s = open_fenced(hide);
    nacre_command command = NACRE_COMMAND_INIT;
    const char *const env[] = {"LD_PRELOAD=/mnt/ws/meddle.so", NULL};
    command.text = "echo so; true | true";
    command.env = env;
    struct run run = run_command(s, &command);
    CHECK_TEXT(run.out, "so\n");
    CHECK_EQ_INT(2, run.record.pipestatus_count);
    run_done(&run);
    const char *seen = world_look(false);
    if (seen)
        FAIL("%s", seen);
    close_session(s);
    world_end();
}
