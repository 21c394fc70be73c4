/*
 * A person's terminal, taken over for a while: every key comes as its bytes, and what is written
 * never waits. It is given back as it was, by whatever way we leave; who stops us has it meanwhile.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#include "base/buf.h"

struct raw_terminal {
    struct termios saved;
    sigset_t blocked;
    bool taken;
    int out; /* a description of our own, if that is possible: others' writes still wait */
    int signal_fd;
    const char *enter, *leave; /* what is written when it is taken, and given back */
    struct buf pending;        /* not written yet */
    size_t written;
};

/* What came. */
enum raw_event {
    RAW_NOTHING,
    RAW_RESIZED, /* it has another size, maybe */
    RAW_BACK,    /* we were stopped and go on: all is to be drawn again */
    RAW_STOP,    /* one of the signals that mean "stop" came: *ret_signal */
};

/* Whether stdin and stdout are terminals, and the latter can move its cursor. */
bool raw_terminal_is_possible(void);

/* 0 or -errno. enter and leave are borrowed. */
int raw_terminal_open(struct raw_terminal *t, const char *enter, const char *leave);
void raw_terminal_close(struct raw_terminal *t);

/* Another way of reading keys than one by one: by lines, which the terminal itself edits and shows,
 * and which also end at one of two characters; 0 = none. */
void raw_terminal_lines(struct raw_terminal *t, char end, char other_end);
void raw_terminal_keys(struct raw_terminal *t);

void raw_terminal_size(unsigned *ret_columns, unsigned *ret_rows);

/* Takes in what signal_fd has. */
enum raw_event raw_terminal_hear(struct raw_terminal *t, int *ret_signal);

/* Whether something waits to be written; and writes of it what there is room for. -errno if nobody
 * will ever read it. */
static inline bool raw_terminal_owes(const struct raw_terminal *t)
{
    return t->written < t->pending.len;
}
int raw_terminal_write(struct raw_terminal *t);

/* The next bytes that were typed: how many, 0 = none now, or -errno: there is nobody any more. */
ssize_t raw_terminal_read(char *bytes, size_t size);
