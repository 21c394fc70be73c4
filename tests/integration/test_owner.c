/*
 * The death of an owner, in every way a process can go: nothing that dies with its session is
 * left, what is kept goes on, and what is recorded is true.
 */
#include "harness/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a host process tells the case, and the case the host. */
struct talk {
    nacre_command command;
    nacre_id id;
    atomic_int ready;
    atomic_int go;
    pid_t pid;
    int kind;
};

static struct talk *new_talk(const char *text)
{
    struct talk *talk = shared_memory(sizeof(*talk));

    talk->command = (nacre_command)NACRE_COMMAND_INIT;
    talk->command.text = text;
    return talk;
}

static void await_ready(struct talk *talk)
{
    CHECK(AWAIT(atomic_load(&talk->ready), 8000));
}

/* -- The owner goes -------------------------------------------------------------------------- */

enum { STAY, EXIT, EXEC, ABORT };

static void owner(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();

    talk->id = start_command(s, &talk->command);
    atomic_store(&talk->ready, 1);
    while (!atomic_load(&talk->go))
        pause_ms(2);
    if (talk->kind == EXIT)
        _exit(0);
    if (talk->kind == EXEC)
        execlp("sleep", "sleep", "299", (char *)NULL);
    if (talk->kind == ABORT)
        raise(SIGTERM);
    for (;;)
        pause();
}

static void check_owner_gone(const nacre_id *id, const char *mark)
{
    if (!AWAIT(count_marked(mark) == 0, 3000))
        FAIL("%d processes are left", count_marked(mark));
    nacre_session *s = open_session();
    CHECK(AWAIT(tree_empty(s, id), 2000));
    check_ended(s, id, NACRE_KILLED, NACRE_REASON_OWNER);
    close_session(s);
}

TEST(owner_killed)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));
    pid_t host = host_fork(owner, talk);

    await_ready(talk);
    await_marked(m, 4);
    host_kill(host);
    check_owner_gone(&talk->id, m);
}

TEST(owner_exits)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));

    talk->kind = EXIT;
    pid_t host = host_fork(owner, talk);
    await_ready(talk);
    await_marked(m, 4);
    atomic_store(&talk->go, 1);
    host_join(host);
    check_owner_gone(&talk->id, m);
}

TEST(owner_terminated)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));

    talk->kind = ABORT;
    pid_t host = host_fork(owner, talk);
    await_ready(talk);
    await_marked(m, 4);
    atomic_store(&talk->go, 1);
    CHECK_EQ_INT(host, waitpid(host, NULL, 0));
    check_owner_gone(&talk->id, m);
}

/* The pid lives on as another program: only the pipe tells. */
TEST(owner_execs)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));

    talk->kind = EXEC;
    pid_t host = host_fork(owner, talk);
    await_ready(talk);
    await_marked(m, 4);
    atomic_store(&talk->go, 1);
    check_owner_gone(&talk->id, m);
    CHECK_EQ_INT(0, kill(host, 0));
    host_kill(host);
}

static void forking_owner(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();

    talk->id = start_command(s, &talk->command);
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    talk->pid = child;
    atomic_store(&talk->ready, 1);
    for (;;)
        pause();
}

/* A child of the owner holds every descriptor open: only the pid tells. */
TEST(owner_killed_but_its_child_holds_the_pipe)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));
    pid_t host = host_fork(forking_owner, talk);

    await_ready(talk);
    await_marked(m, 4);
    struct process child = process_of(talk->pid);
    host_kill(host);
    check_owner_gone(&talk->id, m);
    CHECK(process_alive(child));
    kill(child.pid, SIGKILL);
}

static void without_pidfds(const char *name)
{
    const char *const deny[] = {program("deny-syscall"), "pidfd_open", "--", NULL};

    host_join(host_exec(deny, name));
}

/* Nothing but /proc tells then. */
TEST(owner_killed_on_a_kernel_without_pidfds)
{
    without_pidfds("owner_killed_but_its_child_holds_the_pipe");
}

HOST(owner_that_lives_on)
{
    nacre_session *s = open_session();
    nacre_id id = start_text(s, "sleep 300");

    pause_ms(1500); /* longer than from one look of the keeper to the next */
    CHECK_TEXT(status_of(s, &id), "running");
    struct run next = run_text(s, "echo hi"); /* the successor looks for the same owner */
    CHECK_TEXT(next.out, "hi\n");
    run_done(&next);
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
}

TEST(owner_lives_on_a_kernel_without_pidfds)
{
    without_pidfds("owner_that_lives_on");
}

static void busy_owner(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();

    atomic_store(&talk->ready, 1);
    for (;;)
        start_command(s, &talk->command);
}

TEST(owner_killed_while_it_starts_shells)
{
    for (int i = 0; i < 12; i++) {
        const char *m = marker();
        struct talk *talk = new_talk(format("sleep 300.%s & exec sleep 301.%s", m, m));
        pid_t host = host_fork(busy_owner, talk);

        await_ready(talk);
        pause_ms(i * 3);
        host_kill(host);
        if (!AWAIT(count_keepers() == 0, 4000))
            FAIL("round %d: %d keepers are left", i, count_keepers());
        if (count_marked(m) != 0)
            FAIL("round %d: %d processes are left", i, count_marked(m));
    }
}

static void killing_owner(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();

    talk->id = start_command(s, &talk->command);
    CHECK(AWAIT(output_has(s, &talk->id, NACRE_OUT, "up"), 5000));
    atomic_store(&talk->ready, 1);
    nacre_kill(s, &talk->id, NULL, NULL, NULL);
    _exit(3);
}

TEST(owner_killed_in_the_middle_of_a_kill)
{
    const char *m = marker();
    struct talk *talk =
        new_talk(format("trap '' TERM; echo up; while :; do sleep 0.05%s; done", m));

    talk->command.grace_ms = MS(500);
    pid_t host = host_fork(killing_owner, talk);
    await_ready(talk);
    pause_ms(50);
    host_kill(host);
    CHECK(AWAIT(count_marked(m) == 0, 3000));
    nacre_session *s = open_session();
    CHECK(AWAIT(tree_empty(s, &talk->id), 2000));
    check_ended(s, &talk->id, NACRE_KILLED, NACRE_REASON_KILL);
    close_session(s);
}

TEST(kept_shell_survives_its_owners_death)
{
    const char *m = marker();
    struct talk *talk =
        new_talk(format("i=0; while :; do echo tick $((i+=1)); sleep 0.01%s; done", m));

    talk->command.lifetime = NACRE_LIFE_KEEP;
    pid_t host = host_fork(owner, talk);
    await_ready(talk);
    host_kill(host);
    nacre_session *s = open_session();
    nacre_record before = record_of(s, &talk->id);
    CHECK(AWAIT(({
                    nacre_record now = record_of(s, &talk->id);
                    bool more = now.bytes[0] > before.bytes[0] + 20;
                    nacre_record_done(&now);
                    more;
                }),
                3000));
    nacre_record_done(&before);
    CHECK_TEXT(status_of(s, &talk->id), "running");
    kill_shell(s, &talk->id, -1);
    close_session(s);
}

/* The deadline is the keeper's: nobody else needs to be awake. */
TEST(timeout_while_the_owner_is_stopped)
{
    const char *m = marker();
    struct talk *talk = new_talk(format("sleep 300.%s & sleep 301.%s", m, m));

    talk->command.timeout_ms = MS(250);
    pid_t host = host_fork(owner, talk);
    await_ready(talk);
    kill(host, SIGSTOP);
    await_marked(m, 2);
    CHECK(AWAIT(count_marked(m) == 0, 2000));
    CHECK_EQ_INT('T', process_state(host));
    nacre_session *s = open_session();
    CHECK(AWAIT(tree_empty(s, &talk->id), 1000));
    check_ended(s, &talk->id, NACRE_TIMED_OUT, NACRE_REASON_DEADLINE);
    close_session(s);
    kill(host, SIGCONT);
    host_kill(host);
}

static void owner_of_many(void *arg)
{
    struct talk *talk = arg;
    nacre_session *s = open_session();

    for (int i = 0; i < talk->kind; i++)
        start_command(s, &talk->command);
    atomic_store(&talk->ready, 1);
    while (!atomic_load(&talk->go))
        pause_ms(1);
    nacre_close(s, NULL);
    _exit(3);
}

/* Killed while it owns many, and while it is closing them. */
TEST(owner_of_many_killed)
{
    for (int closing = 0; closing < 2; closing++) {
        const char *m = marker();
        struct talk *talk =
            new_talk(format("trap '' TERM; sleep 300.%s & sleep 301.%s; true", m, m));

        talk->kind = 40;
        talk->command.grace_ms = MS(300);
        pid_t host = host_fork(owner_of_many, talk);
        CHECK(AWAIT(atomic_load(&talk->ready), 15000));
        await_marked(m, 80);
        atomic_store(&talk->go, closing);
        pause_ms(closing ? 50 : 0);
        host_kill(host);
        CHECK(AWAIT(count_keepers() == 0, 4000));
        CHECK_EQ_INT(0, count_marked(m));
    }
}

/* -- The owner and the keeper go ------------------------------------------------------------- */

TEST(keeper_and_owner_killed_at_once)
{
    const char *m = marker();
    struct talk *talk = new_talk(scattered(m));
    pid_t host = host_fork(owner, talk);

    await_ready(talk);
    await_marked(m, 4);
    nacre_session *s = open_session();
    struct process keeper = keeper_of(s, &talk->id);
    kill(keeper.pid, SIGKILL);
    host_kill(host);
    CHECK(AWAIT(!process_alive(keeper), 2000));
    CHECK(AWAIT(strcmp(status_of(s, &talk->id), "lost") == 0, 200));
    CHECK_EQ_INT(0, count_marked(m));
    close_session(s);
}
