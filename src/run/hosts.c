#include "run/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"

#define LABEL_MAX 63
#define PORT_ANY  0

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_name_byte(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_';
}

/* Takes the name in lower case, without one dot at its end. */
static bool take_name(const char *text, size_t size, char ret[HOST_NAME_SIZE])
{
    size_t label = 0;
    if (size > 0 && text[size - 1] == '.')
        size--;
    if (size == 0 || size >= HOST_NAME_SIZE)
        return false;
    for (size_t i = 0; i < size; i++) {
        bool dot = text[i] == '.';
        if (dot ? label == 0 : !is_name_byte(text[i]) || label == LABEL_MAX)
            return false;
        label = dot ? 0 : label + 1;
        ret[i] = ascii_lower(text[i]);
    }
    ret[size] = '\0';
    return label > 0;
}

/* Whether programs may take it for an address: the last label is a number, decimal or not. */
static bool ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;
    if (last[0] == '0' && last[1] == 'x')
        return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
    return last[strspn(last, "0123456789")] == '\0';
}

/* The same address has one name, however it was written. */
void net_host_of_address(const uint8_t address[HOST_BYTES], struct net_host *ret)
{
    bool four = memcmp(address, mapped, sizeof mapped) == 0;
    *ret = (struct net_host){.kind = HOST_ADDRESS};
    memcpy(ret->address, address, HOST_BYTES);
    inet_ntop(four ? AF_INET : AF_INET6, address + (four ? sizeof mapped : 0), ret->name,
              sizeof ret->name);
}

/* An address of IPv6 without a zone. */
static bool parse_six(const char *text, size_t size, struct net_host *ret)
{
    char copy[INET6_ADDRSTRLEN];
    uint8_t address[HOST_BYTES];
    if (size >= sizeof copy || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (inet_pton(AF_INET6, copy, address) != 1)
        return false;
    net_host_of_address(address, ret);
    return true;
}

bool net_host_parse(const char *text, size_t size, struct net_host *ret)
{
    *ret = (struct net_host){.kind = HOST_NAME};
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']')
        return parse_six(text + 1, size - 2, ret);
    if (memchr(text, ':', size))
        return parse_six(text, size, ret);
    if (!take_name(text, size, ret->name))
        return false;
    if (!ends_in_number(ret->name))
        return true;
    memcpy(ret->address, mapped, sizeof mapped);
    bool usual = inet_pton(AF_INET, ret->name, ret->address + sizeof mapped) == 1;
    ret->kind = usual ? HOST_ADDRESS : HOST_STRANGE;
    return true;
}

/* 1 to 65535, in decimal digits alone. */
static bool net_host_port(const char *text, size_t size, uint16_t *ret)
{
    unsigned value = 0;
    if (size == 0 || size > 5)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!ascii_is_digit(text[i]))
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

/* Where the port begins, behind its colon; size if there is none. */
static size_t find_port(const char *text, size_t size)
{
    const char *end = size > 0 && text[0] == '[' ? memchr(text, ']', size) : NULL;
    size_t from = end ? (size_t)(end - text) : 0;
    const char *colon = memchr(text + from, ':', size - from);
    return colon ? (size_t)(colon - text) + 1 : size;
}

bool net_host_parse_port(const char *text, size_t size, uint16_t fallback, struct net_host *ret,
                         uint16_t *ret_port)
{
    size_t port = find_port(text, size);
    *ret_port = fallback;
    if (port == size && (fallback == 0 || (size > 0 && text[size - 1] == ':')))
        return false;
    if (port < size && !net_host_port(text + port, size - port, ret_port))
        return false;
    return net_host_parse(text, port < size ? port - 1 : size, ret);
}

bool net_host_is_same(const struct net_host *a, const struct net_host *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0;
}

void net_host_write(const struct net_host *host, uint16_t port, char ret[HOST_TEXT_SIZE])
{
    bool six = strchr(host->name, ':');
    snprintf(ret, HOST_TEXT_SIZE, "%s%s%s:%u", six ? "[" : "", host->name, six ? "]" : "",
             (unsigned)port);
}

bool net_host_is_localhost(const struct net_host *host)
{
    return host->kind == HOST_NAME && strcmp(host->name, "localhost") == 0;
}

/* -- Rules --------------------------------------------------------------------------------------
 */

struct host_rule {
    struct net_host host;
    bool below; /* `*.`: the names below it, and not it */
    bool web;   /* no port was said */
    uint16_t port;
};

/* The next line without the blanks around it; false at the end. Empty ones are passed over. */
static bool next_rule_line(const char **at, const char **ret_line, size_t *ret_size)
{
    for (const char *p = *at; *p;) {
        size_t size = strcspn(p, "\n"), lead = strspn(p, " \t\r");
        const char *line = p;
        p += size + (p[size] == '\n');
        *at = p;
        if (lead >= size)
            continue;
        while (size > lead && strchr(" \t\r", line[size - 1]))
            size--;
        *ret_line = line + lead;
        *ret_size = size - lead;
        return true;
    }
    return false;
}

static const char *parse_port_of_rule(const char *text, size_t size, struct host_rule *ret)
{
    ret->web = false;
    ret->port = PORT_ANY;
    if (size == 1 && text[0] == '*')
        return NULL;
    return net_host_port(text, size, &ret->port) ? NULL : "a port is a number up to 65535, or *";
}

/* NULL, or what is wrong with it. */
static const char *parse_rule(const char *text, size_t size, struct host_rule *ret)
{
    *ret = (struct host_rule){.web = true};
    const char *colon = memchr(text, ':', size), *fault = NULL;
    bool bare_six =
        colon && text[0] != '[' && memchr(colon + 1, ':', size - (size_t)(colon + 1 - text));
    size_t port = bare_six ? size : find_port(text, size);
    if (memmem(text, size, "://", 3) || memchr(text, '/', size))
        return "write the host alone, without a scheme or a path";
    if (port < size || (port == size && size > 0 && text[size - 1] == ':' && !bare_six))
        fault = parse_port_of_rule(text + port, size - port, ret);
    if (fault)
        return fault;
    size = ret->web ? size : port - 1;
    ret->below = size > 2 && text[0] == '*' && text[1] == '.';
    if (size == 1 && text[0] == '*')
        return "to allow every host, switch the network on instead";
    if (ret->below) {
        text += 2;
        size -= 2;
    }
    if (!net_host_parse(text, size, &ret->host))
        return "a host is letters, digits, hyphens and dots (others in their xn-- form), with at "
               "most a *. before it, or an address";
    if (ret->host.kind == HOST_STRANGE || (ret->below && ret->host.kind == HOST_ADDRESS))
        return "an address is four decimal numbers, or hexadecimal with colons, and has no *";
    return NULL;
}

static bool is_name_below(const char *name, const char *above)
{
    size_t size = strlen(name), end = strlen(above);
    return size > end + 1 && name[size - end - 1] == '.' && strcmp(name + size - end, above) == 0;
}

static bool names(const struct host_rule *rule, const struct net_host *host)
{
    if (rule->host.kind != host->kind)
        return false;
    return rule->below ? is_name_below(host->name, rule->host.name)
                       : net_host_is_same(&rule->host, host);
}

static bool allows_port(const struct host_rule *rule, uint16_t port)
{
    if (rule->web)
        return port == 80 || port == 443;
    return rule->port == PORT_ANY || rule->port == port;
}

enum hosts_verdict hosts_judge(const char *rules, const struct net_host *host, uint16_t port)
{
    enum hosts_verdict verdict = HOSTS_UNNAMED;
    struct host_rule rule;
    const char *line;
    size_t size;
    while (next_rule_line(&rules, &line, &size)) {
        if (parse_rule(line, size, &rule) || !names(&rule, host))
            continue;
        if (allows_port(&rule, port))
            return HOSTS_ALLOWED;
        verdict = HOSTS_OTHER_PORT;
    }
    return verdict;
}

const char *hosts_find_fault(const char *rules, const char **ret_rule, size_t *ret_size)
{
    struct host_rule rule;
    *ret_rule = rules;
    *ret_size = 0;
    if (strlen(rules) >= HOST_RULES_SIZE)
        return "the rules are too long: 16 KiB is the most";
    while (next_rule_line(&rules, ret_rule, ret_size)) {
        const char *fault = parse_rule(*ret_rule, *ret_size, &rule);
        if (fault)
            return fault;
    }
    return NULL;
}
