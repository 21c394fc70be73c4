/* Hosts as people and clients write them, and the rules about them. */
#include "unit.h"

#include "base/defs.h"
#include "run/hosts.h"

static const struct {
    const char *text;
    const char *name; /* NULL: it is none */
    enum host_kind kind;
} hosts[] = {
    {"example.org", "example.org", HOST_NAME},
    {"EXAMPLE.Org.", "example.org", HOST_NAME},
    {"a_b-c.example", "a_b-c.example", HOST_NAME},
    {"xn--bcher-kva.example", "xn--bcher-kva.example", HOST_NAME},
    {"localhost", "localhost", HOST_NAME},
    {"1.example", "1.example", HOST_NAME},
    {"0x7f.example", "0x7f.example", HOST_NAME},
    {"1.2.3.4", "1.2.3.4", HOST_ADDRESS},
    {"1.2.3.4.", "1.2.3.4", HOST_ADDRESS},
    {"::1", "::1", HOST_ADDRESS},
    {"[2001:DB8:0:0::1]", "2001:db8::1", HOST_ADDRESS},
    {"::ffff:1.2.3.4", "1.2.3.4", HOST_ADDRESS},
    {"::ffff:102:304", "1.2.3.4", HOST_ADDRESS},
    {"127.1", "127.1", HOST_STRANGE},
    {"2130706433", "2130706433", HOST_STRANGE},
    {"0x7f.1", "0x7f.1", HOST_STRANGE},
    {"1.0X7F", "1.0x7f", HOST_STRANGE},
    {"0x", "0x", HOST_STRANGE},
    {"0177.0.0.1", "0177.0.0.1", HOST_STRANGE},
    {"1.2.3.4.5", "1.2.3.4.5", HOST_STRANGE},
    {"256.1.1.1", "256.1.1.1", HOST_STRANGE},
    {"a.1", "a.1", HOST_STRANGE},
    {"", NULL, 0},
    {".", NULL, 0},
    {"a..b", NULL, 0},
    {".a", NULL, 0},
    {"a..", NULL, 0},
    {"a b", NULL, 0},
    {"a/b", NULL, 0},
    {"a@b", NULL, 0},
    {"a%2eb", NULL, 0},
    {"*.a", NULL, 0},
    {"b\303\274cher.example", NULL, 0},
    {"fe80::1%lo", NULL, 0},
    {"[::1", NULL, 0},
    {"[a]", NULL, 0},
    {"[1.2.3.4]", NULL, 0},
    {"a:b", NULL, 0},
    {"1:2:3:4:5:6:7:8:9", NULL, 0},
};

static void hosts_are_read(void **state)
{
    (void)state;
    struct net_host host;
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        bool read = net_host_parse(hosts[i].text, strlen(hosts[i].text), &host);
        if (read != (hosts[i].name != NULL))
            fail_msg("\"%s\" is %s a host", hosts[i].text, read ? "read as" : "not");
        if (!read)
            continue;
        assert_string_equal(host.name, hosts[i].name);
        assert_int_equal(host.kind, hosts[i].kind);
    }
}

static void lengths_are_limited(void **state)
{
    (void)state;
    struct net_host host;
    char name[300];
    memset(name, 'a', sizeof name);
    assert_true(net_host_parse(name, 63, &host));
    assert_false(net_host_parse(name, 64, &host));
    for (size_t i = 50; i < sizeof name; i += 51)
        name[i] = '.';
    assert_true(net_host_parse(name, 253, &host));
    assert_int_equal(strlen(host.name), 253);
    assert_false(net_host_parse(name, 254, &host));
    name[253] = '.';
    assert_true(net_host_parse(name, 254, &host));
    assert_false(net_host_parse("a\0b", 3, &host));
}

static void ports_are_read(void **state)
{
    (void)state;
    struct net_host host;
    uint16_t port;
    static const struct {
        const char *text;
        uint16_t fallback;
        uint16_t port; /* 0: it is none */
    } rows[] = {
        {"a:1", 0, 1},     {"a:65535", 0, 65535}, {"a:443", 80, 443}, {"a", 80, 80},
        {"a", 0, 0},       {"a:", 80, 0},         {"a:0", 80, 0},     {"a:65536", 0, 0},
        {"a:+1", 0, 0},    {"a:1x", 0, 0},        {"a: 1", 0, 0},     {"a:000001", 0, 0},
        {"[::1]:5", 0, 5}, {"[::1]", 7, 7},       {"::1", 7, 0},      {"[::1]x:5", 0, 0},
        {":5", 0, 0},      {"[]:5", 0, 0},        {"a:1:2", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *text = rows[i].text;
        bool read = net_host_parse_port(text, strlen(text), rows[i].fallback, &host, &port);
        if (read != (rows[i].port != 0) || (read && port != rows[i].port))
            fail_msg("\"%s\" has port %d", text, read ? port : 0);
    }
}

static void hosts_are_written(void **state)
{
    (void)state;
    struct net_host host;
    char text[HOST_TEXT_SIZE];
    assert_true(net_host_parse("A.example.", 10, &host));
    net_host_write(&host, 80, text);
    assert_string_equal(text, "a.example:80");
    assert_true(net_host_parse("::1", 3, &host));
    net_host_write(&host, 443, text);
    assert_string_equal(text, "[::1]:443");
}

static const char rules[] = "  Example.org \r\n"
                            "\n"
                            "*.example.com:22\n"
                            "any.example:*\n"
                            "port.example:22\n"
                            "port.example:25\n"
                            "1.2.3.4\n"
                            "[::1]:8080\n"
                            "fd00::1\n"
                            "::ffff:5.6.7.8";

static const struct {
    const char *host;
    uint16_t port;
    enum hosts_verdict verdict;
} verdicts[] = {
    {"example.org", 80, HOSTS_ALLOWED},
    {"example.org", 443, HOSTS_ALLOWED},
    {"EXAMPLE.ORG.", 443, HOSTS_ALLOWED},
    {"example.org", 22, HOSTS_OTHER_PORT},
    {"a.example.org", 443, HOSTS_UNNAMED},
    {"xexample.org", 443, HOSTS_UNNAMED},
    {"a.example.com", 22, HOSTS_ALLOWED},
    {"a.b.c.example.com", 22, HOSTS_ALLOWED},
    {"a.example.com", 443, HOSTS_OTHER_PORT},
    {"example.com", 22, HOSTS_UNNAMED},
    {"xexample.com", 22, HOSTS_UNNAMED},
    {"any.example", 1, HOSTS_ALLOWED},
    {"any.example", 65535, HOSTS_ALLOWED},
    {"port.example", 25, HOSTS_ALLOWED},
    {"port.example", 22, HOSTS_ALLOWED},
    {"port.example", 80, HOSTS_OTHER_PORT},
    {"1.2.3.4", 80, HOSTS_ALLOWED},
    {"::ffff:1.2.3.4", 80, HOSTS_ALLOWED},
    {"1.2.3.4", 22, HOSTS_OTHER_PORT},
    {"1.2.3.5", 80, HOSTS_UNNAMED},
    {"01.2.3.4", 80, HOSTS_UNNAMED},
    {"16909060", 80, HOSTS_UNNAMED},
    {"::1", 8080, HOSTS_ALLOWED},
    {"0:0::1", 8080, HOSTS_ALLOWED},
    {"fd00:0::1", 443, HOSTS_ALLOWED},
    {"5.6.7.8", 443, HOSTS_ALLOWED},
    {"localhost", 443, HOSTS_UNNAMED},
};

static void rules_are_kept(void **state)
{
    (void)state;
    struct net_host host;
    const char *rule;
    size_t size;
    assert_null(hosts_find_fault(rules, &rule, &size));
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
        const char *text = verdicts[i].host;
        assert_true(net_host_parse(text, strlen(text), &host));
        enum hosts_verdict got = hosts_judge(rules, &host, verdicts[i].port);
        if (got != verdicts[i].verdict)
            fail_msg("%s:%d gets %d", text, verdicts[i].port, (int)got);
    }
    assert_int_equal(hosts_judge("", &host, 443), HOSTS_UNNAMED);
}

static const char *const no_rules[] = {
    "*",           "*:443", "*.",         "*.*.a",   "a.*",       "*a.example",
    "*.1.2.3.4",   "*.::1", "https://a",  "a/b",     "a:0",       "a:x",
    "a:",          "a:1:2", "u@a",        "a b",     "127.1",     "0x7f.1",
    "[::1]:",      "[::1",  "1.2.3.4/24", "a..b",    "[1.2.3.4]", "b\303\274cher.example",
    "a:443,b:443", "a\tb",  "#a",         "a:70000", "-:*:*",
};

static void faults_are_found(void **state)
{
    (void)state;
    char text[128];
    const char *rule;
    size_t size;
    for (size_t i = 0; i < ARRAY_SIZE(no_rules); i++) {
        snprintf(text, sizeof text, "good.example\n%s\n*", no_rules[i]);
        const char *fault = hosts_find_fault(text, &rule, &size);
        if (!fault || size != strlen(no_rules[i]) || strncmp(rule, no_rules[i], size) != 0)
            fail_msg("\"%s\" is taken for a rule", no_rules[i]);
        assert_true(strlen(fault) > 10);
    }
    char *many = malloc(HOST_RULES_SIZE + 1);
    memset(many, '\n', HOST_RULES_SIZE);
    many[HOST_RULES_SIZE - 1] = '\0';
    assert_null(hosts_find_fault(many, &rule, &size));
    many[HOST_RULES_SIZE - 1] = '\n';
    many[HOST_RULES_SIZE] = '\0';
    assert_non_null(hosts_find_fault(many, &rule, &size));
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_read), cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(ports_are_read), cmocka_unit_test(hosts_are_written),
        cmocka_unit_test(rules_are_kept), cmocka_unit_test(faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
