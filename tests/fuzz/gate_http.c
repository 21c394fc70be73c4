/* Arbitrary bytes as a request to the gate: its head, and the body behind it. */
#include "fuzz.h"

#include <errno.h>

#include "gate/http_head.h"
#include "http/http_body.h"

#define EVERY_CUT 300 /* longer ones are not cut everywhere */

/* What is not whole is not judged, unless it is wrong already. */
static void check_cuts(const char *data, size_t size)
{
    struct http_head head;
    const char *why;
    for (size_t i = 0; i < size && size <= EVERY_CUT; i++)
        MUST(http_head_read(data, i, &head, &why) == 0);
}

/* What is passed on is read by the next one as we have read it. */
static void check_passed_on(const struct http_head *head, const char *data)
{
    static char to[2 * HTTP_HEAD_MAX];
    struct http_head next;
    const char *why;
    ssize_t size = http_head_write(head, data, &head->host, head->port, to, sizeof to);
    MUST(size > 0);
    MUST(http_head_read(to, (size_t)size, &next, &why) == 1);
    MUST(next.size == (size_t)size && next.form == HTTP_ORIGIN && !next.has_asker);
    MUST(next.has_host_field && net_host_is_same(&next.host_field, &head->host));
    MUST(next.host_field_port == head->port && next.minor == head->minor);
    MUST(next.chunked == head->chunked && next.length == head->length);
    MUST(next.method_size == head->method_size);
    MUST(http_head_write(head, data, &head->host, head->port, to, (size_t)size) == -E2BIG);
}

/* Takes a body in steps; what goes on from it is a body, too. */
static int take_in_steps(const struct http_head *head, const char *data, size_t size, size_t step,
                         struct http_body *ret)
{
    struct http_body next;
    char *to = malloc(step + BODY_FRAMES), *again = malloc(step + 2 * BODY_FRAMES);
    int bad = 0;
    body_init(ret, head->chunked, head->length, true);
    body_init(&next, head->chunked, head->length, true);
    for (size_t at = 0; at < size && !bad; at += step) {
        size_t n = size - at < step ? size - at : step;
        ssize_t out = body_take(ret, data + at, n, to, NULL);
        bad = out < 0;
        MUST(bad || (size_t)out <= n + BODY_FRAMES);
        MUST(bad || body_take(&next, to, (size_t)out, again, NULL) >= 0);
    }
    MUST(bad || (next.state == BODY_OVER) == (ret->state == BODY_OVER));
    free(to);
    free(again);
    return bad;
}

static void check_body(const struct http_head *head, const char *data, size_t size)
{
    struct http_body whole, steps;
    int bad = take_in_steps(head, data, size, size + 1, &whole);
    MUST(take_in_steps(head, data, size, 1 + size % 7, &steps) == bad);
    MUST(bad || (whole.state == steps.state && whole.left == steps.left));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *data = (const char *)bytes, *why;
    struct http_head head;
    int r = http_head_read(data, size, &head, &why);
    MUST(r <= 0 || (head.size <= size && why == NULL));
    MUST(r >= 0 || why);
    if (r <= 0)
        return 0;
    check_cuts(data, head.size);
    if (head.form == HTTP_ABSOLUTE)
        check_passed_on(&head, data);
    if (head.form != HTTP_CONNECT)
        check_body(&head, data + head.size, size - head.size);
    return 0;
}
