/*
 * Messages of D-Bus, as much of it as is needed to ask one thing and to hear the answer: calls are
 * written in this machine's byte order into a buffer of fixed size; what is read came from a
 * stranger, may have either order, and nothing of it is believed before it was checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX 4096 /* of what is written */

struct message_writer {
    unsigned char data[MESSAGE_MAX];
    size_t size;
    size_t begin; /* of the message that is being written */
    size_t body;
    bool full; /* something did not fit: nothing of it is of use */
};

struct message_call {
    const char *destination, *path, *interface, *member;
    const char *signature; /* NULL = no body */
    bool answered;         /* an answer is wanted */
};

/* Numbers of calls begin at 1. What stands between begin and end is the body. */
void message_begin(struct message_writer *w, uint32_t serial, const struct message_call *call);
void message_end(struct message_writer *w);

void message_put_bytes(struct message_writer *w, const void *bytes, size_t size);
void message_put_u32(struct message_writer *w, uint32_t number);
void message_put_string(struct message_writer *w, const char *string);
void message_put_signature(struct message_writer *w, const char *signature);
/* Elements of an array are aligned; returns what ends it. */
size_t message_begin_array(struct message_writer *w, size_t alignment);
void message_end_array(struct message_writer *w, size_t array, size_t alignment);
/* A structure begins. */
void message_align(struct message_writer *w, size_t alignment);

enum message_type { MESSAGE_CALL = 1, MESSAGE_RETURN = 2, MESSAGE_ERROR = 3, MESSAGE_SIGNAL = 4 };

struct message_reader {
    const unsigned char *data;
    size_t size, at;
    bool swapped; /* it has the other byte order */
    bool bad;     /* something was not as it has to be: all that is read is empty from then on */
};

/* What is not said is 0 or "". */
struct message {
    enum message_type type;
    uint32_t answers; /* the number of the call */
    const char *interface, *member, *error, *signature;
    struct message_reader body;
};

/* Strings point into the data. The size of the message, 0 if it is not there as a whole, -EBADMSG,
 * or -EMSGSIZE if it is longer than max. */
long message_parse(const void *data, size_t size, size_t max, struct message *ret);

uint32_t message_get_u32(struct message_reader *r);
const char *message_get_string(struct message_reader *r);
