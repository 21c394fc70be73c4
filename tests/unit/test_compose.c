/* From a command to its spec: everything is checked before anything is started. */
#include "unit.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "base/defs.h"
#include "home/compose.h"
#include "run/log.h"
#include "run/spec.h"
#include "sys/fd.h"

static const nacre_id id = {{0xfe, 0xdc}}, session = {{0x11}};

static nacre_command text_command(const char *text)
{
    nacre_command command = NACRE_COMMAND_INIT;
    command.text = text;
    return command;
}

/* -- Checks ------------------------------------------------------------------------------------ */

static void assert_refused(const nacre_command *command, const char *word)
{
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(compose_check(command, &err), NACRE_EINVAL);
    assert_int_equal(err.code, NACRE_EINVAL);
    if (!strstr(err.msg, word))
        fail_msg("\"%s\" does not name \"%s\"", err.msg, word);
}

static void what_is_run(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    assert_int_equal(compose_check(&command, NULL), 0);
    assert_refused(NULL, "NACRE_COMMAND_INIT");
    command.size--;
    assert_refused(&command, "NACRE_COMMAND_INIT");
    command = text_command(NULL);
    assert_refused(&command, "argv");
    static const char *const argv[] = {"true", NULL}, *const empty[] = {NULL};
    command.argv = empty;
    assert_refused(&command, "argv");
    command.argv = argv;
    assert_int_equal(compose_check(&command, NULL), 0);
    command.text = "true";
    assert_refused(&command, "argv");
    command = text_command("");
    assert_int_equal(compose_check(&command, NULL), 0);
}

static void times_and_sizes(void **state)
{
    (void)state;
    static const int64_t year = INT64_C(1000) * 60 * 60 * 24 * 365;
    nacre_command command = text_command("true");
    command.timeout_ms = -1;
    assert_refused(&command, "timeout");
    command.timeout_ms = INT64_MIN;
    assert_refused(&command, "timeout");
    command.timeout_ms = year + 1;
    assert_refused(&command, "timeout");
    command.timeout_ms = year;
    assert_int_equal(compose_check(&command, NULL), 0);
    command.timeout_ms = 1;
    command.grace_ms = year + 1;
    assert_refused(&command, "grace");
    command.grace_ms = 0;
    assert_int_equal(compose_check(&command, NULL), 0);
    command.quota = LOG_QUOTA_MIN - 1;
    assert_refused(&command, "quota");
    command.quota = 1;
    assert_refused(&command, "quota");
    command.quota = LOG_QUOTA_MIN;
    assert_int_equal(compose_check(&command, NULL), 0);
}

static void kinds(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    command.lifetime = (nacre_lifetime)2;
    assert_refused(&command, "lifetime");
    command = text_command("true");
    command.input = (nacre_stdin)4;
    assert_refused(&command, "stdin");
    command = text_command("true");
    command.input = NACRE_STDIN_BYTES;
    command.input_size = 1;
    assert_refused(&command, "input_data");
    command.input_size = 0;
    assert_int_equal(compose_check(&command, NULL), 0);
}

static void environment_entries(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    static const char *const fine[] = {"A=1", "B", "C=", "D==", NULL};
    static const char *const wrong[][3] = {{"A=1", "", NULL}, {"=value", NULL}, {"=", NULL}};
    command.env = fine;
    assert_int_equal(compose_check(&command, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        command.env = wrong[i];
        assert_refused(&command, "environment");
    }
}

/* -- The directory and stdin ------------------------------------------------------------------- */

static void assert_cwd(const char *sessions, const char *calls, const char *want)
{
    nacre_command command = text_command("true");
    struct compose c = {.command = &command, .session = &session, .cwd = sessions};
    nacre_error err = NACRE_ERROR_INIT;
    char path[PATH_MAX];
    command.cwd = calls;
    assert_int_equal(compose_cwd(&c, path, &err), 0);
    assert_string_equal(path, want);
}

/* The call's, else the session's, else the host's; always from the root on. */
static void the_directory(void **state)
{
    (void)state;
    char place[PATH_MAX], below[PATH_MAX + 16], before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    cleanup_close int dir = unit_dir(place);
    assert_int_equal(fchdir(dir), 0);
    snprintf(below, sizeof below, "%s/below", place);
    assert_cwd(NULL, NULL, place);
    assert_cwd("/", NULL, "/");
    assert_cwd("/usr", "/etc", "/etc");
    assert_cwd("/usr", "below", below);
    assert_cwd("below", NULL, below);
    assert_int_equal(chdir("/"), 0);
    assert_cwd(NULL, "tmp", "/tmp");
    assert_cwd(NULL, NULL, "/");
    assert_int_equal(chdir(before), 0);
}

static void no_directory(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    struct compose c = {.command = &command, .session = &session};
    nacre_error err = NACRE_ERROR_INIT;
    char path[PATH_MAX], longer[PATH_MAX + 1], before[PATH_MAX], gone[PATH_MAX];
    memset(longer, 'x', sizeof longer);
    longer[0] = '/';
    longer[PATH_MAX] = '\0';
    command.cwd = longer;
    assert_int_equal(compose_cwd(&c, path, &err), NACRE_ESTART);
    assert_int_equal(err.sys_errno, ENAMETOOLONG);
    assert_string_equal(err.stage, "chdir");
    longer[0] = 'x';
    longer[PATH_MAX - 2] = '\0';
    assert_int_equal(compose_cwd(&c, path, &err), NACRE_ESTART);
    /* The host stands in a directory that is no more. */
    assert_non_null(getcwd(before, sizeof before));
    close(unit_dir(gone));
    assert_int_equal(chdir(gone), 0);
    assert_int_equal(rmdir(gone), 0);
    command.cwd = NULL;
    int r = compose_cwd(&c, path, &err);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(r, NACRE_ESTART);
    assert_int_equal(err.sys_errno, ENOENT);
}

static void standard_input(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    nacre_error err = NACRE_ERROR_INIT;
    char back[16];
    int fd = 77;
    assert_int_equal(compose_input(&command, &fd, &err), 0);
    assert_int_equal(fd, -EBADF);
    command.input = NACRE_STDIN_PIPE;
    assert_int_equal(compose_input(&command, &fd, &err), 0);
    assert_int_equal(fd, -EBADF);
    command.input = NACRE_STDIN_BYTES;
    command.input_data = "a\0b\n";
    command.input_size = 4;
    assert_int_equal(compose_input(&command, &fd, &err), 0);
    assert_true(fd > 2);
    assert_int_equal(fd_read_all(fd, back, sizeof back), 4);
    assert_memory_equal(back, "a\0b\n", 4);
    close(fd);
    command.input_data = NULL;
    command.input_size = 0;
    assert_int_equal(compose_input(&command, &fd, &err), 0);
    assert_int_equal(fd_read_all(fd, back, sizeof back), 0);
    close(fd);
    /* The caller keeps its own. */
    int pipe_ends[2];
    assert_int_equal(fd_pipe(pipe_ends), 0);
    command.input = NACRE_STDIN_FD;
    command.input_fd = pipe_ends[0];
    assert_int_equal(compose_input(&command, &fd, &err), 0);
    assert_int_not_equal(fd, pipe_ends[0]);
    close(fd);
    assert_true(unit_is_open(pipe_ends[0]));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    assert_int_equal(compose_input(&command, &fd, &err), NACRE_EINVAL);
    assert_int_equal(err.sys_errno, EBADF);
    assert_string_equal(err.stage, "stdin");
}

/* -- The spec ---------------------------------------------------------------------------------- */

static struct compose_shells shells = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct composed {
    struct buf buf;
    struct spec spec;
};

static struct composed compose(const nacre_command *command)
{
    struct compose c = {.command = command,
                        .owner = {.pid = getpid(), .start = 77},
                        .session_name = "the session",
                        .session_cwd = "/its/place",
                        .fleeting = true,
                        .shells = &shells,
                        .session = &session,
                        .run_path = "/home/of/runs/x",
                        .grace_ms = 2000,
                        .quota = 1 << 26};
    struct composed made;
    nacre_error err = NACRE_ERROR_INIT;
    assert_int_equal(compose_spec(&c, &id, "/the/cwd", &made.buf, &err), 0);
    assert_int_equal(spec_check(made.buf.data, made.buf.len), 0);
    made.spec = (struct spec){.head = (const void *)made.buf.data, .size = made.buf.len};
    return made;
}

static const char *string(const struct composed *made, uint32_t offset)
{
    return spec_string(&made->spec, offset);
}

static void what_was_asked_is_there(void **state)
{
    (void)state;
    nacre_command command = text_command("echo 'x' | cat");
    command.timeout_ms = 1234;
    command.grace_ms = 0;
    command.quota = LOG_QUOTA_MIN;
    command.lifetime = NACRE_LIFE_KEEP;
    command.input = NACRE_STDIN_PIPE;
    command.name = "a name";
    command.description = "what it is for";
    command.background = 1;
    struct composed made = compose(&command);
    const struct spec_head *head = made.spec.head;
    assert_true(nacre_id_equal(&head->id, &id));
    assert_true(nacre_id_equal(&head->session, &session));
    assert_int_equal(head->timeout_ms, 1234);
    assert_int_equal(head->grace_ms, 0);
    assert_int_equal(head->quota, LOG_QUOTA_MIN);
    assert_int_equal(head->lifetime, NACRE_LIFE_KEEP);
    assert_int_equal(head->input, NACRE_STDIN_PIPE);
    assert_int_equal(head->owner_pid, getpid());
    assert_int_equal(head->owner_start, 77);
    assert_int_equal(head->background, 1);
    assert_int_equal(head->fleeting, 0); /* it is kept */
    assert_string_equal(string(&made, head->session_name), "the session");
    assert_string_equal(string(&made, head->session_cwd), "/its/place");
    assert_int_equal(head->pipeline, 1);
    assert_string_equal(string(&made, head->text), command.text);
    assert_string_equal(string(&made, head->cwd), "/the/cwd");
    assert_string_equal(string(&made, head->run_path), "/home/of/runs/x");
    assert_string_equal(string(&made, head->name), "a name");
    assert_string_equal(string(&made, head->description), "what it is for");
    buf_done(&made.buf);
}

static void what_was_not_asked_is_the_sessions(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    struct composed made = compose(&command);
    const struct spec_head *head = made.spec.head;
    assert_int_equal(head->grace_ms, 2000);
    assert_int_equal(head->quota, 1 << 26);
    assert_int_equal(head->timeout_ms, 0);
    assert_int_equal(head->pipeline, 0);
    assert_string_equal(string(&made, head->name), "");
    assert_string_equal(string(&made, head->description), "");
    buf_done(&made.buf);
}

/* Without a place for files that have no name the umask is found elsewhere. */
static void hide_shared_memory(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) < 0)
        _exit(77);
}

static void the_hosts_circumstances(void *data)
{
    if (*(const bool *)data)
        hide_shared_memory();
    struct rlimit limit = {.rlim_cur = 111, .rlim_max = 222};
    struct spec_host host;
    umask(0137);
    setpriority(PRIO_PROCESS, 0, 7);
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    compose_host(&host);
    EXPECT(host.umask == 0137);
    EXPECT(host.nice == 7);
    EXPECT(host.limits[RLIMIT_NOFILE].soft == 111 && host.limits[RLIMIT_NOFILE].hard == 222);
    EXPECT(getrlimit(RLIMIT_STACK, &limit) == 0);
    EXPECT(host.limits[RLIMIT_STACK].soft == limit.rlim_cur);
    /* Looking changed nothing. */
    EXPECT(umask(0) == 0137);
}

static void circumstances(void **state)
{
    (void)state;
    bool hidden = false;
    unit_in_child(the_hosts_circumstances, &hidden);
    hidden = true;
    int status = unit_join(unit_fork(the_hosts_circumstances, &hidden));
    if (status == 77 << 8)
        SKIP("a host without /dev/shm: nothing can be mounted over it");
    assert_int_equal(status, 0);
}

static void assert_env(const struct composed *made, const char *want, bool there)
{
    const char *p = string(made, made->spec.head->env);
    bool found = false;
    for (uint32_t i = 0; i < made->spec.head->envc; i++, p += strlen(p) + 1)
        found = found || strcmp(p, want) == 0;
    if (found != there)
        fail_msg("%s is %sthere", want, found ? "" : "not ");
}

static void the_environment_is_laid_over(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    static const char *const env[] = {"UNIT_A=new", "UNIT_B", NULL};
    setenv("UNIT_A", "old", 1);
    setenv("UNIT_B", "old", 1);
    setenv("UNIT_C", "old", 1);
    command.env = env;
    struct composed made = compose(&command);
    assert_env(&made, "UNIT_A=new", true);
    assert_env(&made, "UNIT_A=old", false);
    assert_env(&made, "UNIT_B=old", false);
    assert_env(&made, "UNIT_C=old", true);
    assert_env(&made, "PWD=/the/cwd", true);
    assert_env(&made, "NACRE_ID=fedc0000000000000000000000000000", true);
    buf_done(&made.buf);
}

/* -- Which program ----------------------------------------------------------------------------- */

static void make_program(int dir, const char *name, const char *text, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void bash_if_there_is_one(void **state)
{
    (void)state;
    nacre_command command = text_command("true");
    struct composed made = compose(&command);
    const struct spec_head *head = made.spec.head;
    const char *program = string(&made, head->program);
    if (access("/bin/bash", X_OK) == 0) {
        assert_string_equal(program, "/bin/bash");
        assert_int_equal(head->kind, SPEC_BASH);
        assert_string_equal(string(&made, head->argv), "bash");
    }
    assert_int_equal(head->argc, 1);
    assert_int_equal(access(program, X_OK), 0);
    buf_done(&made.buf);
    command.shell = "";
    made = compose(&command);
    assert_int_equal(access(string(&made, made.spec.head->program), X_OK), 0);
    buf_done(&made.buf);
}

static void another_shell(void **state)
{
    (void)state;
    char place[PATH_MAX], path[2 * PATH_MAX], want[PATH_MAX + 16];
    cleanup_close int dir = unit_dir(place);
    nacre_command command = text_command("true");
    make_program(dir, "myshell", "#!/bin/sh\n", 0700);
    make_program(dir, "plain", "text", 0600);
    assert_int_equal(mkdirat(dir, "folder", 0700), 0);
    snprintf(path, sizeof path, "PATH=/no/such:%s:/bin", place);
    const char *const env[] = {path, NULL};
    command.env = env;
    command.shell = "myshell";
    snprintf(want, sizeof want, "%s/myshell", place);
    struct composed made = compose(&command);
    assert_string_equal(string(&made, made.spec.head->program), want);
    assert_int_equal(made.spec.head->kind, SPEC_SH);
    assert_int_equal(made.spec.head->preload, 0);
    buf_done(&made.buf);
    /* Not programs: the exec will say so. */
    static const char *const wrong[] = {"plain", "folder", "none", "/no/such/shell", "./x"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        command.shell = wrong[i];
        made = compose(&command);
        assert_string_equal(string(&made, made.spec.head->program), wrong[i]);
        buf_done(&made.buf);
    }
    command.shell = "/bin/sh";
    made = compose(&command);
    assert_string_equal(string(&made, made.spec.head->program), "/bin/sh");
    assert_int_equal(made.spec.head->kind, SPEC_SH);
    buf_done(&made.buf);
}

/* Only what the dynamic loader loads can take a preload; the file may change under its name. */
static void who_takes_a_preload(void **state)
{
    (void)state;
    char place[PATH_MAX], path[PATH_MAX + 16];
    cleanup_close int dir = unit_dir(place);
    nacre_command command = text_command("true");
    snprintf(path, sizeof path, "%s/shell", place);
    command.shell = path;
    static const struct {
        const char *text;
        uint32_t want;
    } files[] = {{"#!/bin/sh\n", 0}, {"", 0}, {"\177ELF", 0}, {NULL, 1}, {"no program", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        if (files[i].text)
            make_program(dir, "shell", files[i].text, 0700);
        else
            assert_int_equal(symlinkat("/bin/sh", dir, "shell"), 0);
        for (int again = 0; again < 2; again++) {
            struct composed made = compose(&command);
            assert_int_equal(made.spec.head->preload, files[i].want);
            buf_done(&made.buf);
        }
        assert_int_equal(unlinkat(dir, "shell", 0), 0);
    }
}

static void a_program_with_arguments(void **state)
{
    (void)state;
    nacre_command command = text_command(NULL);
    static const char *const argv[] = {"sh", "-c", "exit 3", "", "last", NULL};
    static const char *const env[] = {"PATH=/no/such:/usr/bin:/bin", NULL};
    command.argv = argv;
    command.env = env;
    struct composed made = compose(&command);
    const struct spec_head *head = made.spec.head;
    assert_int_equal(head->kind, SPEC_ARGV);
    assert_int_equal(head->argc, 5);
    assert_int_equal(head->text_size, 0);
    assert_int_equal(string(&made, head->program)[0], '/');
    const char *p = string(&made, head->argv);
    for (size_t i = 0; argv[i]; i++, p += strlen(p) + 1)
        assert_string_equal(p, argv[i]);
    buf_done(&made.buf);
    /* Without a PATH of any kind it is still found. */
    static const char *const no_path[] = {"PATH", NULL};
    command.env = no_path;
    made = compose(&command);
    assert_int_equal(access(string(&made, made.spec.head->program), X_OK), 0);
    buf_done(&made.buf);
}

static void a_long_text(void **state)
{
    (void)state;
    size_t size = 3 * 1024 * 1024;
    cleanup_free char *text = malloc(size + 1);
    memset(text, ':', size);
    text[size] = '\0';
    nacre_command command = text_command(text);
    struct composed made = compose(&command);
    assert_int_equal(made.spec.head->text_size, size);
    assert_string_equal(string(&made, made.spec.head->text), text);
    buf_done(&made.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_run),
        cmocka_unit_test(times_and_sizes),
        cmocka_unit_test(kinds),
        cmocka_unit_test(environment_entries),
        cmocka_unit_test(the_directory),
        cmocka_unit_test(no_directory),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(what_was_asked_is_there),
        cmocka_unit_test(what_was_not_asked_is_the_sessions),
        cmocka_unit_test(circumstances),
        cmocka_unit_test(the_environment_is_laid_over),
        cmocka_unit_test(bash_if_there_is_one),
        cmocka_unit_test(another_shell),
        cmocka_unit_test(who_takes_a_preload),
        cmocka_unit_test(a_program_with_arguments),
        cmocka_unit_test(a_long_text),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
