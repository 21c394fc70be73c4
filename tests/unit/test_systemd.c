/* Asking the user's systemd for a scope: the bytes of it, and what a bus may answer, in pieces, in
 * the other byte order, wrong, or not at all. */
#include "unit.h"

#include <sys/socket.h>

#include "base/defs.h"
#include "systemd/ask_scope.h"
#include "systemd/dbus.h"

#define MANAGER   "org.freedesktop.systemd1.Manager"
#define JOB       "/org/freedesktop/systemd1/job/17"
#define START     4 /* the number of the call that asks */
#define LOGGED_IN "OK 0123456789abcdef0123456789abcdef\r\n"

/* -- A bus, and what it says ------------------------------------------------------------------- */

static struct scope_ask *ask(int *ret_bus)
{
    int pair[2];
    struct scope_ask *asked = NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(scope_ask_of(pair[0], "nacre-test.scope", 4711, &asked), 0);
    *ret_bus = pair[1];
    return asked;
}

static void put_text_field(struct message_writer *w, unsigned char code, const char *type,
                           const char *text)
{
    message_align(w, 8);
    message_put_bytes(w, &code, 1);
    message_put_signature(w, type);
    if (*type == 'g')
        message_put_signature(w, text);
    else
        message_put_string(w, text);
}

/* The beginning of what is no call; put_body_size() ends it. */
static void begin_word(struct message_writer *w, enum message_type type, uint32_t answers,
                       const char *member, const char *signature)
{
    const unsigned char head[] = {__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B',
                                  (unsigned char)type, 0, 1};
    unsigned char code = 5;
    w->begin = w->size;
    message_put_bytes(w, head, sizeof head);
    message_put_u32(w, 0);
    message_put_u32(w, 99);
    size_t fields = message_begin_array(w, 8);
    if (answers > 0) {
        message_put_bytes(w, &code, 1);
        message_put_signature(w, "u");
        message_put_u32(w, answers);
    }
    if (type == MESSAGE_SIGNAL) {
        put_text_field(w, 2, "s", MANAGER);
        put_text_field(w, 3, "s", member);
    }
    if (type == MESSAGE_ERROR)
        put_text_field(w, 4, "s", member);
    put_text_field(w, 8, "g", signature);
    message_end_array(w, fields, 8);
    message_align(w, 8);
    w->body = w->size;
}

static void say_greeting(struct message_writer *w)
{
    begin_word(w, MESSAGE_RETURN, 1, NULL, "s");
    message_put_string(w, ":1.42");
    message_end(w);
}

static void say_job(struct message_writer *w)
{
    begin_word(w, MESSAGE_RETURN, START, NULL, "o");
    message_put_string(w, JOB);
    message_end(w);
}

static void say_removed(struct message_writer *w, const char *job, const char *result)
{
    begin_word(w, MESSAGE_SIGNAL, 0, "JobRemoved", "uoss");
    message_put_u32(w, 17);
    message_put_string(w, job);
    message_put_string(w, "nacre-test.scope");
    message_put_string(w, result);
    message_end(w);
}

static void say_refusal(struct message_writer *w, const char *name, const char *words)
{
    begin_word(w, MESSAGE_ERROR, START, name, "s");
    message_put_string(w, words);
    message_end(w);
}

static void say_login(struct message_writer *w)
{
    message_put_bytes(w, LOGGED_IN, strlen(LOGGED_IN));
}

/* What a bus says when all goes well, with words for others in between. */
static struct message_writer granted(void)
{
    struct message_writer w = {0};
    say_login(&w);
    say_greeting(&w);
    say_removed(&w, "/org/freedesktop/systemd1/job/3", "done");
    say_job(&w);
    say_removed(&w, "/org/freedesktop/systemd1/job/16", "failed");
    say_removed(&w, JOB, "done");
    assert_false(w.full);
    return w;
}

static void send_bytes(int bus, const void *bytes, size_t size)
{
    assert_int_equal(send(bus, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* What becomes of a request to which this is all that is said. */
static int outcome_of(const void *bytes, size_t size, char ret_reason[256])
{
    int bus;
    struct scope_ask *asked = ask(&bus);
    send_bytes(bus, bytes, size);
    int r = scope_ask_step(asked);
    if (ret_reason)
        snprintf(ret_reason, 256, "%s", scope_ask_reason(asked));
    scope_ask_end(asked);
    close(bus);
    return r;
}

static int outcome_of_words(const struct message_writer *w, char ret_reason[256])
{
    assert_false(w->full);
    return outcome_of(w->data, w->size, ret_reason);
}

/* -- What is asked ----------------------------------------------------------------------------- */

static void asks_for_a_scope_around_a_process(void **state UNUSED)
{
    static const char *const members[] = {"Hello", "AddMatch", "Subscribe", "StartTransientUnit"};
    _Alignas(8) unsigned char said[8192];
    char login[64], hex[32] = "", uid[16];
    int bus;
    struct scope_ask *asked = ask(&bus);
    ssize_t size = recv(bus, said, sizeof said, MSG_DONTWAIT);
    snprintf(uid, sizeof uid, "%u", geteuid());
    for (size_t i = 0; uid[i]; i++)
        snprintf(hex + strlen(hex), 4, "%02x", (unsigned)uid[i]);
    int n = snprintf(login, sizeof login, "%cAUTH EXTERNAL %s\r\nBEGIN\r\n", '\0', hex);
    assert_true(size > n);
    assert_memory_equal(said, login, (size_t)n);
    size -= n;
    memmove(said, said + n, (size_t)size);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        struct message m;
        long used = message_parse(said, (size_t)size, sizeof said, &m);
        assert_true(used > 0);
        assert_int_equal(m.type, MESSAGE_CALL);
        assert_string_equal(m.member, members[i]);
        if (i == 3) {
            assert_string_equal(m.signature, "ssa(sv)a(sa(sv))");
            assert_string_equal(message_get_string(&m.body), "nacre-test.scope");
            assert_string_equal(message_get_string(&m.body), "fail");
        }
        size -= used;
        memmove(said, said + used, (size_t)size);
    }
    assert_int_equal(size, 0);
    scope_ask_end(asked);
    close(bus);
}

/* The bytes of a Hello as the specification of D-Bus has them, laid out by hand. */
static void writes_what_is_specified(void **state UNUSED)
{
    static const unsigned char theirs[] =
        "l\1\0\1\0\0\0\0\1\0\0\0m\0\0\0\1\1o\0\25\0\0\0/org/freedesktop/DBus\0\0\0"
        "\2\1s\0\24\0\0\0org.freedesktop.DBus\0\0\0\0\3\1s\0\5\0\0\0Hello\0\0\0"
        "\6\1s\0\24\0\0\0org.freedesktop.DBus\0\0\0";
    struct message_writer w = {0};
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        SKIP("the bytes are those of a little-endian machine");
    message_begin(&w, 1,
                  &(struct message_call){.destination = "org.freedesktop.DBus",
                                         .path = "/org/freedesktop/DBus",
                                         .interface = "org.freedesktop.DBus",
                                         .member = "Hello",
                                         .answered = true});
    message_end(&w);
    assert_int_equal(w.size, sizeof theirs);
    assert_memory_equal(w.data, theirs, sizeof theirs);
}

/* -- What is answered -------------------------------------------------------------------------- */

static void is_granted(void **state UNUSED)
{
    struct message_writer w = granted();
    assert_int_equal(outcome_of_words(&w, NULL), 1);
}

static void is_granted_byte_by_byte(void **state UNUSED)
{
    struct message_writer w = granted();
    int bus;
    struct scope_ask *asked = ask(&bus);
    for (size_t i = 0; i < w.size; i++) {
        assert_int_equal(scope_ask_step(asked), 0);
        send_bytes(bus, w.data + i, 1);
    }
    assert_int_equal(scope_ask_step(asked), 1);
    scope_ask_end(asked);
    close(bus);
}

static void hears_the_other_byte_order(void **state UNUSED)
{
    static const unsigned char big[] = "B\2\0\1\0\0\0\4\0\0\0\7\0\0\0\17"
                                       "\5\1u\0\0\0\0\4\10\1g\0\1u\0\0"
                                       "\0\0\0\52";
    static const unsigned char little[] = "l\2\0\1\4\0\0\0\7\0\0\0\17\0\0\0"
                                          "\5\1u\0\4\0\0\0\10\1g\0\1u\0\0"
                                          "\52\0\0\0";
    const unsigned char *both[] = {big, little};
    for (size_t i = 0; i < 2; i++) {
        _Alignas(8) unsigned char bytes[sizeof big];
        struct message m;
        memcpy(bytes, both[i], sizeof bytes);
        assert_int_equal(message_parse(bytes, 36, 4096, &m), 36);
        assert_int_equal(m.type, MESSAGE_RETURN);
        assert_int_equal(m.answers, START);
        assert_string_equal(m.signature, "u");
        assert_int_equal(message_get_u32(&m.body), 42);
        assert_false(m.body.bad);
        assert_int_equal(message_get_u32(&m.body), 0);
        assert_true(m.body.bad);
    }
}

static void is_refused_with_words(void **state UNUSED)
{
    struct message_writer w = {0};
    char reason[256];
    say_login(&w);
    say_greeting(&w);
    say_refusal(&w, "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has that name");
    assert_int_equal(outcome_of_words(&w, reason), -EACCES);
    assert_string_equal(reason, "nobody has that name");
}

static void a_job_may_fail(void **state UNUSED)
{
    struct message_writer w = {0};
    char reason[256];
    say_login(&w);
    say_greeting(&w);
    say_job(&w);
    say_removed(&w, JOB, "canceled");
    assert_int_equal(outcome_of_words(&w, reason), -EACCES);
    assert_non_null(strstr(reason, "canceled"));
}

static void is_not_let_in(void **state UNUSED)
{
    static const char rejected[] = "REJECTED EXTERNAL\r\n";
    char endless[1024];
    memset(endless, 'O', sizeof endless);
    assert_int_equal(outcome_of(rejected, strlen(rejected), NULL), -EACCES);
    assert_int_equal(outcome_of(endless, sizeof endless, NULL), -EBADMSG);
}

static void a_bus_may_vanish(void **state UNUSED)
{
    struct message_writer w = granted();
    for (size_t size = 0; size < w.size; size += 7) {
        int bus;
        struct scope_ask *asked = ask(&bus);
        char said[8192];
        assert_true(recv(bus, said, sizeof said, 0) > 0);
        send_bytes(bus, w.data, size);
        close(bus);
        assert_int_equal(scope_ask_step(asked), -ECONNRESET);
        scope_ask_end(asked);
    }
}

static void a_message_may_be_too_long(void **state UNUSED)
{
    struct message_writer w = {0};
    const uint32_t sizes[] = {20000, 60U << 20, UINT32_MAX};
    say_login(&w);
    size_t at = w.size;
    say_greeting(&w);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        memcpy(w.data + at + 4, &sizes[i], sizeof sizes[i]);
        assert_int_equal(outcome_of_words(&w, NULL), i < 2 ? -EMSGSIZE : -EBADMSG);
    }
}

/* Whatever is said, it is granted, refused, or awaited; nothing is read that was not sent. */
static void survives_any_answer(void **state UNUSED)
{
    struct unit_random random = {.state = 20};
    struct message_writer good = granted();
    int seen[3] = {0};
    for (int i = 0; i < 4000; i++) {
        struct message_writer w = good;
        for (uint64_t n = unit_below(&random, 4) + 1; n > 0; n--)
            w.data[strlen(LOGGED_IN) + unit_below(&random, w.size - strlen(LOGGED_IN))] =
                (unsigned char)unit_next(&random);
        int r = outcome_of(w.data, w.size - unit_below(&random, 2) * unit_below(&random, 40), NULL);
        assert_true(r == 1 || r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -EACCES);
        seen[r == 1 ? 0 : r == 0 ? 1 : 2]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

static void nobody_may_listen(void **state UNUSED)
{
    struct scope_ask *asked = NULL;
    char path[PATH_MAX];
    close(unit_dir(path));
    setenv("XDG_RUNTIME_DIR", path, 1);
    assert_int_equal(scope_ask_begin("nacre-test.scope", getpid(), &asked), -ENOENT);
    assert_null(asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_a_scope_around_a_process),
        cmocka_unit_test(writes_what_is_specified),
        cmocka_unit_test(is_granted),
        cmocka_unit_test(is_granted_byte_by_byte),
        cmocka_unit_test(hears_the_other_byte_order),
        cmocka_unit_test(is_refused_with_words),
        cmocka_unit_test(a_job_may_fail),
        cmocka_unit_test(is_not_let_in),
        cmocka_unit_test(a_bus_may_vanish),
        cmocka_unit_test(a_message_may_be_too_long),
        cmocka_unit_test(survives_any_answer),
        cmocka_unit_test(nobody_may_listen),
    };
    return cmocka_run_group_tests_name("scope", tests, unit_setup, unit_teardown);
}
