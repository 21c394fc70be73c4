/* Which variables are secrets: many names both ways, and what the settings say about them. */
#include "unit.h"

#include "base/defs.h"
#include "config/secrets.h"

static const char *const secret[] = {
    /* what they are called */
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "MY_SECRET",
    "MYSECRET",
    "SECRET",
    "SECRETS",
    "DJANGO_SECRET_KEY",
    "CLIENT_SECRET_FILE",
    "PGPASSWORD",
    "PGPASSFILE",
    "DATABASE_PASSWD",
    "DB_PASS",
    "DBPASS",
    "PASS",
    "PASSWORD",
    "SSHPASS",
    "PASSPHRASE",
    "GPG_PASSPHRASE",
    "PASSCODE",
    "MYSQL_PWD",
    "DB_PWD",
    "DBPWD",
    "KEY",
    "KEYS",
    "APIKEY",
    "MY_KEY_1",
    "PRIVATE_KEY",
    "SSH_KEY",
    "DEPLOY_KEY_PATH",
    "KEYFILE",
    "KEYSTORE_FILE",
    "ENCRYPTION_KEYS",
    "TOKEN",
    "TOKENS",
    "NPM_TOKEN",
    "API_TOKENS",
    "HF_TOKEN_PATH",
    "OAUTHTOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_CREDENTIAL_EXPIRATION",
    "CREDS",
    "MY_CREDS",
    "DB_CRED",
    "AUTH",
    "BASIC_AUTH",
    "HTTP_AUTHORIZATION",
    "AUTHORIZATION",
    "PROXY_AUTHORIZATION",
    "OAUTH_CLIENT",
    "REDISCLI_AUTH",
    "DOCKER_AUTH_CONFIG",
    "AUTHTOKEN",
    "AUTHENTICATION",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GITHUB_PAT",
    "AZURE_DEVOPS_EXT_PAT",
    "PAT",
    "JWT",
    "SUPABASE_JWT",
    "SENTRY_DSN",
    "DATABASE_DSN",
    "PGDSN",
    "DB_PW",
    "ROOT_PW2",
    "MYSQL_PWD2",
    "DBPWD1",
    "WIFI_PSK",
    "WPAPSK",
    "IPSEC_PSK1",
    "SESSION_COOKIE",
    "COOKIES_FILE",
    "MYCOOKIEJAR",
    "BEARER",
    "API_BEARER",
    "AZURE_STORAGE_CONNECTION_STRING",
    "CONNECTION_STRING_2",
    "ConnectionStrings__Default",
    "DB_CONN_STR",
    "DB_CONN_STRING",
    "SQLCONNSTR_MAIN",
    "CLIENT_PEM",
    "GITHUB_APP_PEM",
    "SLACK_WEBHOOK",
    "DISCORD_WEBHOOK_URL",
    "WEBHOOKS",
    "MNEMONIC",
    "WALLET_MNEMONIC",
    "SEED_PHRASE",
    "MY_SEEDPHRASE",
    "SEED_WORDS",
    "WALLET_SEED",
    "MASTER_SEED_HEX",
    /* in any case, and with other things between the words */
    "openai_api_key",
    "myToken",
    "Db_Password",
    "npm_config__auth",
    "npm_config__authToken",
    "npm_config_//registry.example.org/:_authToken",
    "api.key",
    "some-secret",
    /* a harmless word does not hide another one */
    "KEYMAP_SECRET",
    "GIT_AUTHOR_TOKEN",
    "COMPASS_PASSWORD",
    "MONKEY_KEY",
    "KEYCLOAK_PASSWORD",
    "KEYBOARDSECRET",
    "TOKENIZER_KEY",
    "PASSENGER_TOKEN",
    "SSH_AUTH_SOCK_TOKEN",
    "XSSH_AUTH_SOCK",
    /* what hosts talk to their own services with */
    "CLAUDE_CODE_MESSAGING_URL",
    "CLAUDE_CODE_MESSAGING_",
    "ANTHROPIC_CUSTOM_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
};

static const char *const harmless[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "SHELL",
    "TERM",
    "TMPDIR",
    "EDITOR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HOSTNAME",
    "SHLVL",
    "_",
    "",
    "A",
    "PWD",
    "OLDPWD",
    "CLASSPATH",
    "SSH_AUTH_SOCK",
    "SSH_CONNECTION",
    "SSH_AGENT_PID",
    "XAUTHORITY",
    "ICEAUTHORITY",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "GNOME_KEYRING_CONTROL",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "LESSKEY",
    "LESSKEYIN",
    "LS_COLORS",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "AUTHOR",
    "AUTHORS",
    "AZURE_AUTHORITY_HOST",
    "COAUTHORS",
    "KEYMAP",
    "XKB_KEYMAP",
    "VIM_KEYMAPS",
    "KEYBOARD",
    "KEYBOARD_LAYOUT",
    "KEYTIMEOUT",
    "KEYWORDS",
    "KEYCLOAK_URL",
    "MONKEY",
    "MONKEYTYPE_THEME",
    "TURKEY_SIZE",
    "HOCKEY",
    "COMPASS",
    "COMPASS_HOME",
    "PASSENGER_APP_ENV",
    "TOX_TESTENV_PASSENV",
    "BYPASS_CACHE",
    "NO_PROXY_BYPASS",
    "PASSTHROUGH",
    "FTP_PASSIVE_MODE",
    "TESTS_PASSED",
    "INCREDIBUILD_HOME",
    "SACRED_RUN",
    "TOKENIZERS_PARALLELISM",
    "TOKENIZER_PATH",
    "MAX_TOKENS",
    "MAX_THINKING_TOKENS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "OPENAI_MAX_TOKENS",
    "MAX_MCP_OUTPUT_TOKENS",
    "CLAUDE_CODE",
    "CLAUDE_CODE_MESSAGINGX",
    "NACRE_HOME",
    "NACRE_KEEPER",
    "NACRE_TIER",
    "NACRE_CONFIG",
    "NACRE_ENV_ALLOW",
    "PATTERN",
    "PATCH",
    "COMPAT",
    "DISPATCH",
    "GOPATH",
    "CRYSTAL_PATH",
    "KE_Y",
    "PWDX",
    "PWD2X",
    "SEED",
    "RANDOM_SEED",
    "PYTHONHASHSEED",
    "PL_GLOBAL_SEED",
    "QCHECK_SEED",
    "SEED_DATABASE",
    "COOKIECUTTER_CONFIG",
    "DSNAME",
    "PWN_LOG",
    "PEMBROKE",
    "UPDOWNPW",
    "CONN_STATE",
    "CONNECTION_LIMIT",
    "PSKOV",
    "TOK_EN",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "CI",
    "VIRTUAL_ENV",
    "NODE_OPTIONS",
    "BASH_FUNC_which%%",
    "ssh_auth_sock",
    "PYTEST_CURRENT_TEST",
    "RUST_BACKTRACE",
    "DEBUG",
};

static void names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
        if (secrets_is_secret(secret[i], NULL) != SECRET_BY_NAME)
            fail_msg("%s passes", secret[i]);
    for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
        if (secrets_is_secret(harmless[i], NULL) != SECRET_NOT)
            fail_msg("%s is removed", harmless[i]);
}

/* A value says nothing but what a URL with a password says, and a name ends where it does. */
static void names_and_values(void **state)
{
    (void)state;
    assert_int_equal(secrets_is_secret("PLAIN=GITHUB_TOKEN", NULL), SECRET_NOT);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN=", NULL), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("TO=KEN", NULL), SECRET_NOT);
    assert_int_equal(secrets_is_secret("SSH_AUTH_SOCK=/tmp/key", NULL), SECRET_NOT);
}

static const char *const with_password[] = {
    "postgres://app:s3cret@db.example/app",
    "redis://:s3cret@cache:6379/0",
    "mysql+pymysql://u:p@h",
    "HTTP://u:p@proxy:3128",
    "amqp://u:1234@h",
    "postgres://u:p/w?x#y@h/db",
    "https://a.example/ https://u:p@b.example/",
    "'https://u:p@x',direct",
    "mongodb://a:27017,b:p@c:1/x",
    "jdbc:x://u:p@h",
    "https://user:p%40w@h",
};

static const char *const without_password[] = {
    "",
    "@",
    "://",
    "://u:p@h",
    "http://user@host",
    "http://user:@host",
    "http://host:8080/@scope/package",
    "http://host:8080?mail=a@b",
    "http://host:8080 a:b@c",
    "http://[::1]:8080/a:b@c",
    "http://[fe80::1%25eth0]/x@y",
    "mongodb://a:27017,b:27017/x@y",
    "ssh://git@host:22/a:b@c",
    "git@github.com:who/what",
    "user:password@host",
    "mailto:a:b@c",
    "http://host/a:b@c",
    "http://a:b",
    "http:/u:p@h",
};

static void urls_with_passwords(void **state)
{
    (void)state;
    char entry[256];
    const char *const allow[] = {"DATABASE_URL", NULL};
    const struct secret_rules allowed = {.allow = allow}, denied = {.deny = allow};
    for (size_t i = 0; i < ARRAY_SIZE(with_password); i++) {
        snprintf(entry, sizeof entry, "DATABASE_URL=%s", with_password[i]);
        if (secrets_is_secret(entry, NULL) != SECRET_BY_VALUE)
            fail_msg("%s passes", entry);
        assert_int_equal(secrets_is_secret(entry, &allowed), SECRET_NOT);
        assert_int_equal(secrets_is_secret(entry, &denied), SECRET_DENIED);
    }
    for (size_t i = 0; i < ARRAY_SIZE(without_password); i++) {
        snprintf(entry, sizeof entry, "DATABASE_URL=%s", without_password[i]);
        if (secrets_is_secret(entry, NULL) != SECRET_NOT)
            fail_msg("%s is removed", entry);
    }
    assert_int_equal(secrets_is_secret("http_proxy=http://u:p@proxy:3128", NULL), SECRET_BY_VALUE);
    assert_int_equal(secrets_is_secret("MY_TOKEN=http://u:p@h", NULL), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("https://u:p@h", NULL), SECRET_NOT); /* a name */
}

static void rules(void **state)
{
    (void)state;
    const char *const allow[] = {"GITHUB_TOKEN", "AWS_*", "BOTH", NULL};
    const char *const deny[] = {"LANG", "CORP_*", "AWS_SECRET*", "BOTH", NULL};
    const struct secret_rules r = {allow, deny}, only_allow = {allow, NULL},
                              only_deny = {NULL, deny}, none = {NULL, NULL};
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN=x", &r), SECRET_NOT);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN_2=x", &r), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("github_token=x", &r), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("AWS_ACCESS_KEY_ID=x", &r), SECRET_NOT);
    assert_int_equal(secrets_is_secret("AWS_SECRET_ACCESS_KEY=x", &r), SECRET_DENIED);
    assert_int_equal(secrets_is_secret("BOTH", &r), SECRET_DENIED);
    assert_int_equal(secrets_is_secret("LANG=C", &r), SECRET_DENIED);
    assert_int_equal(secrets_is_secret("LANGUAGE=C", &r), SECRET_NOT);
    assert_int_equal(secrets_is_secret("CORP_PROXY", &r), SECRET_DENIED);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN", &only_allow), SECRET_NOT);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN", &only_deny), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN", &none), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("LANG", &none), SECRET_NOT);
}

/* A name that nobody would give: in doubt it is a secret, unless it is allowed. */
static void long_names(void **state)
{
    (void)state;
    static char name[70000];
    const char *const allow[] = {"x*", NULL};
    const struct secret_rules r = {.allow = allow};
    memset(name, 'x', 255);
    assert_int_equal(secrets_is_secret(name, NULL), SECRET_NOT);
    memcpy(name + 250, "token", 5);
    assert_int_equal(secrets_is_secret(name, NULL), SECRET_BY_NAME);
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(secrets_is_secret(name, NULL), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret(name, &r), SECRET_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(names_and_values),
        cmocka_unit_test(urls_with_passwords),
        cmocka_unit_test(rules),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
