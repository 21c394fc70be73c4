/* What the control sequences of a terminal do: CSI, by its final byte. */
#include <stdarg.h>
#include <stdio.h>

#include "base/defs.h"
#include "screen/terminal.h"

static uint32_t number_or(const struct terminal *t, unsigned which, uint32_t otherwise)
{
    uint32_t number = escape_number(&t->escape, which);
    return number > 0 ? number : otherwise;
}

/* -- Moving ------------------------------------------------------------------------------------ */

/* Not out of the rows that scroll, for who is in them. */
static void move_rows(struct terminal *t, int by)
{
    int least = t->at.row >= t->top ? t->top : 0;
    int most = t->at.row < t->bottom ? t->bottom - 1 : t->rows - 1;
    t->at.row = (uint16_t)MIN(MAX(t->at.row + by, least), most);
    t->at.full = false;
}

static void move_columns(struct terminal *t, int by)
{
    int least = t->at.column >= t->left ? t->left : 0;
    int most = t->at.column < t->right ? t->right - 1 : t->columns - 1;
    t->at.column = (uint16_t)MIN(MAX(t->at.column + by, least), most);
    t->at.full = false;
}

static void to_left(struct terminal *t)
{
    t->at.column = t->at.column >= t->left ? t->left : 0;
}

static void back_tab(struct terminal *t, unsigned count)
{
    unsigned column = t->at.column;
    while (count > 0 && column > 0) {
        column--;
        count -= t->tabs[column / 64] >> column % 64 & 1;
    }
    t->at.column = (uint16_t)column;
    t->at.full = false;
}

static void to_column(struct terminal *t, uint32_t column)
{
    unsigned row = t->at.row - (t->at.origin ? t->top : 0u);
    terminal_go_to(t, row, column);
}

static void to_row(struct terminal *t, uint32_t row)
{
    unsigned column = t->at.column - (t->at.origin ? t->left : 0u);
    terminal_go_to(t, row, column);
}

/* -- Erasing and moving what is drawn -----------------------------------------------------------
 */

static void erase_in_row(struct terminal *t, uint32_t what)
{
    unsigned column = t->at.column;
    if (what == 0)
        terminal_erase(t, t->at.row, column, t->columns);
    else if (what == 1)
        terminal_erase(t, t->at.row, 0, column + 1);
    else if (what == 2)
        terminal_erase(t, t->at.row, 0, t->columns);
}

static void erase_display(struct terminal *t, uint32_t what)
{
    unsigned from = what == 0 ? t->at.row + 1u : 0;
    unsigned to = what == 1 ? t->at.row : t->rows;
    if (what > 2)
        return;
    for (unsigned row = from; row < to; row++)
        terminal_erase(t, row, 0, t->columns);
    if (what < 2)
        erase_in_row(t, what);
}

static bool in_region(const struct terminal *t)
{
    return t->at.row >= t->top && t->at.row < t->bottom && t->at.column >= t->left &&
           t->at.column < t->right;
}

/* Lines are inserted (by < 0 rows up) or deleted from the cursor's row on. */
static void shift_rows(struct terminal *t, int by)
{
    if (!in_region(t))
        return;
    terminal_scroll(t, t->at.row, by);
    to_left(t);
    t->at.full = false;
}

static void shift_cells(struct terminal *t, int by)
{
    if (t->paper && t->at.column >= t->left && t->at.column < t->right)
        t->paper->shift(t->paper_self, t->at.row, t->at.column, t->right, by, &t->at.pen);
    t->at.full = false;
}

static void repeat(struct terminal *t, uint32_t count)
{
    for (uint32_t i = 0; i < count && t->last; i++)
        terminal_put(t, t->last);
}

static void clear_tabs(struct terminal *t, uint32_t what)
{
    if (what == 0)
        t->tabs[t->at.column / 64] &= ~(UINT64_C(1) << t->at.column % 64);
    for (size_t i = 0; what == 3 && i < ARRAY_SIZE(t->tabs); i++)
        t->tabs[i] = 0;
}

/* -- Margins ----------------------------------------------------------------------------------- */

static void set_rows(struct terminal *t)
{
    uint32_t top = number_or(t, 0, 1) - 1;
    uint32_t bottom = MIN(number_or(t, 1, t->rows), (uint32_t)t->rows);
    if (top + 1 >= bottom)
        return;
    t->top = (uint16_t)top;
    t->bottom = (uint16_t)bottom;
    terminal_go_to(t, 0, 0);
}

/* Without left and right margins it saves the cursor. */
static void set_columns(struct terminal *t)
{
    uint32_t left = number_or(t, 0, 1) - 1;
    uint32_t right = MIN(number_or(t, 1, t->columns), (uint32_t)t->columns);
    if (!terminal_has(t, MODE_MARGINS)) {
        terminal_save(t);
        return;
    }
    if (left + 1 >= right)
        return;
    t->left = (uint16_t)left;
    t->right = (uint16_t)right;
    terminal_go_to(t, 0, 0);
}

/* -- Questions --------------------------------------------------------------------------------- */

void terminal_answer(const struct terminal *t, const char *format, ...)
{
    char text[64];
    va_list args;
    if (!t->answer)
        return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof text)
        t->answer(t->answer_self, text, (size_t)n);
}

static void say_where(const struct terminal *t, const char *mark)
{
    unsigned row = t->at.row - (t->at.origin ? t->top : 0u) + 1;
    unsigned column = t->at.column - (t->at.origin ? t->left : 0u) + 1;
    terminal_answer(t, "\x1b[%s%u;%uR", mark, row, column);
}

static void say_status(const struct terminal *t, uint32_t what)
{
    if (what == 5)
        terminal_answer(t, "\x1b[0n");
    else if (what == 6)
        say_where(t, "");
}

static void say_size(const struct terminal *t, uint32_t what)
{
    if (what == 18)
        terminal_answer(t, "\x1b[8;%u;%ut", t->rows, t->columns);
}

/* -- The table --------------------------------------------------------------------------------- */

/* Moves, and what else only concerns the cursor. False: it is none of those. */
static bool obey_move(struct terminal *t, uint32_t n)
{
    switch (t->escape.command) {
    case 'A':
        move_rows(t, -(int)n);
        return true;
    case 'B':
    case 'e':
        move_rows(t, (int)n);
        return true;
    case 'C':
    case 'a':
        move_columns(t, (int)n);
        return true;
    case 'D':
        move_columns(t, -(int)n);
        return true;
    case 'E':
        move_rows(t, (int)n);
        to_left(t);
        return true;
    case 'F':
        move_rows(t, -(int)n);
        to_left(t);
        return true;
    case 'G':
    case '`':
        to_column(t, n - 1);
        return true;
    case 'H':
    case 'f':
        terminal_go_to(t, n - 1, number_or(t, 1, 1) - 1);
        return true;
    case 'I':
        terminal_tab(t, n);
        return true;
    case 'Z':
        back_tab(t, n);
        return true;
    case 'd':
        to_row(t, n - 1);
        return true;
    default:
        return false;
    }
}

static bool obey_edit(struct terminal *t, uint32_t given, uint32_t n)
{
    int most = (int)MIN(n, (uint32_t)TERMINAL_COLUMNS_MAX);
    switch (t->escape.command) {
    case '@':
        shift_cells(t, most);
        return true;
    case 'J':
        erase_display(t, given);
        return true;
    case 'K':
        erase_in_row(t, given);
        return true;
    case 'L':
        shift_rows(t, -most);
        return true;
    case 'M':
        shift_rows(t, most);
        return true;
    case 'P':
        shift_cells(t, -most);
        return true;
    case 'S':
        terminal_scroll(t, t->top, most);
        return true;
    case 'T':
        terminal_scroll(t, t->top, -most);
        return true;
    case 'X':
        terminal_erase(t, t->at.row, t->at.column,
                       (unsigned)MIN(t->at.column + n, (uint32_t)t->columns));
        return true;
    case 'b':
        repeat(t, MIN(n, (uint32_t)(TERMINAL_COLUMNS_MAX * TERMINAL_ROWS_MAX)));
        return true;
    default:
        return false;
    }
}

void terminal_obey_csi(struct terminal *t)
{
    uint32_t given = escape_number(&t->escape, 0), n = MAX(given, 1u);
    if (obey_move(t, n) || obey_edit(t, given, n))
        return;
    switch (t->escape.command) {
    case 'c':
        terminal_answer(t, "\x1b[?62;22c");
        break;
    case 'g':
        clear_tabs(t, given);
        break;
    case 'h':
    case 'l':
        terminal_set_modes(t, false, t->escape.command == 'h');
        break;
    case 'm':
        terminal_take_pen(t);
        break;
    case 'n':
        say_status(t, given);
        break;
    case 'r':
        set_rows(t);
        break;
    case 's':
        set_columns(t);
        break;
    case 't':
        say_size(t, given);
        break;
    case 'u':
        terminal_restore(t);
        break;
    default:
        break;
    }
}

/* CSI ! p: what programs may have set is as at the beginning; what is drawn stays. */
static void reset_softly(struct terminal *t)
{
    t->modes = (t->modes & MODE_ALTERNATE) | MODE_WRAP | MODE_CURSOR;
    t->top = t->left = 0;
    t->bottom = t->rows;
    t->right = t->columns;
    t->at.origin = false;
    t->at.pen = (struct pen){0};
    t->at.set = t->at.once = 0;
    for (size_t i = 0; i < ARRAY_SIZE(t->at.sets); i++)
        t->at.sets[i] = 'B';
}

static void say_mode(const struct terminal *t, bool private, uint32_t number)
{
    terminal_answer(t, "\x1b[%s%u;%d$y", private ? "?" : "", (unsigned)number,
                    terminal_ask_mode(t, private, number));
}

void terminal_obey_private(struct terminal *t)
{
    char mark = t->escape.mark, between = t->escape.between, command = t->escape.command;
    uint32_t given = escape_number(&t->escape, 0);
    if (between == '$' && command == 'p')
        say_mode(t, mark == '?', given);
    else if (between == '!' && command == 'p')
        reset_softly(t);
    else if (between)
        return;
    else if (mark == '?' && (command == 'h' || command == 'l'))
        terminal_set_modes(t, true, command == 'h');
    else if (mark == '?' && command == 'J')
        erase_display(t, given);
    else if (mark == '?' && command == 'K')
        erase_in_row(t, given);
    else if (mark == '?' && command == 'n' && given == 6)
        say_where(t, "?");
    else if (mark == '>' && command == 'c')
        terminal_answer(t, "\x1b[>0;10;0c");
}
