/* Arbitrary text as rules about hosts, and as a host. */
#include "fuzz.h"

#include "run/hosts.h"

/* What was understood is written in one way, which means the same. */
static void check_host(const char *text, size_t size)
{
    struct net_host host, again;
    uint16_t port, port_again;
    char written[HOST_TEXT_SIZE];
    if (!net_host_parse_port(text, size, 80, &host, &port))
        return;
    MUST(port > 0 && strlen(host.name) < HOST_NAME_SIZE && host.name[0]);
    net_host_write(&host, port, written);
    MUST(net_host_parse_port(written, strlen(written), 0, &again, &port_again));
    MUST(port == port_again && net_host_is_same(&host, &again));
    MUST(host.kind != HOST_ADDRESS || memcmp(host.address, again.address, HOST_BYTES) == 0);
    /* A rule of those very words allows it, unless nobody can say what it is. */
    enum hosts_verdict verdict = hosts_judge(written, &host, port);
    MUST(verdict == (host.kind == HOST_STRANGE ? HOSTS_UNNAMED : HOSTS_ALLOWED));
}

static void check_rules(const char *rules, const char *asked, size_t size)
{
    const char *rule;
    size_t length;
    struct net_host host;
    const char *fault = hosts_find_fault(rules, &rule, &length);
    MUST(rule >= rules && rule + length <= rules + strlen(rules));
    if (!net_host_parse(asked, size, &host))
        return;
    MUST(host.kind != HOST_STRANGE || hosts_judge(rules, &host, 443) == HOSTS_UNNAMED);
    if (!fault && length == 0)
        MUST(hosts_judge(rules, &host, 443) == HOSTS_UNNAMED || *rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t half = size > 0 ? data[0] % size : 0;
    const char *text = (const char *)data;
    char *rules = strndup(text + half, size - half);
    MUST(rules);
    check_host(text, size);
    check_host(text + half, size - half);
    check_rules(rules, text, half);
    free(rules);
    return 0;
}
