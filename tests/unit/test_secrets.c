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

/* A value says nothing, and a name ends where it does. */
static void only_the_name(void **state)
{
    (void)state;
    assert_int_equal(secrets_is_secret("PLAIN=GITHUB_TOKEN", NULL), SECRET_NOT);
    assert_int_equal(secrets_is_secret("GITHUB_TOKEN=", NULL), SECRET_BY_NAME);
    assert_int_equal(secrets_is_secret("TO=KEN", NULL), SECRET_NOT);
    assert_int_equal(secrets_is_secret("SSH_AUTH_SOCK=/tmp/key", NULL), SECRET_NOT);
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
        cmocka_unit_test(only_the_name),
        cmocka_unit_test(rules),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
