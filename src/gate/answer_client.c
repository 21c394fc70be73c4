/* What a client is told that does not get through: in the words of the protocol it spoke last. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/defs.h"
#include "gate/socks.h"
#include "gate/tell_keeper.h"
#include "gate/visit.h"

#define LINGER_MS   1000
#define SENTENCE    512
#define WHY_SIZE    128
#define ANSWER_SIZE (SENTENCE + 256)

static const struct meaning {
    int status;
    const char *reason;
    enum socks_reply reply;
} meanings[OUT_COUNT] = {
    [OUT_BLOCKED] = {403, "Blocked by nacre", SOCKS_BLOCKED},
    [OUT_ODD] = {400, "Bad Request", SOCKS_FAILED},
    [OUT_LATE] = {408, "Request Timeout", SOCKS_FAILED},
    [OUT_LONG] = {431, "Request Header Fields Too Large", SOCKS_FAILED},
    [OUT_CROWDED] = {503, "Too Many Connections", SOCKS_FAILED},
    [OUT_UNKNOWN] = {502, "Name Not Resolved", SOCKS_UNREACHABLE},
    [OUT_UNREACHED] = {502, "Host Not Reached", SOCKS_UNREACHABLE},
    [OUT_REFUSED] = {502, "Connection Refused", SOCKS_REFUSED},
    [OUT_SLOW] = {504, "Gateway Timeout", SOCKS_TIMED_OUT},
};

void visit_say_goodbye(struct visit *v)
{
    struct pollfd polled = {.fd = v->client, .events = POLLIN};
    int64_t until = clock_deadline(LINGER_MS);
    shutdown(v->client, SHUT_WR);
    while (RETRY(poll(&polled, 1, clock_left_ms(until))) > 0)
        if (recv(v->client, v->data, sizeof v->data, MSG_DONTWAIT) <= 0)
            return;
}

static void send_page(struct visit *v, const struct meaning *m, const char *sentence)
{
    char answer[ANSWER_SIZE];
    int n = snprintf(answer, sizeof answer,
                     "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                     "Connection: close\r\n\r\n%s",
                     m->status, m->reason, strlen(sentence), sentence);
    visit_send(v, v->client, answer, MIN((size_t)n, sizeof answer - 1));
}

static void answer_in_voice(struct visit *v, enum outcome outcome, const char *sentence)
{
    static const uint8_t denied[] = {21, 3, 3, 0, 2, 2, 49}; /* a fatal alert: access_denied */
    static const uint8_t no_method[] = {5, SOCKS_NO_METHOD};
    static const uint8_t rejected[] = {0, 91, 0, 0, 0, 0, 0, 0};
    const struct meaning *m = &meanings[outcome];
    const uint8_t reply[] = {5, (uint8_t)m->reply, 0, 1, 0, 0, 0, 0, 0, 0};
    switch (v->voice) {
    case VOICE_HTTP:
        send_page(v, m, sentence);
        break;
    case VOICE_SOCKS_GREETING:
        visit_send(v, v->client, no_method, sizeof no_method);
        break;
    case VOICE_SOCKS:
        visit_send(v, v->client, reply, sizeof reply);
        break;
    case VOICE_SOCKS_4:
        visit_send(v, v->client, rejected, sizeof rejected);
        break;
    case VOICE_TLS:
        visit_send(v, v->client, denied, sizeof denied);
        break;
    case VOICE_NONE:
        break;
    }
    visit_say_goodbye(v);
}

void visit_refuse(struct visit *v, enum outcome outcome, const char *fmt, ...)
{
    char sentence[SENTENCE];
    size_t lead = strlen("nacre: ");
    va_list ap;
    va_start(ap, fmt);
    snprintf(sentence, sizeof sentence, "nacre: ");
    vsnprintf(sentence + lead, sizeof sentence - lead - 2, fmt, ap);
    va_end(ap);
    strncat(sentence, ".\n", 2);
    answer_in_voice(v, outcome, sentence);
}

void visit_block(struct visit *v, const char *fmt, ...)
{
    char why[WHY_SIZE], target[HOST_TEXT_SIZE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    net_host_write(&v->host, v->port, target);
    /* Before the client hears it: its command may end there. */
    if (v->has_asker)
        denied_tell(&v->asker, target, why);
    visit_refuse(v, OUT_BLOCKED, "%s was blocked: %s", target, why);
}

void visit_refuse_read(struct visit *v, int error)
{
    if (error == -ETIMEDOUT)
        visit_refuse(v, OUT_LATE, "the request did not come within %d ms; send it at once",
                     v->patience_ms);
    else if (error == -E2BIG)
        visit_refuse(v, OUT_LONG, "the head of a request has at most 64 KiB; send fewer fields");
}
