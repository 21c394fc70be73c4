#include "http/http_request.h"

#include <errno.h>
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"

/* -- The first line --------------------------------------------------------------------------- */

static int read_method(struct stretch word, struct http_request *ret, const char **ret_why)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (word.size == strlen(names[i]) && memcmp(word.at, names[i], word.size) == 0) {
            ret->method = (enum http_method)i;
            return 0;
        }
    *ret_why = "this method is not known here";
    return 501;
}

/* What could be spelled in several ways is not taken: no escapes, no dots between slashes. */
static bool is_plain_path(struct stretch path)
{
    for (size_t i = 0; i < path.size; i++) {
        char c = path.at[i];
        bool dot_segment = c == '.' && i > 0 && path.at[i - 1] == '/' &&
                           (i + 1 == path.size || path.at[i + 1] == '/' || path.at[i + 1] == '.');
        bool empty_segment = c == '/' && i > 0 && path.at[i - 1] == '/';
        if (dot_segment || empty_segment || !(ascii_is_alnum(c) || strchr("/._-~", c)))
            return false;
    }
    return path.size > 0 && path.at[0] == '/';
}

static int read_path(struct stretch target, struct http_request *ret, const char **ret_why)
{
    *ret_why = "the target is none of a server: it begins with a slash and needs no escapes";
    if (memchr(target.at, '#', target.size))
        return 400;
    ret->query = target;
    ret->path = cut_at(&ret->query, '?');
    return is_plain_path(ret->path) ? 0 : 400;
}

static int read_http_version(struct stretch word, struct http_request *ret, const char **ret_why)
{
    *ret_why = "the first line is not METHOD TARGET HTTP/1.1";
    if (word.size != 8 || memcmp(word.at, "HTTP/", 5) != 0)
        return 400;
    *ret_why = "HTTP/1.0 and HTTP/1.1 are spoken here";
    if (memcmp(word.at + 5, "1.0", 3) != 0 && memcmp(word.at + 5, "1.1", 3) != 0)
        return 505;
    ret->minor = word.at[7] - '0';
    ret->closes = ret->minor == 0;
    return 0;
}

static int read_first_line(struct stretch line, struct http_request *ret, const char **ret_why)
{
    struct stretch method = cut_at(&line, ' '), target = cut_at(&line, ' ');
    *ret_why = "the first line is not METHOD TARGET HTTP/1.1";
    if (!is_token(method) || !is_visible(target))
        return 400;
    int r = read_http_version(line, ret, ret_why);
    if (r == 0)
        r = read_method(method, ret, ret_why);
    return r == 0 ? read_path(target, ret, ret_why) : r;
}

/* -- Fields ----------------------------------------------------------------------------------- */

struct http_field http_request_at(const struct http_request *q, size_t i)
{
    const struct http_place *p = &q->fields[i];
    return (struct http_field){{q->data + p->name, p->name_size},
                               {q->data + p->value, p->value_size}};
}

size_t http_request_count(const struct http_request *q, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < q->count; i++)
        n += is_spelled(http_request_at(q, i).name, name);
    return n;
}

struct stretch http_request_field(const struct http_request *q, const char *name)
{
    struct stretch found = {NULL, 0};
    for (size_t i = 0; i < q->count; i++) {
        struct http_field field = http_request_at(q, i);
        if (!is_spelled(field.name, name))
            continue;
        if (found.at)
            return (struct stretch){NULL, 0};
        found = field.value;
    }
    return found;
}

struct stretch http_request_parameter(const struct http_request *q, const char *name)
{
    struct stretch rest = q->query;
    while (rest.size > 0) {
        struct stretch value = cut_at(&rest, '&'), key = cut_at(&value, '=');
        if (key.size == strlen(name) && memcmp(key.at, name, key.size) == 0)
            return value;
    }
    return (struct stretch){NULL, 0};
}

bool http_list_has(struct stretch list, const char *word)
{
    while (list.size > 0) {
        struct stretch item = cut_at(&list, ',');
        if (is_spelled(trim(cut_at(&item, ';')), word))
            return true;
    }
    return false;
}

static int collect_fields(struct stretch rest, struct http_request *ret, const char **ret_why)
{
    int r;
    struct http_field field;
    *ret_why = "a line of the head is not NAME: VALUE";
    while ((r = http_take_field(&rest, &field)) > 0) {
        if (ret->count == HTTP_FIELDS_MAX) {
            *ret_why = "there are too many fields";
            return 431;
        }
        ret->fields[ret->count++] =
            (struct http_place){(uint16_t)(field.name.at - ret->data), (uint16_t)field.name.size,
                                (uint16_t)(field.value.at - ret->data), (uint16_t)field.value.size};
    }
    return r < 0 ? 400 : 0;
}

static int read_framing(struct http_request *ret, const char **ret_why)
{
    size_t lengths = http_request_count(ret, "Content-Length");
    size_t encodings = http_request_count(ret, "Transfer-Encoding");
    *ret_why = "a body has one length, or is chunked";
    if (lengths + encodings > 1)
        return 400;
    if (lengths && !http_read_length(http_request_field(ret, "Content-Length"), &ret->length))
        return 400;
    ret->chunked = encodings > 0;
    ret->has_body = lengths || encodings;
    *ret_why = "the only Transfer-Encoding is chunked";
    if (encodings && ret->minor == 0)
        return 400;
    if (encodings && !is_spelled(http_request_field(ret, "Transfer-Encoding"), "chunked"))
        return 501;
    return 0;
}

static int read_conduct(struct http_request *ret, const char **ret_why)
{
    *ret_why = "a request says its Host, once";
    if (http_request_count(ret, "Host") != 1)
        return 400;
    if (http_list_has(http_request_field(ret, "Connection"), "close"))
        ret->closes = true;
    *ret_why = "the only thing to expect is 100-continue";
    size_t expects = http_request_count(ret, "Expect");
    if (expects == 0)
        return 0;
    if (expects > 1 || !is_spelled(http_request_field(ret, "Expect"), "100-continue"))
        return 417;
    ret->expects_continue = ret->minor == 1 && ret->has_body;
    return 0;
}

int http_request_read(const char *data, size_t size, struct http_request *ret, const char **ret_why)
{
    *ret = (struct http_request){0};
    ssize_t end = http_find_end(data, MIN(size, (size_t)HTTP_REQUEST_HEAD_MAX));
    *ret_why = "the head is too long";
    if (end == 0)
        return size >= HTTP_REQUEST_HEAD_MAX ? 431 : -EAGAIN;
    *ret_why = "the head has bytes or line ends that have no place there";
    if (end < 0)
        return 400;
    ret->data = data;
    ret->size = (size_t)end;
    struct stretch rest = {data, ret->size}, first;
    http_take_line(&rest, &first);
    int r = read_first_line(first, ret, ret_why);
    if (r == 0)
        r = collect_fields(rest, ret, ret_why);
    if (r == 0)
        r = read_framing(ret, ret_why);
    return r == 0 ? read_conduct(ret, ret_why) : r;
}
