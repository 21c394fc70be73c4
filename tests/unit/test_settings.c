/* Settings: every kind of value, where it may come from, which one wins, and what is said of a
 * wrong one. */
#include "unit.h"

#include <nacre/nacre.h>

#include "base/defs.h"
#include "config/file.h"
#include "config/settings.h"
#include "config/value.h"

static nacre_error error;

static int clean(void **state)
{
    (void)state;
    clearenv();
    setenv("HOME", unit_place, 1);
    memset(&error, 0, sizeof error);
    return 0;
}

/* -- Values ------------------------------------------------------------------------------------ */

static const struct setting *setting(nacre_setting which)
{
    return &setting_table[which];
}

static void assert_value(nacre_setting which, const char *text, int64_t number, const char *again)
{
    struct value value;
    if (value_parse(setting(which), text, &value) != 0)
        fail_msg("%s does not take \"%s\"", setting(which)->name, text);
    assert_int_equal(value.number, number);
    assert_string_equal(value.text, again);
    value_done(&value);
}

static void assert_refused(nacre_setting which, const char *text)
{
    struct value value;
    if (value_parse(setting(which), text, &value) != -EINVAL)
        fail_msg("%s takes \"%s\"", setting(which)->name, text);
}

static void times_of_the_command_line(void **state)
{
    static const char *const wrong[] = {"", "-1", "s", "5x", "1e3", "1.2.3", " 5", "2 m", "3h"};
    int64_t ms = 7;
    (void)state;
    assert_true(value_parse_time("2m", 7200000, &ms) && ms == 120000);
    assert_true(value_parse_time(".5", 7200000, &ms) && ms == 500);
    assert_true(value_parse_time("2h", 7200000, &ms) && ms == 7200000);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(value_parse_time(wrong[i], 7200000, &ms));
    assert_int_equal(ms, 7200000);
}

static void counts(void **state)
{
    (void)state;
    assert_value(NACRE_SETTING_SHELLS, "1", 1, "1");
    assert_value(NACRE_SETTING_SHELLS, "010", 10, "10");
    assert_value(NACRE_SETTING_SHELLS, "10000", 10000, "10000");
    static const char *const wrong[] = {"",   "0", "10001", "-1", "1.5",
                                        "8s", "x", " 8",    "8 ", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_refused(NACRE_SETTING_SHELLS, wrong[i]);
}

static void times(void **state)
{
    (void)state;
    const nacre_setting t = NACRE_SETTING_TIMEOUT, b = NACRE_SETTING_BACKGROUND_TIMEOUT;
    assert_value(t, "500ms", 500, "500ms");
    assert_value(t, "30", 30000, "30s");
    assert_value(t, "30s", 30000, "30s");
    assert_value(t, "60", 60000, "1m");
    assert_value(t, "5m", 300000, "5m");
    assert_value(t, "90s", 90000, "90s");
    assert_value(t, "2h", 7200000, "2h");
    assert_value(t, "14d", 1209600000, "14d");
    assert_value(t, "1.5", 1500, "1500ms");
    assert_value(t, "1.5h", 5400000, "90m");
    assert_value(t, ".5s", 500, "500ms");
    assert_value(t, "0.1ms", 1, "1ms");
    assert_value(t, "365d", INT64_C(31536000000), "365d");
    assert_value(b, "0", 0, "0");
    assert_value(b, "0s", 0, "0");
    /* T4: 0, below it, and what is no time */
    static const char *const wrong[] = {
        "",   "0",    "0s",   "-1",  "-1s",  "abc", "s",     "5 s",   "5S",
        "5M", "5min", "5sec", "1e3", "366d", "ms",  "1m30s", "1..5s", "99999999999999999999d",
        "inf"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_refused(t, wrong[i]);
    assert_refused(b, "-1");
}

static void sizes(void **state)
{
    (void)state;
    const nacre_setting q = NACRE_SETTING_QUOTA, a = NACRE_SETTING_ANSWER;
    assert_value(q, "262144", 262144, "256KiB");
    assert_value(q, "262145", 262145, "262145");
    assert_value(q, "64MiB", 67108864, "64MiB");
    assert_value(q, "64mib", 67108864, "64MiB");
    assert_value(q, "64M", 67108864, "64MiB");
    assert_value(q, "2GiB", INT64_C(2147483648), "2GiB");
    assert_value(q, "1TiB", INT64_C(1) << 40, "1TiB");
    assert_value(q, "1MB", 1000000, "1000000");
    assert_value(q, "1.5MiB", 1572864, "1536KiB");
    assert_value(a, "10KB", 10000, "10000");
    assert_value(a, "10K", 10240, "10KiB");
    assert_value(a, "2048B", 2048, "2KiB");
    static const char *const wrong[] = {"",       "0",      "255KiB",   "-1",
                                        "64 MiB", "64Mi",   "MiB",      "1025GiB",
                                        "1PiB",   "64MiBs", "0x100000", "9999999999999T"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_refused(q, wrong[i]);
}

static void switches_and_choices(void **state)
{
    (void)state;
    static const char *const on[] = {"on", "true", "yes", "1"};
    static const char *const off[] = {"off", "false", "no", "0"};
    for (size_t i = 0; i < ARRAY_SIZE(on); i++) {
        assert_value(NACRE_SETTING_HISTORY, on[i], 1, "on");
        assert_value(NACRE_SETTING_HISTORY, off[i], 0, "off");
    }
    assert_refused(NACRE_SETTING_HISTORY, "");
    assert_refused(NACRE_SETTING_HISTORY, "On");
    assert_refused(NACRE_SETTING_HISTORY, "2");
    assert_value(NACRE_SETTING_VIEW, "full", NACRE_VIEW_FULL, "full");
    assert_value(NACRE_SETTING_VIEW, "compact", NACRE_VIEW_COMPACT, "compact");
    assert_value(NACRE_SETTING_TIER, "cgroup", NACRE_TIER_CGROUP, "cgroup");
    assert_value(NACRE_SETTING_TIER, "subreaper", NACRE_TIER_SUBREAPER, "subreaper");
    assert_value(NACRE_SETTING_TIER, "group", NACRE_TIER_GROUP, "group");
    static const char *const wrong[] = {"", "ful", "fulll", "full,", "full, compact", "Full", ","};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_refused(NACRE_SETTING_VIEW, wrong[i]);
}

static void assert_list(const char *text, const char *again, const char *const *want)
{
    struct value value;
    assert_int_equal(value_parse(setting(NACRE_SETTING_ENV_ALLOW), text, &value), 0);
    assert_string_equal(value.text, again);
    size_t i = 0;
    for (; want[i]; i++)
        assert_string_equal(value.list[i], want[i]);
    assert_null(value.list[i]);
    value_done(&value);
}

static void lists_and_texts(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const one[] = {"A", NULL},
                             *const three[] = {"A", "B_*", "C", NULL};
    assert_list("", "", none);
    assert_list(" , ,", "", none);
    assert_list("A", "A", one);
    assert_list(",A,", "A", one);
    assert_list("A,B_*,C", "A,B_*,C", three);
    assert_list("A B_*\tC\n", "A,B_*,C", three);
    assert_list("A, B_*  ,, C", "A,B_*,C", three);
    assert_refused(NACRE_SETTING_ENV_ALLOW, "A=1");
    assert_refused(NACRE_SETTING_ENV_ALLOW, "A,=");
    assert_value(NACRE_SETTING_SHELL, "", 0, "");
    assert_value(NACRE_SETTING_SHELL, "/bin/a b", 0, "/bin/a b");
    static char text[VALUE_LIST_MAX + 3];
    memset(text, 'x', VALUE_TEXT_MAX);
    assert_value(NACRE_SETTING_SHELL, text, 0, text);
    assert_refused(NACRE_SETTING_ENV_ALLOW, text);
    text[VALUE_TEXT_MAX] = 'x';
    assert_refused(NACRE_SETTING_SHELL, text);
    for (size_t i = 0; i < VALUE_LIST_MAX + 2; i++)
        text[i] = i % 2 ? ',' : 'x';
    assert_refused(NACRE_SETTING_ENV_ALLOW, text);
}

/* -- The table --------------------------------------------------------------------------------- */

static int check_info(const nacre_setting_info *info, void *userdata)
{
    int *count = userdata;
    struct value value;
    nacre_setting found;
    assert_int_equal(info->setting, *count);
    assert_true(strlen(info->name) <= SETTING_NAME_MAX && strlen(info->name) > 0);
    assert_true(strspn(info->name, "abcdefghijklmnopqrstuvwxyz_") == strlen(info->name));
    assert_int_equal(nacre_settings_find(info->name, &found, NULL), 0);
    assert_int_equal(found, info->setting);
    /* The default is allowed, and written as it is shown. */
    assert_int_equal(value_parse(setting(info->setting), info->fallback, &value), 0);
    assert_string_equal(value.text, info->fallback);
    value_done(&value);
    assert_string_equal(info->value, info->fallback);
    assert_string_equal(info->origin, "default");
    assert_true(info->help[0] && info->help[strlen(info->help) - 1] != '.');
    assert_true(info->allowed[0]);
    /* Names that mean something else already. */
    static const char *const taken[] = {"NACRE_ID",  "NACRE_COMMAND", "NACRE_COMMAND_FD",
                                        "NACRE_RUN", "NACRE_SESSION", "NACRE_CONFIG"};
    for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
        assert_string_not_equal(info->variable, taken[i]);
    assert_int_equal(secrets_is_secret(info->variable, NULL), SECRET_NOT);
    ++*count;
    return 0;
}

static int stop(const nacre_setting_info *info, void *userdata)
{
    int *count = userdata;
    return ++*count == 3 && info->setting == NACRE_SETTING_TIMEOUT ? 42 : 0;
}

static void the_table(void **state)
{
    (void)state;
    nacre_settings *s = settings_new();
    int count = 0;
    assert_int_equal(nacre_settings_each(s, check_info, &count), 0);
    assert_int_equal(count, SETTING_COUNT);
    count = 0;
    assert_int_equal(nacre_settings_each(s, stop, &count), 42);
    assert_int_equal(count, 3);
    nacre_settings_free(s);
}

static void defaults(void **state)
{
    (void)state;
    nacre_settings *s = NULL;
    static const struct {
        nacre_setting which;
        int64_t number;
    } want[] = {
        {NACRE_SETTING_SHELLS, 8},
        {NACRE_SETTING_LISTED, 32},
        {NACRE_SETTING_TIMEOUT, 60000},
        {NACRE_SETTING_TIMEOUT_MAX, 300000},
        {NACRE_SETTING_BACKGROUND_TIMEOUT, 0},
        {NACRE_SETTING_YIELD, 25000},
        {NACRE_SETTING_WAIT, 25000},
        {NACRE_SETTING_WAIT_PROGRESS, 240000},
        {NACRE_SETTING_GRACE, 2000},
        {NACRE_SETTING_UNREAD, 1048576},
        {NACRE_SETTING_QUOTA, 67108864},
        {NACRE_SETTING_HOME_QUOTA, INT64_C(2147483648)},
        {NACRE_SETTING_HOME_DAYS, 14},
        {NACRE_SETTING_ANSWER, 10240},
        {NACRE_SETTING_VIEW, NACRE_VIEW_FULL},
        {NACRE_SETTING_STDERR_LINES, 50},
        {NACRE_SETTING_STDOUT_LINES, 20},
        {NACRE_SETTING_HISTORY, 1},
        {NACRE_SETTING_AUDIT, 1},
        {NACRE_SETTING_STRUCTURED, 0},
        {NACRE_SETTING_TIER, NACRE_TIER_CGROUP},
    };
    assert_int_equal(nacre_settings_load(NULL, &s, &error), 0);
    for (size_t i = 0; i < ARRAY_SIZE(want); i++)
        if (nacre_settings_number(s, want[i].which) != want[i].number)
            fail_msg("%s is %s", setting(want[i].which)->name,
                     nacre_settings_text(s, want[i].which));
    assert_null(nacre_settings_list(s, NACRE_SETTING_ENV_ALLOW)[0]);
    assert_null(nacre_settings_list(s, NACRE_SETTING_TIMEOUT)[0]);
    assert_null(settings_text_or_null(s, NACRE_SETTING_SHELL));
    const nacre_setting later = (nacre_setting)1000;
    assert_int_equal(nacre_settings_number(s, later), 0);
    assert_string_equal(nacre_settings_text(s, later), "");
    assert_null(nacre_settings_list(s, later)[0]);
    nacre_settings_free(s);
    nacre_settings_free(NULL);
}

/* -- Where they come from ---------------------------------------------------------------------- */

static const char *write_config(const char *text, mode_t mode)
{
    static char path[PATH_MAX + 16];
    char dir[PATH_MAX];
    close(unit_dir(dir));
    snprintf(path, sizeof path, "%s/config.json", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static void assert_setting(const nacre_settings *s, nacre_setting which, const char *text,
                           const char *origin)
{
    assert_string_equal(nacre_settings_text(s, which), text);
    assert_string_equal(nacre_settings_origin(s, which), origin);
}

static void precedence(void **state)
{
    (void)state;
    nacre_settings *s = NULL;
    char origin[PATH_MAX + 32];
    const char *path = write_config("{\n \"timeout\": 10,\n\"grace\":\n  \"3s\", \"wait\": 11,\n\n"
                                    "  \"env_allow\": [\"A\",\n \"B\"], \"quota\": \"1MiB\" }\n",
                                    0600);
    setenv("NACRE_TIMEOUT", "20", 1);
    setenv("NACRE_WAIT", "21", 1);
    setenv("NACRE_YIELD", "", 1);
    setenv("NACRE_ENV_DENY", "X Y", 1);
    setenv("NACRE_NO_SUCH_SETTING", "1", 1);
    assert_int_equal(nacre_settings_load(path, &s, &error), 0);
    assert_int_equal(nacre_settings_set(s, "timeout", "30", "--timeout", &error), 0);
    assert_setting(s, NACRE_SETTING_TIMEOUT, "30s", "--timeout");
    assert_setting(s, NACRE_SETTING_WAIT, "21s", "environment NACRE_WAIT");
    assert_setting(s, NACRE_SETTING_YIELD, "25s", "default");
    assert_setting(s, NACRE_SETTING_ENV_DENY, "X,Y", "environment NACRE_ENV_DENY");
    snprintf(origin, sizeof origin, "%s:3", path);
    assert_setting(s, NACRE_SETTING_GRACE, "3s", origin);
    snprintf(origin, sizeof origin, "%s:6", path);
    assert_setting(s, NACRE_SETTING_ENV_ALLOW, "A,B", origin);
    snprintf(origin, sizeof origin, "%s:7", path);
    assert_setting(s, NACRE_SETTING_QUOTA, "1MiB", origin);
    assert_string_equal(nacre_settings_file(s), path);
    assert_int_equal(nacre_settings_set(s, "wait", "5", NULL, &error), 0);
    assert_setting(s, NACRE_SETTING_WAIT, "5s", "call");
    nacre_settings_free(s);
}

static void a_copy_is_its_own(void **state)
{
    (void)state;
    nacre_settings *s = NULL, *copy = NULL;
    setenv("NACRE_ENV_ALLOW", "A,B", 1);
    assert_int_equal(nacre_settings_load("", &s, &error), 0);
    assert_string_equal(nacre_settings_file(s), "");
    assert_int_equal(nacre_settings_copy(s, &copy, &error), 0);
    assert_int_equal(nacre_settings_set(s, "env_allow", "C", NULL, &error), 0);
    assert_int_equal(nacre_settings_set(s, "timeout", "1", NULL, &error), 0);
    nacre_settings_free(s);
    assert_setting(copy, NACRE_SETTING_ENV_ALLOW, "A,B", "environment NACRE_ENV_ALLOW");
    assert_string_equal(nacre_settings_list(copy, NACRE_SETTING_ENV_ALLOW)[1], "B");
    assert_setting(copy, NACRE_SETTING_TIMEOUT, "1m", "default");
    nacre_settings_free(copy);
    assert_int_equal(nacre_settings_copy(NULL, &copy, &error), NACRE_EINVAL);
}

static void places(void **state)
{
    (void)state;
    nacre_settings *s = NULL;
    char xdg[PATH_MAX], path[PATH_MAX + 32];
    int dir = unit_dir(xdg);
    assert_int_equal(nacre_settings_load(NULL, &s, &error), 0);
    snprintf(path, sizeof path, "%s/.config/nacre/config.json", unit_place);
    assert_string_equal(nacre_settings_file(s), path);
    nacre_settings_free(s);
    setenv("XDG_CONFIG_HOME", xdg, 1);
    assert_int_equal(mkdirat(dir, "nacre", 0700), 0);
    int fd = openat(dir, "nacre/config.json", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "{\"shells\": 3}", 13), 13);
    close(fd);
    close(dir);
    assert_int_equal(nacre_settings_load(NULL, &s, &error), 0);
    assert_int_equal(nacre_settings_number(s, NACRE_SETTING_SHELLS), 3);
    nacre_settings_free(s);
    setenv("NACRE_CONFIG", write_config("{\"shells\": 4}", 0600), 1);
    assert_int_equal(nacre_settings_load(NULL, &s, &error), 0);
    assert_int_equal(nacre_settings_number(s, NACRE_SETTING_SHELLS), 4);
    nacre_settings_free(s);
    assert_int_equal(nacre_settings_load("", &s, &error), 0);
    assert_int_equal(nacre_settings_number(s, NACRE_SETTING_SHELLS), 8);
    nacre_settings_free(s);
}

static void assert_load_fails(const char *file, int code, const char *sentence)
{
    nacre_settings *s = NULL;
    memset(&error, 0, sizeof error);
    assert_int_equal(nacre_settings_load(file, &s, &error), code);
    assert_null(s);
    if (!strstr(error.msg, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.msg);
}

/* What was named has to be there; a path must not depend on where we are. */
static void files_that_are_missing(void **state)
{
    (void)state;
    assert_load_fails("/nonexistent/config.json", NACRE_ENOTFOUND, "/nonexistent/config.json");
    setenv("NACRE_CONFIG", "/nonexistent/config.json", 1);
    assert_load_fails(NULL, NACRE_ENOTFOUND, "/nonexistent/config.json");
    setenv("NACRE_CONFIG", "config.json", 1);
    assert_load_fails(NULL, NACRE_EINVAL, "NACRE_CONFIG");
    unsetenv("NACRE_CONFIG");
    setenv("XDG_CONFIG_HOME", "here", 1);
    assert_load_fails(NULL, NACRE_EINVAL, "absolute");
}

static void files_that_are_not_ours(void **state)
{
    (void)state;
    nacre_settings *s = NULL;
    char path[PATH_MAX + 16], link[PATH_MAX + 32];
    assert_load_fails(write_config("{}", 0620), NACRE_EPERM, "chmod go-w");
    assert_load_fails(write_config("{}", 0602), NACRE_EPERM, "chmod go-w");
    assert_load_fails(unit_place, NACRE_EINVAL, "not a file");
    assert_load_fails("/dev/null", NACRE_EINVAL, "not a file");
    memcpy(path, write_config("{\"shells\": 5}", 0644), sizeof path);
    assert_int_equal(nacre_settings_load(path, &s, &error), 0);
    nacre_settings_free(s);
    s = NULL;
    snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(nacre_settings_load(link, &s, &error), 0);
    assert_int_equal(nacre_settings_number(s, NACRE_SETTING_SHELLS), 5);
    nacre_settings_free(s);
    char fifo[PATH_MAX + 32];
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_load_fails(fifo, NACRE_EINVAL, "not a file");
    static char large[CONFIG_MAX + 2];
    memset(large, ' ', sizeof large - 1);
    assert_load_fails(write_config(large, 0600), NACRE_EINVAL, "256 KiB");
    if (geteuid() != 0) {
        assert_load_fails(write_config("{}", 0000), NACRE_EIO, "cannot read");
        /* A directory that is closed to us is another user's. */
        close(unit_dir(path));
        assert_int_equal(chmod(path, 0), 0);
        setenv("HOME", path, 1);
        assert_int_equal(nacre_settings_load(NULL, &s, &error), 0);
        nacre_settings_free(s);
        return;
    }
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_load_fails(path, NACRE_EPERM, "uid 65534");
}

/* -- What is said of wrong ones ---------------------------------------------------------------- */

static void assert_json_fails(const char *text, const char *sentence)
{
    nacre_settings *s = settings_new();
    memset(&error, 0, sizeof error);
    assert_int_equal(settings_take_json(s, text, strlen(text), "/c.json", &error), NACRE_EINVAL);
    if (!strstr(error.msg, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.msg);
    nacre_settings_free(s);
}

static void wrong_files(void **state)
{
    (void)state;
    assert_json_fails("", "/c.json:1: ");
    assert_json_fails("[]", "/c.json:1: the file must be an object");
    assert_json_fails("{\n\"timeout\": 5,\n}", "/c.json:3: ");
    assert_json_fails("{\n\"timeout\": 5\n\"wait\": 5}", "/c.json:3: ");
    assert_json_fails("{\"timeout\": 5,\n \"timeout\": 6}", "/c.json:2: duplicate");
    assert_json_fails("{} x", "/c.json:1: ");
    assert_json_fails("{\"timeout\": \"\\u0000\"}", "/c.json:1: ");
}

static void wrong_values(void **state)
{
    (void)state;
    assert_json_fails("{\"wait\": 5, \"grace\": \"1}\\\"{\",\n\n \"timeout\": 7, \"x\": 1}",
                      "/c.json:1: grace takes a time such as 500ms, 30s or 5m, 0 to 365d; got "
                      "\"1}\"{\"");
    assert_json_fails("{\n\n\"timeout\"\n: 0}", "/c.json:3: timeout takes a time such as 500ms, "
                                                "30s or 5m, 1ms to 365d; got \"0\"");
    assert_json_fails("{\n\"timeout\": -1}", "/c.json:2: timeout takes");
    assert_json_fails("{\n\"timeout\": 1e3}", "got \"1e3\"");
    assert_json_fails("{\n\"timeout\": true}", "/c.json:2: timeout takes a time such as 500ms, 30s "
                                               "or 5m, 1ms to 365d; got true");
    assert_json_fails("{\n\"timeout\": null}", "; got null");
    assert_json_fails("{\n\"timeout\": [1,\n2]}", "/c.json:2: ");
    assert_json_fails(
        "{\"env_allow\":[\"A\",\n\"B\"],\n\"env_deny\":{\"a\":[1,\n\"}\"]},\n\"x\":1}",
        "/c.json:3: env_deny takes names, in which * stands for any characters; got");
    assert_json_fails("{\"env_allow\": [\"A B\"]}", "env_allow takes names");
    assert_json_fails("{\"env_allow\": [\"A\", 1]}", "env_allow takes names");
    assert_json_fails("{\"env_allow\": [\"\"]}", "env_allow takes names");
    assert_json_fails("{\"env_allow\": [\"A=1\"]}", "env_allow takes names");
    assert_json_fails("{\"shell\": 5}",
                      "shell takes a text, a path, or a name found in PATH; got 5");
    assert_json_fails("{\"history\": 1}", "history takes one of on, off; got 1");
    assert_json_fails("{\"view\": \"short\"}", "view takes one of full, compact; got \"short\"");
    assert_json_fails("{\"shells\": 1.5}", "shells takes a whole number, 1 to 10000; got \"1.5\"");
    assert_json_fails("{\"quota\": \"1KiB\"}",
                      "quota takes a size such as 65536 or 64MiB, 256KiB to 1TiB; got \"1KiB\"");
}

static void unknown_names(void **state)
{
    (void)state;
    nacre_settings *s = settings_new();
    nacre_setting which;
    assert_json_fails("{\"timeout\": 5,\n\"timout_max\": 5}",
                      "/c.json:2: there is no setting \"timout_max\"; did you mean "
                      "\"timeout_max\"?");
    assert_json_fails("{\"timeout-max\": 5}", "did you mean \"timeout_max\"?");
    assert_json_fails("{\"timeuot\": 5}", "did you mean \"timeout\"?");
    assert_json_fails("{\"time\": 5}", "did you mean \"timeout\"?");
    assert_json_fails("{\"hom\": 5}", "did you mean \"home\"?");
    assert_json_fails("{\"\": 5}", "there is no setting \"\"; \"nacre config\" lists all");
    assert_json_fails("{\"frobnicate\": 5}", "\"nacre config\" lists all");
    assert_int_equal(nacre_settings_find("quotas", &which, &error), NACRE_EINVAL);
    assert_non_null(strstr(error.msg, "did you mean \"quota\"?"));
    assert_int_equal(nacre_settings_find(NULL, &which, &error), NACRE_EINVAL);
    assert_int_equal(nacre_settings_set(s, "tmieout", "5", NULL, &error), NACRE_EINVAL);
    assert_non_null(strstr(error.msg, "\"timeout\""));
    nacre_settings_free(s);
}

/* A wrong one changes nothing. */
static void refused_by_set(void **state)
{
    (void)state;
    nacre_settings *s = settings_new();
    assert_int_equal(nacre_settings_set(s, "timeout", "10", "--timeout", &error), 0);
    static const char *const wrong[] = {"0", "-1", "abc"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_int_equal(nacre_settings_set(s, "timeout", wrong[i], NULL, &error), NACRE_EINVAL);
        assert_int_equal(strncmp(error.msg, "timeout takes", 13), 0);
        assert_setting(s, NACRE_SETTING_TIMEOUT, "10s", "--timeout");
    }
    assert_int_equal(nacre_settings_set(s, "timeout", NULL, NULL, &error), NACRE_EINVAL);
    assert_int_equal(nacre_settings_set(NULL, "timeout", "1", NULL, &error), NACRE_EINVAL);
    nacre_settings_free(s);
}

static void wrong_environment(void **state)
{
    (void)state;
    setenv("NACRE_TIMEOUT_MAX", "soon", 1);
    assert_load_fails("", NACRE_EINVAL, "NACRE_TIMEOUT_MAX: timeout_max takes a time");
    assert_non_null(strstr(error.msg, "got \"soon\""));
    unsetenv("NACRE_TIMEOUT_MAX");
    setenv("NACRE_TIER", "best", 1);
    assert_load_fails("", NACRE_EINVAL, "NACRE_TIER: tier takes one of cgroup, subreaper, group");
}

/* Numbers are read as they are written, whatever the host's language puts for a point. */
static void every_kind_in_a_file(void **state)
{
    (void)state;
    static const char text[] = "\t{ \"timeout\" : 0.5,\r\n\"home_quota\":3000000000,"
                               "\"history\":false,\"structured\":true,\"view\":\"compact\","
                               "\"shell\":\"\\u00e4\\\\\",\"env_deny\":[],\"env_allow\":\"A, B\","
                               "\"shells\":\"9\",\n\n\"listed\":7}";
    nacre_settings *s = settings_new();
    assert_int_equal(settings_take_json(s, text, sizeof text - 1, "/c.json", &error), 0);
    assert_setting(s, NACRE_SETTING_TIMEOUT, "500ms", "/c.json:1");
    assert_setting(s, NACRE_SETTING_HOME_QUOTA, "3000000000", "/c.json:2");
    assert_setting(s, NACRE_SETTING_HISTORY, "off", "/c.json:2");
    assert_setting(s, NACRE_SETTING_STRUCTURED, "on", "/c.json:2");
    assert_setting(s, NACRE_SETTING_VIEW, "compact", "/c.json:2");
    assert_setting(s, NACRE_SETTING_SHELL, "\u00e4\\", "/c.json:2");
    assert_setting(s, NACRE_SETTING_ENV_DENY, "", "/c.json:2");
    assert_setting(s, NACRE_SETTING_ENV_ALLOW, "A,B", "/c.json:2");
    assert_setting(s, NACRE_SETTING_SHELLS, "9", "/c.json:2");
    assert_setting(s, NACRE_SETTING_LISTED, "7", "/c.json:4");
    struct secret_rules rules = settings_secret_rules(s);
    assert_string_equal(rules.allow[1], "B");
    assert_null(rules.deny[0]);
    nacre_settings_free(s);
}

/* Every open() of this program and of the libraries it uses goes through here. */
int noted_open(const char *path, int flags, ...) __asm__("open");

static int inheritable_opens;

int noted_open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    inheritable_opens += !(flags & O_CLOEXEC);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* A host may fork at any moment: no descriptor of ours or of the JSON reader's goes along. Runs in
 * a process of its own, since the reader asks for randomness only once. */
static void load_once(void *path)
{
    nacre_settings *s = NULL;
    inheritable_opens = 0;
    EXPECT(nacre_settings_load(path, &s, NULL) == 0);
    EXPECT(nacre_settings_number(s, NACRE_SETTING_SHELLS) == 6);
    EXPECT(inheritable_opens == 0);
    nacre_settings_free(s);
}

static void nothing_is_inherited(void **state)
{
    (void)state;
    unit_in_child(load_once, (void *)write_config("{\"shells\": 6}", 0600));
}

#define TEST(name) cmocka_unit_test_setup(name, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_inherited), /* before anything else has read JSON */
        TEST(counts),
        TEST(times),
        TEST(times_of_the_command_line),
        TEST(sizes),
        TEST(switches_and_choices),
        TEST(lists_and_texts),
        TEST(the_table),
        TEST(defaults),
        TEST(precedence),
        TEST(a_copy_is_its_own),
        TEST(places),
        TEST(files_that_are_missing),
        TEST(files_that_are_not_ours),
        TEST(wrong_files),
        TEST(wrong_values),
        TEST(unknown_names),
        TEST(refused_by_set),
        TEST(wrong_environment),
        TEST(every_kind_in_a_file),
    };
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown);
}
