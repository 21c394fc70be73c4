/*
 * Which hosts a fenced command may reach: names and addresses as people and clients write them, and
 * the rules about them. The gate goes by the same text that the library has checked.
 *
 * A rule is a line: HOST, HOST:PORT or HOST:*, where HOST is a name, `*.name` for all names below
 * it, or an address (`[...]` around one of IPv6, if a port follows). Without a port it allows those
 * of the web. An address is never reached by its digits unless a rule is that very address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_NAME_SIZE  254 /* of the longest name, with its NUL */
#define HOST_TEXT_SIZE  264 /* the same with a port */
#define HOST_BYTES      16  /* an address of IPv4 is ::ffff:a.b.c.d */
#define HOST_RULES_SIZE 16384

enum host_kind {
    HOST_NAME,    /* to be resolved */
    HOST_ADDRESS, /* in its usual form */
    HOST_STRANGE, /* digits that some programs take for an address, and others not: no rule has it
                   */
};

struct net_host {
    enum host_kind kind;
    char name[HOST_NAME_SIZE]; /* lower case, no dot at the end, no brackets */
    uint8_t address[HOST_BYTES];
};

/* A host without a port: letters, digits, hyphens and underscores between dots, or an address. */
bool net_host_parse(const char *text, size_t size, struct net_host *ret);

/* The host that is this address. */
void net_host_of_address(const uint8_t address[HOST_BYTES], struct net_host *ret);

/* HOST:PORT, or HOST if fallback is a port; an address of IPv6 stands in brackets. */
bool net_host_parse_port(const char *text, size_t size, uint16_t fallback, struct net_host *ret,
                         uint16_t *ret_port);

bool net_host_is_same(const struct net_host *a, const struct net_host *b);

/* "name:port", with brackets where they belong; cut to HOST_TEXT_SIZE. */
void net_host_write(const struct net_host *host, uint16_t port, char ret[HOST_TEXT_SIZE]);

bool net_host_is_localhost(const struct net_host *host);

enum hosts_verdict {
    HOSTS_ALLOWED,
    HOSTS_OTHER_PORT, /* it is named, but not with this port */
    HOSTS_UNNAMED,
};

/* What checked rules say of a host and a port. */
enum hosts_verdict hosts_judge(const char *rules, const struct net_host *host, uint16_t port);

/* NULL, or what is wrong with the first rule that is none: the end of a sentence about it;
 * *ret_rule and *ret_size say which. */
const char *hosts_find_fault(const char *rules, const char **ret_rule, size_t *ret_size);
