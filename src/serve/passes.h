/*
 * Passes of pages. A browser is let in by a code, which is good once and for a minute: whoever may
 * write into the home makes one, as a file there, and the server takes it away when it is shown.
 * For it the page gets a pass, with one of two rights. Passes are kept in a file, so that a page
 * that is open outlives a server that is started again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nacre/error.h>

#include "serve/token.h"

#define PASSES_MAX 64 /* then the oldest go */
#define CODE_SIZE  32 /* hex digits of 128 bits */
#define CODE_S     60
#define PASS_DAYS  30

enum right { RIGHT_NONE, RIGHT_VIEW, RIGHT_ACT };

struct page_pass {
    struct token token;
    enum right right;
    int64_t made_s; /* since the epoch */
};

struct passes {
    char home[4096]; /* "" = there are none */
    struct page_pass items[PASSES_MAX];
    size_t count;
};

/* Those that the home has. What cannot be read is as if it were not there. */
void passes_load(struct passes *p, const char *home);

/* The right of a pass that was shown; takes the same time whatever was shown. */
enum right passes_find(const struct passes *p, const char *shown, size_t size);

/* A pass for a code, which is used up; RIGHT_NONE if there is no such code (any more). */
enum right passes_redeem(struct passes *p, const char *code, size_t size, struct token *ret);

/* A new code. */
int pass_code_make(const char *home, enum right right, char ret_code[CODE_SIZE + 1],
                   nacre_error *err);
