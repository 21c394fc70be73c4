/*
 * What is promised of a fence, tried from inside: each attempt is a text, and is judged by what it
 * changed, read or reached outside. One that does nothing without a fence would prove nothing, so
 * those that hurt nobody but this case's own world are made without one, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fence_world.h"

enum property {
    FILES,
    METADATA,
    HIDDEN,
    PROTECTED,
    MOUNTS,
    DEVICES,
    PROCESSES,
    SOCKETS,
    NETWORK,
    OURS
};

/* clang-format off */
static const struct attempt {
    const char *name;
    enum property property;
    bool works; /* without a fence, as whoever */
    const char *text;
} attempts[] = {
    {"write",               FILES, true,  "echo x > $OUT/file"},
    {"append",              FILES, true,  "echo x >> $OUT/dir/file"},
    {"create",              FILES, true,  "> $OUT/new"},
    {"truncate",            FILES, true,  "./escape truncate $OUT/file"},
    {"unlink",              FILES, true,  "rm -f $OUT/file"},
    {"rmdir",               FILES, true,  "rm -rf $OUT/dir"},
    {"mkdir",               FILES, true,  "mkdir $OUT/newdir"},
    {"fifo-make",           FILES, true,  "mkfifo $OUT/newfifo"},
    {"fifo-write",          FILES, true,  "timeout 2 bash -c 'echo x > $OUT/fifo'"},
    {"rename",              FILES, true,  "mv $OUT/file $OUT/file2"},
    {"rename-in",           FILES, true,  "mv $OUT/file got"},
    {"rename-out",          FILES, true,  "mv mine $OUT/mine"},
    {"link-in",             FILES, true,  "ln $OUT/file linked && echo x > linked"},
    {"link-out",            FILES, true,  "ln mine $OUT/mine"},
    {"symlink-out",         FILES, true,  "ln -s mine $OUT/mine"},
    {"through-symlink",     FILES, true,  "ln -s $OUT/file to && echo x > to"},
    {"through-dirlink",     FILES, true,  "ln -s $OUT todir && echo x > todir/file"},
    {"tmpfile",             FILES, true,  "./escape tmpfile $OUT/linked"},
    {"handle",              FILES, false, "./escape handle $OUT/file"},
    {"reopen",              FILES, true,  "exec 5< $OUT/file; echo x > /proc/self/fd/5"},
    {"reopen-stdin",        FILES, true,  "bash -c 'echo x > /dev/fd/0' < $OUT/file"},
    {"own-root",            FILES, true,  "echo x > /proc/self/root$OUT/file"},
    {"host-root",           FILES, false, "for p in $VICTIM $HOST $PPID 1; do echo x > /proc/$p/root$OUT/file; done"},
    {"host-cwd",            FILES, false, "echo x > /proc/$VICTIM/cwd/new"},
    {"host-fd",             FILES, false, "for i in 0 1 2 3 4 5 6 7 8; do echo x > /proc/$VICTIM/fd/$i; done"},
    {"mmap",                FILES, false, "./escape mmap $OUT/file"},
    {"exchange",            FILES, true,  "./escape rename exchange mine $OUT/file"},
    {"whiteout",            FILES, false, "./escape rename whiteout $OUT/file got"},
    {"dotdot",              FILES, true,  "cd / && cd - && echo x > ../out/file"},
    {"config",              FILES, true,  "mkdir -p $HOME/.config/nacre; echo '{}' > $HOME/.config/nacre/config.json"},
    {"profile",             FILES, true,  "echo evil >> $HOME/.bashrc"},
    {"chmod",               METADATA, true,  "chmod 777 $OUT/file"},
    {"chmod-dir",           METADATA, true,  "chmod 700 $OUT/dir"},
    {"chown",               METADATA, true,  "chown $(id -u):$(id -g) $OUT/file"},
    {"touch",               METADATA, true,  "touch $OUT/file"},
    {"metadata",            METADATA, true,  "./escape metadata $OUT/file"},
    {"device-times",        METADATA, false, "touch -c -d @1 /dev/full /dev/zero; chmod -f 666 /dev/full"},
    {"stdin-times",         METADATA, false, "touch -c -d @2 /proc/self/fd/0; touch -c -d @2 /dev/stdin"},
    {"metadata-fifo",       METADATA, true,  "chmod 666 $OUT/fifo"},
    {"read-hidden",         HIDDEN, true,  "cat $OUT/hidden/secret"},
    {"read-key",            HIDDEN, true,  "cat ~/.ssh/*"},
    {"read-around",         HIDDEN, true,  "cat $OUT/dir/../hidden/../hidden/secret"},
    {"read-linked",         HIDDEN, true,  "ln -s $OUT/hidden/secret s; cat s; ln $OUT/hidden/secret t; cat t"},
    {"read-by-root",        HIDDEN, true,  "cat /proc/self/root$OUT/hidden/secret"},
    {"read-by-victim",      HIDDEN, false, "cat /proc/$VICTIM/cwd/secret /proc/$VICTIM/root$OUT/hidden/secret /proc/$VICTIM/fd/*"},
    {"read-by-handle",      HIDDEN, false, "./escape handle $OUT/hidden/secret"},
    {"read-tar",            HIDDEN, true,  "tar cf - -C / mnt/out/hidden"},
    {"read-moved",          HIDDEN, true,  "mv $OUT/hidden here; cat here/secret"},
    {"hook",                PROTECTED, true,  "echo evil > .git/hooks/pre-commit"},
    {"hook-new",            PROTECTED, true,  "echo evil > .git/hooks/post-checkout"},
    {"hook-mode",           PROTECTED, true,  "chmod 755 .git/hooks/pre-commit"},
    {"hook-remove",         PROTECTED, true,  "rm -rf .git/hooks"},
    {"hooks-move",          PROTECTED, true,  "mv .git/hooks .git/old"},
    {"git-config",          PROTECTED, true,  "echo '[core] fsmonitor=evil' >> .git/config"},
    {"git-config-lock",     PROTECTED, true,  "cp .git/config .git/config.lock; echo evil >> .git/config.lock; mv -f .git/config.lock .git/config"},
    {"git-config-exchange", PROTECTED, true,  "./escape rename exchange mine .git/config"},
    {"git-config-linked",   PROTECTED, true,  "ln .git/config c && echo evil >> c"},
    {"git-move",            PROTECTED, true,  "mv .git .git2; cp -a .git2 .git; echo evil > .git/hooks/pre-commit"},
    {"git-exchange",        PROTECTED, true,  "mkdir -p new/hooks; ./escape rename exchange new .git"},
    {"module-config",       PROTECTED, true,  "echo evil >> .git/modules/libs/foo/config"},
    {"module-hook",         PROTECTED, true,  "echo evil > .git/modules/libs/foo/hooks/post-checkout"},
    {"module-move",         PROTECTED, true,  "mv .git/modules/libs .git/modules/old"},
    {"worktree-common",     PROTECTED, true,  "echo /mnt/ws/evil > .git/worktrees/tree/commondir"},
    {"worktree-move",       PROTECTED, true,  "mv .git/worktrees .git/old; mkdir -p .git/worktrees/tree; echo evil > .git/worktrees/tree/commondir"},
    {"link-remove",         PROTECTED, true,  "rm -f .mcp.json .idea; echo evil > .mcp.json; mkdir .idea"},
    {"link-move",           PROTECTED, true,  "mv .mcp.json moved3; ln -s mine .mcp.json"},
    {"link-exchange",       PROTECTED, true,  "ln -s mine other; ./escape rename exchange other .mcp.json"},
    {"link-owner",          PROTECTED, true,  "chown -h $(id -u):$(id -g) .idea; touch -h .idea"},
    {"kept-hook",           PROTECTED, true,  "echo evil >> .husky/pre-commit"},
    {"kept-hook-new",       PROTECTED, true,  "echo evil > .husky/post-checkout"},
    {"kept-hook-move",      PROTECTED, true,  "mv .husky .h; mkdir .husky; echo evil > .husky/pre-commit"},
    {"included-config",     PROTECTED, true,  "echo '[core] fsmonitor=evil' >> etc/gitinclude"},
    {"included-move",       PROTECTED, true,  "mv etc e; mkdir etc; echo evil > etc/gitinclude"},
    {"git-remove",          PROTECTED, true,  "rm -rf .git"},
    {"workspace-move",      PROTECTED, true,  "mv /mnt/ws /mnt/ws2; mkdir -p /mnt/ws/.git/hooks"},
    {"remount",             MOUNTS, false, "./escape mounts plain $OUT/file / /mnt $OUT"},
    {"nested-remount",      MOUNTS, false, "./escape mounts nested $OUT/file / /mnt $OUT"},
    {"unmask",              MOUNTS, false, "./escape mounts plain $OUT/hidden/secret $OUT/hidden"},
    {"nested-unmask",       MOUNTS, false, "./escape mounts nested $OUT/hidden/secret $OUT/hidden"},
    {"nested-unprotect",    MOUNTS, false, "./escape mounts nested .git/config .git/config .git/hooks .git"},
    {"detached",            MOUNTS, false, "./escape tree plain $OUT/file"},
    {"nested-detached",     MOUNTS, false, "./escape tree nested $OUT/file"},
    {"nested-detached-key", MOUNTS, false, "./escape tree nested $OUT/hidden/secret"},
    {"nested-git",          MOUNTS, false, "./escape tree nested .git/config"},
    {"overlay",             MOUNTS, false, "./escape overlay $OUT/dir"},
    {"overlay-lower",       MOUNTS, false, "./escape lower $OUT hidden/secret"},
    {"overlay-git",         MOUNTS, false, "./escape overlay .git"},
    {"fresh-cgroups",       MOUNTS, false, "./escape fresh cgroup2 nacre-escaped/x"},
    {"fresh-sys",           MOUNTS, false, "./escape fresh sysfs kernel/uevent_helper"},
    {"fresh-binfmt",        MOUNTS, false, "./escape fresh binfmt_misc register"},
    {"fresh-proc",          MOUNTS, false, "./escape fresh-proc"},
    {"chroot",              MOUNTS, false, "./escape chroot $OUT/file"},
    {"setns",               MOUNTS, false, "for p in $VICTIM $HOST $PPID 1; do ./escape setns $p $OUT/file; done"},
    {"unshare",             MOUNTS, false, "unshare -Urm bash -c 'mount -o remount,rw,bind /mnt; umount -l $OUT/hidden; echo x > $OUT/file; cat $OUT/hidden/secret'"},
    {"kmsg",                DEVICES, false, "echo nacre-escaped > /dev/kmsg"},
    {"sysrq",               DEVICES, false, "echo h > /proc/sysrq-trigger"},
    {"core-pattern",        DEVICES, false, "echo escaped > /proc/sys/kernel/core_pattern"},
    {"binfmt",              DEVICES, false, "echo ':nacre-escaped:M::#!nacre::/bin/sh:' > /proc/sys/fs/binfmt_misc/register"},
    {"domain",              DEVICES, false, "echo nacre-escaped > /proc/sys/kernel/domainname; ./escape domain"},
    {"terminal",            DEVICES, true,  "echo typed > $TERMINAL"},
    {"terminal-type",       DEVICES, false, "./escape type $TERMINAL; ./escape type /dev/tty"},
    {"cgroup-clone",        DEVICES, false, "for c in /sys/fs/cgroup /sys/fs/cgroup/unified; do ./escape clone-into $c; done"},
    {"cgroup",              DEVICES, false, "mkdir /sys/fs/cgroup/nacre-escaped"},
    {"environ",             PROCESSES, true,  "cat /proc/$VICTIM/environ"},
    {"maps",                PROCESSES, false, "cat /proc/$VICTIM/maps | grep -q stack && cat /proc/$VICTIM/environ"},
    {"memory",              PROCESSES, false, "./escape memory $VICTIM $WORD"},
    {"memory-host",         PROCESSES, false, "./escape memory $HOST $WORD"},
    {"steal",               PROCESSES, false, "for p in $VICTIM $HOST $PPID; do ./escape steal $p; done"},
    {"signal",              PROCESSES, true,  "./escape signal $VICTIM"},
    {"signal-host",         PROCESSES, false, "./escape signal $HOST"},
    {"sibling",             PROCESSES, false, "./escape signal $SIBLING; kill -9 $SIBLING; ./escape memory $SIBLING 0; ./escape steal $SIBLING"},
    {"memory-keeper",       PROCESSES, false, "./escape memory $PPID $WORD; echo x > /proc/$PPID/mem; cat /proc/$PPID/environ"},
    {"traced",              PROCESSES, false, "./escape traced"},
    {"signal-keeper",       PROCESSES, false, "./escape signal $PPID; kill -STOP $PPID; kill -KILL $PPID"},
    {"oom",                 PROCESSES, true,  "echo 500 > /proc/$VICTIM/oom_score_adj"},
    {"oom-host",            PROCESSES, false, "for p in $HOST $PPID; do echo 500 > /proc/$p/oom_score_adj; done"},
    {"levers",              PROCESSES, false, "./escape levers $VICTIM"},
    {"levers-host",         PROCESSES, false, "./escape levers $HOST"},
    {"shared",              PROCESSES, true,  "./escape shared $SHM $QUEUE $TICKET"},
    {"unix",                SOCKETS, true,  "./escape unix $OUT/stream"},
    {"unix-seqpacket",      SOCKETS, true,  "./escape unix $OUT/seqpacket"},
    {"unix-dgram",          SOCKETS, true,  "./escape unix $OUT/dgram"},
    {"unix-inside",         SOCKETS, true,  "./escape unix before; ./escape unix $PWD/before"},
    {"unix-after",          SOCKETS, true,  "./escape unix after; ./escape unix $PWD/after"},
    {"unix-relative",       SOCKETS, true,  "./escape unix relative; ./escape unix $PWD/relative"},
    {"unix-packets",        SOCKETS, true,  "./escape unix packets"},
    {"unix-datagrams",      SOCKETS, true,  "./escape unix datagrams"},
    {"unix-symlink",        SOCKETS, true,  "ln -s $OUT/stream l1; ./escape unix l1; ln -s before l2; ./escape unix l2"},
    {"unix-hardlink",       SOCKETS, true,  "ln relative l3; ./escape unix l3; ln before l4; ./escape unix l4"},
    {"unix-renamed",        SOCKETS, true,  "mv before moved1; ./escape unix moved1; mv relative moved2; ./escape unix moved2"},
    {"unix-by-fd",          SOCKETS, true,  "./escape unix-at $OUT stream; ./escape unix-at . before"},
    {"unix-by-root",        SOCKETS, true,  "./escape unix /proc/self/root$PWD/before"},
    {"unix-abstract",       SOCKETS, true,  "./escape unix $ABSTRACT"},
    {"unix-flip",           SOCKETS, false,  "./escape flip before; ./escape flip $OUT/stream"},
    {"unix-flip-file",      SOCKETS, false,  "./escape flip-file before"},
    {"unix-uring",          SOCKETS, false, "./escape uring before; ./escape uring $OUT/stream"},
    {"unix-foreign",        SOCKETS, true,  "./escape foreign before"},
    {"unix-chroot",         SOCKETS, false, "unshare -Ur chroot . ./escape unix /before"},
    {"inet",                NETWORK, true,  "./escape inet $PORT"},
    {"inet-nested",         NETWORK, false, "unshare -Urn ./escape inet $PORT"},
    {"nacre-kill",          OURS, false, "NACRE_HOME=$REAL_HOME $NACRE kill $OTHER"},
    {"nacre-input",         OURS, false, "echo typed | NACRE_HOME=$REAL_HOME $NACRE input $OTHER; NACRE_HOME=$REAL_HOME $NACRE adopt $OTHER"},
    {"nacre-sockets",       OURS, false, "for s in $REAL_HOME/runs/*/ctl; do ./escape unix $s; done; awk '$8 ~ /^@/ {print $8}' /proc/net/unix | head -20 | while read n; do ./escape unix \"$n\"; done"},
    {"nacre-home",          OURS, false, "rm -rf $REAL_HOME/runs; ls -R $REAL_HOME; echo x > $REAL_HOME/runs/x"},
    {"nacre-programs",      OURS, false, "touch $KEEPER; chmod u+x $KEEPER"},
};
/* clang-format on */

#define ATTEMPTS (sizeof attempts / sizeof attempts[0])

static nacre_session *open_fenced(const char *mode, const char *network)
{
    const char *settings[] = {format("sandbox=%s", mode), format("sandbox_network=%s", network),
                              "sandbox_caches=off", "sandbox_hide=" OUTSIDE "/hidden", NULL};
    return open_tool(settings);
}

static bool told_secret(const char *text, size_t size)
{
    return memmem(text, size, SECRET, strlen(SECRET)) != NULL;
}

/* -- Without a fence --------------------------------------------------------------------------- */

/* Each makes a world of its own: it is broken afterwards. */
TEST_LIMIT(attempts_work_without_a_fence, 200)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (!attempts[i].works)
            continue;
        world_make();
        world_listen("after", SOCK_STREAM);
        nacre_session *s = open_session();
        struct run run = run_text(s, attempts[i].text);
        bool told = told_secret(run.out, run.out_size);
        if (!AWAIT(told || world_look(false), 3000))
            FAIL("%s does nothing even without a fence:\n%s%s", attempts[i].name, run.out, run.err);
        run_done(&run);
        close_session(s);
        world_end();
    }
}

/* -- With one -----------------------------------------------------------------------------------
 */

static void judge_attempt(const struct attempt *a, const char *how, const char *out, size_t size)
{
    const char *seen = world_look(false);
    if (!seen && told_secret(out, size))
        seen = "a secret was read";
    if (seen)
        FAIL("%s, %s: %s\nwhat it said:\n%s", a->name, how, seen, out);
}

static void name_sibling(nacre_session *s, const nacre_id *id)
{
    nacre_record record = record_of(s, id);
    setenv("SIBLING", format("%d", (int)record.pid), 1);
    nacre_record_done(&record);
}

/* It waits for a line, as it has all the time. */
static void check_untouched(nacre_session *s, const nacre_id *id)
{
    nacre_record record = record_of(s, id);
    CHECK_EQ_INT(NACRE_RUNNING, record.outcome);
    CHECK_EQ_INT(0, bytes_printed(s, id));
    CHECK(process_state((pid_t)record.pid) == 'S');
    nacre_record_done(&record);
}

/* The world is as before, since nothing came through; only what is theirs is made anew. */
static void try_each(const char *mode, const char *network)
{
    nacre_session *plain = open_session();
    nacre_id other = start_held(plain, "read x; echo got-$x");
    setenv("OTHER", nacre_id_format(&other).s, 1);
    nacre_session *s = open_fenced(mode, network);
    struct run first = run_text(s, "true");
    CHECK_EQ_INT(0, first.record.exit_code);
    run_done(&first);
    nacre_id sibling = start_held(s, "read x");
    name_sibling(s, &sibling);
    world_listen("after", SOCK_STREAM);
    world_look(true);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (attempts[i].property == NETWORK && strcmp(network, "on") == 0)
            continue;
        struct run run = run_text(s, attempts[i].text);
        const char *said = format("%.6000s%.6000s", run.out, run.err);
        if (run.record.outcome != NACRE_EXITED)
            FAIL("%s, %s: outcome %d", attempts[i].name, mode, (int)run.record.outcome);
        judge_attempt(&attempts[i], mode, said, strlen(said));
        run_done(&run);
    }
    check_untouched(plain, &other);
    check_untouched(s, &sibling);
    kill_shell(plain, &other, 0);
    kill_shell(s, &sibling, 0);
    close_session(s);
    close_session(plain);
}

TEST_LIMIT(nothing_comes_out_of_workspace_write, 200)
{
    world_make();
    try_each("workspace-write", "off");
    world_end();
}

TEST_LIMIT(nothing_comes_out_with_the_network_on, 200)
{
    world_make();
    try_each("workspace-write", "on");
    world_end();
}

TEST_LIMIT(nothing_comes_out_of_read_only, 200)
{
    world_make();
    try_each("read-only", "off");
    world_end();
}

/* By what a command leaves behind, after it has ended: a process of a session of its own. */
TEST_LIMIT(nothing_comes_out_later, 200)
{
    world_make();
    nacre_session *s = open_fenced("workspace-write", "off");
    struct run first = run_text(s, "true");
    run_done(&first);
    world_listen("after", SOCK_STREAM);
    world_look(true);
    setenv("OTHER", "00000000", 1);
    nacre_id sibling = start_held(s, "read x");
    name_sibling(s, &sibling);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        setenv("TEXT", attempts[i].text, 1);
        unlink("done");
        struct run run = run_text(
            s, format("export MAIN=$$; (%s bash -c 'while kill -0 $MAIN; do sleep 0.01; done; "
                      "eval \"$TEXT\" > said; > done' < /dev/null > /dev/null 2>&1 &)",
                      own_session()));
        CHECK(AWAIT(access("done", F_OK) == 0, 20000));
        size_t size;
        char *said = slurp("said", &size);
        judge_attempt(&attempts[i], "later", said, size);
        free(said);
        kill_shell(s, &run.record.id, 0);
        run_done(&run);
    }
    check_untouched(s, &sibling);
    kill_shell(s, &sibling, 0);
    close_session(s);
    world_end();
}

/* A file that somebody outside has opened lies past the mounts. */
TEST_LIMIT(what_comes_as_stdin_keeps_what_is_in_it, 60)
{
    static const char *const texts[] = {
        "./escape truncate /proc/self/fd/0; ./escape truncate /dev/stdin; echo x > /proc/self/fd/0",
        "mkdir a b; echo x > a/x; i=$(stat -c %i a/x); mv a/x b && [ $i = $(stat -c %i b/x) ] && "
        "truncate -s 0 b/x && : > mine && rm -r a b && echo works",
    };
    nacre_command command = NACRE_COMMAND_INIT;
    world_make();
    nacre_session *s = open_fenced("workspace-write", "off");
    for (size_t i = 0; i < 2; i++) {
        command.text = texts[i];
        command.input = NACRE_STDIN_FD;
        command.input_fd = open(OUTSIDE "/file", O_RDONLY | O_CLOEXEC);
        struct run run = run_command(s, &command);
        judge_attempt(&attempts[0], "as stdin", run.out, run.out_size);
        if (i == 1)
            CHECK_TEXT(run.out, "works\n");
        run_done(&run);
        close(command.input_fd);
    }
    close_session(s);
    world_end();
}

/* -- Where a part of it cannot be had -----------------------------------------------------------
 */

/* One of each property, and what a missing look at connect() would let through. */
static const char short_form[] =
    "echo x > $OUT/file; chmod 777 $OUT/file; cat $OUT/hidden/secret ~/.ssh/*; echo evil > "
    ".git/config; mv .git .git2; kill -USR1 $VICTIM; echo 500 > /proc/$VICTIM/oom_score_adj; "
    "cat /proc/$VICTIM/environ; for s in before relative $OUT/stream $ABSTRACT; do ./escape unix "
    "$s; done; ./escape inet $PORT; ./escape levers $VICTIM; ./escape mounts nested $OUT/file /";

static int count_entries(const char *name)
{
    DIR *dir = opendir(format("%s/%s", test_home(), name));
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static bool can_start_without(void)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    command.text = "true";
    int r = nacre_run(s, &command, -1, &record, ERR);
    nacre_record_done(&record);
    close_session(s);
    return r == 0;
}

/* What Docker's filter forbids, as it does. */
static bool is_container_like(const char *denied)
{
    static const char *const calls[] = {"unshare=EPERM",       "setns=EPERM",
                                        "open_tree=EPERM",     "move_mount=EPERM",
                                        "mount_setattr=EPERM", "fsopen=EPERM"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i], denied) == 0)
            return true;
    return false;
}

/* Either all of it holds, or nothing starts, and it is said why. */
HOST(fenced_or_refused)
{
    nacre_session *s = open_fenced("workspace-write", getenv("REACHES"));
    nacre_command command = NACRE_COMMAND_INIT;
    nacre_record record = NACRE_RECORD_INIT;
    nacre_error error = {0};
    int before = count_entries("runs");
    command.text = short_form;
    int r = nacre_run(s, &command, -1, &record, &error);
    if (r < 0 && strcmp(error.stage, "sandbox") != 0) {
        CHECK(!can_start_without()); /* it is not the fence's */
    } else if (r < 0) {
        CHECK(r == NACRE_ESTART || r == NACRE_ELIMIT);
        CHECK(strlen(error.msg) > 40);
        if (is_container_like(getenv("DENIED")))
            CHECK_STR(error.msg, "in a container: a seccomp profile that allows");
        CHECK_EQ_INT(0, counts_of(s).running);
    } else {
        char *out = output_of(s, &record.id, NACRE_OUT | NACRE_ERR, NULL);
        if (memmem(out, strlen(out), SECRET, strlen(SECRET)))
            FAIL("a secret was read:\n%s", out);
        free(out);
    }
    nacre_record_done(&record);
    close_session(s);
    if (count_entries("fence") > 0)
        FAIL("%s leaves the fence's place behind, r = %d", getenv("DENIED"), r);
    if (r < 0)
        CHECK_EQ_INT(before, count_entries("runs"));
}

static void deny_and_try(const char *call)
{
    const char *errors[] = {"ENOSYS", "EPERM"};
    for (int i = 0; i < 2; i++) {
        const char *denied = format("%s=%s", call, errors[i]);
        const char *prefix[] = {program("deny-syscall"), denied, "--", NULL};
        setenv("DENIED", denied, 1);
        host_join(host_exec(prefix, "fenced_or_refused"));
        const char *seen = world_look(false);
        if (seen)
            FAIL("without %s: %s", denied, seen);
    }
}

TEST_LIMIT(no_system_call_is_needed_in_vain, 200)
{
    static const char *const calls[] = {
        "unshare",
        "setns",
        "mount_setattr",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsconfig",
        "fsmount",
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
        "seccomp",
        "capset",
        "prctl",
        "pidfd_open",
        "pidfd_getfd",
        "process_vm_readv",
        "openat2",
        "mkdirat",
        "flock",
        "memfd_create",
        "sendfile",
        "ioctl",
        "socket",
        "socketpair",
        "fcntl",
        "dup3",
        "setsid",
        "close_range",
        "getsockopt",
        "setsockopt",
        "fstatfs",
#ifdef SYS_chmod
        "chmod",
        "dup2",
        "mkdir",
        "symlink",
#endif
    };
    static const char *const of_gate[] = {"bind", "listen", "getsockname"};
    world_make();
    setenv("REACHES", "off", 1);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        deny_and_try(calls[i]);
    setenv("REACHES", "example.org", 1);
    for (size_t i = 0; i < sizeof of_gate / sizeof of_gate[0]; i++)
        deny_and_try(of_gate[i]);
    world_end();
}
