#include "config/setting_table.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "base/text.h"
#include "config/value.h"

#define SECOND             INT64_C(1000)
#define DAY                (SECOND * 60 * 60 * 24)
#define YEAR               (DAY * 365)
#define KIB                INT64_C(1024)
#define MIB                (1024 * KIB)
#define GIB                (1024 * MIB)
#define TIB                (1024 * GIB)

#define COUNT(least, most) NACRE_KIND_COUNT, least, most
#define TIME(least, most)  NACRE_KIND_TIME, least, most
#define SIZE(least, most)  NACRE_KIND_SIZE, least, most
#define SHARE(least, most) NACRE_KIND_SHARE, least, most
#define SWITCH             NACRE_KIND_SWITCH, 0, 0
#define CHOICE             NACRE_KIND_CHOICE, 0, 0
#define TEXT               NACRE_KIND_TEXT, 0, 0
#define LIST               NACRE_KIND_LIST, 0, 0
#define RULES              NACRE_KIND_RULES, 0, 0
#define PATHS              NACRE_KIND_LIST, LIST_OF_PATHS, 0

/* clang-format off */
const struct setting setting_table[SETTING_COUNT] = {
    [NACRE_SETTING_SHELLS] = {"shells", COUNT(1, 10000), "8", NULL,
        "background shells of one session that may run at a time"},
    [NACRE_SETTING_LISTED] = {"listed", COUNT(1, 10000), "32", NULL,
        "shells that a list shows before the oldest ended ones leave it"},
    [NACRE_SETTING_TIMEOUT] = {"timeout", TIME(1, YEAR), "1m", NULL,
        "a foreground command is ended after this long"},
    [NACRE_SETTING_TIMEOUT_MAX] = {"timeout_max", TIME(1, YEAR), "5m", NULL,
        "the longest timeout that a call may ask for; a longer one is cut to it"},
    [NACRE_SETTING_BACKGROUND_TIMEOUT] = {"background_timeout", TIME(0, YEAR), "0", NULL,
        "a background command is ended after this long; 0 is never"},
    [NACRE_SETTING_YIELD] = {"yield", TIME(1, DAY), "25s", NULL,
        "a foreground call answers after this long, and its command goes on"},
    [NACRE_SETTING_WAIT] = {"wait", TIME(0, DAY), "25s", NULL,
        "the longest that one call waits for a shell"},
    [NACRE_SETTING_WAIT_PROGRESS] = {"wait_progress", TIME(0, DAY), "4m", NULL,
        "the same for clients that are told of progress meanwhile"},
    [NACRE_SETTING_GRACE] = {"grace", TIME(0, YEAR), "2s", NULL,
        "between SIGTERM and SIGKILL"},
    [NACRE_SETTING_UNREAD] = {"unread", SIZE(4 * KIB, GIB), "1MiB", NULL,
        "unread output that is taken at once; of more, head and tail"},
    [NACRE_SETTING_QUOTA] = {"quota", SIZE(256 * KIB, TIB), "64MiB", NULL,
        "output kept of one shell; of more, head and tail"},
    [NACRE_SETTING_HOME_QUOTA] = {"home_quota", SIZE(MIB, 1024 * TIB), "2GiB", NULL,
        "disk space of all that is kept; the oldest ended shells go first"},
    [NACRE_SETTING_HOME_DAYS] = {"home_days", COUNT(1, 36500), "14", NULL,
        "days that an ended shell is kept"},
    [NACRE_SETTING_ANSWER] = {"answer", SIZE(KIB, 16 * MIB), "10KiB", NULL,
        "text of one answer to a model"},
    [NACRE_SETTING_VIEW] = {"view", CHOICE, "full", "full, compact",
        "what a model sees of output that does not fit: all that does, or the last lines only"},
    [NACRE_SETTING_STDERR_LINES] = {"stderr_lines", COUNT(0, 100000), "50", NULL,
        "last lines of stderr that are shown of output that does not fit"},
    [NACRE_SETTING_STDOUT_LINES] = {"stdout_lines", COUNT(0, 100000), "20", NULL,
        "last lines of stdout that are shown of output that does not fit"},
    [NACRE_SETTING_ORDER] = {"order", CHOICE, "streams", "streams, merged",
        "stderr and stdout of what is shown whole: one after the other, or as they came"},
    [NACRE_SETTING_SHELL] = {"shell", TEXT, "", "a path, or a name found in PATH",
        "what reads commands; if empty, bash if there is one, else sh"},
    [NACRE_SETTING_HISTORY] = {"history", SWITCH, "on", NULL,
        "ended shells are kept after their session"},
    [NACRE_SETTING_AUDIT] = {"audit", SWITCH, "on", NULL,
        "every command is noted in a log"},
    [NACRE_SETTING_ENV_ALLOW] = {"env_allow", LIST, "", NULL,
        "variables that commands inherit although they look secret"},
    [NACRE_SETTING_ENV_DENY] = {"env_deny", LIST, "", NULL,
        "variables that commands never inherit"},
    [NACRE_SETTING_STRUCTURED] = {"structured", SWITCH, "off", NULL,
        "answers over MCP have structuredContent too"},
    [NACRE_SETTING_TIER] = {"tier", CHOICE, "cgroup", "cgroup, subreaper, group",
        "the best containment that is tried"},
    [NACRE_SETTING_HOME] = {"home", TEXT, "", "an absolute path",
        "where shells are kept; if empty, nacre in XDG_STATE_HOME or ~/.local/state"},
    [NACRE_SETTING_KEEPER] = {"keeper", TEXT, "", "a path",
        "the program nacre-keeper; if empty, the one that was installed with nacre"},
    [NACRE_SETTING_LIMIT_MEMORY] = {"limit_memory", SIZE(0, 1024 * TIB), "0", NULL,
        "memory of a command with all that it starts; 0 is no limit"},
    [NACRE_SETTING_LIMIT_PROCESSES] = {"limit_processes", COUNT(0, 4194304), "0", NULL,
        "processes and threads of a command at a time; 0 is no limit"},
    [NACRE_SETTING_LIMIT_CPU] = {"limit_cpu", SHARE(0, 409600), "0", NULL,
        "processors that a command may use, such as 1.5; 0 is no limit"},
    [NACRE_SETTING_LIMIT_CPU_TIME] = {"limit_cpu_time", TIME(0, YEAR), "0", NULL,
        "processor time of a command with all that it starts; 0 is no limit"},
    [NACRE_SETTING_LIMIT_FILES] = {"limit_files", COUNT(0, 1073741816), "0", NULL,
        "files that each process of a command has open at a time; 0 is no limit"},
    [NACRE_SETTING_LIMIT_FILE_SIZE] = {"limit_file_size", SIZE(0, 1024 * TIB), "0", NULL,
        "size of each file that a command writes; 0 is no limit"},
    [NACRE_SETTING_LIMIT_DISK] = {"limit_disk", SIZE(0, 1024 * TIB), "0", NULL,
        "what a command may take of the disk it runs on; 0 is no limit"},
    [NACRE_SETTING_LIMITS_STRICT] = {"limits_strict", SWITCH, "off", NULL,
        "nothing starts if one of its limits cannot be held here"},
    [NACRE_SETTING_SANDBOX] = {"sandbox", CHOICE, "off", "off, read-only, workspace-write",
        "what commands may change: all that their user may, nothing, or the workspace"},
    [NACRE_SETTING_SANDBOX_WRITE] = {"sandbox_write", PATHS, "", NULL,
        "what a sandboxed command may change beside the workspace"},
    [NACRE_SETTING_SANDBOX_HIDE] = {"sandbox_hide", PATHS, "", NULL,
        "what a sandboxed command does not see, beside the usual places of keys and passwords"},
    [NACRE_SETTING_SANDBOX_PROTECT] = {"sandbox_protect", PATHS,
        ".git/hooks,.git/config,.vscode,.idea,.claude,.codex,.gemini,.cursor,.mcp.json,.envrc,"
        ".nacre.json", NULL,
        "names in the workspace that a sandboxed command may not change"},
    [NACRE_SETTING_SANDBOX_NETWORK] = {"sandbox_network", LIST, "off", "off, on, or hosts",
        "what a sandboxed command reaches: nothing, everything, or these hosts"},
    [NACRE_SETTING_SANDBOX_SOCKETS] = {"sandbox_sockets", PATHS, "", NULL,
        "Unix sockets that a sandboxed command may talk to"},
    [NACRE_SETTING_SANDBOX_CACHES] = {"sandbox_caches", CHOICE, "private", "private, shared, off",
        "where sandboxed tools keep what they fetched: apart, in the user's caches, or nowhere"},
    [NACRE_SETTING_SANDBOX_TMP] = {"sandbox_tmp", CHOICE, "private", "private, host",
        "whether sandboxed commands have a /tmp of their session's own"},
    [NACRE_SETTING_SANDBOX_WIDE] = {"sandbox_wide", SWITCH, "off", NULL,
        "the workspace may be a whole home directory, or more"},
    [NACRE_SETTING_POLICY] = {"policy", RULES, "", "a list of rules",
        "what commands may run, may not, or are asked about"},
    [NACRE_SETTING_POLICY_DEFAULT] = {"policy_default", CHOICE, "allow", "allow, ask, deny",
        "what happens to commands that no rule is about"},
    [NACRE_SETTING_POLICY_GATE] = {"policy_gate", SWITCH, "on", NULL,
        "rules that forbid or ask hold for whatever a command executes, too"},
};
/* clang-format on */

void setting_variable(const struct setting *setting, char ret_name[SETTING_NAME_MAX + 8])
{
    int n = snprintf(ret_name, SETTING_NAME_MAX + 8, "NACRE_%s", setting->name);
    for (int i = 0; i < n; i++)
        ret_name[i] = text_upper(ret_name[i]);
}

void setting_allowed(const struct setting *setting, char *ret_text, size_t size)
{
    char least[VALUE_NUMBER_MAX], most[VALUE_NUMBER_MAX];
    switch (setting->kind) {
    case NACRE_KIND_COUNT:
    case NACRE_KIND_TIME:
    case NACRE_KIND_SIZE:
    case NACRE_KIND_SHARE:
        value_format(setting, setting->least, least);
        value_format(setting, setting->most, most);
        snprintf(ret_text, size, "%s to %s", least, most);
        return;
    case NACRE_KIND_SWITCH:
        snprintf(ret_text, size, "on, off");
        return;
    case NACRE_KIND_LIST:
        snprintf(ret_text, size, "%s",
                 setting->least == LIST_OF_PATHS ? "paths, with commas between them"
                 : setting->allowed              ? setting->allowed
                                                 : "names, in which * stands for any characters");
        return;
    case NACRE_KIND_CHOICE:
    case NACRE_KIND_TEXT:
    case NACRE_KIND_RULES:
        snprintf(ret_text, size, "%s", setting->allowed);
        return;
    }
}

const struct setting *setting_find(const char *name)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (strcmp(setting_table[i].name, name) == 0)
            return &setting_table[i];
    return NULL;
}

const char *setting_nearest(const char *name)
{
    const char *nearest = NULL;
    size_t steps = SIZE_MAX;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *candidate = setting_table[i].name;
        size_t distance = text_distance(name, candidate);
        if (distance < steps && text_is_near(name, candidate)) {
            nearest = candidate;
            steps = distance;
        }
    }
    return nearest;
}
