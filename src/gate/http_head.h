/*
 * The head of an HTTP request to a proxy, read strictly: what two readers could take for two
 * different things is refused. CRLF ends every line, no line is folded, a length is said once.
 */
#pragma once

#include <nacre/id.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/hosts.h"

#define HTTP_HEAD_MAX 65536

enum http_form {
    HTTP_CONNECT,  /* CONNECT host:port */
    HTTP_ABSOLUTE, /* GET http://host/path */
    HTTP_ORIGIN,   /* GET /path: what a server is sent, and a proxy is not */
};

struct http_head {
    enum http_form form;
    size_t size; /* with the empty line */
    int minor;   /* of HTTP/1.minor */
    size_t method_size;
    size_t path; /* where it begins; of no size if the target has none */
    size_t path_size;
    struct net_host host; /* of the target */
    uint16_t port;
    bool has_host_field;
    struct net_host host_field;
    uint16_t host_field_port;
    bool chunked;
    bool has_length;
    uint64_t length;
    bool has_asker;
    nacre_id asker; /* the run whose command says to have asked */
};

/* 1; 0 = it is not whole yet; or -EPROTO with what is wrong in *ret_why: a sentence without its
 * point. */
int http_head_read(const char *data, size_t size, struct http_head *ret, const char **ret_why);

/* Writes the request as the server gets it: in origin form, with this Host, and asking for one
 * answer and no more. data is what was read. Its size, or -E2BIG. */
ssize_t http_head_write(const struct http_head *head, const char *data, const struct net_host *host,
                        uint16_t port, char *to, size_t room);

/* The run in the name of a login: 32 hex digits. */
bool http_asker(const char *name, size_t size, nacre_id *ret);
