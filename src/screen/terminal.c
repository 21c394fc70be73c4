#include "screen/terminal.h"

#include <string.h>

#include "base/defs.h"
#include "text/utf8.h"

#define TAB 8

/* What line drawing has in place of the letters from underscore to tilde. */
static const uint16_t line_drawing[] = {
    0x00a0, 0x25c6, 0x2592, 0x2409, 0x240c, 0x240d, 0x240a, 0x00b0, 0x00b1, 0x2424, 0x240b,
    0x2518, 0x2510, 0x250c, 0x2514, 0x253c, 0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c,
    0x2524, 0x2534, 0x252c, 0x2502, 0x2264, 0x2265, 0x03c0, 0x2260, 0x00a3, 0x00b7,
};

/* -- Where the cursor may be ------------------------------------------------------------------- */

/* The column after the last one that text comes to. */
static unsigned right_of(const struct terminal *t)
{
    return t->at.column < t->right ? t->right : t->columns;
}

static bool between_margins(const struct terminal *t)
{
    return t->at.column >= t->left && t->at.column < t->right;
}

void terminal_go_to(struct terminal *t, unsigned row, unsigned column)
{
    unsigned rows = t->at.origin ? t->bottom : t->rows;
    unsigned columns = t->at.origin ? t->right : t->columns;
    t->at.row = (uint16_t)MIN(row + (t->at.origin ? t->top : 0u), rows - 1);
    t->at.column = (uint16_t)MIN(column + (t->at.origin ? t->left : 0u), columns - 1);
    t->at.full = false;
}

void terminal_save(struct terminal *t)
{
    t->saved[terminal_has(t, MODE_ALTERNATE)] = t->at;
}

void terminal_restore(struct terminal *t)
{
    t->at = t->saved[terminal_has(t, MODE_ALTERNATE)];
    t->at.row = (uint16_t)MIN((unsigned)t->at.row, t->rows - 1u);
    t->at.column = (uint16_t)MIN((unsigned)t->at.column, t->columns - 1u);
}

void terminal_scroll(struct terminal *t, unsigned top, int by)
{
    if (t->paper)
        t->paper->scroll(t->paper_self, top, t->bottom, t->left, t->right, by, &t->at.pen);
}

void terminal_down(struct terminal *t)
{
    t->at.full = false;
    if (t->at.row + 1 != t->bottom)
        t->at.row = (uint16_t)MIN(t->at.row + 1, t->rows - 1);
    else if (between_margins(t))
        terminal_scroll(t, t->top, 1);
}

void terminal_up(struct terminal *t)
{
    t->at.full = false;
    if (t->at.row == t->top) {
        if (between_margins(t))
            terminal_scroll(t, t->top, -1);
    } else if (t->at.row > 0) {
        t->at.row--;
    }
}

static void carriage_return(struct terminal *t)
{
    t->at.column = t->at.column >= t->left ? t->left : 0;
    t->at.full = false;
}

void terminal_tab(struct terminal *t, unsigned count)
{
    unsigned last = right_of(t) - 1, column = t->at.column;
    while (count > 0 && column < last) {
        column++;
        count -= t->tabs[column / 64] >> column % 64 & 1;
    }
    /* At the end of a row that is full it stays full. */
    t->at.full = t->at.full && column == t->at.column;
    t->at.column = (uint16_t)column;
}

void terminal_erase(struct terminal *t, unsigned row, unsigned from, unsigned to)
{
    if (t->paper && from < to)
        t->paper->erase(t->paper_self, row, from, to, &t->at.pen);
}

/* -- Text -------------------------------------------------------------------------------------- */

/* Room for a character of that width: in the next row, if there is none in this one. */
static void ensure_room(struct terminal *t, unsigned width)
{
    if (!terminal_has(t, MODE_WRAP)) {
        if (t->at.column + width > right_of(t))
            t->at.column = (uint16_t)(right_of(t) - width);
        return;
    }
    if (!t->at.full && t->at.column + width <= right_of(t))
        return;
    carriage_return(t);
    terminal_down(t);
}

static void move_on(struct terminal *t, unsigned width)
{
    unsigned end = right_of(t);
    t->at.full = t->at.column + width >= end;
    t->at.column = (uint16_t)MIN(t->at.column + width, end - 1);
}

static void push_aside(const struct terminal *t, unsigned width)
{
    if (t->paper && terminal_has(t, MODE_INSERT))
        t->paper->shift(t->paper_self, t->at.row, t->at.column, right_of(t), (int)width,
                        &t->at.pen);
}

/* It belongs to the character before the cursor. */
static void put_combining(struct terminal *t, uint32_t point)
{
    unsigned column = t->at.full ? t->at.column : t->at.column - 1u;
    if (t->paper && (t->at.full || t->at.column > 0))
        t->paper->mark(t->paper_self, t->at.row, column, point);
}

void terminal_put(struct terminal *t, uint32_t point)
{
    unsigned width = utf8_width(point);
    if (width == 0) {
        put_combining(t, point);
        return;
    }
    ensure_room(t, width);
    push_aside(t, width);
    if (t->paper)
        t->paper->put(t->paper_self, t->at.row, t->at.column, point, width, &t->at.pen);
    move_on(t, width);
    t->last = point;
}

static char current_set(struct terminal *t)
{
    char set = t->at.sets[t->at.once];
    t->at.once = t->at.set;
    return set;
}

static void put_translated(struct terminal *t, char c)
{
    char set = current_set(t);
    uint32_t point = (uint8_t)c;
    if (set == '0' && c >= '_' && c <= '~')
        point = line_drawing[c - '_'];
    else if (set == 'A' && c == '#')
        point = 0xa3;
    terminal_put(t, point);
}

/* Printable ASCII, a row's worth at a time. */
static void put_plain_run(struct terminal *t, const char *s, size_t size)
{
    while (size > 0) {
        ensure_room(t, 1);
        size_t n = MIN(size, (size_t)(right_of(t) - t->at.column));
        push_aside(t, (unsigned)n);
        if (t->paper)
            t->paper->put_plain(t->paper_self, t->at.row, t->at.column, s, n, &t->at.pen);
        move_on(t, (unsigned)n);
        s += n;
        size -= n;
        t->last = (uint8_t)s[-1];
    }
}

static void put_ascii(struct terminal *t, const char *s, size_t size)
{
    size_t i = 0;
    /* Of the next character alone, or of all. */
    while (i < size && (t->at.once != t->at.set || t->at.sets[t->at.set] != 'B'))
        put_translated(t, s[i++]);
    put_plain_run(t, s + i, size - i);
}

/* -- Controls ---------------------------------------------------------------------------------- */

static void shift_in(struct terminal *t, uint8_t set)
{
    t->at.set = t->at.once = set;
}

static void obey_control(struct terminal *t, uint8_t byte)
{
    switch (byte) {
    case '\b':
        if (t->at.column > 0 && t->at.column != t->left)
            t->at.column--;
        t->at.full = false;
        break;
    case '\t':
        terminal_tab(t, 1);
        break;
    case '\n':
    case '\v':
    case '\f':
        terminal_down(t);
        if (terminal_has(t, MODE_NEWLINE))
            carriage_return(t);
        break;
    case '\r':
        carriage_return(t);
        break;
    case 0x0e:
        shift_in(t, 1);
        break;
    case 0x0f:
        shift_in(t, 0);
        break;
    default:
        break;
    }
}

/* -- Short sequences and strings --------------------------------------------------------------- */

/* ESC # 8: the whole screen is full of E. */
static void fill_with_e(struct terminal *t)
{
    t->top = t->left = 0;
    t->bottom = t->rows;
    t->right = t->columns;
    t->at.origin = false;
    terminal_go_to(t, 0, 0);
    for (unsigned row = 0; t->paper && row < t->rows; row++)
        for (unsigned column = 0; column < t->columns; column++)
            t->paper->put(t->paper_self, row, column, 'E', 1, &(struct pen){0});
}

static void obey_named(struct terminal *t)
{
    static const char names[] = "()*+";
    const char *which = strchr(names, t->escape.between);
    if (which)
        t->at.sets[which - names] = t->escape.command;
    else if (t->escape.between == '#' && t->escape.command == '8')
        fill_with_e(t);
}

static void obey_short(struct terminal *t)
{
    if (t->escape.between) {
        obey_named(t);
        return;
    }
    switch (t->escape.command) {
    case '7':
        terminal_save(t);
        break;
    case '8':
        terminal_restore(t);
        break;
    case '=':
        t->modes |= MODE_KEYPAD;
        break;
    case '>':
        t->modes &= ~(uint32_t)MODE_KEYPAD;
        break;
    case 'D':
        terminal_down(t);
        break;
    case 'E':
        terminal_down(t);
        carriage_return(t);
        break;
    case 'H':
        t->tabs[t->at.column / 64] |= UINT64_C(1) << t->at.column % 64;
        break;
    case 'M':
        terminal_up(t);
        break;
    case 'N':
        t->at.once = 2;
        break;
    case 'O':
        t->at.once = 3;
        break;
    case 'c':
        terminal_reset(t);
        break;
    case 'n':
        shift_in(t, 2);
        break;
    case 'o':
        shift_in(t, 3);
        break;
    default:
        break;
    }
}

/* Programs ask for colours to find out whether the background is dark. It is. */
static void obey_string(const struct terminal *t)
{
    const char *text = t->escape.text;
    if (t->escape.text_size != 4 || text[0] != '1' || memcmp(text + 2, ";?", 2) != 0)
        return;
    if (text[1] == '0')
        terminal_answer(t, "\x1b]10;rgb:ffff/ffff/ffff\x1b\\");
    else if (text[1] == '1')
        terminal_answer(t, "\x1b]11;rgb:0000/0000/0000\x1b\\");
}

/* -- Bytes ------------------------------------------------------------------------------------- */

static size_t feed_sequence(struct terminal *t, const char *s, size_t size)
{
    for (size_t n = 0; n < size; n++) {
        enum escape_answer answer = escape_feed(&t->escape, (uint8_t)s[n]);
        if (answer == ESCAPE_TAKEN)
            continue;
        if (answer == ESCAPE_TEXT)
            return n;
        if (answer == ESCAPE_COMMAND)
            terminal_obey_csi(t);
        else if (answer == ESCAPE_PRIVATE)
            terminal_obey_private(t);
        else if (answer == ESCAPE_SHORT)
            obey_short(t);
        else if (answer == ESCAPE_STRING)
            obey_string(t);
        else
            obey_control(t, (uint8_t)s[n]);
        if (!escape_inside(&t->escape))
            return n + 1;
    }
    return size;
}

/* A control, a character beyond ASCII, or the beginning of one. */
static size_t feed_other(struct terminal *t, const char *s, size_t size)
{
    uint32_t point;
    size_t n = utf8_next(s, size, &point);
    if (n == 0) {
        memcpy(t->torn, s, size);
        t->torn_size = (uint8_t)size;
        return size;
    }
    if (point < ' ')
        obey_control(t, (uint8_t)point);
    else if (point == UTF8_INVALID)
        terminal_put(t, 0xfffd);
    else if (point >= 0xa0)
        terminal_put(t, point);
    return n;
}

/* Completes a character that was torn, or finds that it cannot be: how much of it came now. */
static size_t feed_rest(struct terminal *t, const char *s, size_t size)
{
    size_t had = t->torn_size, n = 0;
    char bytes[8];
    memcpy(bytes, t->torn, had);
    while (n < size && had + n < 4)
        bytes[had + n] = s[n], n++;
    t->torn_size = 0;
    size_t taken = feed_other(t, bytes, had + n);
    /* What broke it off stays where it is; less than it had is more than one character in bytes. */
    return taken >= had ? taken - had : 0;
}

static size_t feed_next(struct terminal *t, const char *s, size_t size)
{
    if (t->torn_size > 0)
        return feed_rest(t, s, size);
    if (escape_inside(&t->escape) || *s == 0x1b)
        return feed_sequence(t, s, size);
    size_t n = scan_plain(s, size);
    if (n == 0)
        return feed_other(t, s, size);
    put_ascii(t, s, n);
    return n;
}

void terminal_feed(struct terminal *t, const void *bytes, size_t size)
{
    const char *s = bytes;
    while (size > 0) {
        size_t n = feed_next(t, s, size);
        s += n;
        size -= n;
    }
}

/* -- The whole --------------------------------------------------------------------------------- */

static void begin_tabs(struct terminal *t, unsigned from)
{
    for (unsigned column = from; column < TERMINAL_COLUMNS_MAX; column++)
        if (column % TAB == 0)
            t->tabs[column / 64] |= UINT64_C(1) << column % 64;
}

static void set_size(struct terminal *t, unsigned columns, unsigned rows)
{
    t->columns = (uint16_t)MIN(MAX(columns, TERMINAL_COLUMNS_MIN), TERMINAL_COLUMNS_MAX);
    t->rows = (uint16_t)MIN(MAX(rows, TERMINAL_ROWS_MIN), TERMINAL_ROWS_MAX);
    t->top = t->left = 0;
    t->bottom = t->rows;
    t->right = t->columns;
}

static struct cursor home_cursor(void)
{
    return (struct cursor){.sets = {'B', 'B', 'B', 'B'}};
}

static void begin_anew(struct terminal *t)
{
    t->modes = MODE_WRAP | MODE_CURSOR;
    t->at = t->saved[0] = t->saved[1] = home_cursor();
    t->last = 0;
    memset(t->tabs, 0, sizeof t->tabs);
    begin_tabs(t, 0);
    set_size(t, t->columns, t->rows);
}

void terminal_init(struct terminal *t, unsigned columns, unsigned rows)
{
    *t = (struct terminal){0};
    set_size(t, columns, rows);
    begin_anew(t);
}

void terminal_reset(struct terminal *t)
{
    if (t->paper && terminal_has(t, MODE_ALTERNATE))
        t->paper->choose(t->paper_self, false);
    begin_anew(t);
    for (unsigned row = 0; row < t->rows; row++)
        terminal_erase(t, row, 0, t->columns);
}

unsigned terminal_resize(struct terminal *t, unsigned columns, unsigned rows)
{
    set_size(t, columns, rows);
    unsigned gone = t->at.row >= t->rows ? t->at.row - t->rows + 1u : 0;
    t->at.row = (uint16_t)(t->at.row - gone);
    t->at.column = (uint16_t)MIN((unsigned)t->at.column, t->columns - 1u);
    t->at.full = false;
    return gone;
}
