/*
 * Run directories that are damaged in any way, by hand, by a crash or on purpose: readers answer
 * or say what is wrong, never crash or hang, delete nothing, and the other runs are not harmed.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "run/spec.h"
#include "run/state.h"

static const char *const files[] = {"spec", "state", "log", "spans", "tail"};
enum { FILES = 5 };

struct original {
    char *data[FILES];
    size_t size[FILES];
};

/* A finished run with all of its files, and a good one beside it. */
struct patient {
    nacre_session *session;
    nacre_id id, good;
    struct original original;
};

static struct patient new_patient(void)
{
    struct patient p = {.session = open_session()};
    nacre_command command = NACRE_COMMAND_INIT;

    command.text = "seq 1 90000; seq 1 2000 >&2; exit 3";
    command.quota = 256 * 1024;
    struct run run = run_command(p.session, &command);
    p.id = run.record.id;
    run_done(&run);
    run = run_text(p.session, "echo good; exit 4");
    p.good = run.record.id;
    run_done(&run);
    for (int i = 0; i < FILES; i++) {
        p.original.data[i] = slurp(run_path(&p.id, files[i]), &p.original.size[i]);
        CHECK(p.original.data[i]);
    }
    return p;
}

static void remove_entry(const char *path)
{
    if (unlink(path) < 0 && errno == EISDIR)
        rmdir(path);
}

static void heal(struct patient *p)
{
    for (int i = 0; i < FILES; i++) {
        remove_entry(run_path(&p->id, files[i]));
        spit(run_path(&p->id, files[i]), p->original.data[i], p->original.size[i]);
    }
}

static int ignore_record(const nacre_listed *listed, void *arg)
{
    const nacre_record *record = listed->record;
    *(int *)arg += record->outcome == NACRE_EXITED && record->exit_code == 4;
    return 0;
}

static int ignore_piece(const nacre_piece *piece, const void *bytes, void *arg)
{
    (void)piece;
    (void)bytes;
    return ++*(int *)arg > 10000;
}

/* Every way to look at it. What comes out is either an answer or an error with a sentence. */
static void poke(nacre_session *s, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    nacre_snapshot snapshot;
    nacre_id found;
    static char buf[65536];
    uint64_t cursor = 0;
    int64_t got;
    int calls = 0, reads = 0;

    nacre_error *err = ERR;
    memset(err, 0, sizeof(*err));
    CHECK(nacre_get(s, id, &record, err) >= 0 || err->msg[0]);
    nacre_record_done(&record);
    while ((got = nacre_read(s, id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL, err)) > 0 &&
           reads++ < 100000)
        ;
    CHECK(got >= 0 || err->msg[0]);
    CHECK(reads < 100000);
    if (nacre_output(s, id, NACRE_BOTH, 0, &snapshot, err) >= 0)
        free(snapshot.data);
    CHECK(nacre_wait(s, id, 1, NACRE_WAIT_ANY, 1, NULL, err) >= 0 || err->msg[0]);
    CHECK(nacre_follow(s, id, 0, ignore_piece, &calls, err) >= 0 || err->msg[0]);
    CHECK(nacre_input(s, id, "x", 1, 0, 10, err) < 0);
    CHECK(nacre_kill(s, id, NULL, NULL, err) >= 0 || err->msg[0]);
    CHECK(nacre_find(s, nacre_id_short(id).s, &found, err) >= 0 || err->msg[0]);
}

/* As a model asks. */
static void check_search(nacre_session *s, const nacre_id *good)
{
    char *result = NULL;

    CHECK_OK(nacre_tool_call(s, "recall", "{\"pattern\": \"good\"}", &result, ERR));
    CHECK_STR(result, format("%s stdout:1: good", nacre_id_short(good).s));
    free(result);
}

static int count_session(const nacre_session_info *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static void check_collection(nacre_session *s)
{
    nacre_gc_options options = NACRE_GC_OPTIONS_INIT;
    nacre_gc_result result = NACRE_GC_RESULT_INIT;
    int sessions = 0;

    options.dry_run = 1;
    CHECK_OK(nacre_gc(s, &options, NULL, NULL, &result, ERR));
    CHECK_EQ_INT(0, result.removed);
    CHECK_OK(nacre_list_sessions(s, count_session, &sessions, ERR));
    CHECK(sessions > 0);
}

static void check_others(struct patient *p)
{
    int good = 0;

    if (list_home(p->session, false, ignore_record, &good) < 0)
        FAIL("a damaged run spoils the list: %s", harness_error.msg);
    CHECK_EQ_INT(1, good);
    CHECK(output_has(p->session, &p->good, NACRE_OUT, "good\n"));
    check_search(p->session, &p->good);
    check_collection(p->session);
    CHECK(access(run_path(&p->id, ""), F_OK) == 0);
}

static void free_patient(struct patient *p)
{
    heal(p);
    CHECK_TEXT(status_of(p->session, &p->id), "exited(3)");
    struct run run = run_text(p->session, "echo next");
    CHECK_TEXT(run.out, "next\n");
    run_done(&run);
    for (int i = 0; i < FILES; i++)
        free(p->original.data[i]);
    close_session(p->session);
}

/* -- Every file, every kind of damage -------------------------------------------------------- */

static void truncate_to(const char *path, size_t size)
{
    CHECK(truncate(path, (off_t)size) == 0);
}

static void fill(const char *path, size_t size, int byte)
{
    char *data = malloc(size + 1);

    CHECK(data);
    memset(data, byte, size);
    spit(path, data, size);
    free(data);
}

static void put_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *name = strdup(path), *slash = strrchr(name, '/');

    CHECK(fd >= 0 && slash);
    *slash = '\0';
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(before >= 0 && chdir(name) == 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", slash + 1);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(fchdir(before) == 0);
    close(before);
    close(fd);
    free(name);
}

static void damage(const char *path, size_t size, int kind)
{
    switch (kind) {
    case 0:
        truncate_to(path, 0);
        break;
    case 1:
        truncate_to(path, size / 2);
        break;
    case 2:
        truncate_to(path, size ? size - 1 : 0);
        break;
    case 3:
        truncate_to(path, size + 100000);
        break;
    case 4:
        fill(path, size, 0);
        break;
    case 5:
        fill(path, size, 0xff);
        break;
    case 6:
        fill(path, 5, 'x');
        break;
    case 7:
        CHECK(unlink(path) == 0);
        break;
    case 8:
        CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
        break;
    case 9:
        CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
        break;
    case 10:
        CHECK(unlink(path) == 0 && symlink("/dev/zero", path) == 0);
        break;
    case 11:
        CHECK(unlink(path) == 0 && symlink("/no/such/file", path) == 0);
        break;
    case 12:
        CHECK(unlink(path) == 0);
        put_socket(path);
        break;
    case 13:
        CHECK(geteuid() != 0 || chown(path, 65534, 65534) == 0);
        break;
    default:
        CHECK(chmod(path, 0) == 0);
    }
}

static void damage_file(int file)
{
    struct patient p = new_patient();

    for (int kind = 0; kind <= 14; kind++) {
        damage(run_path(&p.id, files[file]), p.original.size[file], kind);
        poke(p.session, &p.id);
        check_others(&p);
        nacre_session *fresh = open_session();
        poke(fresh, &p.id);
        close_session(fresh);
        heal(&p);
    }
    free_patient(&p);
}

TEST(damaged_spec)
{
    damage_file(0);
}

TEST(damaged_state)
{
    damage_file(1);
}

TEST(damaged_log)
{
    damage_file(2);
}

TEST(damaged_spans)
{
    damage_file(3);
}

TEST(damaged_tail)
{
    damage_file(4);
}

/* Bytes turned over at random, the same ones in every run of the suite. */
TEST_LIMIT(flipped_bytes, 30)
{
    struct patient p = new_patient();
    unsigned seed = 12345;

    for (int round = 0; round < (long_tests() ? 3000 : 150); round++) {
        int file = rand_r(&seed) % FILES;
        int fd = open(run_path(&p.id, files[file]), O_RDWR | O_CLOEXEC);
        CHECK(fd >= 0);
        for (int i = 0; i <= round % 4; i++) {
            off_t at = (off_t)(rand_r(&seed) % (p.original.size[file] + 1));
            at = file == 0 || file == 1 ? at % 1000 : at;
            char byte = (char)rand_r(&seed);
            CHECK(pwrite(fd, &byte, 1, at) == 1);
        }
        close(fd);
        poke(p.session, &p.id);
        if (round % 10 == 0)
            check_others(&p);
        heal(&p);
    }
    free_patient(&p);
}

/* Of the run itself it is said which file it is and what is wrong with it; also without a catalog
 * the others are there; and it can be removed. */
TEST(what_is_wrong_is_said)
{
    static const struct {
        int file;
        const char *part;
    } parts[] = {{1, "state"}, {2, "log"}, {3, "spans"}, {4, "tail"}};
    struct patient p = new_patient();

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char buf[4096];
        uint64_t cursor = 0;
        int64_t got;
        int file = parts[i].file;
        damage(run_path(&p.id, files[file]), p.original.size[file], 9);
        while ((got = nacre_read(p.session, &p.id, &cursor, NACRE_BOTH, buf, sizeof(buf), NULL,
                                 ERR)) > 0)
            ;
        CHECK_CODE(NACRE_EIO, got);
        CHECK_STR(harness_error.msg, format("the %s of shell %s is damaged: it is no regular file",
                                            parts[i].part, nacre_id_short(&p.id).s));
        unlink(format("%s/catalog.db", test_home()));
        check_others(&p);
        heal(&p);
    }
    damage(run_path(&p.id, "log"), 0, 9);
    char *result = NULL;
    CHECK_OK(nacre_tool_call(p.session, "recall", "{\"pattern\": \"good\"}", &result, ERR));
    CHECK_STR(result, format("1 shell could not be searched: the log of shell %s is damaged",
                             nacre_id_short(&p.id).s));
    free(result);
    heal(&p);
    damage(run_path(&p.id, "log"), 0, 8);
    CHECK_OK(nacre_remove(p.session, &p.id, ERR));
    CHECK(access(run_path(&p.id, ""), F_OK) < 0);
    for (int i = 0; i < FILES; i++)
        free(p.original.data[i]);
    close_session(p.session);
}

/* Both slots of the state are written in turn: one of them may be torn. */
TEST(torn_state)
{
    struct patient p = new_patient();
    size_t half = p.original.size[1] / 2;
    int readable = 0;

    for (int slot = 0; slot < 2; slot++) {
        int fd = open(run_path(&p.id, "state"), O_RDWR | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK(pwrite(fd, "torn torn torn torn", 19, (off_t)(half * (size_t)slot + 200)) == 19);
        close(fd);
        nacre_record record = NACRE_RECORD_INIT;
        int result = nacre_get(p.session, &p.id, &record, ERR);
        if (result >= 0 && record.outcome == NACRE_EXITED)
            readable++;
        nacre_record_done(&record);
        heal(&p);
    }
    CHECK(readable >= 1);
    free_patient(&p);
}

/* -- Things in runs/ that are no runs -------------------------------------------------------- */

TEST(garbage_beside_the_runs)
{
    struct patient p = new_patient();
    const char *runs = format("%s/runs", test_home());
    const char *names[] = {
        "zzz",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef0123456789abcdeg",
        ".hidden",
    };
    nacre_id found;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(mkdir(format("%s/%s", runs, names[i]), 0700) == 0);
    spit(format("%s/00000000000000000000000000000001", runs), "a file", 6);
    CHECK(mkdir(format("%s/00000000000000000000000000000002", runs), 0700) == 0);
    CHECK(symlink("/etc", format("%s/00000000000000000000000000000003", runs)) == 0);
    CHECK(mkfifo(format("%s/00000000000000000000000000000004", runs), 0600) == 0);
    CHECK(mkdir(format("%s/00000000000000000000000000000005", runs), 0) == 0);
    check_others(&p);
    for (int i = 1; i <= 5; i++) {
        nacre_id id;
        CHECK_OK(nacre_id_parse(format("%032d", i), &id));
        poke(p.session, &id);
        nacre_remove(p.session, &id, ERR);
    }
    CHECK(nacre_find(p.session, "0000", &found, ERR) < 0);
    CHECK(access("/etc/passwd", F_OK) == 0);
    check_others(&p);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(access(format("%s/%s", runs, names[i]), F_OK) == 0);
    free_patient(&p);
}

static void add_extra_files(const nacre_id *id)
{
    spit(run_path(id, "notes"), "mine", 4);
    CHECK(mkdir(run_path(id, "folder"), 0700) == 0);
    spit(run_path(id, "folder/notes"), "mine", 4);
}

/* They are in nobody's way, and go with the run. */
TEST(extra_files_in_a_run)
{
    struct patient p = new_patient();

    add_extra_files(&p.id);
    poke(p.session, &p.id);
    check_others(&p);
    free_patient(&p);
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");
    add_extra_files(&run.record.id);
    CHECK_OK(nacre_remove(s, &run.record.id, ERR));
    CHECK(access(run_path(&run.record.id, ""), F_OK) < 0);
    run_done(&run);
    close_session(s);
}

/* -- Copies ---------------------------------------------------------------------------------- */

static void copy_run(const nacre_id *from, const nacre_id *to)
{
    DIR *dir = opendir(run_path(from, ""));
    struct stat st;

    CHECK(dir && mkdir(run_path(to, ""), 0700) == 0);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t size;
        if (stat(run_path(from, e->d_name), &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        char *data = slurp(run_path(from, e->d_name), &size);
        spit(run_path(to, e->d_name), data, size);
        free(data);
    }
    closedir(dir);
}

/* The copy has no keeper, and pids that are somebody else's: looking at it must harm nobody. */
TEST(copy_of_a_running_shell)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s sleep 300.%s & exec sleep 301.%s", own_session(), m, m));
    nacre_id copy = id;
    nacre_record record = NACRE_RECORD_INIT;

    await_marked(m, 2);
    copy.bytes[15] ^= 0xff;
    copy_run(&id, &copy);
    nacre_get(s, &copy, &record, ERR);
    nacre_kill(s, &copy, NULL, NULL, ERR);
    nacre_release(s, &copy, ERR);
    nacre_record_done(&record);
    CHECK_EQ_INT(2, count_marked(m));
    CHECK_TEXT(status_of(s, &id), "running");
    close_session(s);
    CHECK_EQ_INT(0, count_marked(m));
}

static void give_id(const nacre_id *id)
{
    int fd = open(run_path(id, "state"), O_RDWR | O_CLOEXEC);
    struct run_state state;
    struct spec_head head;

    CHECK(fd >= 0);
    CHECK_EQ_INT(0, state_read(fd, &state));
    state.id = *id;
    CHECK_EQ_INT(0, state_write(fd, &state));
    close(fd);
    fd = open(run_path(id, "spec"), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
    head.id = *id;
    spec_head_seal(&head);
    CHECK(pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head));
    close(fd);
}

TEST(ambiguous_prefix)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "true");
    nacre_id copy = run.record.id, found;

    copy.bytes[4] ^= 0x10;
    copy_run(&run.record.id, &copy);
    give_id(&copy);
    CHECK_TEXT(status_of(s, &copy), "exited(0)");
    nacre_id_text id = nacre_id_format(&copy);
    for (int digits = 4; digits <= 8; digits++)
        CHECK_CODE(NACRE_EAMBIGUOUS, nacre_find(s, format("%.*s", digits, id.s), &found, ERR));
    CHECK_OK(nacre_find(s, format("%.9s", id.s), &found, ERR));
    CHECK(nacre_id_equal(&found, &copy));
    run_done(&run);
    close_session(s);
}

TEST(format_of_the_future)
{
    nacre_session *s = open_session();
    struct run run = run_text(s, "true"), good = run_text(s, "exit 4");
    int fd = open(run_path(&run.record.id, "state"), O_RDWR | O_CLOEXEC), listed = 0;
    struct run_state state;

    CHECK(fd >= 0);
    CHECK_EQ_INT(0, state_read(fd, &state));
    state.format = RUN_FORMAT + 1;
    CHECK_EQ_INT(0, state_write(fd, &state));
    CHECK_EQ_INT(0, state_write(fd, &state));
    close(fd);
    nacre_record record = NACRE_RECORD_INIT;
    CHECK(nacre_get(s, &run.record.id, &record, ERR) < 0);
    CHECK_STR(harness_error.msg, "newer");
    CHECK_OK(list_home(s, false, ignore_record, &listed));
    CHECK_EQ_INT(1, listed);
    CHECK(access(run_path(&run.record.id, "state"), F_OK) == 0);
    nacre_record_done(&record);
    run_done(&run);
    run_done(&good);
    close_session(s);
}

/* -- Damage under a running shell ------------------------------------------------------------ */

static bool has_outcome(nacre_session *s, const nacre_id *id)
{
    nacre_record record = NACRE_RECORD_INIT;
    bool has = nacre_get(s, id, &record, ERR) >= 0 && record.outcome != NACRE_RUNNING;

    nacre_record_done(&record);
    return has;
}

static void damage_live(const char *file, off_t size)
{
    nacre_session *s = open_session();
    nacre_command command = NACRE_COMMAND_INIT;
    const char *m = marker();

    command.text = format("%s sleep 300.%s & seq 1 200000; %s; seq 200001 400000; exit 7",
                          own_session(), m, gate());
    command.quota = 256 * 1024;
    nacre_id id = start_command(s, &command);
    CHECK(AWAIT(bytes_printed(s, &id) >= 1288895, 5000));
    if (size >= 0)
        CHECK(truncate(run_path(&id, file), size) == 0);
    else
        CHECK(unlink(run_path(&id, file)) == 0);
    let_go();
    if (strcmp(file, "state") != 0)
        wait_outcome(s, &id, 5000);
    CHECK(AWAIT(has_outcome(s, &id), 5000));
    nacre_record record = record_of(s, &id);
    CHECK_EQ_INT(NACRE_EXITED, record.outcome);
    CHECK_EQ_INT(7, record.exit_code);
    CHECK_EQ_INT(2688895, record.bytes[0]);
    CHECK_EQ_INT(400000, record.lines[0]);
    nacre_record_done(&record);
    close_session(s);
    CHECK(AWAIT(count_marked(m) == 0, 3000));
}

TEST(live_log_truncated)
{
    damage_live("log", 0);
}

TEST(live_spans_truncated)
{
    damage_live("spans", 0);
}

/* The ring is mapped by the keeper: its end must not be the keeper's. */
TEST(live_tail_truncated)
{
    damage_live("tail", 0);
    CHECK(unlink("go") == 0);
    damage_live("tail", 5000);
}

TEST(live_spec_removed)
{
    damage_live("tail", -1);
    CHECK(unlink("go") == 0);
    damage_live("log", -1);
}

TEST(live_state_truncated)
{
    damage_live("state", 0);
}

TEST(live_socket_removed)
{
    nacre_session *s = open_session();
    const char *m = marker();
    nacre_id id = start_text(s, format("%s sleep 300.%s & exec sleep 301.%s", own_session(), m, m));

    await_marked(m, 2);
    CHECK(unlink(run_path(&id, "ctl")) == 0);
    int64_t begin = now_ms();
    nacre_kill(s, &id, NULL, NULL, ERR);
    nacre_close(s, NULL);
    CHECK_RANGE(0, now_ms() - begin, soon(10000));
    CHECK(AWAIT(count_marked(m) == 0, 3000));
}
