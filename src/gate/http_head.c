#include "gate/http_head.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/defs.h"
#include "http/http_lines.h"

#define WEB_PORT   80
#define METHOD_MAX 32
#define LOGIN_MAX  192

static const char *read_version(struct stretch version, struct http_head *ret)
{
    ret->minor = is_spelled(version, "HTTP/1.1");
    return ret->minor || is_spelled(version, "HTTP/1.0")
               ? NULL
               : "the gate speaks HTTP/1.0 and HTTP/1.1 only";
}

static const char *read_target(struct stretch target, const char *data, struct http_head *ret)
{
    static const char scheme[] = "http://";
    size_t lead = sizeof scheme - 1;
    if (ret->form == HTTP_CONNECT)
        return net_host_parse_port(target.at, target.size, 0, &ret->host, &ret->port)
                   ? NULL
                   : "CONNECT wants host:port";
    if (memchr(target.at, '#', target.size))
        return "a target has no #fragment";
    if (target.at[0] == '/') {
        ret->form = HTTP_ORIGIN;
        ret->path = (size_t)(target.at - data);
        ret->path_size = target.size;
        return NULL;
    }
    if (target.size <= lead || !ascii_is_same(target.at, scheme, lead))
        return "a proxy is asked for http://host/path, or by CONNECT host:port";
    ret->form = HTTP_ABSOLUTE;
    struct stretch rest = {target.at + lead, target.size - lead};
    size_t host = 0;
    while (host < rest.size && rest.at[host] != '/' && rest.at[host] != '?')
        host++;
    ret->path = (size_t)(rest.at + host - data);
    ret->path_size = rest.size - host;
    return net_host_parse_port(rest.at, host, WEB_PORT, &ret->host, &ret->port)
               ? NULL
               : "the host of the target is none, or has a login before it";
}

static const char *read_first(struct stretch line, const char *data, struct http_head *ret)
{
    struct stretch method = cut_at(&line, ' '), target = cut_at(&line, ' ');
    if (!is_token(method) || method.size > METHOD_MAX || !is_visible(target))
        return "the first line is not METHOD TARGET HTTP/1.1";
    ret->method_size = method.size;
    const char *why = read_version(line, ret);
    if (why)
        return why;
    /* Methods are what they are in this case only. */
    ret->form =
        method.size == 7 && memcmp(method.at, "CONNECT", 7) == 0 ? HTTP_CONNECT : HTTP_ABSOLUTE;
    return read_target(target, data, ret);
}

/* -- Fields --------------------------------------------------------------------------------------
 */

bool http_asker(const char *name, size_t size, nacre_id *ret)
{
    char text[NACRE_ID_DIGITS + 1];
    if (size != NACRE_ID_DIGITS || memchr(name, '\0', size))
        return false;
    memcpy(text, name, size);
    text[size] = '\0';
    return nacre_id_parse(text, ret) == 0;
}

static const char *on_host_field(struct stretch value, struct http_head *ret)
{
    if (ret->has_host_field)
        return "Host stands twice";
    ret->has_host_field = true;
    return net_host_parse_port(value.at, value.size, WEB_PORT, &ret->host_field,
                               &ret->host_field_port)
               ? NULL
               : "Host is no host";
}

static const char *on_length(struct stretch value, struct http_head *ret)
{
    if (ret->has_length)
        return "Content-Length stands twice";
    ret->has_length = true;
    if (!http_read_length(value, &ret->length))
        return "Content-Length is no number that can be";
    return NULL;
}

static const char *on_encoding(struct stretch value, struct http_head *ret)
{
    if (ret->chunked || !is_spelled(value, "chunked"))
        return "the only Transfer-Encoding is chunked, once";
    ret->chunked = true;
    return ret->minor == 0 ? "HTTP/1.0 has no Transfer-Encoding" : NULL;
}

/* A field that it names is for us alone. One that servers go by must not vanish that way. */
static const char *on_connection(struct stretch value, struct http_head *ret)
{
    static const char *const known[] = {"close", "keep-alive", "proxy-connection",
                                        "te",    "upgrade",    "http2-settings"};
    (void)ret;
    while (value.size > 0) {
        struct stretch word = trim(cut_at(&value, ','));
        size_t i = 0;
        while (i < ARRAY_SIZE(known) && !is_spelled(word, known[i]))
            i++;
        if (i == ARRAY_SIZE(known))
            return "Connection names what the gate does not know";
    }
    return NULL;
}

/* A login that is none is nobody's, and no fault. */
static const char *on_login(struct stretch value, struct http_head *ret)
{
    char login[LOGIN_MAX];
    struct stretch scheme = cut_at(&value, ' ');
    value = trim(value);
    if (!is_spelled(scheme, "Basic"))
        return NULL;
    ssize_t size = base64_decode(value.at, value.size, login, sizeof login);
    struct stretch rest = {login, size < 0 ? 0 : (size_t)size}, name = cut_at(&rest, ':');
    ret->has_asker = http_asker(name.at, name.size, &ret->asker);
    return NULL;
}

/* What is read here, or is between us and the client alone, is not passed on. */
static const struct field_rule {
    const char *name;
    const char *(*read)(struct stretch value, struct http_head *ret);
} field_rules[] = {
    {"Host", on_host_field},
    {"Content-Length", on_length},
    {"Transfer-Encoding", on_encoding},
    {"Connection", on_connection},
    {"Proxy-Authorization", on_login},
    {"Proxy-Connection", NULL},
    {"Keep-Alive", NULL},
    {"TE", NULL},
    {"Upgrade", NULL},
    {"HTTP2-Settings", NULL},
};

static const struct field_rule *rule_of(struct stretch name)
{
    for (size_t i = 0; i < ARRAY_SIZE(field_rules); i++)
        if (is_spelled(name, field_rules[i].name))
            return &field_rules[i];
    return NULL;
}

static const char *read_fields(struct stretch rest, struct http_head *ret)
{
    struct http_field field;
    int r;
    while ((r = http_take_field(&rest, &field)) > 0) {
        const struct field_rule *rule = rule_of(field.name);
        const char *why = rule && rule->read ? rule->read(field.value, ret) : NULL;
        if (why)
            return why;
    }
    return r < 0 ? "a line of the head is not NAME: VALUE" : NULL;
}

static const char *check_whole(const struct http_head *head)
{
    if (head->chunked && head->has_length)
        return "a body has a length or is chunked, not both";
    if (head->form == HTTP_CONNECT && (head->chunked || head->length > 0))
        return "CONNECT has no body";
    if (head->minor == 1 && !head->has_host_field && head->form != HTTP_CONNECT)
        return "HTTP/1.1 wants a Host";
    return NULL;
}

int http_head_read(const char *data, size_t size, struct http_head *ret, const char **ret_why)
{
    ssize_t end = http_find_end(data, size);
    *ret = (struct http_head){0};
    *ret_why = "the head has bytes or line ends that have no place there";
    if (end <= 0)
        return (int)end;
    ret->size = (size_t)end;
    struct stretch rest = {data, ret->size}, first;
    http_take_line(&rest, &first);
    *ret_why = read_first(first, data, ret);
    if (!*ret_why)
        *ret_why = read_fields(rest, ret);
    if (!*ret_why)
        *ret_why = check_whole(ret);
    return *ret_why ? -EPROTO : 1;
}

/* -- Passing it on --------------------------------------------------------------------------------
 */

struct request_page {
    char *to;
    size_t room;
    size_t size; /* more than there is room for: it did not fit */
};

PRINTF(2, 3) static void put(struct request_page *p, const char *fmt, ...)
{
    size_t at = MIN(p->size, p->room);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(p->to + at, p->room - at, fmt, ap);
    va_end(ap);
    p->size += n < 0 ? p->room : (size_t)n;
}

static void put_span(struct request_page *p, struct stretch s)
{
    put(p, "%.*s", (int)s.size, s.at);
}

static void put_first(struct request_page *p, const struct http_head *head, const char *data)
{
    bool slash = head->path_size == 0 || data[head->path] != '/';
    put_span(p, (struct stretch){data, head->method_size});
    put(p, " %s", slash ? "/" : "");
    put_span(p, (struct stretch){data + head->path, head->path_size});
    put(p, " HTTP/1.%d\r\n", head->minor);
}

static void put_host(struct request_page *p, const struct net_host *host, uint16_t port)
{
    char text[HOST_TEXT_SIZE];
    net_host_write(host, port, text);
    if (port == WEB_PORT)
        *strrchr(text, ':') = '\0';
    put(p, "Host: %s\r\n", text);
}

ssize_t http_head_write(const struct http_head *head, const char *data, const struct net_host *host,
                        uint16_t port, char *to, size_t room)
{
    struct request_page page = {.to = to, .room = room};
    struct stretch rest = {data, head->size}, first;
    struct http_field field;
    http_take_line(&rest, &first);
    put_first(&page, head, data);
    put_host(&page, host, port);
    while (http_take_field(&rest, &field) > 0) {
        if (rule_of(field.name))
            continue;
        put_span(&page, field.name);
        put(&page, ": ");
        put_span(&page, field.value);
        put(&page, "\r\n");
    }
    if (head->chunked)
        put(&page, "Transfer-Encoding: chunked\r\n");
    if (head->has_length)
        put(&page, "Content-Length: %llu\r\n", (unsigned long long)head->length);
    put(&page, "Connection: close\r\n\r\n");
    return page.size >= room ? -E2BIG : (ssize_t)page.size;
}
