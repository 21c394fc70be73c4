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
    CUT,   /* the same, and nothing comes of it */
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
    [BEGUN] = {OBEY, TEXT, OBEY, CUT, BEGIN, NAME, END, OPEN, TAKE, TEXT},
    [SHORT] = {OBEY, TEXT, OBEY, CUT, BEGIN, TAKE, END, END, TAKE, TEXT},
    [CSI] = {OBEY, TEXT, OBEY, CUT, BEGIN, MARK, COUNT, FINISH, TAKE, TEXT},
    [OSC] = {TAKE, TEXT, END, CUT, BEGIN, TAKE, TAKE, TAKE, TAKE, TAKE},
    [STRING] = {TAKE, TEXT, TAKE, CUT, BEGIN, TAKE, TAKE, TAKE, TAKE, TAKE},
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

static void next_number(struct escape *e, bool joined)
{
    if (e->last < ESCAPE_NUMBERS)
        e->last++;
    if (e->last == ESCAPE_NUMBERS)
        return;
    e->numbers[e->last] = 0;
    e->joined |= (uint32_t)joined << e->last;
}

static void count_parameter(struct escape *e, uint8_t byte)
{
    if (byte == ';' || byte == ':') {
        next_number(e, byte == ':');
    } else if (byte > '9') {
        e->mark = (char)byte;
    } else if (e->last < ESCAPE_NUMBERS) {
        uint32_t *number = &e->numbers[e->last];
        *number = MIN(*number * 10 + (byte - '0'), (uint32_t)ESCAPE_NUMBER_MAX);
    }
}

static bool in_string(const struct escape *e)
{
    return e->state == OSC || e->state == STRING;
}

static enum escape_answer begin_sequence(struct escape *e)
{
    enum escape_answer answer = in_string(e) ? ESCAPE_STRING : ESCAPE_TAKEN;
    e->state = BEGUN;
    e->size = 1;
    e->mark = e->between = 0;
    e->last = 0;
    e->joined = 0;
    e->numbers[0] = 0;
    return answer;
}

static enum escape_answer open_kind(struct escape *e, uint8_t byte)
{
    e->state = opened_by(byte);
    e->command = (char)byte;
    if (e->state == GROUND)
        return ESCAPE_SHORT;
    e->text_size = 0;
    return ESCAPE_TAKEN;
}

static enum escape_answer close_sequence(struct escape *e, uint8_t byte)
{
    enum escape_answer answer = in_string(e) ? ESCAPE_STRING : ESCAPE_SHORT;
    e->state = GROUND;
    e->command = (char)byte;
    return answer;
}

/* What the final byte of a CSI makes of it. */
static enum escape_answer finish_csi(struct escape *e, uint8_t byte)
{
    e->state = GROUND;
    e->command = (char)byte;
    if (e->mark || e->between || (e->joined && byte != 'm'))
        return ESCAPE_PRIVATE;
    return ESCAPE_COMMAND;
}

static void keep_text(struct escape *e, uint8_t byte)
{
    if (e->state == OSC && e->text_size < ESCAPE_TEXT_MAX)
        e->text[e->text_size++] = (char)byte;
    else if (e->state == SHORT)
        e->between = (char)byte;
}

/* A string that is too long does not end inside a character. */
static bool too_long(const struct escape *e, uint8_t byte)
{
    if (in_string(e))
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
        return begin_sequence(e);
    case OPEN:
        return open_kind(e, byte);
    case NAME:
        e->state = SHORT;
        e->between = (char)byte;
        break;
    case COUNT:
        count_parameter(e, byte);
        break;
    case MARK:
        e->between = (char)byte;
        break;
    case CUT:
        e->state = GROUND;
        break;
    case END:
        return close_sequence(e, byte);
    case FINISH:
        return finish_csi(e, byte);
    case TAKE:
        keep_text(e, byte);
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
