/*
 * The terminal: what each sequence does to screen and cursor, what it answers; that it does the
 * same without cells and in whatever pieces the bytes come; and recordings of real programs
 * against libvterm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utf8proc.h>
#include <vterm.h>

#include "base/defs.h"
#include "screen/grid.h"
#include "text/utf8.h"

#define COLUMNS   80
#define ROWS      24
#define CUT_BYTES 12000 /* of a recording that is cut at every byte */
#define EVERY     61    /* bytes between two comparisons of whole screens */

static const char *const recordings[] = {"vim",     "less",    "top",      "bash", "python", "node",
                                         "sqlite3", "git-log", "git-add",  "htop", "nano",   "man",
                                         "tmux",    "dialog",  "whiptail", "mc"};

static char *read_recording(const char *name, size_t *ret_size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", TERMINALS_DIR, name);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char *text = malloc(1 << 20);
    *ret_size = fread(text, 1, 1 << 20, f);
    assert_true(*ret_size > 0);
    fclose(f);
    return text;
}

static struct grid *new_grid(unsigned columns, unsigned rows)
{
    struct grid *g = NULL;
    assert_int_equal(grid_new(columns, rows, &g), 0);
    return g;
}

static char *text_of(const struct grid *g)
{
    struct buf out = BUF_UP_TO(1 << 22);
    assert_int_equal(grid_text(g, &out), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    return out.data;
}

/* -- What sequences do ------------------------------------------------------------------------- */

struct expectation {
    const char *input;
    const char *rows; /* up to the last that is not empty */
    unsigned row, column;
};

#define CSI "\x1b["

/* On a terminal of 20 columns and 5 rows. */
static const struct expectation expectations[] = {
    {"abc", "abc\n", 0, 3},
    {"a\nb\r\nc", "a\n b\nc\n", 2, 1},
    {"abc\b\bX", "aXc\n", 0, 2},
    {"a\tb\tc", "a       b       c\n", 0, 17},
    {"\t\t\tx", "                   x\n", 0, 19},
    /* The last column, and the one after it. */
    {"12345678901234567890", "12345678901234567890\n", 0, 19},
    {"12345678901234567890x", "12345678901234567890\nx\n", 1, 1},
    {"12345678901234567890\bx", "123456789012345678x0\n", 0, 19},
    {"12345678901234567890\rx", "x2345678901234567890\n", 0, 1},
    {CSI "?7l12345678901234567890xy", "1234567890123456789y\n", 0, 19},
    {"1234567890123456789\u4f60", "1234567890123456789\n\u4f60\n", 1, 2},
    /* Scrolling. */
    {"1\r\n2\r\n3\r\n4\r\n5\r\n6", "2\n3\n4\n5\n6\n", 4, 1},
    {"1\r\n2\r\n3" CSI "H\x1bMx", "x\n1\n2\n3\n", 0, 1},
    {"1\r\n2\r\n3\r\n4\r\n5" CSI "2;4r" CSI "4;1H\nx", "1\n3\n4\nx\n5\n", 3, 1},
    {"1\r\n2\r\n3\r\n4\r\n5" CSI "2;4r" CSI "2;1H\x1bMx", "1\nx\n2\n3\n5\n", 1, 1},
    {"1\r\n2\r\n3" CSI "2S", "3\n", 2, 1},
    {"1\r\n2\r\n3" CSI "T", "\n1\n2\n3\n", 2, 1},
    {"1\r\n2\r\n3" CSI "2;1H" CSI "L", "1\n\n2\n3\n", 1, 0},
    {"1\r\n2\r\n3" CSI "1;1H" CSI "2M", "3\n", 0, 0},
    /* Where the cursor goes. */
    {CSI "3;4Hx", "\n\n   x\n", 2, 4},
    {CSI "99;99Hx", "\n\n\n\n                   x\n", 4, 19},
    {CSI "3;4H" CSI "2Ax" CSI "Bx" CSI "Cx" CSI "9Dx", "   x\nx   x x\n", 1, 1},
    {CSI "3d" CSI "5Gx", "\n\n    x\n", 2, 5},
    {"ab" CSI "Ec" CSI "Fd", "db\nc\n", 0, 1},
    {"ab\x1b"
     "7\r\ncd\x1b"
     "8e",
     "abe\ncd\n", 0, 3},
    {"ab" CSI "s\r\ncd" CSI "ue", "abe\ncd\n", 0, 3},
    {CSI "2;4r" CSI "?6h" CSI "9;1Hx" CSI "1;1Hy", "\ny\n\nx\n", 1, 1},
    /* Erasing. */
    {"abcdef" CSI "3D" CSI "K", "abc\n", 0, 3},
    {"abcdef" CSI "3D" CSI "1K", "    ef\n", 0, 3},
    {"abcdef" CSI "2K", "", 0, 6},
    {"1\r\n2\r\n3" CSI "2;1H" CSI "J", "1\n", 1, 0},
    {"1\r\n2\r\n3" CSI "2;1H" CSI "1J", "\n\n3\n", 1, 0},
    {"1\r\n2" CSI "2J", "", 1, 1},
    {"abcdef" CSI "4D" CSI "2X", "ab  ef\n", 0, 2},
    {"a\u4f60"
     "b" CSI "2G" CSI "X",
     "a  b\n", 0, 1},
    {"a\u4f60"
     "b" CSI "3Gx",
     "a xb\n", 0, 3},
    /* Inserting and deleting. */
    {"abcdef" CSI "4D" CSI "2@", "ab  cdef\n", 0, 2},
    {"abcdef" CSI "4D" CSI "2P", "abef\n", 0, 2},
    {"abcdef" CSI "4D" CSI "4hxy" CSI "4lz", "abxyzdef\n", 0, 5},
    {"12345678901234567890" CSI "H" CSI "@", " 1234567890123456789\n", 0, 0},
    {"a" CSI "3bx", "aaaax\n", 0, 5},
    /* Left and right margins. */
    {"12345\r\nabcde" CSI "?69h" CSI "2;4s" CSI "1;2H" CSI "M", "1bcd5\na   e\n", 0, 1},
    {CSI "?69h" CSI "3;6s" CSI "1;3Habcdef", "  abcd\n  ef\n", 1, 4},
    {"12345" CSI "?69h" CSI "2;4s" CSI "1;2H" CSI "P", "134 5\n", 0, 1},
    /* Tabs. */
    {CSI "4G\x1bH\r\tx" CSI "3g\r\ty", "   x               y\n", 0, 19},
    {"a\tb" CSI "Zc", "a       c\n", 0, 9},
    /* Sets of characters. */
    {"\x1b(0lqk\x1b(Bx", "\u250c\u2500\u2510x\n", 0, 4},
    {"\x1b)0q\x0eq\x0fq", "q\u2500q\n", 0, 3},
    {"\x1b*0\x1bNqq", "\u2500q\n", 0, 2},
    /* What combines, and what is wide. */
    {"e\u0301x", "e\u0301x\n", 0, 2},
    {"\u4f60\u0301x", "\u4f60\u0301x\n", 0, 3},
    {"\U0001f468\u200d\U0001f469\u200d\U0001f467x", "\U0001f468\u200d\U0001f469\u200d\U0001f467x\n",
     0, 7},
    {"1234567890123456789e\u0301", "1234567890123456789e\u0301\n", 0, 19},
    {"\x80"
     "a\xe2\x82"
     "b",
     "\ufffd"
     "a\ufffd"
     "b\n",
     0, 4},
    /* The other screen. */
    {"ab" CSI "?1049hcd", "  cd\n", 0, 4},
    {"ab" CSI "?1049hcd" CSI "?1049le", "abe\n", 0, 3},
    {"ab" CSI "?47hcd" CSI "?47le", "ab  e\n", 0, 5},
    /* What has no effect here. */
    {"a\x1b]0;title\x07"
     "b\x1bP1;2q#\x1b\\c\x1b_x\x1b\\d" CSI "?2026h" CSI "1 qe",
     "abcde\n", 0, 5},
    /* From the beginning. */
    {"ab" CSI "2;3r" CSI "?6h\x1b"
     "cx",
     "x\n", 0, 1},
    {CSI "4h" CSI "?6h" CSI "31m" CSI "!pab\rx", "xb\n", 0, 1},
    {"\x1b#8" CSI "2;5r" CSI "2;1H" CSI "9M", "EEEEEEEEEEEEEEEEEEEE\n", 1, 0},
};

static void sequences_do_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expectations); i++) {
        const struct expectation *e = &expectations[i];
        struct grid *g cleanup_grid = new_grid(20, 5);
        grid_feed(g, e->input, strlen(e->input));
        cleanup_free char *text = text_of(g);
        if (strcmp(text, e->rows) != 0)
            print_message("row %zu of the table\n", i);
        assert_string_equal(text, e->rows);
        assert_int_equal(grid_terminal(g)->at.row, e->row);
        assert_int_equal(grid_terminal(g)->at.column, e->column);
    }
}

/* A machine without cells has its cursor in the same place after every byte. */
static void without_cells_it_is_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expectations); i++) {
        struct grid *g cleanup_grid = new_grid(20, 5);
        struct terminal t;
        terminal_init(&t, 20, 5);
        for (const char *c = expectations[i].input; *c; c++) {
            grid_feed(g, c, 1);
            terminal_feed(&t, c, 1);
            assert_int_equal(grid_terminal(g)->at.row, t.at.row);
            assert_int_equal(grid_terminal(g)->at.column, t.at.column);
            assert_int_equal(grid_terminal(g)->modes, t.modes);
        }
    }
}

/* -- Answers ----------------------------------------------------------------------------------- */

static void note_answer(void *self, const char *text, size_t size)
{
    strncat(self, text, size);
}

static void check_answer(const char *input, const char *answer)
{
    struct terminal t;
    char said[256] = "";
    terminal_init(&t, 120, 40);
    t.answer = note_answer;
    t.answer_self = said;
    terminal_feed(&t, input, strlen(input));
    assert_string_equal(said, answer);
}

static void questions_are_answered(void **state)
{
    (void)state;
    check_answer("text", "");
    check_answer(CSI "5n", CSI "0n");
    check_answer("abc\r\nde" CSI "6n", CSI "2;3R");
    check_answer("abc" CSI "?6n", CSI "?1;4R");
    check_answer(CSI "3;9r" CSI "?6h" CSI "6n", CSI "1;1R");
    check_answer(CSI "c" CSI "0c", CSI "?62;22c" CSI "?62;22c");
    check_answer(CSI ">c", CSI ">0;10;0c");
    check_answer(CSI "?2004h" CSI "?2004$p" CSI "?1049$p" CSI "?31337$p",
                 CSI "?2004;1$y" CSI "?1049;2$y" CSI "?31337;0$y");
    check_answer("\x1b]10;?\x07\x1b]11;?\x1b\\",
                 "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\");
    check_answer(CSI "18t", CSI "8;40;120t");
    check_answer("\x1b]52;c;?\x07" CSI "21t\x1bP$qm\x1b\\", "");
}

/* -- The pen ----------------------------------------------------------------------------------- */

static void check_pen(const char *input, uint32_t front, uint32_t back, uint32_t attributes)
{
    struct terminal t;
    terminal_init(&t, 80, 24);
    terminal_feed(&t, input, strlen(input));
    assert_int_equal(t.at.pen.front, front);
    assert_int_equal(t.at.pen.back, back);
    assert_int_equal(t.at.pen.attributes, attributes);
}

static void colours_are_taken(void **state)
{
    (void)state;
    check_pen(CSI "1;31;42m", COLOUR_INDEX | 1, COLOUR_INDEX | 2, PEN_BOLD);
    check_pen(CSI "1;31;42m" CSI "m", 0, 0, 0);
    check_pen(CSI "91;107m", COLOUR_INDEX | 9, COLOUR_INDEX | 15, 0);
    check_pen(CSI "38;5;200;48;5;17;4m", COLOUR_INDEX | 200, COLOUR_INDEX | 17, PEN_UNDERLINE);
    check_pen(CSI "38;2;1;2;3;1m", COLOUR_RGB | 0x010203, 0, PEN_BOLD);
    check_pen(CSI "38:2:1:2:3;1m", COLOUR_RGB | 0x010203, 0, PEN_BOLD);
    check_pen(CSI "38:2::1:2:3;1m", COLOUR_RGB | 0x010203, 0, PEN_BOLD);
    check_pen(CSI "48:5:7m", 0, COLOUR_INDEX | 7, 0);
    check_pen(CSI "58;5;9;3m", 0, 0, PEN_ITALIC);
    check_pen(CSI "4:3m", 0, 0, PEN_UNDERLINE);
    check_pen(CSI "4m" CSI "4:0m", 0, 0, 0);
    check_pen(CSI "1;2;7m" CSI "22m", 0, 0, PEN_REVERSE);
    check_pen(CSI "31;41m" CSI "39;49m", 0, 0, 0);
    check_pen(CSI ">4;2m", 0, 0, 0);
}

static void a_row_that_stands_out_is_found(void **state)
{
    (void)state;
    static const char menu[] = "one\r\n" CSI "7mtwo" CSI "m\r\nthree\r\n" CSI "44mfour" CSI "m";
    struct grid *g cleanup_grid = new_grid(20, 6);
    grid_feed(g, menu, sizeof menu - 1);
    assert_false(grid_row_stands_out(g, 0));
    assert_true(grid_row_stands_out(g, 1));
    assert_false(grid_row_stands_out(g, 2));
    assert_true(grid_row_stands_out(g, 3));
    assert_false(grid_row_stands_out(g, 5));
}

/* -- Other sizes ------------------------------------------------------------------------------- */

static void another_size_keeps_what_fits(void **state)
{
    (void)state;
    static const char text[] = "1\r\n2\r\n3\r\n4\r\n5\r\nsix is wider \u4f60\u597d";
    struct grid *g cleanup_grid = new_grid(40, 6);
    grid_feed(g, text, sizeof text - 1);
    assert_int_equal(grid_resize(g, 40, 5), 0);
    cleanup_free char *lower = text_of(g);
    assert_string_equal(lower, "2\n3\n4\n5\nsix is wider \u4f60\u597d\n");
    assert_int_equal(grid_terminal(g)->at.row, 4);
    assert_int_equal(grid_resize(g, 500, 200), 0);
    assert_int_equal(grid_resize(g, 20, 8), 0);
    cleanup_free char *narrow = text_of(g);
    assert_string_equal(narrow, "2\n3\n4\n5\nsix is wider \u4f60\u597d\n");
    assert_int_equal(grid_resize(g, 1, 1), 0);
    assert_int_equal(grid_terminal(g)->columns, TERMINAL_COLUMNS_MIN);
    assert_int_equal(grid_terminal(g)->rows, TERMINAL_ROWS_MIN);
}

/* -- Pieces ------------------------------------------------------------------------------------ */

static void check_same(const struct grid *a, const struct grid *b)
{
    cleanup_free char *one = text_of(a);
    cleanup_free char *other = text_of(b);
    assert_string_equal(one, other);
    assert_int_equal(grid_terminal(a)->at.row, grid_terminal(b)->at.row);
    assert_int_equal(grid_terminal(a)->at.column, grid_terminal(b)->at.column);
    assert_int_equal(grid_terminal(a)->modes, grid_terminal(b)->modes);
}

/* Cut anywhere, both parts do what the whole does. */
static void cuts_make_no_difference(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
        size_t size;
        cleanup_free char *text = read_recording(recordings[i], &size);
        size = MIN(size, (size_t)CUT_BYTES);
        struct grid *bytes cleanup_grid = new_grid(COLUMNS, ROWS);
        for (size_t cut = 0; cut < size; cut++) {
            grid_feed(bytes, text + cut, 1);
            if (cut % EVERY != 0 && cut + 1 < size)
                continue;
            struct grid *whole cleanup_grid = new_grid(COLUMNS, ROWS);
            grid_feed(whole, text, cut + 1);
            check_same(bytes, whole);
        }
    }
}

/* -- Against libvterm -------------------------------------------------------------------------- */

static void add_theirs(struct buf *out, VTermScreen *screen, int row)
{
    size_t begin = out->len;
    for (int column = 0; column < COLUMNS; column++) {
        VTermScreenCell cell = {0}; /* of a blank one only the first character is set */
        vterm_screen_get_cell(screen, (VTermPos){row, column}, &cell);
        if (cell.chars[0] == UINT32_MAX)
            continue;
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && (i == 0 || cell.chars[i]); i++) {
            char bytes[4];
            size_t n = utf8_write(cell.chars[i] ? cell.chars[i] : ' ', bytes);
            assert_int_equal(buf_append(out, bytes, n), 0);
        }
    }
    while (out->len > begin && out->data[out->len - 1] == ' ')
        out->len--;
    assert_int_equal(buf_str(out, "\n"), 0);
}

static void compare_screens(const struct grid *g, VTerm *vt, VTermScreen *screen, const char *name,
                            size_t at)
{
    VTermPos cursor;
    struct buf ours = BUF_UP_TO(1 << 20), theirs = BUF_UP_TO(1 << 20);
    for (int row = 0; row < ROWS; row++) {
        assert_int_equal(grid_row(g, (unsigned)row, &ours), 0);
        assert_int_equal(buf_str(&ours, "\n"), 0);
        add_theirs(&theirs, screen, row);
    }
    vterm_state_get_cursorpos(vterm_obtain_state(vt), &cursor);
    if (ours.len != theirs.len || memcmp(ours.data, theirs.data, ours.len) != 0)
        fail_msg("%s differs after %zu bytes:\n%.*s\n-- libvterm:\n%.*s", name, at, (int)ours.len,
                 ours.data, (int)theirs.len, theirs.data);
    if (cursor.row != grid_terminal(g)->at.row || cursor.col != grid_terminal(g)->at.column)
        fail_msg("%s: cursor at %d,%d after %zu bytes, libvterm's at %d,%d", name,
                 grid_terminal(g)->at.row, grid_terminal(g)->at.column, at, cursor.row, cursor.col);
    buf_done(&ours);
    buf_done(&theirs);
}

static void recordings_are_shown_as_libvterm_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
        size_t size;
        cleanup_free char *text = read_recording(recordings[i], &size);
        struct grid *g cleanup_grid = new_grid(COLUMNS, ROWS);
        VTerm *vt = vterm_new(ROWS, COLUMNS);
        vterm_set_utf8(vt, 1);
        VTermScreen *screen = vterm_obtain_screen(vt);
        vterm_screen_enable_altscreen(screen, 1);
        vterm_screen_reset(screen, 1);
        for (size_t at = 0; at < size; at++) {
            grid_feed(g, text + at, 1);
            vterm_input_write(vt, text + at, 1);
            /* Libvterm writes a character when the next byte says that it is complete. */
            if ((at % EVERY == 0 && (uint8_t)text[at] < 0x80) || at + 1 == size)
                compare_screens(g, vt, screen, recordings[i], at + 1);
        }
        vterm_free(vt);
    }
}

/* -- Widths ------------------------------------------------------------------------------------ */

static void widths_are_those_of_utf8proc(void **state)
{
    (void)state;
    for (uint32_t point = 0x300; point < 0x110000; point++)
        assert_int_equal(utf8_width(point), utf8proc_charwidth((utf8proc_int32_t)point));
    for (uint32_t point = 0; point < 0x300; point++)
        assert_int_equal(utf8_width(point), 1);
    assert_int_equal(utf8_width(UTF8_INVALID), 1);
}

static void characters_are_written_as_they_are_read(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 0x110000; point++) {
        char bytes[4];
        uint32_t again;
        if (point >= 0xd800 && point < 0xe000)
            continue;
        size_t n = utf8_write(point, bytes);
        assert_int_equal(utf8_next(bytes, n, &again), n);
        assert_int_equal(again, point);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_do_what_they_say),
        cmocka_unit_test(without_cells_it_is_the_same),
        cmocka_unit_test(questions_are_answered),
        cmocka_unit_test(colours_are_taken),
        cmocka_unit_test(a_row_that_stands_out_is_found),
        cmocka_unit_test(another_size_keeps_what_fits),
        cmocka_unit_test(cuts_make_no_difference),
        cmocka_unit_test(recordings_are_shown_as_libvterm_does),
        cmocka_unit_test(widths_are_those_of_utf8proc),
        cmocka_unit_test(characters_are_written_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
