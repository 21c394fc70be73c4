#include "view/escape.h"

#include "base/defs.h"

enum state { GROUND, BEGUN, SHORT, CSI, OSC, STRING, STATES };

enum kind {
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

static enum kind kind_of(uint8_t byte)
{
    switch (byte) {
    case '\n':
        return NEWLINE;
    case '\a':
        return BELL;
    case 0x18:
    case 0x1a:
        return CANCEL;
    case 0x1b:
        return ESCAPE;
    case 0x7f:
        return DELETE;
    default:
        return byte >= 0x80   ? HIGH
               : byte >= 0x40 ? FINAL
               : byte >= 0x30 ? PARAMETER
               : byte >= 0x20 ? INTERMEDIATE
                              : CONTROL;
    }
}

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

static void count(struct escape *e, uint8_t byte)
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
        count(e, byte);
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
    enum action action = actions[e->state][kind_of(byte)];
    if (e->state != GROUND && action != BEGIN && too_long(e, byte))
        action = TEXT;
    e->size++;
    return act(e, action, byte);
}
