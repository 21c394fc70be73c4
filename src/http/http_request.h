/*
 * A request to a server of ours, read strictly. A layer of our own: nothing that is packaged is
 * strict, notices that a reader has gone, and costs nothing when the program starts; and what is
 * needed of HTTP/1.1 is little. Methods are GET, HEAD, POST, DELETE and OPTIONS; targets begin with
 * a slash and need no decoding; a body has a length or is chunked. Nothing here knows what is
 * served.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http_lines.h"

#define HTTP_REQUEST_HEAD_MAX 16384
#define HTTP_FIELDS_MAX       64

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_DELETE, HTTP_OPTIONS };

/* A field as offsets into the head: a thousand connections have a place for 64 of them each. */
struct http_place {
    uint16_t name, name_size, value, value_size;
};

/* Everything is borrowed from the bytes that it was read from. */
struct http_request {
    const char *data;
    size_t size; /* of the head, with the empty line */
    enum http_method method;
    int minor; /* of HTTP/1.minor */
    struct stretch path;
    struct stretch query; /* without the question mark */
    struct http_place fields[HTTP_FIELDS_MAX];
    size_t count;
    bool has_body; /* a length or chunks were announced */
    bool chunked;
    uint64_t length;
    bool expects_continue;
    bool closes; /* no other request will be read from this connection */
};

/* 0 = it is whole; -EAGAIN = not yet; or the status to refuse it with, and *ret_why: a sentence
 * without its point. */
int http_request_read(const char *data, size_t size, struct http_request *ret,
                      const char **ret_why);

/* The only field of that name. A stretch without `at` if there is none, or more than one. */
struct stretch http_request_field(const struct http_request *q, const char *name);

/* Field i of all, in the order they came. */
struct http_field http_request_at(const struct http_request *q, size_t i);

/* How many there are of a name. */
size_t http_request_count(const struct http_request *q, const char *name);

/* The value of NAME=VALUE in the query, as it stands there; without `at` if there is none. */
struct stretch http_request_parameter(const struct http_request *q, const char *name);

/* Whether a list with commas has the word, whatever its parameters are. */
bool http_list_has(struct stretch list, const char *word);
