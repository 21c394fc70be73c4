/* Keys of a terminal: what each sends, and what is none. */
#include "unit.h"

#include "tool/terminal_keys.h"

static void check_sends(const char *name, bool cursor_keys, const char *text, size_t size)
{
    char bytes[KEY_BYTES];
    size_t n = terminal_key(name, strlen(name), cursor_keys, bytes);
    if (n != size || memcmp(bytes, text, size) != 0)
        fail_msg("%s sends %.*s", name, (int)n, bytes);
}

#define SENDS(name, text)       check_sends(name, false, text, sizeof(text) - 1)
#define OTHERS_SEND(name, text) check_sends(name, true, text, sizeof(text) - 1)
#define IS_NONE(name)           check_sends(name, false, "", 0)

static void keys_send_what_an_xterm_sends(void **state)
{
    (void)state;
    SENDS("up", "\x1b[A");
    OTHERS_SEND("up", "\x1bOA");
    SENDS("HOME", "\x1b[H");
    OTHERS_SEND("end", "\x1bOF");
    SENDS("f1", "\x1bOP");
    SENDS("f5", "\x1b[15~");
    SENDS("f12", "\x1b[24~");
    SENDS("pgup", "\x1b[5~");
    SENDS("pagedown", "\x1b[6~");
    SENDS("del", "\x1b[3~");
    SENDS("enter", "\r");
    SENDS("tab", "\t");
    SENDS("esc", "\x1b");
    SENDS("backspace", "\x7f");
    SENDS("space", " ");
    SENDS("q", "q");
    SENDS("Q", "Q");
    SENDS(":", ":");
    SENDS("-", "-");
    SENDS("\u00e9", "\u00e9");
}

static void modifiers_are_sent(void **state)
{
    (void)state;
    SENDS("C-c", "\x03");
    SENDS("c-C", "\x03");
    SENDS("C-\\", "\x1c");
    SENDS("C-space", "\0");
    SENDS("C-[", "\x1b");
    SENDS("M-x", "\x1bx");
    SENDS("M-C-x", "\x1b\x18");
    SENDS("C-up", "\x1b[1;5A");
    OTHERS_SEND("C-up", "\x1b[1;5A");
    SENDS("S-f5", "\x1b[15;2~");
    SENDS("S-f1", "\x1b[1;2P");
    SENDS("S-tab", "\x1b[Z");
    SENDS("M-enter", "\x1b\r");
    SENDS("C--", "");
}

static void others_are_none(void **state)
{
    (void)state;
    IS_NONE("upwards");
    IS_NONE("f13");
    IS_NONE("C-");
    IS_NONE("C-1");
    IS_NONE("X-a");
    IS_NONE("S-a");
    IS_NONE("\xff");
    IS_NONE("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_send_what_an_xterm_sends),
        cmocka_unit_test(modifiers_are_sent),
        cmocka_unit_test(others_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
