/* Where escape sequences end, and which of them are commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/defs.h"
#include "screen/escape.h"

/* Feeds until a byte is text; returns how many bytes came before it, or all. */
static size_t taken(const char *text, size_t size, struct escape *e)
{
    *e = (struct escape){0};
    for (size_t i = 0; i < size; i++)
        if (escape_feed(e, (uint8_t)text[i]) == ESCAPE_TEXT)
            return i;
    return size;
}

#define TAKEN(text)       taken(text, sizeof(text) - 1, &e)
#define WHOLE(text)       assert_int_equal(TAKEN(text "x"), sizeof(text) - 1)
#define ENDS_BEFORE(a, b) assert_int_equal(TAKEN(a b), sizeof(a) - 1)
#define UNFINISHED(text)                                 \
    do {                                                 \
        assert_int_equal(TAKEN(text), sizeof(text) - 1); \
        assert_true(escape_inside(&e));                  \
    } while (0)

static void text_is_not_taken(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        struct escape e = {0};
        enum escape_answer answer = escape_feed(&e, (uint8_t)byte);
        assert_int_equal(answer, byte == 0x1b ? ESCAPE_TAKEN : ESCAPE_TEXT);
        assert_int_equal(escape_inside(&e), byte == 0x1b);
    }
}

static void whole_sequences_end(void **state)
{
    (void)state;
    struct escape e;
    WHOLE("\x1b[m");
    WHOLE("\x1b[38;2;1;2;3m");
    WHOLE("\x1b[?25l");
    WHOLE("\x1b[>4;2m");
    WHOLE("\x1b[ q");
    WHOLE("\x1b]0;title\a");
    WHOLE("\x1b]8;;http://a/\xc3\xa9\x1b\\");
    WHOLE("\x1bPq#0;1\r\t\x1b\\");
    WHOLE("\x1b_Ga=T;AAAA\x1b\\");
    WHOLE("\x1b^pm\x1b\\");
    WHOLE("\x1bXsos\x1b\\");
    WHOLE("\x1bktitle\x1b\\");
    WHOLE("\x1b(B");
    WHOLE("\x1b#8");
    WHOLE("\0337");
    WHOLE("\x1b=");
    WHOLE("\x1bM");
    WHOLE("\x1b\x1b\x1b[m");
}

static void only_osc_ends_at_a_bell(void **state)
{
    (void)state;
    struct escape e;
    UNFINISHED("\x1bPabc\aabc");
    UNFINISHED("\x1b_abc\aabc");
    WHOLE("\x1b]abc\a");
}

static void nothing_goes_over_a_newline(void **state)
{
    (void)state;
    struct escape e;
    ENDS_BEFORE("\x1b", "\n");
    ENDS_BEFORE("\x1b(", "\n");
    ENDS_BEFORE("\x1b[12;", "\n");
    ENDS_BEFORE("\x1b]0;title", "\n");
    ENDS_BEFORE("\x1bPdata", "\n");
    ENDS_BEFORE("\x1b_data", "\n");
}

static void it_can_be_cut_off(void **state)
{
    (void)state;
    struct escape e;
    WHOLE("\x1b[1;2\x18");
    WHOLE("\x1b]title\x1a");
    WHOLE("\x1bPdata\x18");
    ENDS_BEFORE("\x1b[1", "\xc3\xa9");
    ENDS_BEFORE("\x1b", "\xc3\xa9");
    WHOLE("\x1b]0;unfinished\x1b[31m");
}

static void controls_inside_are_obeyed(void **state)
{
    (void)state;
    struct escape e = {0};
    escape_feed(&e, 0x1b);
    escape_feed(&e, '[');
    assert_int_equal(escape_feed(&e, '\r'), ESCAPE_CONTROL);
    assert_int_equal(escape_feed(&e, '2'), ESCAPE_TAKEN);
    assert_int_equal(escape_feed(&e, 'K'), ESCAPE_COMMAND);
    assert_int_equal(escape_number(&e, 0), 2);
}

static void there_is_a_ceiling(void **state)
{
    (void)state;
    struct escape e;
    static char text[2 * ESCAPE_STRING_MAX];
    memset(text, ';', sizeof text);
    memcpy(text, "\x1b[", 2);
    assert_int_equal(taken(text, sizeof text, &e), ESCAPE_MAX);
    memcpy(text, "\x1b]", 2);
    assert_int_equal(taken(text, sizeof text, &e), ESCAPE_STRING_MAX);

    /* The ceiling is in the middle of a character, which goes with what came before. */
    memcpy(text + ESCAPE_STRING_MAX - 1, "\xe2\x82\xac", 3);
    assert_int_equal(taken(text, sizeof text, &e), ESCAPE_STRING_MAX + 2);
}

static void check_command(const char *text, char command, uint32_t number)
{
    struct escape e = {0};
    size_t last = strlen(text) - 1;
    for (size_t i = 0; i < last; i++)
        escape_feed(&e, (uint8_t)text[i]);
    assert_int_equal(escape_feed(&e, (uint8_t)text[last]),
                     command ? ESCAPE_COMMAND : ESCAPE_PRIVATE);
    assert_false(escape_inside(&e));
    if (command) {
        assert_int_equal(e.command, command);
        assert_int_equal(escape_number(&e, 0), number);
    }
}

static void commands_have_a_number(void **state)
{
    (void)state;
    check_command("\x1b[A", 'A', 0);
    check_command("\x1b[12A", 'A', 12);
    check_command("\x1b[3;4H", 'H', 3);
    check_command("\x1b[;4H", 'H', 0);
    check_command("\x1b[9999999999999999C", 'C', ESCAPE_NUMBER_MAX);
    check_command("\x1b[?2K", 0, 0);
    check_command("\x1b[1:2K", 0, 0);
    check_command("\x1b[1 K", 0, 0);
    check_command("\x1b]0;\x1b[7D", 'D', 7);
}

static void what_programs_say_is_told(void **state)
{
    (void)state;
    struct escape e;
    TAKEN("\x1b[38;2;1;22;333m");
    assert_int_equal(escape_count(&e), 5);
    assert_int_equal(escape_number(&e, 4), 333);
    assert_int_equal(escape_number(&e, 5), 0);
    TAKEN("\x1b[4:3;7m");
    assert_int_equal(escape_count(&e), 3);
    assert_int_equal(e.joined, 1 << 1);
    TAKEN("\x1b[?1049h");
    assert_int_equal(e.mark, '?');
    assert_int_equal(escape_number(&e, 0), 1049);
    TAKEN("\x1b[?2026$p");
    assert_int_equal(e.between, '$');
    TAKEN("\x1b(0");
    assert_int_equal(e.between, '(');
    assert_int_equal(e.command, '0');
    TAKEN("\x1b]11;?\x1b\\");
    assert_int_equal(e.text_size, 4);
    assert_memory_equal(e.text, "11;?", 4);
    TAKEN("\x1b]a longer text than is kept of one\a");
    assert_int_equal(e.text_size, ESCAPE_TEXT_MAX);
}

/* A string ends at ESC, which begins another sequence, or at BEL; and is not one if it was cut. */
static void answers_say_what_ended(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum escape_answer last;
    } rows[] = {
        {"\x1b[1m", ESCAPE_COMMAND},
        {"\x1b[1:2m", ESCAPE_COMMAND},
        {"\x1b[1:2A", ESCAPE_PRIVATE},
        {"\x1b[>c", ESCAPE_PRIVATE},
        {"\x1b"
         "7",
         ESCAPE_SHORT},
        {"\x1bM", ESCAPE_SHORT},
        {"\x1b(0", ESCAPE_SHORT},
        {"\x1b]0;a\a", ESCAPE_STRING},
        {"\x1b]0;a\x1b", ESCAPE_STRING},
        {"\x1bPa\x1b", ESCAPE_STRING},
        {"\x1b]0;a\x18", ESCAPE_TAKEN},
        {"\x1b[1\x18", ESCAPE_TAKEN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct escape e = {0};
        enum escape_answer answer = ESCAPE_TEXT;
        for (const char *c = rows[i].text; *c; c++)
            answer = escape_feed(&e, (uint8_t)*c);
        assert_int_equal(answer, rows[i].last);
    }
}

/* The short way takes just what the long one takes, and nothing that is a command. */
static void colours_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"\x1b[mx", 3},  {"\x1b[1;31mx", 7}, {"\x1b[38:5:1m", 9}, {"\x1b[?4m", 5},
                 {"\x1b[31", 0},  {"\x1b[31K", 0},    {"\x1b[", 0},        {"\x1b", 0},
                 {"\x1b]31m", 0}, {"x[31m", 0},       {"\x1b[3\n1m", 0},   {"\x1b[ m", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(escape_colours(cases[i].text, strlen(cases[i].text)), cases[i].length);

    static char text[2 * ESCAPE_MAX];
    struct escape e;
    for (size_t length = 3; length < sizeof text; length++) {
        memset(text, '1', sizeof text);
        memcpy(text, "\x1b[", 2);
        text[length - 1] = 'm';
        size_t n = escape_colours(text, length);
        assert_int_equal(n, length <= ESCAPE_MAX ? length : 0);
        assert_int_equal(n > 0, taken(text, length, &e) == length && !escape_inside(&e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_not_taken),         cmocka_unit_test(whole_sequences_end),
        cmocka_unit_test(only_osc_ends_at_a_bell),   cmocka_unit_test(nothing_goes_over_a_newline),
        cmocka_unit_test(it_can_be_cut_off),         cmocka_unit_test(controls_inside_are_obeyed),
        cmocka_unit_test(there_is_a_ceiling),        cmocka_unit_test(commands_have_a_number),
        cmocka_unit_test(what_programs_say_is_told), cmocka_unit_test(answers_say_what_ended),
        cmocka_unit_test(colours_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
