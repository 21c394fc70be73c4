#include "screen/passing.h"

#include <string.h>

#include "base/defs.h"
#include "screen/canvas.h"
#include "text/utf8.h"

#define ESC 0x1b

/* -- What passes ------------------------------------------------------------------------------- */

/* Attributes, status and size are asked for by these, and media copied. */
static bool plain_csi_passes(const struct escape *e)
{
    return !strchr("cintx", e->command);
}

/* By the mark or the intermediate that makes it another command: finals that draw or set. */
static bool marked_csi_passes(const struct escape *e)
{
    static const struct {
        char mark, between;
        const char *finals;
    } rules[] = {
        {'?', 0, "hlsrJK"}, {'>', 0, "mu"}, {'<', 0, "u"},      {'=', 0, "u"}, {0, ' ', "q@A"},
        {0, '!', "p"},      {0, '"', "q"},  {0, '$', "rtvxz{"}, {0, '*', "x"}, {0, '\'', "}~"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].mark == e->mark && rules[i].between == e->between)
            return strchr(rules[i].finals, e->command) != NULL;
    return false;
}

static bool short_passes(const struct escape *e)
{
    if (e->between)
        return strchr("()*+-./#", e->between) != NULL;
    return !strchr("Z\\", e->command);
}

/* Titles and links. */
static bool string_passes(const struct passing *p)
{
    const char *held = p->held;
    return p->held_size > 3 && held[1] == ']' && strchr("0128", held[2]) && held[3] == ';';
}

static bool control_passes(uint32_t byte)
{
    return byte >= '\a' && byte <= 0x0f;
}

/* -- Bytes ------------------------------------------------------------------------------------- */

static int let_held_pass(struct passing *p, struct buf *out, bool passes)
{
    int r = passes && !p->spilled ? buf_append(out, p->held, p->held_size) : 0;
    p->held_size = 0;
    p->spilled = false;
    return r;
}

static void hold_byte(struct passing *p, char byte)
{
    if (p->held_size < sizeof p->held)
        p->held[p->held_size++] = byte;
    else
        p->spilled = true;
}

/* Outside of sequences: the first byte of a character, or one that belongs to it. */
static int pass_text(struct passing *p, struct buf *out, char byte)
{
    uint32_t point;
    hold_byte(p, byte);
    size_t n = utf8_next(p->held, p->held_size, &point);
    if (n == 0)
        return 0;
    bool whole = n == p->held_size;
    bool fine =
        point < ' ' ? control_passes(point) : point != 0x7f && (point < 0x80 || point >= 0xa0);
    int r = point == UTF8_INVALID ? buf_str(out, UTF8_REPLACEMENT)
            : fine                ? buf_append(out, p->held, n)
                                  : 0;
    p->held_size = 0;
    /* What broke the character off begins the next one. */
    return r < 0 || whole ? r : pass_text(p, out, byte);
}

/* A string that ESC ends has its end put back: the rest of that is dropped. */
static int end_string(struct passing *p, struct buf *out, char byte)
{
    bool passes = string_passes(p) && !p->spilled;
    if (byte != ESC)
        hold_byte(p, byte);
    int r = let_held_pass(p, out, passes);
    if (r == 0 && byte == ESC && passes)
        r = buf_str(out, "\x1b\\");
    if (byte == ESC)
        hold_byte(p, byte);
    return r;
}

static int pass_sequence(struct passing *p, struct buf *out, char byte)
{
    bool fine;
    switch (escape_feed(&p->escape, (uint8_t)byte)) {
    case ESCAPE_COMMAND:
        fine = plain_csi_passes(&p->escape);
        break;
    case ESCAPE_PRIVATE:
        fine = marked_csi_passes(&p->escape);
        break;
    case ESCAPE_SHORT:
        fine = short_passes(&p->escape);
        break;
    case ESCAPE_STRING:
        return end_string(p, out, byte);
    case ESCAPE_CONTROL:
        return control_passes((uint8_t)byte) ? buf_append(out, &byte, 1) : 0;
    case ESCAPE_TEXT:
        p->held_size = 0;
        p->spilled = false;
        return pass_text(p, out, byte);
    default:
        hold_byte(p, byte);
        /* What was cut off is nothing. */
        return escape_inside(&p->escape) ? 0 : let_held_pass(p, out, false);
    }
    hold_byte(p, byte);
    return let_held_pass(p, out, fine);
}

int passing_feed(struct passing *p, struct buf *out, const char *data, size_t size)
{
    int r = 0;
    terminal_feed(&p->terminal, data, size);
    while (r == 0 && size > 0) {
        bool free_of = !escape_inside(&p->escape) && p->held_size == 0;
        size_t n = free_of ? scan_plain(data, size) : 0;
        if (n > 0) {
            r = buf_append(out, data, n);
        } else {
            bool sequence = escape_inside(&p->escape) || *data == ESC;
            /* A character that was begun is none. */
            if (sequence && !escape_inside(&p->escape))
                p->held_size = 0;
            r = sequence ? pass_sequence(p, out, *data) : pass_text(p, out, *data);
            n = 1;
        }
        data += n;
        size -= n;
    }
    return r;
}

int passing_leave(const struct passing *p, struct buf *out)
{
    struct canvas all = {.modes = p->terminal.modes};
    int r = terminal_has(&p->terminal, MODE_ALTERNATE) ? buf_str(out, "\x1b[?1049l") : 0;
    if (r == 0 && !terminal_has(&p->terminal, MODE_CURSOR))
        r = buf_str(out, "\x1b[?25h");
    if (r == 0)
        r = canvas_keys_off(&all, out);
    return r < 0 ? r : buf_str(out, "\x1b[0m\x1b[?7h");
}
