/* The words of a command, as far as they are known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum shell_word_kind {
    WORD_LITERAL, /* exactly this */
    WORD_ONE,     /* one word that is known only when it runs */
    WORD_ANY      /* any number of them */
};

struct shell_word {
    const char *text; /* what the program gets; unless it is literal, as it is written */
    size_t size;      /* of it; a NUL is behind it */
    enum shell_word_kind kind;
    bool bare;   /* nothing in it is quoted */
    bool number; /* whatever it becomes, it is an integer */
};

/* Whether it is exactly this text. */
bool word_is(const struct shell_word *w, const char *text);

/* The last part of a path. */
const char *program_name(const char *path);
