/* The modes of a terminal, and the pen that SGR sets. */
#include "base/defs.h"
#include "screen/terminal.h"

/* -- Modes ------------------------------------------------------------------------------------- */

/* Those that are a bit and nothing else. */
static const struct plain_mode {
    bool private;
    uint16_t number;
    uint32_t bit;
} plain_modes[] = {
    {false, 4, MODE_INSERT},       {false, 20, MODE_NEWLINE},     {true, 1, MODE_KEYS},
    {true, 5, MODE_REVERSE},       {true, 7, MODE_WRAP},          {true, 25, MODE_CURSOR},
    {true, 66, MODE_KEYPAD},       {true, 69, MODE_MARGINS},      {true, 1000, MODE_MOUSE},
    {true, 1002, MODE_MOUSE_DRAG}, {true, 1003, MODE_MOUSE_MOVE}, {true, 1006, MODE_MOUSE_SGR},
    {true, 1004, MODE_FOCUS},      {true, 2004, MODE_PASTE},
};

static uint32_t plain_bit(bool private, uint32_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(plain_modes); i++)
        if (plain_modes[i].private == private && plain_modes[i].number == number)
            return plain_modes[i].bit;
    return 0;
}

static bool is_alternate(uint32_t number)
{
    return number == 47 || number == 1047 || number == 1049;
}

static void erase_screen(struct terminal *t)
{
    for (unsigned row = 0; row < t->rows; row++)
        terminal_erase(t, row, 0, t->columns);
}

/* The three ways of them: 1049 also keeps the cursor, and who enters by it finds it empty, who
 * leaves by 1047 has left it empty. */
static void choose_screen(struct terminal *t, uint32_t number, bool on)
{
    bool changes = terminal_has(t, MODE_ALTERNATE) != on;
    if (number == 1049 && on)
        terminal_save(t);
    if (number == 1047 && !on && changes)
        erase_screen(t);
    if (changes) {
        t->modes ^= MODE_ALTERNATE;
        if (t->paper)
            t->paper->choose(t->paper_self, on);
    }
    if (number == 1049 && on)
        erase_screen(t);
    if (number == 1049 && !on)
        terminal_restore(t);
}

static void set_private(struct terminal *t, uint32_t number, bool on)
{
    if (is_alternate(number))
        choose_screen(t, number, on);
    if (number == 6) {
        t->at.origin = on;
        terminal_go_to(t, 0, 0);
    }
    if (number == 1048 && on)
        terminal_save(t);
    if (number == 1048 && !on)
        terminal_restore(t);
    if (number == 69 && !on) {
        t->left = 0;
        t->right = t->columns;
    }
}

void terminal_set_modes(struct terminal *t, bool private, bool on)
{
    for (unsigned i = 0; i < escape_count(&t->escape); i++) {
        uint32_t number = t->escape.numbers[i];
        uint32_t bit = plain_bit(private, number);
        t->modes = on ? t->modes | bit : t->modes & ~bit;
        if (private)
            set_private(t, number, on);
    }
}

int terminal_ask_mode(const struct terminal *t, bool private, uint32_t number)
{
    uint32_t bit = plain_bit(private, number);
    if (private && number == 6)
        return t->at.origin ? 1 : 2;
    if (private && is_alternate(number))
        bit = MODE_ALTERNATE;
    return bit == 0 ? 0 : (t->modes & bit) != 0 ? 1 : 2;
}

/* -- The pen ----------------------------------------------------------------------------------- */

static const uint16_t attributes_on[10] = {
    [1] = PEN_BOLD,  [2] = PEN_FAINT,   [3] = PEN_ITALIC, [4] = PEN_UNDERLINE, [5] = PEN_BLINK,
    [6] = PEN_BLINK, [7] = PEN_REVERSE, [8] = PEN_HIDDEN, [9] = PEN_STRUCK,
};

static const uint16_t attributes_off[10] = {
    [1] = PEN_UNDERLINE, [2] = PEN_BOLD | PEN_FAINT, [3] = PEN_ITALIC, [4] = PEN_UNDERLINE,
    [5] = PEN_BLINK,     [7] = PEN_REVERSE,          [8] = PEN_HIDDEN, [9] = PEN_STRUCK,
};

/* How many numbers from one on are joined to it by colons. */
static unsigned joined_to(const struct escape *e, unsigned which)
{
    unsigned n = 0;
    while (which + n + 1 < escape_count(e) && (e->joined >> (which + n + 1) & 1))
        n++;
    return n;
}

static uint32_t rgb(const struct escape *e, unsigned from)
{
    uint32_t colour = COLOUR_RGB;
    for (unsigned i = 0; i < 3; i++)
        colour |= MIN(escape_number(e, from + i), 255u) << (16 - 8 * i);
    return colour;
}

/* 38 or 48, and what says which colour: 5;N, 2;R;G;B, or the same with colons, where a number for
 * the space of colours may come before the red. Returns how many numbers that was. */
static unsigned take_colour(const struct escape *e, unsigned which, uint32_t *colour)
{
    unsigned joined = joined_to(e, which), kind = escape_number(e, which + 1);
    if (kind == 5) {
        *colour = COLOUR_INDEX | MIN(escape_number(e, which + 2), 255u);
        return joined > 0 ? joined : 2;
    }
    if (kind == 2) {
        *colour = rgb(e, which + 2 + (joined >= 5));
        return joined > 0 ? joined : 4;
    }
    return joined > 0 ? joined : 1;
}

static void take_attribute(struct pen *pen, uint32_t number)
{
    if (number == 0)
        *pen = (struct pen){0};
    else if (number < 10)
        pen->attributes |= attributes_on[number];
    else if (number >= 20 && number < 30)
        pen->attributes &= ~(uint32_t)attributes_off[number - 20];
    else if (number >= 30 && number < 38)
        pen->front = COLOUR_INDEX | (number - 30);
    else if (number == 39)
        pen->front = 0;
    else if (number >= 40 && number < 48)
        pen->back = COLOUR_INDEX | (number - 40);
    else if (number == 49)
        pen->back = 0;
    else if (number >= 90 && number < 98)
        pen->front = COLOUR_INDEX | (number - 90 + 8);
    else if (number >= 100 && number < 108)
        pen->back = COLOUR_INDEX | (number - 100 + 8);
}

void terminal_take_pen(struct terminal *t)
{
    const struct escape *e = &t->escape;
    struct pen *pen = &t->at.pen;
    uint32_t of_line; /* the colour of underlines is not kept */
    for (unsigned i = 0; i < escape_count(e); i++) {
        uint32_t number = e->numbers[i];
        unsigned joined = joined_to(e, i);
        if (number == 38)
            i += take_colour(e, i, &pen->front);
        else if (number == 48)
            i += take_colour(e, i, &pen->back);
        else if (number == 58)
            i += take_colour(e, i, &of_line);
        else if (number == 4 && joined > 0 && e->numbers[i + 1] == 0)
            pen->attributes &= ~(uint32_t)PEN_UNDERLINE, i += joined;
        else
            take_attribute(pen, number), i += joined;
    }
}
