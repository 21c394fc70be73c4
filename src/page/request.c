/* What a request of the page asks for, and short answers to it. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "page/page.h"
#include "rpc/message.h"
#include "text/legible.h"
#include "view/record_words.h"

void answer_json(struct http_conn *c, int status, struct buf *text)
{
    http_answer(c, status, JSON_FIELDS, text->data, text->len);
}

void answer_error(struct http_conn *c, int status, const char *why)
{
    struct buf text cleanup_buf = BUF_UP_TO(16384), said cleanup_buf = BUF_UP_TO(8192);
    if (legible_write(&said, why, strlen(why)) < 0 || buf_str(&text, "{\"error\":") < 0 ||
        rpc_append_string(&text, said.data ? said.data : "", said.len) < 0 ||
        buf_str(&text, "}") < 0)
        http_answer(c, 500, NULL, NULL, 0);
    else
        answer_json(c, status, &text);
}

void answer_failure(struct http_conn *c, int code, const nacre_error *err)
{
    static const struct {
        int code;
        int status;
    } statuses[] = {
        {NACRE_EINVAL, 400},  {NACRE_ENOTFOUND, 404}, {NACRE_EFORBIDDEN, 403},
        {NACRE_ECLOSED, 409}, {NACRE_EBUSY, 409},     {NACRE_EUNSUPPORTED, 409},
    };
    int status = 500;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].code == code)
            status = statuses[i].status;
    answer_error(c, status, err->msg);
}

json_t *request_object(struct http_conn *c)
{
    struct rpc_fault fault;
    struct stretch type = http_request_field(&c->request, "Content-Type");
    type = cut_at(&type, ';');
    if (!is_spelled(trim(type), "application/json")) {
        answer_error(c, 415, "the body is to be application/json");
        return NULL;
    }
    json_t *value = rpc_decode(c->body.data ? c->body.data : "", c->body.len, &fault);
    if (!json_is_object(value)) {
        json_decref(value);
        answer_error(c, 400, "the body is to be an object");
        return NULL;
    }
    return value;
}

static int digit_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One character of a query; its bytes that are taken, 0 if it is none. */
static size_t read_escaped(const char *s, size_t size, char *ret)
{
    *ret = *s == '+' ? ' ' : *s;
    if (*s != '%')
        return 1;
    int high = size > 2 ? digit_value(s[1]) : -1, low = size > 2 ? digit_value(s[2]) : -1;
    *ret = (char)(high << 4 | low);
    return high < 0 || low < 0 || *ret == '\0' ? 0 : 3;
}

bool request_text(const struct http_request *q, const char *name, char *ret, size_t room)
{
    struct stretch value = http_request_parameter(q, name);
    size_t at = 0;
    for (size_t i = 0, step; value.at && i < value.size; i += step) {
        step = at + 1 < room ? read_escaped(value.at + i, value.size - i, ret + at++) : 0;
        if (step == 0)
            return false;
    }
    ret[at] = '\0';
    return value.at != NULL;
}

uint64_t request_number(const struct http_request *q, const char *name, uint64_t usual)
{
    char text[24];
    uint64_t number;
    return request_text(q, name, text, sizeof text) && number_parse(text, &number) ? number : usual;
}
