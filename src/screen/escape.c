#include "screen/escape.h"

#include "base/defs.h"

enum state { GROUND, BEGUN, SHORT, CSI, OSC, STRING, STATES };

enum byte_kind {
    CONTROL,
    NEWLINE,
    BELL,
    CANCEL,
    ESCAPE,
    INTERMEDIATE, /* space to slash */
    PARAMETER,    /* digits and : ; < = > ? */
    FINAL,        /* @ to tilde */
    DELETE,
    HIGH, /* not ASCII */
    KINDS
};

enum action {
    TEXT,  /* ends the sequence before this byte */
    TAKE,  /* goes on */
    END,   /* ends the sequence with this byte */
    BEGIN, /* begins a new one */
    OPEN,  /* the byte after ESC says which kind it is */
    NAME,  /* a short form with an intermediate */
    COUNT, /* a digit or what separates numbers */
    MARK,  /* a CSI that is no command of ours */
    OBEY,  /* a control to be obeyed inside */
    FINISH /* the final byte of a CSI */
};

static const uint8_t actions[STATES][KINDS] = {
    /*           CONTROL NEWLINE BELL CANCEL ESCAPE INTERM. PARAM. FINAL DELETE HIGH */
    [GROUND] = {TEXT, TEXT, TEXT, TEXT, BEGIN, TEXT, TEXT, TEXT, TEXT, TEXT},
    [BEGUN] = {OBEY, TEXT, OBEY, END, BEGIN, NAME, END, OPEN, TAKE, TEXT},
    [SHORT] = {OBEY, TEXT, OBEY, END, BEGIN, TAKE, END, END, TAKE, TEXT},
    [CSI] = {OBEY, TEXT, OBEY, END, BEGIN, MARK, COUNT, FINISH, TAKE, TEXT},
    [OSC] = {TAKE, TEXT, END, END, BEGIN, TAKE, TAKE, TAKE, TAKE, TAKE},
    [STRING] = {TAKE, TEXT, TAKE, END, BEGIN, TAKE, TAKE, TAKE, TAKE, TAKE},
};

static const uint8_t byte_kinds[256] = {
    [0x00 ... 0x06] = CONTROL,
    [0x07] = BELL,
    [0x08 ... 0x09] = CONTROL,
    [0x0a] = NEWLINE,
    [0x0b ... 0x17] = CONTROL,
    [0x18] = CANCEL,
    [0x19] = CONTROL,
    [0x1a] = CANCEL,
    [0x1b] = ESCAPE,
    [0x1c ... 0x1f] = CONTROL,
    [0x20 ... 0x2f] = INTERMEDIATE,
    [0x30 ... 0x3f] = PARAMETER,
    [0x40 ... 0x7e] = FINAL,
    [0x7f] = DELETE,
    [0x80 ... 0xff] = HIGH,
};

/* ST needs no entry: ESC has already ended the string, and the backslash ends a short form. */
static enum state opened_by(uint8_t byte)
{
    switch (byte) {
    case '[':
        return CSI;
    case ']':
        return OSC;
    case 'P':
    case 'X':
    case '^':
    case '_':
    case 'k':
        return STRING;
    default:
        return GROUND;
    }
}

static void count_parameter(struct escape *e, uint8_t byte)
{
    if (byte == ';')
        e->later = true;
    else if (byte > '9')
        e->strange = true;
    else if (!e->later)
        e->number = MIN(e->number * 10 + (byte - '0'), (uint32_t)ESCAPE_NUMBER_MAX);
}

/* A string that is too long does not end inside a character. */
static bool too_long(const struct escape *e, uint8_t byte)
{
    if (e->state == OSC || e->state == STRING)
        return e->size >= ESCAPE_STRING_MAX && (byte & 0xc0) != 0x80;
    return e->size >= ESCAPE_MAX;
}

static enum escape_answer act(struct escape *e, enum action action, uint8_t byte)
{
    switch (action) {
    case TEXT:
        e->state = GROUND;
        return ESCAPE_TEXT;
    case OBEY:
        return ESCAPE_CONTROL;
    case BEGIN:
        *e = (struct escape){.state = BEGUN, .size = 1};
        break;
    case OPEN:
        e->state = opened_by(byte);
        break;
    case NAME:
        e->state = SHORT;
        break;
    case COUNT:
        count_parameter(e, byte);
        break;
    case MARK:
        e->strange = true;
        break;
    case END:
        e->state = GROUND;
        break;
    case FINISH:
        e->state = GROUND;
        e->command = (char)byte;
        return e->strange ? ESCAPE_TAKEN : ESCAPE_COMMAND;
    case TAKE:
        break;
    }
    return ESCAPE_TAKEN;
}

enum escape_answer escape_feed(struct escape *e, uint8_t byte)
{
    enum action action = actions[e->state][byte_kinds[byte]];
    if (e->state != GROUND && action != BEGIN && too_long(e, byte))
        action = TEXT;
    e->size++;
    return act(e, action, byte);
}

size_t escape_colours(const char *s, size_t size)
{
    size_t n = 2;
    if (size < 3 || s[0] != 0x1b || s[1] != '[')
        return 0;
    size = MIN(size, (size_t)ESCAPE_MAX);
    while (n < size && (uint8_t)(s[n] - '0') < 0x10)
        n++;
    return n < size && s[n] == 'm' ? n + 1 : 0;
}
