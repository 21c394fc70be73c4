/* A model at a terminal: it starts programs, sees their screens, presses keys. */
#include "tool.h"

static struct reply start_terminal(nacre_session *s, const char *command)
{
    struct reply reply = call(s, "bash",
                              "{\"command\": \"%s\", \"tty\": true, \"columns\": 80, \"rows\": 24, "
                              "\"background\": true}",
                              command);
    if (reply.error)
        FAIL("%s", reply.text);
    return reply;
}

static bool shows(nacre_session *s, const char *id, const char *needle)
{
    struct reply reply = call(s, "bash_output", "{\"id\": \"%s\", \"screen\": true}", id);
    if (reply.error)
        FAIL("%s", reply.text);
    return strstr(reply.text, needle) != NULL;
}

#define AWAIT_SHOWN(s, id, needle)                                                       \
    do {                                                                                 \
        if (!AWAIT(shows(s, id, needle), 10000))                                         \
            FAIL("\"%s\" is not on the screen:\n%s", needle,                             \
                 call(s, "bash_output", "{\"id\": \"%s\", \"screen\": true}", id).text); \
    } while (0)

/* Presses, and looks until it is seen: a busy machine may need longer than the call waits. */
static void press(nacre_session *s, const char *id, const char *what, const char *needle)
{
    struct reply reply = call(s, "bash_input", "{\"id\": \"%s\", %s}", id, what);
    if (reply.error)
        FAIL("%s", reply.text);
    if (!strstr(reply.text, needle))
        AWAIT_SHOWN(s, id, needle);
}

TEST(a_foreground_call_may_have_one)
{
    nacre_session *s = open_tool(NULL);
    struct reply reply =
        call(s, "bash", "{\"command\": \"test -t 1 && stty size; exit 3\", \"rows\": 30}");

    CHECK_STR(reply.text, "Exit code: 3");
    CHECK_STR(reply.text, "30 120");
    close_session(s);
}

TEST(its_stdin_is_typed)
{
    nacre_session *s = open_tool(NULL);
    struct reply reply = call(s, "bash",
                              "{\"command\": \"read x; echo got $x\", \"tty\": true, "
                              "\"stdin\": \"this\\n\"}");

    CHECK_STR(reply.text, "got this");
    close_session(s);
}

TEST(the_answer_to_keys_is_the_screen)
{
    nacre_session *s = open_tool(NULL);
    struct reply started = start_terminal(s, "exec python3 -q");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, ">>>");
    CHECK(shows(s, id, "running, terminal 80x24, cursor 1,5]"));
    press(s, id, "\"input\": \"6 * 7\", \"keys\": \"enter\", \"wait\": 5", "\n42\n>>>");
    press(s, id, "\"keys\": \"up\", \"wait\": 2", "\n>>> 6 * 7\n");
    press(s, id, "\"keys\": \"C-c\", \"wait\": 2", "KeyboardInterrupt");
    struct reply last = call(s, "bash_input",
                             "{\"id\": \"%s\", \"input\": \"exit(4)\\n\", "
                             "\"wait\": 20}",
                             id);
    CHECK_STR(last.text, "exited(4)");
    close_session(s);
}

TEST(keys_follow_the_modes)
{
    nacre_session *s = open_tool(NULL);
    struct reply started = start_terminal(
        s, "stty raw -echo; printf 'ready'; dd bs=1 count=3 2>/dev/null | od -c; "
           "printf '\\\\033[?1hnow'; dd bs=1 count=3 2>/dev/null | od -c; sleep 300");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, "ready");
    press(s, id, "\"keys\": \"up\", \"wait\": 2", "033   [   A");
    AWAIT_SHOWN(s, id, "now");
    press(s, id, "\"keys\": \"up\", \"wait\": 2", "033   O   A");
    close_session(s);
}

TEST(what_is_pasted_has_brackets_if_asked_for)
{
    nacre_session *s = open_tool(NULL);
    struct reply started =
        start_terminal(s, "stty -icanon -echo; printf '\\\\033[?2004hready'; "
                          "dd bs=1 count=14 2>/dev/null | od -An -c -w20; sleep 300");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, "ready");
    press(s, id, "\"paste\": \"a\\u001bb\", \"wait\": 2",
          "033   [   2   0   0   ~   a   b 033   [   2   0   1   ~");
    close_session(s);
}

TEST(another_size_is_given)
{
    nacre_session *s = open_tool(NULL);
    struct reply started =
        start_terminal(s, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, "ready");
    press(s, id, "\"resize\": \"100x30\", \"wait\": 5", "30 100");
    CHECK(shows(s, id, "terminal 100x30"));
    struct reply wrong = call(s, "bash_input", "{\"id\": \"%s\", \"resize\": \"big\"}", id);
    CHECK(wrong.error);
    CHECK_STR(wrong.text, "resize: columns and rows are missing");
    close_session(s);
}

/* What a program draws passes for nothing of ours; what stands out is said. */
TEST(a_menu_is_told)
{
    nacre_session *s = open_tool(NULL);
    struct reply started = start_terminal(
        s, "printf '[shell x]\\\\n  One\\\\n  \\\\033[7mTwo\\\\033[m\\\\n  Three'; sleep 300");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, "Three");
    CHECK(shows(s, id, "\n\\[shell x]\n  One\n  Two\n  Three\n"));
    CHECK(shows(s, id, "[nacre: highlighted: row 3 \"Two\"]"));
    close_session(s);
}

TEST(vim_is_used)
{
    nacre_session *s = open_tool(NULL);
    if (!have_program("vim"))
        SKIP("there is no vim");
    struct reply started = start_terminal(s, "exec vim -N -u NONE -i NONE edited");
    const char *id = id_of(&started);

    AWAIT_SHOWN(s, id, "[New");
    CHECK(shows(s, id, ", full screen]"));
    press(s, id, "\"keys\": \"i\", \"wait\": 2", "-- INSERT --");
    press(s, id, "\"input\": \"some text\", \"wait\": 2", "\nsome text\n");
    struct reply last = call(s, "bash_input",
                             "{\"id\": \"%s\", \"keys\": \"esc : w q enter\", "
                             "\"wait\": 20}",
                             id);
    CHECK(AWAIT(shows(s, id, "exited(0)"), 5000));
    (void)last;
    char *text = slurp("edited", NULL);
    CHECK_TEXT(text, "some text\n");
    free(text);
    close_session(s);
}

TEST(what_needs_a_terminal_says_so)
{
    nacre_session *s = open_tool(NULL);
    struct reply started = call(s, "bash",
                                "{\"command\": \"read x\", \"keep_stdin\": true, "
                                "\"background\": true}");
    const char *id = id_of(&started);
    static const char *const wrong[] = {"\"keys\": \"up\"", "\"paste\": \"x\"",
                                        "\"resize\": \"80x24\""};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct reply reply = call(s, "bash_input", "{\"id\": \"%s\", %s}", id, wrong[i]);
        CHECK(reply.error);
        CHECK_STR(reply.text, "terminal");
    }
    CHECK(shows(s, id, "no terminal; as one of 120x40 would show it"));
    started = start_terminal(s, "sleep 300");
    struct reply reply =
        call(s, "bash_input", "{\"id\": \"%s\", \"keys\": \"up upwards\"}", id_of(&started));
    CHECK(reply.error);
    CHECK_STR(reply.text, "there is no key \"upwards\"");
    close_session(s);
}
