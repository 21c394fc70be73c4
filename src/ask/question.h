/* A question: what a person is shown before they decide. Its texts are legible already, and do not
 * change while it is open; whoever asks about something else asks anew. */
#pragma once

#include <jansson.h>
#include <nacre/ask.h>
#include <nacre/id.h>
#include <stdbool.h>
#include <stdint.h>

enum question_text {
    QUESTION_COMMAND,
    QUESTION_COMMANDS,
    QUESTION_CWD,
    QUESTION_REASON,
    QUESTION_DESCRIPTION,
    QUESTION_WANTS,
    QUESTION_ALWAYS,
    QUESTION_ASKER,
    QUESTION_TEXTS
};

struct question {
    nacre_id id; /* random: who did not see it cannot name it */
    nacre_id session;
    uint64_t number; /* in its session */
    int64_t asked_ms;
    char *texts[QUESTION_TEXTS]; /* NULL = "" */
    bool within;                 /* who asks is itself a command of nacre's */
};

void question_done(struct question *q);

/* Whether a person would be shown the same. */
bool question_shows_same(const struct question *a, const struct question *b);

/* As others see it: borrowed of the question; id_text and session_text are to be kept beside it. */
void question_view(const struct question *q, nacre_id_text *id_text, nacre_id_text *session_text,
                   nacre_question *ret);

/* NULL if out of memory. */
json_t *question_json(const struct question *q);

/* False if it is none; *ret is to be released with question_done() in any case. */
bool question_read(const json_t *json, struct question *ret);

#define cleanup_question __attribute__((cleanup(question_done)))
