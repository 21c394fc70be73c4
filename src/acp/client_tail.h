/*
 * The end of a terminal's output, ready to be sent: valid UTF-8, already escaped as JSON, cut at
 * a character. Agents ask for all of it several times a second, and each byte is cleaned and
 * escaped only once.
 */
#pragma once

#include <nacre/acp.h>
#include <nacre/record.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct acp_tail {
    size_t limit;    /* bytes of text that are kept */
    size_t size;     /* bytes of text that are there */
    bool cut;        /* something before them is missing */
    struct buf json; /* the text, escaped, from start on */
    size_t start;
    char torn[2][4]; /* per stream: the beginning of a character */
    size_t torn_size[2];
    bool inside[2]; /* the next bytes of the stream may be the rest of a character */
};

void acp_tail_init(struct acp_tail *t, size_t limit);
void acp_tail_done(struct acp_tail *t);

/* Takes the next bytes of a stream. What is not UTF-8 becomes U+FFFD; a character that is not
 * complete waits for its rest. 0 or -errno. */
int acp_tail_add(struct acp_tail *t, nacre_stream stream, const char *bytes, size_t size);

/* Forgets everything: what comes next does not follow what was there. */
void acp_tail_restart(struct acp_tail *t);

/* Nothing more will come: what never became a character is U+FFFD. 0 or -errno. */
int acp_tail_finish(struct acp_tail *t);

/* Sends a message that is head, the text and end. They are put around the text where it is, for the
 * time of the call: megabytes are not copied. 0 or -errno; then nothing was sent. */
int acp_tail_send(struct acp_tail *t, const struct buf *head, const struct buf *end,
                  nacre_acp_send_fn *send, void *userdata);
