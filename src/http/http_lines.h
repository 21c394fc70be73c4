/*
 * The head of an HTTP message as lines and fields, read strictly: what two readers could take for
 * two different things is refused. CRLF ends every line, no line is folded, no byte is a control
 * character. Everything is borrowed from the bytes that came.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stretch {
    const char *at;
    size_t size;
};

struct http_field {
    struct stretch name;
    struct stretch value;
};

/* The size of a head with the empty line at its end; 0 = it is not there yet; -EPROTO for bytes
 * that have no place in one. */
ssize_t http_find_end(const char *data, size_t size);

/* A line without its end; false behind the last one. */
bool http_take_line(struct stretch *rest, struct stretch *ret);

/* The next line as a field: 1, 0 behind the last one, or -EPROTO. */
int http_take_field(struct stretch *rest, struct http_field *ret);

/* Cuts off what stands before the byte, and it; all of it if there is none. */
struct stretch cut_at(struct stretch *rest, char byte);

/* Without blanks around it. */
struct stretch trim(struct stretch s);

/* Whether it is this word, in any case. */
bool is_spelled(struct stretch s, const char *word);

/* Whether it is a name, such as that of a method or a field; whether it has neither blanks nor
 * control characters. Neither is empty. */
bool is_token(struct stretch s);
bool is_visible(struct stretch s);

/* A length in decimal digits alone, at most 18 of them. */
bool http_read_length(struct stretch value, uint64_t *ret);
